/* 8-bit products compiled for AVX512. */
#define INTEGER_PRODUCT_ISA tn_integer_avx512

#include "kernels/matmul/integer_product_template.h"
