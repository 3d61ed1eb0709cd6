/* 8-bit products compiled for AVX2. */
#define INTEGER_PRODUCT_ISA tn_integer_avx2

#include "kernels/matmul/integer_product_template.h"
