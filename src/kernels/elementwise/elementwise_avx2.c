/* The bodies, with AVX2. */
#include "kernels/elementwise/vector_avx2.h"
#include "kernels/elementwise/vector_math_template.h"
/* in this order: the template is written in the names that the two above define */
#include "kernels/elementwise/elementwise_template.h"

TN_DEFINE_ISA(tn_program_avx2, "avx2");
