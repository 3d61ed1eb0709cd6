/* f32 softmax kernels compiled for AVX512. */
#include "kernels/softmax/softmax_template.h"

DEFINE_SOFTMAX_F32()

const tn_softmax_kernel tn_softmax_f32_avx512[TN_SOFTMAX_KIND_COUNT] = SOFTMAX_F32_KERNELS;
