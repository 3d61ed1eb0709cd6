/* Concat and Split: a whole tensor whose rows are made of parts, joined or cut apart. Both copy the
 * bytes of the whole in order; a tile is a range of them, so tiles are even whatever the shapes. A
 * cut along the leading axis needs no copy: its parts are views. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/shape_arith.h"

typedef struct join_part {
    size_t offset_bytes; /* in a row of the whole */
    size_t row_bytes;
} join_part;

typedef struct join_record {
    size_t whole_row_bytes;
    size_t total_bytes;
    uint32_t part_count;
    uint32_t tile_count;
    join_part parts[]; /* [part_count] */
} join_record;

/* Part that holds byte `at` of a row; empty parts hold none. */
static uint32_t part_at(const join_record *r, size_t at) {
    uint32_t low = 0;
    uint32_t high = r->part_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (r->parts[middle].offset_bytes <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Copies bytes [begin, end) of the whole; `split` copies out of it, else into it. */
static void copy_range(const join_record *r, const tn_kernel_context *ctx, bool split, size_t begin,
                       size_t end) {
    size_t row = begin / r->whole_row_bytes;
    size_t at = begin % r->whole_row_bytes;
    uint32_t part = part_at(r, at);
    for (size_t done = begin; done < end;) {
        const join_part *p = &r->parts[part];
        const size_t inside = at - p->offset_bytes;
        const size_t count = tn_size_min(p->row_bytes - inside, end - done);
        const size_t part_offset = row * p->row_bytes + inside;
        if (count == 0) {
            /* an empty part */
        } else if (split) {
            char *to = tn_kernel_out(ctx, part);
            const char *whole = tn_kernel_in(ctx, 0);
            if (to != NULL) memcpy(to + part_offset, whole + done, count);
        } else {
            const char *from = tn_kernel_in(ctx, part);
            char *whole = tn_kernel_out(ctx, 0);
            memcpy(whole + done, from + part_offset, count);
        }
        done += count;
        at += count;
        if (++part < r->part_count) continue;
        part = 0;
        at = 0;
        row++;
    }
}

static void run_tiles(const join_record *r, const tn_kernel_context *ctx, bool split,
                      uint32_t tile0, uint32_t tile1) {
    if (r->total_bytes == 0) return;
    size_t begin = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->total_bytes, r->tile_count, tile0, &begin, &ignored);
    tn_tile_range(r->total_bytes, r->tile_count, tile1 - 1, &ignored, &end);
    copy_range(r, ctx, split, begin, end);
}

static tn_status concat_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    (void)worker;
    run_tiles(record, ctx, false, tile0, tile1);
    return TN_OK;
}

static tn_status split_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                           uint32_t tile1, uint32_t worker) {
    (void)worker;
    run_tiles(record, ctx, true, tile0, tile1);
    return TN_OK;
}

static tn_status join_variant(const tn_node_facts *node, const tn_fact *whole, const char *name,
                              tn_run_fn run, tn_variant *out, uint32_t *out_count) {
    out[0] = (tn_variant){.name = name, .run = run, .rewrite_class = TN_REWRITE_EXACT};
    if (tn_node_is_sized(node)) {
        const size_t bytes = tn_fact_len_elems(whole) * tn_elem_bytes(whole->dtype);
        out[0].tile_counts[0] = tn_tiles_for_bytes(bytes, SIZE_MAX);
        out[0].cost_ns = 30.0 + (double)bytes * 0.12;
    }
    *out_count = 1;
    return TN_OK;
}

/* Rows are what lies from `axis` on; parts differ along it. */
static void bind_rows(const tn_fact *whole, int32_t axis, uint32_t part_count, uint32_t tile_count,
                      join_record *r) {
    const size_t elem_bytes = tn_elem_bytes(whole->dtype);
    r->total_bytes = tn_fact_len_elems(whole) * elem_bytes;
    r->whole_row_bytes =
        (size_t)tn_dims_product(&whole->shape, axis, whole->shape.rank) * elem_bytes;
    r->part_count = part_count;
    r->tile_count = tile_count == 0 ? 1 : tile_count;
}

static void bind_part(const tn_fact *whole, int32_t axis, int64_t len, uint32_t part,
                      size_t *inout_offset, join_record *r) {
    const size_t elem_bytes = tn_elem_bytes(whole->dtype);
    const size_t step = (size_t)tn_dims_product(&whole->shape, axis + 1, whole->shape.rank);
    r->parts[part] = (join_part){*inout_offset, (size_t)len * step * elem_bytes};
    *inout_offset += r->parts[part].row_bytes;
}

/* ---- Concat ---- */

static tn_status concat_check(const tn_check_context *ctx, void *params) {
    TN_REQUIRE(ctx->node == NULL || tn_graph_node_attribute(ctx->node, "axis") != NULL, ctx->err,
               TN_INVALID_MODEL, "attribute axis is missing");
    return tn_check_int(ctx, "axis", 1, params);
}

static tn_status concat1_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "axis", 1, params);
}

static tn_status join_dims(const tn_shape *shape, uint32_t input, int32_t axis, tn_shape *inout,
                           tn_error *err) {
    char text[160];
    char other[160];
    TN_REQUIRE(shape->rank == inout->rank, err, TN_INVALID_ARGUMENT,
               "input %u is %s, those before are %s", input,
               tn_shape_text(shape, text, sizeof text), tn_shape_text(inout, other, sizeof other));
    for (int32_t i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dims[i];
        int64_t *joined = &inout->dims[i];
        if (i == axis) {
            if (dim < 0 || *joined < 0) {
                *joined = TN_DIM_UNKNOWN;
            } else {
                TN_REQUIRE(tn_i64_add(*joined, dim, joined), err, TN_OVERFLOW,
                           "axis %d: %lld and %lld", (int)i, (long long)*joined, (long long)dim);
            }
        } else if (*joined < 0) {
            *joined = dim >= 0 ? dim : *joined;
        } else {
            TN_REQUIRE(dim < 0 || dim == *joined, err, TN_INVALID_ARGUMENT,
                       "axis %d of input %u is %lld, of those before %lld", (int)i, input,
                       (long long)dim, (long long)*joined);
        }
    }
    return TN_OK;
}

static tn_status concat_infer(const tn_node_facts *node, tn_error *err) {
    tn_shape to = {.rank = TN_RANK_UNKNOWN};
    int32_t axis = 0;
    bool all_ranked = true;
    tn_dtype dtype = TN_DTYPE_NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL) continue;
        if (dtype == TN_DTYPE_NONE) dtype = node->inputs[i]->dtype;
        if (!tn_input_has_rank(node, i)) {
            all_ranked = false;
        } else if (to.rank < 0) {
            to = node->inputs[i]->shape;
            TN_TRY(tn_infer_axis(*(const int64_t *)node->params, to.rank, &axis, err));
        } else {
            TN_TRY(join_dims(&node->inputs[i]->shape, i, axis, &to, err));
        }
    }
    if (!all_ranked && to.rank >= 0) to.dims[axis] = TN_DIM_UNKNOWN;
    return tn_put_output(node, 0, dtype, &to, err);
}

static tn_status concat_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    (void)err;
    return join_variant(query->node, query->node->outputs[0], "concat", concat_run, out, out_count);
}

static size_t concat_record_size(const tn_bind_context *ctx) {
    return sizeof(join_record) + ctx->node->input_count * sizeof(join_part);
}

static tn_status concat_bind(const tn_bind_context *ctx, void *record) {
    join_record *r = record;
    const tn_node_facts *node = ctx->node;
    const tn_fact *whole = node->outputs[0];
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(*(const int64_t *)node->params, whole->shape.rank, &axis, ctx->err));
    bind_rows(whole, axis, node->input_count, ctx->variant->tile_counts[0], r);
    size_t offset = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        bind_part(whole, axis, input == NULL ? 0 : input->shape.dims[axis], i, &offset, r);
    }
    return TN_OK;
}

/* ---- Split ---- */

typedef struct split_params {
    int64_t axis;
    int64_t output_count; /* attribute num_outputs; 0: none */
    tn_int_list lengths;  /* attribute split, until opset 12 */
    bool last_may_be_short;
} split_params;

static tn_status split_check(const tn_check_context *ctx, void *params) {
    split_params *p = params;
    TN_TRY(tn_check_int(ctx, "axis", 0, &p->axis));
    return tn_check_int_list(ctx, "split", &p->lengths);
}

static tn_status split13_check(const tn_check_context *ctx, void *params) {
    split_params *p = params;
    return tn_check_int(ctx, "axis", 0, &p->axis);
}

static tn_status split18_check(const tn_check_context *ctx, void *params) {
    split_params *p = params;
    TN_TRY(tn_check_int(ctx, "axis", 0, &p->axis));
    TN_TRY(tn_check_int(ctx, "num_outputs", ctx->output_count, &p->output_count));
    TN_REQUIRE(p->output_count == (int64_t)ctx->output_count, ctx->err, TN_INVALID_MODEL,
               "num_outputs is %lld, the node has %u outputs", (long long)p->output_count,
               ctx->output_count);
    p->last_may_be_short = true;
    return TN_OK;
}

/* Length of part `i` when none are given. */
static int64_t even_part(const split_params *p, int64_t dim, uint32_t count, uint32_t i) {
    if (!p->last_may_be_short) return dim / count;
    const int64_t each = dim / count + (dim % count != 0 ? 1 : 0);
    const int64_t done = tn_i64_min(dim, each * i);
    return tn_i64_min(each, dim - done);
}

/* Lengths come from an attribute, an input, or are even. Unknown ones leave the dim unknown. */
static tn_status split_lengths(const tn_node_facts *node, int64_t dim, tn_int_list *lengths,
                               tn_error *err) {
    const split_params *p = node->params;
    TN_TRY(tn_read_int_list(node, 1, lengths, err));
    if (!lengths->is_present) *lengths = p->lengths;
    if (!lengths->is_present) {
        TN_REQUIRE(dim < 0 || p->last_may_be_short || dim % node->output_count == 0, err,
                   TN_INVALID_ARGUMENT, "%lld elements do not split into %u even parts",
                   (long long)dim, node->output_count);
        return TN_OK;
    }
    if (!lengths->is_known) return TN_OK;
    TN_REQUIRE(lengths->count == node->output_count, err, TN_INVALID_ARGUMENT,
               "%zu lengths for %u outputs", lengths->count, node->output_count);
    int64_t sum = 0;
    for (size_t i = 0; i < lengths->count; i++) {
        TN_REQUIRE(lengths->values[i] >= 0 && tn_i64_add(sum, lengths->values[i], &sum), err,
                   TN_INVALID_ARGUMENT, "length %zu is %lld", i, (long long)lengths->values[i]);
    }
    TN_REQUIRE(dim < 0 || sum == dim, err, TN_INVALID_ARGUMENT,
               "lengths sum up to %lld, the axis has %lld elements", (long long)sum,
               (long long)dim);
    return TN_OK;
}

static tn_status split_infer(const tn_node_facts *node, tn_error *err) {
    const split_params *p = node->params;
    const tn_dtype dtype = tn_input_dtype(node, 0);
    for (uint32_t i = 0; i < node->output_count; i++) tn_set_output(node, i, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    tn_shape to = node->inputs[0]->shape;
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, to.rank, &axis, err));
    const int64_t dim = to.dims[axis];
    tn_int_list lengths;
    TN_TRY(split_lengths(node, dim, &lengths, err));
    for (uint32_t i = 0; i < node->output_count; i++) {
        to.dims[axis] = TN_DIM_UNKNOWN;
        if (lengths.is_known) {
            to.dims[axis] = lengths.values[i];
        } else if (!lengths.is_present && dim >= 0) {
            to.dims[axis] = even_part(p, dim, node->output_count, i);
        }
        tn_set_output(node, i, dtype, &to);
    }
    return TN_OK;
}

static tn_status split_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                                tn_error *err) {
    (void)err;
    return join_variant(query->node, query->node->inputs[0], "split", split_run, out, out_count);
}

static size_t split_record_size(const tn_bind_context *ctx) {
    return sizeof(join_record) + ctx->node->output_count * sizeof(join_part);
}

/* Length of part `i` in a sized node. Parts that nobody reads have a length too. */
static int64_t part_length(const tn_node_facts *node, const tn_int_list *lengths, int32_t axis,
                           uint32_t i) {
    if (node->outputs[i] != NULL) return node->outputs[i]->shape.dims[axis];
    if (lengths->is_known) return lengths->values[i];
    return even_part(node->params, node->inputs[0]->shape.dims[axis], node->output_count, i);
}

static tn_status split_bind(const tn_bind_context *ctx, void *record) {
    join_record *r = record;
    const tn_node_facts *node = ctx->node;
    const split_params *p = node->params;
    const tn_fact *whole = node->inputs[0];
    int32_t axis = 0;
    tn_int_list lengths;
    TN_TRY(tn_infer_axis(p->axis, whole->shape.rank, &axis, ctx->err));
    TN_TRY(split_lengths(node, whole->shape.dims[axis], &lengths, ctx->err));
    bind_rows(whole, axis, node->output_count, ctx->variant->tile_counts[0], r);
    size_t offset = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        bind_part(whole, axis, part_length(node, &lengths, axis, i), i, &offset, r);
    }
    return TN_OK;
}

/* With one row only, each part is a run of the input's bytes. */
static bool split_view_offset(const tn_node_facts *node, uint32_t slot, size_t *out_offset_bytes) {
    const split_params *p = node->params;
    const tn_fact *whole = tn_node_input(node, 0);
    int32_t axis = 0;
    tn_int_list lengths;
    if (whole == NULL || !tn_fact_is_sized(whole) || slot >= node->output_count) return false;
    if (tn_infer_axis(p->axis, whole->shape.rank, &axis, NULL) != TN_OK) return false;
    if (tn_fact_len_elems(whole) == 0 || tn_dims_product(&whole->shape, 0, axis) != 1) return false;
    if (split_lengths(node, whole->shape.dims[axis], &lengths, NULL) != TN_OK) return false;
    if (lengths.is_present && !lengths.is_known) return false;
    const size_t step_bytes = (size_t)tn_dims_product(&whole->shape, axis + 1, whole->shape.rank) *
                              tn_elem_bytes(whole->dtype);
    size_t offset = 0;
    for (uint32_t i = 0; i < slot; i++) {
        offset += (size_t)part_length(node, &lengths, axis, i) * step_bytes;
    }
    *out_offset_bytes = offset;
    return true;
}

static const uint32_t whole_types[] = {TN_TYPES_WHOLE};
static const uint32_t split_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};

#define CONCAT_ROW                                                                         \
    .min_inputs = 1, .max_inputs = TN_VARIADIC, .min_outputs = 1, .flags = TN_OP_FOLDABLE, \
    .input_types = whole_types, .input_types_count = 1, .same_type_mask = UINT32_MAX,      \
    .params_bytes = sizeof(int64_t), .infer = concat_infer, .variants = concat_variants,   \
    .bind = concat_bind, .record_size = concat_record_size

#define SPLIT_ROW                                                                       \
    .min_inputs = 1, .min_outputs = 1, .max_outputs = TN_VARIADIC,                      \
    .flags = TN_OP_FOLDABLE | TN_OP_VIEW_LEADING, .input_types = split_types,           \
    .input_types_count = 2, .params_bytes = sizeof(split_params), .infer = split_infer, \
    .variants = split_variants, .bind = split_bind, .record_size = split_record_size,   \
    .view_offset = split_view_offset

static const tn_op_def rows[] = {
    {.name = "Concat", .since_version = 1, .until_version = 3, .check = concat1_check, CONCAT_ROW},
    {.name = "Concat", .since_version = 4, .check = concat_check, CONCAT_ROW},
    {.name = "Split",
     .since_version = 1,
     .until_version = 1,
     .max_inputs = 2,
     .check = split_check,
     SPLIT_ROW},
    {.name = "Split",
     .since_version = 2,
     .until_version = 12,
     .max_inputs = 1,
     .check = split_check,
     SPLIT_ROW},
    {.name = "Split",
     .since_version = 13,
     .until_version = 17,
     .max_inputs = 2,
     .check = split13_check,
     SPLIT_ROW},
    {.name = "Split", .since_version = 18, .max_inputs = 2, .check = split18_check, SPLIT_ROW},
};
const tn_op_table tn_concat_table = {rows, TN_COUNTOF(rows)};
