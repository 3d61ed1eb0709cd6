/* Gather, GatherElements, GatherND: rows, single elements or slices picked by index. An index
 * outside the axis is an error that names it. Weights may lie unaligned: everything is copied by
 * bytes. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/index_walk.h"
#include "kernels/common/shape_arith.h"

static tn_status axis_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "axis", 0, params);
}

/* ---- Gather ---- */

typedef struct gather_record {
    size_t row_count; /* outer positions times indices */
    size_t index_count;
    size_t inner_bytes;
    int64_t axis_dim;
    tn_dtype index_dtype;
    uint32_t tile_count;
} gather_record;

static tn_status gather_infer(const tn_node_facts *node, tn_error *err) {
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0) || !tn_input_has_rank(node, 1)) return TN_OK;
    const tn_shape *data = &node->inputs[0]->shape;
    const tn_shape *indices = &node->inputs[1]->shape;
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(*(const int64_t *)node->params, data->rank, &axis, err));
    const int32_t rank = data->rank - 1 + indices->rank;
    TN_REQUIRE(rank <= TN_MAX_RANK, err, TN_UNSUPPORTED, "output rank %d, at most %d", (int)rank,
               TN_MAX_RANK);
    tn_shape to = {.rank = 0};
    for (int32_t i = 0; i < axis; i++) to.dims[to.rank++] = data->dims[i];
    for (int32_t i = 0; i < indices->rank; i++) to.dims[to.rank++] = indices->dims[i];
    for (int32_t i = axis + 1; i < data->rank; i++) to.dims[to.rank++] = data->dims[i];
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

static tn_status gather_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    const gather_record *r = record;
    size_t row = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->row_count, r->tile_count, tile0, &row, &ignored);
    tn_tile_range(r->row_count, r->tile_count, tile1 - 1, &ignored, &end);
    if (row >= end) return TN_OK;
    const void *indices = tn_kernel_in(ctx, 1);
    const size_t plane_bytes = (size_t)r->axis_dim * r->inner_bytes;
    const char *plane = (const char *)tn_kernel_in(ctx, 0) + row / r->index_count * plane_bytes;
    char *to = (char *)tn_kernel_out(ctx, 0) + row * r->inner_bytes;
    size_t element = row % r->index_count;
    for (; row < end; row++, to += r->inner_bytes) {
        const int64_t given = tn_read_index(indices, r->index_dtype, element);
        const int64_t index = given < 0 ? given + r->axis_dim : given;
        if (index < 0 || index >= r->axis_dim) {
            return tn_bad_index(ctx, worker, given, element, r->axis_dim);
        }
        tn_copy_small(to, plane + (size_t)index * r->inner_bytes, r->inner_bytes);
        if (++element == r->index_count) {
            element = 0;
            plane += plane_bytes;
        }
    }
    return TN_OK;
}

static tn_status gather_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("gather", gather_run, tn_output_bytes(query->node, 0), SIZE_MAX, out, out_count);
    return TN_OK;
}

static tn_status gather_bind(const tn_bind_context *ctx, void *record) {
    gather_record *r = record;
    const tn_fact *data = ctx->node->inputs[0];
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(*(const int64_t *)ctx->node->params, data->shape.rank, &axis, ctx->err));
    r->index_count = tn_fact_len_elems(ctx->node->inputs[1]);
    r->index_dtype = ctx->node->inputs[1]->dtype;
    r->axis_dim = data->shape.dims[axis];
    r->tile_count = ctx->variant->tile_counts[0];
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return TN_OK; /* no rows */
    r->row_count = (size_t)tn_dims_product(&data->shape, 0, axis) * r->index_count;
    r->inner_bytes = (size_t)tn_dims_product(&data->shape, axis + 1, data->shape.rank) *
                     tn_elem_bytes(data->dtype);
    return TN_OK;
}

/* ---- GatherElements ---- */

typedef struct elements_record {
    int32_t rank;
    uint32_t elem_bytes;
    uint32_t tile_count;
    tn_dtype index_dtype;
    size_t count;
    int64_t axis_dim;
    int64_t axis_stride; /* bytes of data */
    int64_t dims[TN_MAX_RANK];
    int64_t strides[TN_MAX_RANK]; /* bytes of data, 0 along the axis */
} elements_record;

static tn_status elements_infer(const tn_node_facts *node, tn_error *err) {
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 1)) return TN_OK;
    const tn_shape *indices = &node->inputs[1]->shape;
    if (tn_input_has_rank(node, 0)) {
        const tn_shape *data = &node->inputs[0]->shape;
        int32_t axis = 0;
        char text[160];
        char other[160];
        TN_REQUIRE(data->rank == indices->rank, err, TN_INVALID_ARGUMENT,
                   "data %s and indices %s have different ranks",
                   tn_shape_text(data, text, sizeof text),
                   tn_shape_text(indices, other, sizeof other));
        TN_TRY(tn_infer_axis(*(const int64_t *)node->params, data->rank, &axis, err));
        for (int32_t i = 0; i < data->rank; i++) {
            const bool fits = i == axis || data->dims[i] < 0 || indices->dims[i] <= data->dims[i];
            TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "axis %d: indices have %lld, data %lld",
                       (int)i, (long long)indices->dims[i], (long long)data->dims[i]);
        }
    }
    return tn_put_output(node, 0, tn_input_dtype(node, 0), indices, err);
}

static tn_status elements_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                              uint32_t tile1, uint32_t worker) {
    const elements_record *r = record;
    size_t at = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->count, r->tile_count, tile0, &at, &ignored);
    tn_tile_range(r->count, r->tile_count, tile1 - 1, &ignored, &end);
    if (at >= end) return TN_OK;
    const char *data = tn_kernel_in(ctx, 0);
    const void *indices = tn_kernel_in(ctx, 1);
    char *out = tn_kernel_out(ctx, 0);
    tn_walk walk;
    walk.rank = r->rank;
    walk.dims = r->dims;
    walk.strides_a = r->strides;
    walk.strides_b = r->strides;
    tn_walk_seek(&walk, at);
    for (; at < end; at++) {
        const int64_t given = tn_read_index(indices, r->index_dtype, at);
        const int64_t index = given < 0 ? given + r->axis_dim : given;
        if (index < 0 || index >= r->axis_dim) {
            return tn_bad_index(ctx, worker, given, at, r->axis_dim);
        }
        tn_copy_small(out + at * r->elem_bytes, data + walk.offset_a + index * r->axis_stride,
                      r->elem_bytes);
        tn_walk_next(&walk);
    }
    return TN_OK;
}

static tn_status elements_variants(const tn_variant_query *query, tn_variant *out,
                                   uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("gather elements", elements_run, tn_output_bytes(query->node, 0), SIZE_MAX, out,
                   out_count);
    return TN_OK;
}

static tn_status elements_bind(const tn_bind_context *ctx, void *record) {
    elements_record *r = record;
    const tn_fact *data = ctx->node->inputs[0];
    const tn_fact *indices = ctx->node->inputs[1];
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(*(const int64_t *)ctx->node->params, data->shape.rank, &axis, ctx->err));
    r->rank = data->shape.rank;
    r->elem_bytes = (uint32_t)tn_elem_bytes(data->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
    r->index_dtype = indices->dtype;
    r->count = tn_fact_len_elems(indices);
    r->axis_dim = data->shape.dims[axis];
    tn_row_strides(&data->shape, (int64_t)r->elem_bytes, r->strides);
    for (int32_t i = 0; i < r->rank; i++) r->dims[i] = indices->shape.dims[i];
    r->axis_stride = r->strides[axis];
    r->strides[axis] = 0;
    return TN_OK;
}

/* ---- GatherND ---- */

typedef struct nd_record {
    int32_t tuple_len;
    tn_dtype index_dtype;
    uint32_t tile_count;
    size_t row_count;    /* tuples */
    size_t batch_tuples; /* tuples per batch */
    size_t batch_bytes;  /* of data */
    size_t slice_bytes;
    int64_t dims[TN_MAX_RANK];    /* [tuple_len] */
    int64_t strides[TN_MAX_RANK]; /* [tuple_len] bytes */
} nd_record;

static tn_status nd_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "batch_dims", 0, params);
}

static tn_status nd_infer(const tn_node_facts *node, tn_error *err) {
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0) || !tn_input_has_rank(node, 1)) return TN_OK;
    const tn_shape *data = &node->inputs[0]->shape;
    const tn_shape *indices = &node->inputs[1]->shape;
    const int64_t batch = *(const int64_t *)node->params;
    TN_REQUIRE(indices->rank >= 1 && batch >= 0 && batch < indices->rank && batch < data->rank, err,
               TN_INVALID_ARGUMENT, "batch_dims %lld with data rank %d, indices rank %d",
               (long long)batch, (int)data->rank, (int)indices->rank);
    const int64_t tuple_len = indices->dims[indices->rank - 1];
    if (tuple_len < 0) return TN_OK;
    TN_REQUIRE(tuple_len <= data->rank - batch, err, TN_INVALID_ARGUMENT,
               "index tuples of %lld with data rank %d, batch_dims %lld", (long long)tuple_len,
               (int)data->rank, (long long)batch);
    const int32_t first = (int32_t)(batch + tuple_len);
    TN_REQUIRE(indices->rank - 1 + data->rank - first <= TN_MAX_RANK, err, TN_UNSUPPORTED,
               "output rank %d, at most %d", (int)(indices->rank - 1 + data->rank - first),
               TN_MAX_RANK);
    tn_shape to = {.rank = 0};
    for (int32_t i = 0; i + 1 < indices->rank; i++) to.dims[to.rank++] = indices->dims[i];
    for (int32_t i = first; i < data->rank; i++) to.dims[to.rank++] = data->dims[i];
    for (int32_t i = 0; i < (int32_t)batch; i++) {
        TN_REQUIRE(data->dims[i] < 0 || indices->dims[i] < 0 || data->dims[i] == indices->dims[i],
                   err, TN_INVALID_ARGUMENT, "batch axis %d: data %lld, indices %lld", (int)i,
                   (long long)data->dims[i], (long long)indices->dims[i]);
    }
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

static tn_status nd_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                        uint32_t worker) {
    const nd_record *r = record;
    size_t row = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->row_count, r->tile_count, tile0, &row, &ignored);
    tn_tile_range(r->row_count, r->tile_count, tile1 - 1, &ignored, &end);
    const char *data = tn_kernel_in(ctx, 0);
    const void *indices = tn_kernel_in(ctx, 1);
    char *out = tn_kernel_out(ctx, 0);
    for (; row < end; row++) {
        const char *from = data + row / r->batch_tuples * r->batch_bytes;
        for (int32_t i = 0; i < r->tuple_len; i++) {
            const size_t element = row * (size_t)r->tuple_len + (size_t)i;
            const int64_t given = tn_read_index(indices, r->index_dtype, element);
            const int64_t index = given < 0 ? given + r->dims[i] : given;
            if (index < 0 || index >= r->dims[i]) {
                return tn_bad_index(ctx, worker, given, element, r->dims[i]);
            }
            from += index * r->strides[i];
        }
        tn_copy_small(out + row * r->slice_bytes, from, r->slice_bytes);
    }
    return TN_OK;
}

static tn_status nd_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                             tn_error *err) {
    (void)err;
    tn_one_variant("gather nd", nd_run, tn_output_bytes(query->node, 0), SIZE_MAX, out, out_count);
    return TN_OK;
}

static tn_status nd_bind(const tn_bind_context *ctx, void *record) {
    nd_record *r = record;
    const tn_fact *data = ctx->node->inputs[0];
    const tn_shape *indices = &ctx->node->inputs[1]->shape;
    const int32_t batch = (int32_t) * (const int64_t *)ctx->node->params;
    const size_t elem_bytes = tn_elem_bytes(data->dtype);
    int64_t strides[TN_MAX_RANK];
    r->tuple_len = (int32_t)indices->dims[indices->rank - 1];
    r->index_dtype = ctx->node->inputs[1]->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return TN_OK; /* no rows */
    tn_row_strides(&data->shape, (int64_t)elem_bytes, strides);
    r->row_count = (size_t)tn_dims_product(indices, 0, indices->rank - 1);
    r->batch_tuples = (size_t)tn_dims_product(indices, batch, indices->rank - 1);
    r->batch_bytes = (size_t)tn_dims_product(&data->shape, batch, data->shape.rank) * elem_bytes;
    r->slice_bytes =
        (size_t)tn_dims_product(&data->shape, batch + r->tuple_len, data->shape.rank) * elem_bytes;
    for (int32_t i = 0; i < r->tuple_len; i++) {
        r->dims[i] = data->shape.dims[batch + i];
        r->strides[i] = strides[batch + i];
    }
    return TN_OK;
}

static const uint32_t gather_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};

#define GATHER_ROW                                                                  \
    .min_inputs = 2, .max_inputs = 2, .min_outputs = 1,                             \
    .flags = TN_OP_FOLDABLE | TN_OP_UNALIGNED_WEIGHTS, .input_types = gather_types, \
    .input_types_count = 2, .params_bytes = sizeof(int64_t)

static const tn_op_def rows[] = {
    {.name = "Gather",
     .since_version = 1,
     .check = axis_check,
     .infer = gather_infer,
     .record_bytes = sizeof(gather_record),
     .variants = gather_variants,
     .bind = gather_bind,
     GATHER_ROW},
    {.name = "GatherElements",
     .since_version = 11,
     .check = axis_check,
     .infer = elements_infer,
     .record_bytes = sizeof(elements_record),
     .variants = elements_variants,
     .bind = elements_bind,
     GATHER_ROW},
    {.name = "GatherND",
     .since_version = 11,
     .check = nd_check,
     .infer = nd_infer,
     .record_bytes = sizeof(nd_record),
     .variants = nd_variants,
     .bind = nd_bind,
     GATHER_ROW},
};
const tn_op_table tn_gather_table = {rows, TN_COUNTOF(rows)};
