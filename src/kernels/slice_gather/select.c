/* Operators whose output size depends on the data: NonZero and Compress. They count first, ask for
 * exactly the memory they need, then write. And ReverseSequence, which picks rows by lengths. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/index_walk.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

/* ---- NonZero ---- */

typedef struct nonzero_record {
    tn_shape shape;
    size_t count;
    uint32_t elem_bytes;
    uint32_t shift; /* 1 for floats: -0 is zero too */
    bool is_string;
} nonzero_record;

static tn_status nonzero_infer(const tn_node_facts *node, tn_error *err) {
    (void)err;
    tn_shape to = tn_unknown_dims(2);
    if (tn_input_has_rank(node, 0)) to.dims[0] = node->inputs[0]->shape.rank;
    tn_set_output(node, 0, TN_DTYPE_I64, &to);
    return TN_OK;
}

static bool is_nonzero(const nonzero_record *r, const char *in, size_t index) {
    if (r->is_string) {
        tn_string text;
        memcpy(&text, in + index * sizeof text, sizeof text);
        return text.size_bytes != 0;
    }
    uint64_t bits = 0;
    memcpy(&bits, in + index * r->elem_bytes, r->elem_bytes);
    if (r->shift != 0) bits <<= 64 - 8 * r->elem_bytes + 1; /* the sign falls off */
    return bits != 0;
}

static tn_status nonzero_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const nonzero_record *r = record;
    const char *in = tn_kernel_in(ctx, 0);
    size_t found = 0;
    for (size_t i = 0; i < r->count; i++) found += is_nonzero(r, in, i) ? 1 : 0;
    const tn_shape shape = {.rank = 2, .dims = {r->shape.rank, (int64_t)found}};
    void *data = NULL;
    TN_TRY(ctx->make_output(ctx, 0, TN_DTYPE_I64, &shape, &data));
    if (found == 0) return TN_OK;
    int64_t *out = data;
    tn_walk walk;
    walk.rank = r->shape.rank;
    walk.dims = r->shape.dims;
    walk.strides_a = r->shape.dims;
    walk.strides_b = r->shape.dims;
    tn_walk_seek(&walk, 0);
    size_t at = 0;
    for (size_t i = 0; i < r->count; i++, tn_walk_next(&walk)) {
        if (!is_nonzero(r, in, i)) continue;
        for (int32_t k = 0; k < r->shape.rank; k++) out[(size_t)k * found + at] = walk.index[k];
        at++;
    }
    return TN_OK;
}

static tn_status nonzero_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)query, (void)err;
    tn_one_variant("nonzero", nonzero_run, 0, 1, out, out_count);
    return TN_OK;
}

static tn_status nonzero_bind(const tn_bind_context *ctx, void *record) {
    nonzero_record *r = record;
    const tn_fact *input = ctx->node->inputs[0];
    r->shape = input->shape;
    r->count = tn_fact_len_elems(input);
    r->elem_bytes = (uint32_t)tn_elem_bytes(input->dtype);
    r->shift = (1u << input->dtype & TN_TYPES_FLOAT) != 0 ? 1 : 0;
    r->is_string = input->dtype == TN_DTYPE_STRING;
    return TN_OK;
}

/* ---- Compress ---- */

typedef struct compress_params {
    int64_t axis;
    bool has_axis;
} compress_params;

typedef struct compress_record {
    tn_dtype dtype;
    tn_shape shape; /* of the output, before the axis is known */
    int32_t axis;
    size_t outer_count;
    size_t axis_dim;
    size_t step_bytes;
    size_t condition_len;
} compress_record;

static tn_status compress_check(const tn_check_context *ctx, void *params) {
    compress_params *p = params;
    p->has_axis = ctx->node != NULL && tn_graph_node_attribute(ctx->node, "axis") != NULL;
    return tn_check_int(ctx, "axis", 0, &p->axis);
}

static tn_status compress_infer(const tn_node_facts *node, tn_error *err) {
    const compress_params *p = node->params;
    tn_shape to = tn_unknown_dims(1);
    if (p->has_axis) {
        to.rank = TN_RANK_UNKNOWN;
        if (tn_input_has_rank(node, 0)) {
            int32_t axis = 0;
            to = node->inputs[0]->shape;
            TN_TRY(tn_infer_axis(p->axis, to.rank, &axis, err));
            to.dims[axis] = TN_DIM_UNKNOWN;
        }
    }
    tn_set_output(node, 0, tn_input_dtype(node, 0), &to);
    return TN_OK;
}

static tn_status compress_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                              uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const compress_record *r = record;
    const char *in = tn_kernel_in(ctx, 0);
    const uint8_t *condition = tn_kernel_in(ctx, 1);
    const size_t len = tn_size_min(r->condition_len, r->axis_dim);
    tn_shape shape = r->shape;
    shape.dims[r->axis] = 0;
    for (size_t i = 0; i < len; i++) shape.dims[r->axis] += condition[i] != 0 ? 1 : 0;
    void *data = NULL;
    TN_TRY(ctx->make_output(ctx, 0, r->dtype, &shape, &data));
    char *to = data;
    for (size_t outer = 0; outer < r->outer_count; outer++) {
        const char *from = in + outer * r->axis_dim * r->step_bytes;
        for (size_t i = 0; i < len; i++) {
            if (condition[i] == 0) continue;
            tn_copy_small(to, from + i * r->step_bytes, r->step_bytes);
            to += r->step_bytes;
        }
    }
    return TN_OK;
}

static tn_status compress_variants(const tn_variant_query *query, tn_variant *out,
                                   uint32_t *out_count, tn_error *err) {
    (void)query, (void)err;
    tn_one_variant("compress", compress_run, 0, 1, out, out_count);
    return TN_OK;
}

static tn_status compress_bind(const tn_bind_context *ctx, void *record) {
    compress_record *r = record;
    const compress_params *p = ctx->node->params;
    const tn_fact *input = ctx->node->inputs[0];
    const size_t elem_bytes = tn_elem_bytes(input->dtype);
    r->dtype = input->dtype;
    r->condition_len = tn_fact_len_elems(ctx->node->inputs[1]);
    r->outer_count = 1;
    r->axis_dim = tn_fact_len_elems(input);
    r->step_bytes = elem_bytes;
    r->shape = (tn_shape){.rank = 1};
    if (!p->has_axis) return TN_OK;
    TN_TRY(tn_infer_axis(p->axis, input->shape.rank, &r->axis, ctx->err));
    r->shape = input->shape;
    r->axis_dim = (size_t)input->shape.dims[r->axis];
    const bool is_empty = tn_fact_len_elems(input) == 0;
    r->outer_count = is_empty ? 0 : (size_t)tn_dims_product(&input->shape, 0, r->axis);
    r->step_bytes =
        (size_t)tn_dims_product(&input->shape, r->axis + 1, input->shape.rank) * elem_bytes;
    return TN_OK;
}

/* ---- ReverseSequence ---- */

typedef struct reverse_params {
    bool is_time_first; /* time_axis 0, batch_axis 1 */
} reverse_params;

typedef struct reverse_record {
    size_t dims[2]; /* of the first two axes */
    size_t step_bytes;
    tn_dtype length_dtype;
    uint32_t tile_count;
    bool is_time_first;
} reverse_record;

static tn_status reverse_check(const tn_check_context *ctx, void *params) {
    reverse_params *p = params;
    int64_t time_axis = 0;
    int64_t batch_axis = 1;
    TN_TRY(tn_check_int(ctx, "time_axis", 0, &time_axis));
    TN_TRY(tn_check_int(ctx, "batch_axis", 1, &batch_axis));
    p->is_time_first = time_axis == 0;
    const bool are_first_two =
        (time_axis == 0 && batch_axis == 1) || (time_axis == 1 && batch_axis == 0);
    TN_REQUIRE(are_first_two, ctx->err, TN_INVALID_MODEL,
               "time_axis %lld and batch_axis %lld are not 0 and 1", (long long)time_axis,
               (long long)batch_axis);
    return TN_OK;
}

static tn_status reverse_infer(const tn_node_facts *node, tn_error *err) {
    TN_REQUIRE(!tn_input_has_rank(node, 0) || node->inputs[0]->shape.rank >= 2, err,
               TN_INVALID_ARGUMENT, "input rank is %d, at least 2 is needed",
               (int)node->inputs[0]->shape.rank);
    return tn_infer_same_as_input0(node, err);
}

static tn_status reverse_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    const reverse_record *r = record;
    const char *in = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    const size_t time_dim = r->dims[r->is_time_first ? 0 : 1];
    size_t row = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->dims[0] * r->dims[1], r->tile_count, tile0, &row, &ignored);
    tn_tile_range(r->dims[0] * r->dims[1], r->tile_count, tile1 - 1, &ignored, &end);
    for (; row < end; row++) {
        const size_t first = row / r->dims[1];
        const size_t second = row % r->dims[1];
        const size_t batch = r->is_time_first ? second : first;
        const size_t time = r->is_time_first ? first : second;
        const int64_t len = tn_read_index(tn_kernel_in(ctx, 1), r->length_dtype, batch);
        if (len < 0 || (uint64_t)len > time_dim) {
            return tn_bad_index(ctx, worker, len, batch, (int64_t)time_dim + 1);
        }
        const size_t source = time < (size_t)len ? (size_t)len - 1 - time : time;
        const size_t from =
            r->is_time_first ? source * r->dims[1] + second : first * r->dims[1] + source;
        tn_copy_small(out + row * r->step_bytes, in + from * r->step_bytes, r->step_bytes);
    }
    return TN_OK;
}

static tn_status reverse_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("reverse", reverse_run, tn_output_bytes(query->node, 0), SIZE_MAX, out,
                   out_count);
    return TN_OK;
}

static tn_status reverse_bind(const tn_bind_context *ctx, void *record) {
    reverse_record *r = record;
    const reverse_params *p = ctx->node->params;
    const tn_fact *input = ctx->node->inputs[0];
    const tn_fact *lengths = ctx->node->inputs[1];
    r->is_time_first = p->is_time_first;
    r->length_dtype = lengths->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    if (tn_fact_len_elems(input) == 0) return TN_OK; /* no rows */
    r->dims[0] = (size_t)input->shape.dims[0];
    r->dims[1] = (size_t)input->shape.dims[1];
    TN_REQUIRE(tn_fact_len_elems(lengths) == r->dims[r->is_time_first ? 1 : 0], ctx->err,
               TN_INVALID_ARGUMENT, "%zu lengths for a batch of %zu", tn_fact_len_elems(lengths),
               r->dims[r->is_time_first ? 1 : 0]);
    r->step_bytes =
        (size_t)tn_dims_product(&input->shape, 2, input->shape.rank) * tn_elem_bytes(input->dtype);
    return TN_OK;
}

static const uint32_t nonzero_types[] = {TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL) | TN_TYPE_BIT(STRING)};
static const uint32_t compress_types[] = {TN_TYPES_WHOLE, TN_TYPE_BIT(BOOL)};
static const uint32_t reverse_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};

static const tn_op_def rows[] = {
    {.name = "NonZero",
     .since_version = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_DATA_DEPENDENT,
     .input_types = nonzero_types,
     .input_types_count = 1,
     .record_bytes = sizeof(nonzero_record),
     .infer = nonzero_infer,
     .variants = nonzero_variants,
     .bind = nonzero_bind},
    {.name = "Compress",
     .since_version = 9,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_DATA_DEPENDENT,
     .input_types = compress_types,
     .input_types_count = 2,
     .params_bytes = sizeof(compress_params),
     .record_bytes = sizeof(compress_record),
     .check = compress_check,
     .infer = compress_infer,
     .variants = compress_variants,
     .bind = compress_bind},
    {.name = "ReverseSequence",
     .since_version = 10,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = reverse_types,
     .input_types_count = 2,
     .params_bytes = sizeof(reverse_params),
     .record_bytes = sizeof(reverse_record),
     .check = reverse_check,
     .infer = reverse_infer,
     .variants = reverse_variants,
     .bind = reverse_bind},
};
const tn_op_table tn_select_table = {rows, TN_COUNTOF(rows)};
