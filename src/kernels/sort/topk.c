/* TopK. One line of the axis at a time: a heap keeps the k first entries of the line (key, then
 * lower index), which are then sorted. Scratch per worker is 2 k entries. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"
#include "kernels/sort/sort_key.h"

typedef struct topk_params {
    int64_t axis;
    int64_t k; /* opset 1; else -1 and input 1 tells */
    bool is_smallest;
} topk_params;

typedef struct topk_record {
    tn_dtype dtype;
    uint32_t elem_bytes;
    uint32_t tile_count;
    bool is_smallest;
    bool has_values, has_indices;
    size_t line_count; /* outer times inner */
    size_t axis_dim, inner_len;
    size_t k;
} topk_record;

static tn_status topk_check(const tn_check_context *ctx, void *params) {
    topk_params *p = params;
    int64_t largest = 1;
    p->k = -1;
    TN_TRY(tn_check_int(ctx, "largest", 1, &largest));
    p->is_smallest = largest == 0;
    return tn_check_int(ctx, "axis", -1, &p->axis);
}

static tn_status topk1_check(const tn_check_context *ctx, void *params) {
    topk_params *p = params;
    TN_TRY(topk_check(ctx, params));
    TN_TRY(tn_check_int(ctx, "k", -1, &p->k));
    TN_REQUIRE(p->k >= 0, ctx->err, TN_INVALID_MODEL, "attribute k is missing or negative");
    return TN_OK;
}

static tn_status topk_infer(const tn_node_facts *node, tn_error *err) {
    const topk_params *p = node->params;
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_set_output(node, 0, dtype, NULL);
    tn_set_output(node, 1, TN_DTYPE_I64, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    tn_shape to = node->inputs[0]->shape;
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, to.rank, &axis, err));
    int64_t k = p->k;
    if (k < 0) {
        tn_int_list given;
        TN_TRY(tn_read_int_list(node, 1, &given, err));
        TN_REQUIRE(!given.is_known || (given.count == 1 && given.values[0] >= 0), err,
                   TN_INVALID_ARGUMENT, "k is %lld (%zu numbers)",
                   given.count > 0 ? (long long)given.values[0] : 0LL, given.count);
        k = given.is_known ? given.values[0] : TN_DIM_UNKNOWN;
    }
    TN_REQUIRE(k < 0 || to.dims[axis] < 0 || k <= to.dims[axis], err, TN_INVALID_ARGUMENT,
               "k is %lld, axis %d has %lld elements", (long long)k, (int)axis,
               (long long)to.dims[axis]);
    to.dims[axis] = k;
    tn_set_output(node, 0, dtype, &to);
    tn_set_output(node, 1, TN_DTYPE_I64, &to);
    return TN_OK;
}

static void topk_line(const topk_record *r, const tn_kernel_context *ctx, size_t line,
                      tn_sort_entry *kept) {
    const size_t outer = line / r->inner_len;
    const size_t inner = line % r->inner_len;
    const size_t first = outer * r->axis_dim * r->inner_len + inner;
    const char *in = tn_kernel_in(ctx, 0);
    const tn_sort_key_fn key_of = tn_sort_key_of(r->dtype);
    const uint64_t flip = r->is_smallest ? 0 : UINT64_MAX;
    size_t count = 0;
    for (size_t i = 0; i < r->axis_dim; i++) {
        const tn_sort_entry entry = {key_of(in, first + i * r->inner_len) ^ flip, i};
        if (tn_sort_wants(kept, count, r->k, &entry)) tn_sort_offer(kept, &count, r->k, &entry);
    }
    tn_sort_entries(kept, kept + r->k, count);
    char *values = r->has_values ? tn_kernel_out(ctx, 0) : NULL;
    int64_t *indices = r->has_indices ? tn_kernel_out(ctx, 1) : NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t to = (outer * r->k + i) * r->inner_len + inner;
        const size_t from = first + (size_t)kept[i].index * r->inner_len;
        if (indices != NULL) indices[to] = (int64_t)kept[i].index;
        if (values != NULL) {
            tn_copy_small(values + to * r->elem_bytes, in + from * r->elem_bytes, r->elem_bytes);
        }
    }
}

static tn_status topk_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    const topk_record *r = record;
    size_t line = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->line_count, r->tile_count, tile0, &line, &ignored);
    tn_tile_range(r->line_count, r->tile_count, tile1 - 1, &ignored, &end);
    for (; line < end; line++) topk_line(r, ctx, line, tn_kernel_scratch(ctx, worker));
    return TN_OK;
}

static const tn_fact *wanted_output(const tn_node_facts *node) {
    const tn_fact *values = tn_node_output(node, 0);
    return values != NULL ? values : tn_node_output(node, 1);
}

static tn_status topk_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                               tn_error *err) {
    const tn_node_facts *node = query->node;
    const topk_params *p = node->params;
    if (!tn_node_is_sized(node) || wanted_output(node) == NULL) {
        tn_one_variant("topk", topk_run, 0, 1, out, out_count);
        return TN_OK;
    }
    const tn_shape *to = &wanted_output(node)->shape;
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, to->rank, &axis, err));
    const size_t len = tn_fact_len_elems(node->inputs[0]);
    const size_t axis_dim = (size_t)node->inputs[0]->shape.dims[axis];
    /* an element costs about as much as moving 32 bytes */
    tn_one_variant("topk", topk_run, 32 * len, axis_dim == 0 ? 1 : len / axis_dim, out, out_count);
    TN_REQUIRE(tn_size_mul((size_t)to->dims[axis], 2 * sizeof(tn_sort_entry),
                           &out[0].worker_scratch_bytes),
               err, TN_OVERFLOW, "k is %lld", (long long)to->dims[axis]);
    return TN_OK;
}

static tn_status topk_bind(const tn_bind_context *ctx, void *record) {
    topk_record *r = record;
    const topk_params *p = ctx->node->params;
    const tn_fact *input = ctx->node->inputs[0];
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, input->shape.rank, &axis, ctx->err));
    r->dtype = input->dtype;
    r->elem_bytes = (uint32_t)tn_elem_bytes(input->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
    r->is_smallest = p->is_smallest;
    r->has_values = tn_node_output(ctx->node, 0) != NULL;
    r->has_indices = tn_node_output(ctx->node, 1) != NULL;
    if (wanted_output(ctx->node) == NULL) return TN_OK; /* no lines */
    if (tn_fact_len_elems(wanted_output(ctx->node)) == 0) return TN_OK;
    r->axis_dim = (size_t)input->shape.dims[axis];
    r->inner_len = (size_t)tn_dims_product(&input->shape, axis + 1, input->shape.rank);
    r->line_count = (size_t)tn_dims_product(&input->shape, 0, axis) * r->inner_len;
    r->k = (size_t)wanted_output(ctx->node)->shape.dims[axis];
    return TN_OK;
}

static const uint32_t topk_types[] = {TN_TYPES_NUMBER, TN_TYPES_INDEX};

#define TOPK_ROW                                                                            \
    .min_outputs = 2, .max_outputs = 2, .flags = TN_OP_FOLDABLE, .input_types = topk_types, \
    .input_types_count = 2, .params_bytes = sizeof(topk_params),                            \
    .record_bytes = sizeof(topk_record), .infer = topk_infer, .variants = topk_variants,    \
    .bind = topk_bind

static const tn_op_def rows[] = {
    {.name = "TopK",
     .since_version = 1,
     .until_version = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .check = topk1_check,
     TOPK_ROW},
    {.name = "TopK",
     .since_version = 10,
     .min_inputs = 2,
     .max_inputs = 2,
     .check = topk_check,
     TOPK_ROW},
};
const tn_op_table tn_topk_table = {rows, TN_COUNTOF(rows)};
