/* Normalisation loops of every float type in portable C, and the choice among instruction sets. */
#include "kernels/normalization/norm_template.h"

DEFINE_NORM(F32, float, float, NORM_SAME, NORM_SAME)
DEFINE_NORM(F64, double, double, NORM_SAME, NORM_SAME)
DEFINE_NORM(F16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)
DEFINE_NORM(BF16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32)

const tn_norm_kernel *tn_norm_get(tn_dtype dtype, tn_cpu_features cpu) {
    static const tn_norm_kernel kernels[TN_DTYPE_COUNT] = {
        [TN_DTYPE_F32] = NORM_KERNEL(F32),
        [TN_DTYPE_F64] = NORM_KERNEL(F64),
        [TN_DTYPE_F16] = NORM_KERNEL(F16),
        [TN_DTYPE_BF16] = NORM_KERNEL(BF16),
    };
    const tn_norm_kernel *fastest = dtype == TN_DTYPE_F32 ? tn_norm_f32_fastest(cpu) : NULL;
    if (fastest != NULL) return fastest;
    if (dtype >= TN_DTYPE_COUNT || kernels[dtype].sum == NULL) return NULL;
    return &kernels[dtype];
}

double tn_norm_load(tn_dtype dtype, const void *data, size_t index) {
    if (dtype == TN_DTYPE_F32) return (double)((const float *)data)[index];
    if (dtype == TN_DTYPE_F64) return ((const double *)data)[index];
    if (dtype == TN_DTYPE_F16) return (double)tn_f32_from_f16(((const uint16_t *)data)[index]);
    return (double)tn_f32_from_bf16(((const uint16_t *)data)[index]);
}

void tn_norm_store(tn_dtype dtype, void *data, size_t index, double value) {
    if (dtype == TN_DTYPE_F32) {
        ((float *)data)[index] = (float)value;
    } else if (dtype == TN_DTYPE_F64) {
        ((double *)data)[index] = value;
    } else if (dtype == TN_DTYPE_F16) {
        ((uint16_t *)data)[index] = tn_f16_from_f32((float)value);
    } else {
        ((uint16_t *)data)[index] = tn_bf16_from_f32((float)value);
    }
}
