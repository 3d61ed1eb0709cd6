/* Which f32 normalisation loops this build and this processor have beyond the portable ones. */
#include "kernels/normalization/norm_kernels.h"

const tn_norm_kernel *tn_norm_f32_fastest(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return &tn_norm_f32_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return &tn_norm_f32_avx2;
#else
    (void)cpu;
#endif
    return NULL;
}
