/* 8-bit products compiled for any processor. */
#define INTEGER_PRODUCT_ISA tn_integer_portable

#include "kernels/matmul/integer_product_template.h"
