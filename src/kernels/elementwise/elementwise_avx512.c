/* The bodies, with AVX-512. */
#include "kernels/elementwise/vector_avx512.h"
#include "kernels/elementwise/vector_math_template.h"
/* in this order: the template is written in the names that the two above define */
#include "kernels/elementwise/elementwise_template.h"

TN_DEFINE_ISA(tn_program_avx512, "avx512");
