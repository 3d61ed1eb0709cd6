/* Softmax kernels of every element type in portable C, and the choice among instruction sets. */
#include "kernels/softmax/softmax_template.h"

DEFINE_SOFTMAX_F32()
DEFINE_SOFTMAX(F64, double, double, SOFTMAX_SAME, SOFTMAX_SAME, exp, log)

/* 16-bit floats compute in f32; a row keeps its terms unrounded by going through columns. */
DEFINE_COLUMNS(F16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32, tn_exp_lane, logf)
DEFINE_HARD(F16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)
DEFINE_COLUMNS(BF16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32, tn_exp_lane, logf)
DEFINE_HARD(BF16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32)

static const tn_softmax_kernel f32_kernels[TN_SOFTMAX_KIND_COUNT] = SOFTMAX_F32_KERNELS;

static const tn_softmax_kernel f64_kernels[TN_SOFTMAX_KIND_COUNT] = {
    [TN_SOFTMAX_EXP] = {exp_row_F64, exp_columns_F64},
    [TN_SOFTMAX_LOG] = {log_row_F64, log_columns_F64},
    [TN_SOFTMAX_HARD] = {hard_columns_F64, hard_columns_F64},
};

static const tn_softmax_kernel f16_kernels[TN_SOFTMAX_KIND_COUNT] = {
    [TN_SOFTMAX_EXP] = {exp_columns_F16, exp_columns_F16},
    [TN_SOFTMAX_LOG] = {log_columns_F16, log_columns_F16},
    [TN_SOFTMAX_HARD] = {hard_columns_F16, hard_columns_F16},
};

static const tn_softmax_kernel bf16_kernels[TN_SOFTMAX_KIND_COUNT] = {
    [TN_SOFTMAX_EXP] = {exp_columns_BF16, exp_columns_BF16},
    [TN_SOFTMAX_LOG] = {log_columns_BF16, log_columns_BF16},
    [TN_SOFTMAX_HARD] = {hard_columns_BF16, hard_columns_BF16},
};

const tn_softmax_kernel *tn_softmax_get(tn_softmax_kind kind, tn_dtype dtype, tn_cpu_features cpu) {
    static const tn_softmax_kernel *const by_dtype[TN_DTYPE_COUNT] = {
        [TN_DTYPE_F32] = f32_kernels,
        [TN_DTYPE_F64] = f64_kernels,
        [TN_DTYPE_F16] = f16_kernels,
        [TN_DTYPE_BF16] = bf16_kernels,
    };
    const tn_softmax_kernel *fastest = dtype == TN_DTYPE_F32 ? tn_softmax_f32_fastest(cpu) : NULL;
    if (fastest != NULL) return &fastest[kind];
    if (dtype >= TN_DTYPE_COUNT || by_dtype[dtype] == NULL) return NULL;
    return &by_dtype[dtype][kind];
}
