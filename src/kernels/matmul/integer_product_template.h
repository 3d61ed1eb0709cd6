/* Rows of 8-bit products, included once per instruction set as the table INTEGER_PRODUCT_ISA. */
#ifndef TN_KERNELS_INTEGER_PRODUCT_TEMPLATE_H
#define TN_KERNELS_INTEGER_PRODUCT_TEMPLATE_H

#include "kernels/matmul/integer_product.h"

/* Sums wrap, as 32-bit integers do. */
#define DEFINE_ROW(name, a_type, b_type)                                      \
    static void name(const tn_integer_row *row) {                             \
        const a_type *a = row->a;                                             \
        uint32_t sums[TN_INTEGER_COLS] = {0};                                 \
        const size_t cols = row->cols;                                        \
        for (size_t p = 0; p < row->k; p++) {                                 \
            const int32_t x = (int32_t)a[p] - row->a_zero;                    \
            const b_type *b = (const b_type *)row->b + p * row->b_k_stride;   \
            for (size_t j = 0; j < cols; j++) {                               \
                sums[j] += (uint32_t)(x * ((int32_t)b[j] - row->b_zeros[j])); \
            }                                                                 \
        }                                                                     \
        for (size_t j = 0; j < cols; j++) row->out[j] = (int32_t)sums[j];     \
    }

DEFINE_ROW(row_u8_u8, uint8_t, uint8_t)
DEFINE_ROW(row_u8_i8, uint8_t, int8_t)
DEFINE_ROW(row_i8_u8, int8_t, uint8_t)
DEFINE_ROW(row_i8_i8, int8_t, int8_t)

const tn_integer_isa INTEGER_PRODUCT_ISA = {{{row_u8_u8, row_u8_i8}, {row_i8_u8, row_i8_i8}}};

#endif
