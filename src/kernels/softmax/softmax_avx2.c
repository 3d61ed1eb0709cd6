/* f32 softmax kernels compiled for AVX2. */
#include "kernels/softmax/softmax_template.h"

DEFINE_SOFTMAX_F32()

const tn_softmax_kernel tn_softmax_f32_avx2[TN_SOFTMAX_KIND_COUNT] = SOFTMAX_F32_KERNELS;
