/* Which matrix product kernels this build and this processor have. */
#include "kernels/common/gemm.h"

const tn_gemm_isa *tn_gemm_isa_get(uint32_t id, tn_cpu_features cpu) {
#if defined(__x86_64__)
    if (id == 2 && (cpu & TN_CPU_AVX512) != 0) return &tn_gemm_avx512;
    if (id == 1 && (cpu & TN_CPU_AVX2) != 0) return &tn_gemm_avx2;
#else
    (void)cpu;
#endif
    return id == 0 ? &tn_gemm_portable : (const tn_gemm_isa *)0;
}

const tn_gemm_isa *tn_gemm_isa_best(tn_cpu_features cpu) {
    for (uint32_t id = TN_GEMM_ISA_COUNT; id-- > 1;) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, cpu);
        if (isa != (const tn_gemm_isa *)0) return isa;
    }
    return &tn_gemm_portable;
}
