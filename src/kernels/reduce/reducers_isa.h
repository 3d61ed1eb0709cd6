/* Choice of the f32 reducers by instruction set. */
#ifndef TN_KERNELS_REDUCERS_ISA_H
#define TN_KERNELS_REDUCERS_ISA_H

#include "kernels/reduce/reducers.h"

/* Lends the table [TN_REDUCE_KIND_COUNT] of the best instruction set, or NULL when there is only
 * the portable one. */
const tn_reducer *tn_reducers_f32_fastest(tn_cpu_features cpu);

#endif
