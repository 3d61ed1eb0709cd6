/* The loops of the normalisations over contiguous runs, one table per element type and instruction
 * set. Sums go through fixed lanes and blocks, so the bits are the same with each. */
#ifndef TN_KERNELS_NORM_KERNELS_H
#define TN_KERNELS_NORM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <tenure/tensor.h>

#include "base/cpu_features.h"

/* y = (x - mean) * factor * scale + bias. */
typedef struct tn_norm_row {
    const void *x;
    void *y; /* may be x */
    size_t count;
    double mean;
    double factor;
    const void *scale; /* [count], of the type of x */
    const void *bias;  /* [count] or NULL */
} tn_norm_row;

typedef struct tn_norm_kernel {
    /* Sum of x [count]. */
    double (*sum)(const void *x, size_t count);
    /* Sum of (x - mean)^2. */
    double (*deviation)(const void *x, size_t count, double mean);
    /* One scale and bias for all: y = (x - mean) * factor * scale[0] + bias[0]. */
    void (*apply_one)(const tn_norm_row *row, double scale, double bias);
    /* A scale and a bias for each. */
    void (*apply_each)(const tn_norm_row *row);
} tn_norm_kernel;

/* Lends the kernel; NULL for types that are not floats. */
const tn_norm_kernel *tn_norm_get(tn_dtype dtype, tn_cpu_features cpu);

/* Lends the f32 kernel of the best instruction set, or NULL when there is only the portable one. */
const tn_norm_kernel *tn_norm_f32_fastest(tn_cpu_features cpu);

/* Element `index` of a float tensor as a number, and back. */
double tn_norm_load(tn_dtype dtype, const void *data, size_t index);
void tn_norm_store(tn_dtype dtype, void *data, size_t index, double value);

extern const tn_norm_kernel tn_norm_f32_avx2;
extern const tn_norm_kernel tn_norm_f32_avx512;

#endif
