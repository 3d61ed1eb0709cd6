/* Which recurrent cells this build and this processor have. */
#include "kernels/recurrent/recurrent_cells.h"

const tn_recurrent_cells *tn_recurrent_cells_get(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return &tn_recurrent_cells_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return &tn_recurrent_cells_avx2;
#else
    (void)cpu;
#endif
    return &tn_recurrent_cells_portable;
}
