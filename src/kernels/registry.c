/* One line per family; a new operator in a family does not touch this file. */
#include "kernels/registry.h"

#define TN_FAMILY_LIST(X) \
    X(activation)         \
    X(arg_reduce)         \
    X(attention)          \
    X(batch_norm)         \
    X(binary_math)        \
    X(cast)               \
    X(col2im)             \
    X(concat)             \
    X(control)            \
    X(conv)               \
    X(conv_transpose)     \
    X(cumulative)         \
    X(det)                \
    X(dropout)            \
    X(einsum)             \
    X(fused)              \
    X(gather)             \
    X(generate)           \
    X(grid)               \
    X(logic)              \
    X(loss)               \
    X(lp_pool)            \
    X(matmul)             \
    X(matmul_integer)     \
    X(max_unpool)         \
    X(nms)                \
    X(pad)                \
    X(pool)               \
    X(rearrange)          \
    X(recurrent)          \
    X(reduce)             \
    X(reorder)            \
    X(reshape)            \
    X(resize)             \
    X(row_norm)           \
    X(rotary)             \
    X(scatter)            \
    X(select)             \
    X(slice)              \
    X(softmax)            \
    X(topk)               \
    X(unary_math)         \
    X(unique)             \
    X(window_norm)

#define TN_FAMILY_DECLARE(family) extern const tn_op_table tn_##family##_table;
TN_FAMILY_LIST(TN_FAMILY_DECLARE)

static const tn_op_table *const tables[] = {
#define TN_FAMILY_ENTRY(family) &tn_##family##_table,
    TN_FAMILY_LIST(TN_FAMILY_ENTRY) NULL,
};

const tn_op_table *const *tn_registry_tables(size_t *out_count) {
    *out_count = TN_COUNTOF(tables) - 1;
    return tables;
}
