/* f32 normalisation loops compiled for AVX2. */
#include "kernels/normalization/norm_template.h"

DEFINE_NORM(F32, float, float, NORM_SAME, NORM_SAME)

const tn_norm_kernel tn_norm_f32_avx2 = NORM_KERNEL(F32);
