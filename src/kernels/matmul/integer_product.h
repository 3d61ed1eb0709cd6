/* Products of 8-bit integers with zero points, summed in 32 bits. */
#ifndef TN_KERNELS_INTEGER_PRODUCT_H
#define TN_KERNELS_INTEGER_PRODUCT_H

#include <stdint.h>

#include "base/cpu_features.h"
#include "kernels/matmul/product.h"

/* One row of the product: out[j] = sum over p of (a[p] - a_zero) * (b[p][j] - b_zeros[j]). */
typedef struct tn_integer_row {
    const void *a;
    const void *b; /* [k], rows b_k_stride apart */
    size_t b_k_stride;
    size_t k;
    size_t cols; /* at most TN_INTEGER_COLS */
    int32_t a_zero;
    const int32_t *b_zeros; /* [cols] */
    int32_t *out;
} tn_integer_row;

enum { TN_INTEGER_COLS = 128 };

typedef void (*tn_integer_row_fn)(const tn_integer_row *row);

/* By signedness of a, then of b. */
typedef struct tn_integer_isa {
    tn_integer_row_fn rows[2][2];
} tn_integer_isa;

/* Lends the fastest loops of `cpu`. */
const tn_integer_isa *tn_integer_isa_get(tn_cpu_features cpu);

extern const tn_integer_isa tn_integer_portable;
extern const tn_integer_isa tn_integer_avx2;
extern const tn_integer_isa tn_integer_avx512;

#endif
