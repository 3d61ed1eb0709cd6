/* Which loops for 8-bit products this build and this processor have. */
#include "kernels/matmul/integer_product.h"

const tn_integer_isa *tn_integer_isa_get(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return &tn_integer_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return &tn_integer_avx2;
#else
    (void)cpu;
#endif
    return &tn_integer_portable;
}
