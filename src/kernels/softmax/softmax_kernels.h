/* Kernels of the softmax family over [outer, length, inner]. */
#ifndef TN_KERNELS_SOFTMAX_KERNELS_H
#define TN_KERNELS_SOFTMAX_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <tenure/tensor.h>

#include "base/cpu_features.h"

typedef enum tn_softmax_kind {
    TN_SOFTMAX_EXP,  /* Softmax */
    TN_SOFTMAX_LOG,  /* LogSoftmax */
    TN_SOFTMAX_HARD, /* Hardmax: 1 at the first greatest value */
    TN_SOFTMAX_KIND_COUNT
} tn_softmax_kind;

enum { TN_SOFTMAX_COLS = 64 };

/* One row, or up to TN_SOFTMAX_COLS neighbouring columns of one outer index. y may be x. */
typedef struct tn_softmax_span {
    const void *x;
    void *y;
    size_t length; /* of the axis */
    size_t stride; /* elements between its steps; 1: a row */
    size_t cols;   /* 1 for a row */
} tn_softmax_span;

typedef void (*tn_softmax_fn)(const tn_softmax_span *span);

typedef struct tn_softmax_kernel {
    tn_softmax_fn row;     /* stride 1 */
    tn_softmax_fn columns; /* any stride */
} tn_softmax_kernel;

/* Lends the kernel; NULL when the type has none. */
const tn_softmax_kernel *tn_softmax_get(tn_softmax_kind kind, tn_dtype dtype, tn_cpu_features cpu);

/* Lends the f32 kernels [TN_SOFTMAX_KIND_COUNT] of the best instruction set, or NULL when there are
 * only the portable ones. */
const tn_softmax_kernel *tn_softmax_f32_fastest(tn_cpu_features cpu);

extern const tn_softmax_kernel tn_softmax_f32_avx2[TN_SOFTMAX_KIND_COUNT];
extern const tn_softmax_kernel tn_softmax_f32_avx512[TN_SOFTMAX_KIND_COUNT];

#endif
