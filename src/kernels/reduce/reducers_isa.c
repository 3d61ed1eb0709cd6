/* Which f32 reducers this build and this processor have beyond the portable ones. */
#include "kernels/reduce/reducers_isa.h"

const tn_reducer *tn_reducers_f32_fastest(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return tn_reducers_f32_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return tn_reducers_f32_avx2;
#else
    (void)cpu;
#endif
    return (const tn_reducer *)0;
}
