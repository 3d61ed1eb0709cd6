/* f32 reducers compiled for AVX2. */
#define REDUCERS_F32_TABLE tn_reducers_f32_avx2

#include "kernels/reduce/reducers_f32_template.h"
