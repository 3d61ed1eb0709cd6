/* Which f32 softmax kernels this build and this processor have beyond the portable ones. */
#include "kernels/softmax/softmax_kernels.h"

const tn_softmax_kernel *tn_softmax_f32_fastest(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return tn_softmax_f32_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return tn_softmax_f32_avx2;
#else
    (void)cpu;
#endif
    return NULL;
}
