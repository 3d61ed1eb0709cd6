/* Squares of floats in portable C, and which kernel this build and this processor have. */
#include "kernels/common/transpose.h"

static void transpose_portable(const float *from, size_t from_stride, float *to, size_t to_stride) {
    for (size_t j = 0; j < 8; j++) {
        for (size_t i = 0; i < 8; i++) to[j * to_stride + i] = from[i * from_stride + j];
    }
}

tn_transpose_fn tn_transpose_8x8_best(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX2) != 0) return tn_transpose_8x8_avx2;
#endif
    (void)cpu;
    return transpose_portable;
}
