/* Reducers of every element type in portable C, and the choice among instruction sets. */
#include "kernels/reduce/reducers.h"

#include "kernels/reduce/reduce_template.h"
#include "kernels/reduce/reducers_isa.h"

/* 16-bit floats accumulate in f32. */
#define WIDE_TYPES(X, kind)                                                                        \
    X(kind, F32, float, float, float, REDUCE_SAME, REDUCE_SAME, F, -INFINITY, INFINITY)            \
    X(kind, F64, double, double, double, REDUCE_SAME, REDUCE_SAME, F, -(double)INFINITY,           \
      (double)INFINITY)                                                                            \
    X(kind, F16, uint16_t, float, float, tn_f32_from_f16, tn_f16_from_f32, F, -INFINITY, INFINITY) \
    X(kind, BF16, uint16_t, float, float, tn_f32_from_bf16, tn_bf16_from_f32, F, -INFINITY,        \
      INFINITY)                                                                                    \
    X(kind, I32, int32_t, int32_t, uint32_t, REDUCE_SAME, REDUCE_SAME, S, INT32_MIN, INT32_MAX)    \
    X(kind, I64, int64_t, int64_t, uint64_t, REDUCE_SAME, REDUCE_SAME, S, INT64_MIN, INT64_MAX)    \
    X(kind, U32, uint32_t, uint32_t, uint32_t, REDUCE_SAME, REDUCE_SAME, U, 0, UINT32_MAX)         \
    X(kind, U64, uint64_t, uint64_t, uint64_t, REDUCE_SAME, REDUCE_SAME, U, 0, UINT64_MAX)

#define NARROW_TYPES(X, kind)                                                             \
    X(kind, I8, int8_t, int8_t, uint8_t, REDUCE_SAME, REDUCE_SAME, S, INT8_MIN, INT8_MAX) \
    X(kind, U8, uint8_t, uint8_t, uint8_t, REDUCE_SAME, REDUCE_SAME, U, 0, UINT8_MAX)     \
    X(kind, BOOL, uint8_t, uint8_t, uint8_t, REDUCE_SAME, REDUCE_SAME, U, 0, 1)

WIDE_TYPES(DEFINE_REDUCER, Sum)
WIDE_TYPES(DEFINE_REDUCER, Mean)
WIDE_TYPES(DEFINE_REDUCER, SumSquare)
WIDE_TYPES(DEFINE_REDUCER, L1)
WIDE_TYPES(DEFINE_REDUCER, L2)
WIDE_TYPES(DEFINE_REDUCER, LogSum)
WIDE_TYPES(DEFINE_REDUCER, Prod)
WIDE_TYPES(DEFINE_REDUCER, Max)
WIDE_TYPES(DEFINE_REDUCER, Min)
NARROW_TYPES(DEFINE_REDUCER, Max)
NARROW_TYPES(DEFINE_REDUCER, Min)

#define LSE_TYPES(X)                                                         \
    X(F32, float, float, REDUCE_SAME, REDUCE_SAME, expf, logf)               \
    X(F64, double, double, REDUCE_SAME, REDUCE_SAME, exp, log)               \
    X(F16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32, expf, logf)    \
    X(BF16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32, expf, logf) \
    X(I32, int32_t, double, REDUCE_SAME, REDUCE_SAME, exp, log)              \
    X(I64, int64_t, double, REDUCE_SAME, REDUCE_SAME, exp, log)              \
    X(U32, uint32_t, double, REDUCE_SAME, REDUCE_SAME, exp, log)             \
    X(U64, uint64_t, double, REDUCE_SAME, REDUCE_SAME, exp, log)
LSE_TYPES(DEFINE_LOG_SUM_EXP)

static const tn_reducer reducers[TN_REDUCE_KIND_COUNT][TN_DTYPE_COUNT] = {
#define ENTRY(kind, name, element, acc, ...) \
    [TN_REDUCE_##kind][TN_DTYPE_##name] = REDUCER_ENTRY(kind, name, acc),
#define LSE_ENTRY(name, ...) \
    [TN_REDUCE_LogSumExp][TN_DTYPE_##name] = REDUCER_ENTRY(LogSumExp, name, lse_##name),
    WIDE_TYPES(ENTRY, Sum) WIDE_TYPES(ENTRY, Mean) WIDE_TYPES(ENTRY, SumSquare)
        WIDE_TYPES(ENTRY, L1) WIDE_TYPES(ENTRY, L2) WIDE_TYPES(ENTRY, LogSum)
            WIDE_TYPES(ENTRY, Prod) WIDE_TYPES(ENTRY, Max) WIDE_TYPES(ENTRY, Min)
                NARROW_TYPES(ENTRY, Max) NARROW_TYPES(ENTRY, Min) LSE_TYPES(LSE_ENTRY)};

const tn_reducer *tn_reducer_get(tn_reduce_kind kind, tn_dtype dtype, tn_cpu_features cpu) {
    const tn_reducer *fastest =
        dtype == TN_DTYPE_F32 ? tn_reducers_f32_fastest(cpu) : (const tn_reducer *)0;
    if (fastest != NULL) return &fastest[kind];
    if (dtype >= TN_DTYPE_COUNT) return NULL;
    const tn_reducer *reducer = &reducers[kind][dtype];
    return reducer->accumulator_bytes == 0 ? NULL : reducer;
}
