/* The f32 reducers of one instruction set, as the table REDUCERS_F32_TABLE. */
#ifndef TN_KERNELS_REDUCERS_F32_TEMPLATE_H
#define TN_KERNELS_REDUCERS_F32_TEMPLATE_H

#include "kernels/reduce/reduce_template.h"

#define DEFINE_F32(kind) \
    DEFINE_REDUCER(kind, F32, float, float, float, REDUCE_SAME, REDUCE_SAME, F, -INFINITY, INFINITY)
DEFINE_F32(Sum)
DEFINE_F32(Mean)
DEFINE_F32(SumSquare)
DEFINE_F32(L1)
DEFINE_F32(L2)
DEFINE_F32(LogSum)
DEFINE_F32(Prod)
DEFINE_F32(Max)
DEFINE_F32(Min)
DEFINE_LOG_SUM_EXP(F32, float, float, REDUCE_SAME, REDUCE_SAME, expf, logf)

const tn_reducer REDUCERS_F32_TABLE[TN_REDUCE_KIND_COUNT] = {
#define F32_ENTRY(kind) [TN_REDUCE_##kind] = REDUCER_ENTRY(kind, F32, float),
    F32_ENTRY(Sum) F32_ENTRY(Mean) F32_ENTRY(SumSquare) F32_ENTRY(L1) F32_ENTRY(L2)
        F32_ENTRY(LogSum) F32_ENTRY(Prod) F32_ENTRY(Max) F32_ENTRY(Min)[TN_REDUCE_LogSumExp] =
            REDUCER_ENTRY(LogSumExp, F32, lse_F32),
#undef F32_ENTRY
};

#endif
