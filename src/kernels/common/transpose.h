/* Transposing small squares of floats. */
#ifndef TN_KERNELS_TRANSPOSE_H
#define TN_KERNELS_TRANSPOSE_H

#include <stddef.h>

#include "base/cpu_features.h"

/* to[j * to_stride + i] = from[i * from_stride + j] for i, j in [0, 8). Strides count floats. */
typedef void (*tn_transpose_fn)(const float *from, size_t from_stride, float *to, size_t to_stride);

/* Lends the fastest one that `cpu` has; never NULL. */
tn_transpose_fn tn_transpose_8x8_best(tn_cpu_features cpu);

void tn_transpose_8x8_avx2(const float *from, size_t from_stride, float *to, size_t to_stride);

#endif
