/* Which convolution kernels this build and this processor have. */
#include "kernels/conv/conv_kernels.h"

const tn_conv_isa *tn_conv_isa_best(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return &tn_conv_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return &tn_conv_avx2;
#endif
    (void)cpu;
    return &tn_conv_portable;
}

const tn_conv_isa *tn_conv_isa_of_block(uint32_t block, tn_cpu_features cpu) {
#if defined(__x86_64__)
    if (block == 16 && (cpu & TN_CPU_AVX512) != 0) return &tn_conv_avx512;
    if (block == 8 && (cpu & TN_CPU_AVX2) != 0) return &tn_conv_avx2;
#endif
    (void)block;
    (void)cpu;
    return (const tn_conv_isa *)0;
}
