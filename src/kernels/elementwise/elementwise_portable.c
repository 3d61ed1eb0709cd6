/* The bodies, on any processor. */
#include "kernels/elementwise/vector_portable.h"
#include "kernels/elementwise/vector_math_template.h"
/* in this order: the template is written in the names that the two above define */
#include "kernels/elementwise/elementwise_template.h"

TN_DEFINE_ISA(tn_program_portable, "portable");
