/* Products by plain loops for every element type and any strides: a strip of sums stays in the
 * registers or the first cache while k runs. Floats of 16 bits sum in f32; integers wrap. */
#include "kernels/common/half.h"
#include "kernels/matmul/product.h"

enum { STRIP = 64 };

#define LOAD_SAME(x) (x)

/* X(name, element, sum, load, store). Signed integers sum as unsigned: overflow wraps. */
#define PRODUCT_TYPES(X)                                         \
    X(F32, float, float, LOAD_SAME, LOAD_SAME)                   \
    X(F64, double, double, LOAD_SAME, LOAD_SAME)                 \
    X(F16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)    \
    X(BF16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32) \
    X(I32, uint32_t, uint32_t, LOAD_SAME, LOAD_SAME)             \
    X(U32, uint32_t, uint32_t, LOAD_SAME, LOAD_SAME)             \
    X(I64, uint64_t, uint64_t, LOAD_SAME, LOAD_SAME)             \
    X(U64, uint64_t, uint64_t, LOAD_SAME, LOAD_SAME)

#define SCALE_F32(sum, factor) ((sum) * (factor))
#define SCALE_F64(sum, factor) ((sum) * (double)(factor))
#define SCALE_F16 SCALE_F32
#define SCALE_BF16 SCALE_F32
/* Integers: factors are whole in practice; the double keeps 53 bits of them. */
#define SCALE_I32(sum, factor) \
    ((factor) == 1.0F ? (sum) : (uint32_t)(int32_t)((double)(int32_t)(sum) * (double)(factor)))
#define SCALE_U32(sum, factor) \
    ((factor) == 1.0F ? (sum) : (uint32_t)((double)(sum) * (double)(factor)))
#define SCALE_I64(sum, factor) \
    ((factor) == 1.0F ? (sum) : (uint64_t)(int64_t)((double)(int64_t)(sum) * (double)(factor)))
#define SCALE_U64(sum, factor) \
    ((factor) == 1.0F ? (sum) : (uint64_t)((double)(sum) * (double)(factor)))

#define DEFINE_PRODUCT(name, type, sum_type, load, store)                                    \
    static void strip_##name(const tn_product_geometry *g, const type *a, const type *b,     \
                             size_t cols, sum_type *sums) {                                  \
        for (size_t j = 0; j < cols; j++) sums[j] = 0;                                       \
        for (size_t p = 0; p < g->k; p++) {                                                  \
            const sum_type x = load(a[p * g->a_k_stride]);                                   \
            const type *row = b + p * g->b_k_stride;                                         \
            for (size_t j = 0; j < cols; j++) sums[j] += x * load(row[j * g->b_col_stride]); \
        }                                                                                    \
    }                                                                                        \
    static void product_##name(const tn_product_call *call, const tn_product_part *part) {   \
        const tn_product_geometry *g = call->geometry;                                       \
        const type *c = call->c;                                                             \
        sum_type sums[STRIP];                                                                \
        for (size_t i = part->row0; i < part->row0 + part->rows; i++) {                      \
            for (size_t done = 0; done < part->cols; done += STRIP) {                        \
                const size_t col0 = part->col0 + done;                                       \
                const size_t cols = part->cols - done < STRIP ? part->cols - done : STRIP;   \
                strip_##name(g, (const type *)call->a + i * g->a_row_stride,                 \
                             (const type *)call->b + col0 * g->b_col_stride, cols, sums);    \
                type *out = (type *)call->out + i * g->n + col0;                             \
                for (size_t j = 0; j < cols; j++) {                                          \
                    sum_type sum = SCALE_##name(sums[j], call->alpha);                       \
                    if (c != NULL) {                                                         \
                        const size_t at =                                                    \
                            i * call->c_row_stride + (col0 + j) * call->c_col_stride;        \
                        sum += SCALE_##name((sum_type)load(c[at]), call->beta);              \
                    }                                                                        \
                    out[j] = store(sum);                                                     \
                }                                                                            \
            }                                                                                \
        }                                                                                    \
    }
PRODUCT_TYPES(DEFINE_PRODUCT)
#undef DEFINE_PRODUCT

tn_product_generic_fn tn_product_generic(tn_dtype dtype) {
    static const tn_product_generic_fn by_dtype[TN_DTYPE_COUNT] = {
#define PRODUCT_ENTRY(name, type, sum_type, load, store) [TN_DTYPE_##name] = product_##name,
        PRODUCT_TYPES(PRODUCT_ENTRY)
#undef PRODUCT_ENTRY
    };
    return dtype < TN_DTYPE_COUNT ? by_dtype[dtype] : NULL;
}
