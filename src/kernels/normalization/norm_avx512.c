/* f32 normalisation loops compiled for AVX512. */
#include "kernels/normalization/norm_template.h"

DEFINE_NORM(F32, float, float, NORM_SAME, NORM_SAME)

const tn_norm_kernel tn_norm_f32_avx512 = NORM_KERNEL(F32);
