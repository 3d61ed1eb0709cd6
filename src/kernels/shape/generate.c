/* Operators whose output comes from shapes and scalars, not from another tensor's elements: Shape,
 * Size, Constant, ConstantOfShape, Range, EyeLike, OneHot; and Trilu, which clears half of its
 * input. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/move.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

/* ---- Shape and Size: bind knows everything ---- */

typedef struct shape_params {
    int64_t start, end; /* end INT64_MAX: the rank */
} shape_params;

typedef struct numbers_record {
    size_t size_bytes;
    int64_t values[TN_MAX_RANK];
} numbers_record;

static tn_status shape_check(const tn_check_context *ctx, void *params) {
    shape_params *p = params;
    TN_TRY(tn_check_int(ctx, "start", 0, &p->start));
    return tn_check_int(ctx, "end", INT64_MAX, &p->end);
}

static tn_status shape1_check(const tn_check_context *ctx, void *params) {
    (void)ctx;
    shape_params *p = params;
    p->end = INT64_MAX;
    return TN_OK;
}

static int64_t clamped_axis(int64_t axis, int32_t rank) {
    if (axis < 0) axis = axis < -(int64_t)rank ? 0 : axis + rank;
    return tn_i64_min(axis, rank);
}

static void shape_range(const shape_params *p, int32_t rank, int64_t *out_start, int64_t *out_end) {
    *out_start = clamped_axis(p->start, rank);
    *out_end = tn_i64_max(*out_start, clamped_axis(p->end, rank));
}

static tn_status shape_infer(const tn_node_facts *node, tn_error *err) {
    (void)err;
    tn_shape to = tn_unknown_dims(1);
    if (tn_input_has_rank(node, 0)) {
        int64_t start = 0;
        int64_t end = 0;
        shape_range(node->params, node->inputs[0]->shape.rank, &start, &end);
        to.dims[0] = end - start;
    }
    tn_set_output(node, 0, TN_DTYPE_I64, &to);
    return TN_OK;
}

static tn_status size_infer(const tn_node_facts *node, tn_error *err) {
    (void)err;
    const tn_shape to = {.rank = 0};
    tn_set_output(node, 0, TN_DTYPE_I64, &to);
    return TN_OK;
}

static tn_status numbers_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const numbers_record *r = record;
    memcpy(tn_kernel_out(ctx, 0), r->values, r->size_bytes);
    return TN_OK;
}

static tn_status numbers_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)query, (void)err;
    tn_one_variant("numbers", numbers_run, 0, 1, out, out_count);
    return TN_OK;
}

static tn_status shape_bind(const tn_bind_context *ctx, void *record) {
    numbers_record *r = record;
    const tn_shape *shape = &ctx->node->inputs[0]->shape;
    int64_t start = 0;
    int64_t end = 0;
    shape_range(ctx->node->params, shape->rank, &start, &end);
    for (int64_t i = start; i < end; i++) r->values[i - start] = shape->dims[i];
    r->size_bytes = (size_t)(end - start) * sizeof *r->values;
    return TN_OK;
}

static tn_status size_bind(const tn_bind_context *ctx, void *record) {
    numbers_record *r = record;
    r->values[0] = (int64_t)tn_fact_len_elems(ctx->node->inputs[0]);
    r->size_bytes = sizeof *r->values;
    return TN_OK;
}

/* ---- ConstantOfShape ---- */

typedef struct fill_params {
    tn_dtype dtype;
    uint32_t elem_bytes;
    char value[16];
} fill_params;

typedef struct fill_record {
    size_t count;
    uint32_t elem_bytes;
    uint32_t tile_count;
    char value[16];
} fill_record;

/* Packed elements fill whole bytes, so the value is repeated in its byte. */
static void spread_packed(fill_params *p) {
    const unsigned bits = tn_dtype_bits(p->dtype);
    unsigned byte = (unsigned char)p->value[0] & ((1u << bits) - 1u);
    for (unsigned width = bits; width < 8; width *= 2) byte |= byte << width;
    p->value[0] = (char)byte;
}

static tn_status fill_check(const tn_check_context *ctx, void *params) {
    fill_params *p = params;
    p->dtype = TN_DTYPE_F32;
    p->elem_bytes = sizeof(float);
    const tn_graph_attribute *attribute =
        ctx->node == NULL ? NULL : tn_graph_node_attribute(ctx->node, "value");
    if (attribute == NULL) return TN_OK;
    TN_REQUIRE(attribute->type == TN_ATTRIBUTE_TENSOR && attribute->tensor != NULL, ctx->err,
               TN_INVALID_MODEL, "attribute value is not a tensor");
    const tn_graph_tensor *tensor = attribute->tensor;
    const unsigned bits = tn_dtype_bits(tensor->dtype);
    TN_REQUIRE(bits != 0 && tensor->dtype != TN_DTYPE_STRING, ctx->err, TN_UNSUPPORTED,
               "attribute value has type %s", tn_dtype_name(tensor->dtype));
    p->dtype = tensor->dtype;
    p->elem_bytes = (uint32_t)tn_elem_bytes(tensor->dtype);
    const size_t expected_bytes = bits < 8 ? 1 : bits / 8;
    size_t len_elems = 0;
    TN_TRY(tn_shape_len_elems(&tensor->shape, &len_elems, ctx->err));
    TN_REQUIRE(len_elems == 1 && tensor->size_bytes == expected_bytes && tensor->data != NULL,
               ctx->err, TN_INVALID_MODEL, "attribute value has %zu elements, not one", len_elems);
    memcpy(p->value, tensor->data, expected_bytes);
    if (bits < 8) spread_packed(p);
    return TN_OK;
}

/* The output shape that input `slot` spells out. */
static tn_status shape_from_input(const tn_node_facts *node, uint32_t slot, tn_shape *out,
                                  tn_error *err) {
    tn_int_list dims;
    TN_TRY(tn_read_int_list(node, slot, &dims, err));
    const int64_t length =
        dims.is_known ? (int64_t)dims.count : tn_list_length(tn_node_input(node, slot));
    TN_REQUIRE(length <= TN_MAX_RANK, err, TN_UNSUPPORTED, "rank %lld, at most %d",
               (long long)length, TN_MAX_RANK);
    *out = tn_unknown_dims(length < 0 ? TN_RANK_UNKNOWN : (int32_t)length);
    for (int32_t i = 0; dims.is_known && i < out->rank; i++) {
        TN_REQUIRE(dims.values[i] >= 0, err, TN_INVALID_ARGUMENT, "dim %d is %lld", (int)i,
                   (long long)dims.values[i]);
        out->dims[i] = dims.values[i];
    }
    return TN_OK;
}

static tn_status fill_infer(const tn_node_facts *node, tn_error *err) {
    const fill_params *p = node->params;
    tn_shape to;
    TN_TRY(shape_from_input(node, 0, &to, err));
    return tn_put_output(node, 0, p->dtype, &to, err);
}

static tn_status fill_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    (void)worker;
    const fill_record *r = record;
    char *out = tn_kernel_out(ctx, 0);
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        size_t begin = 0;
        size_t end = 0;
        tn_tile_range(r->count, r->tile_count, tile, &begin, &end);
        tn_fill(out + begin * r->elem_bytes, r->value, r->elem_bytes, end - begin);
    }
    return TN_OK;
}

static tn_status fill_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                               tn_error *err) {
    (void)err;
    tn_one_variant("fill", fill_run, tn_output_bytes(query->node, 0), SIZE_MAX, out, out_count);
    return TN_OK;
}

static tn_status fill_bind(const tn_bind_context *ctx, void *record) {
    fill_record *r = record;
    const fill_params *p = ctx->node->params;
    r->count = tn_output_bytes(ctx->node, 0) / p->elem_bytes;
    r->elem_bytes = p->elem_bytes;
    r->tile_count = ctx->variant->tile_counts[0];
    memcpy(r->value, p->value, sizeof r->value);
    return TN_OK;
}

/* ---- Range ---- */

typedef struct range_record {
    tn_dtype dtype;
    size_t count;
} range_record;

/* ceil((limit - start) / delta), not below 0. Integers exactly; floats in f32 as the definition's
 * own function body does, f64 in f64. */
static tn_status range_count_int(int64_t start, int64_t limit, int64_t delta, int64_t *out,
                                 tn_error *err) {
    *out = 0;
    if (delta > 0 ? limit <= start : limit >= start) return TN_OK;
    const uint64_t distance =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : 0u - (uint64_t)delta;
    const uint64_t count = distance / step + (distance % step != 0 ? 1 : 0);
    TN_REQUIRE(count <= INT64_MAX, err, TN_OVERFLOW, "range from %lld to %lld by %lld",
               (long long)start, (long long)limit, (long long)delta);
    *out = (int64_t)count;
    return TN_OK;
}

static tn_status range_count_float(tn_dtype dtype, double start, double limit, double delta,
                                   int64_t *out, tn_error *err) {
    const double in_f32 = (double)((float)((float)limit - (float)start) / (float)delta);
    const double count = ceil(dtype == TN_DTYPE_F64 ? (limit - start) / delta : in_f32);
    TN_REQUIRE(count == count && count < 9007199254740992.0, err, TN_INVALID_ARGUMENT,
               "range from %g to %g by %g has no size", start, limit, delta);
    *out = count <= 0 ? 0 : (int64_t)count;
    return TN_OK;
}

static tn_status range_infer(const tn_node_facts *node, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_shape to = tn_unknown_dims(1);
    bool is_known = dtype != TN_DTYPE_NONE;
    for (uint32_t i = 0; i < 3; i++) {
        const tn_fact *fact = tn_node_input(node, i);
        is_known = is_known && fact != NULL && fact->data != NULL && tn_fact_is_sized(fact);
        char text[160];
        TN_REQUIRE(!is_known || tn_fact_len_elems(fact) == 1, err, TN_INVALID_ARGUMENT,
                   "input %u is %s, not one number", i,
                   tn_shape_text(&fact->shape, text, sizeof text));
    }
    if (is_known) {
        const void *data[3] = {node->inputs[0]->data, node->inputs[1]->data, node->inputs[2]->data};
        const double delta = tn_number_read(data[2], dtype, 0);
        TN_REQUIRE(delta != 0, err, TN_INVALID_ARGUMENT, "delta is 0");
        if ((1u << dtype & TN_TYPES_INTEGER) != 0) {
            TN_TRY(range_count_int(tn_number_read_int(data[0], dtype, 0),
                                   tn_number_read_int(data[1], dtype, 0),
                                   tn_number_read_int(data[2], dtype, 0), &to.dims[0], err));
        } else {
            TN_TRY(range_count_float(dtype, tn_number_read(data[0], dtype, 0),
                                     tn_number_read(data[1], dtype, 0), delta, &to.dims[0], err));
        }
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

static tn_status range_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                           uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const range_record *r = record;
    void *out = tn_kernel_out(ctx, 0);
    if ((1u << r->dtype & TN_TYPES_INTEGER) != 0) {
        uint64_t value = (uint64_t)tn_number_read_int(tn_kernel_in(ctx, 0), r->dtype, 0);
        const uint64_t delta = (uint64_t)tn_number_read_int(tn_kernel_in(ctx, 2), r->dtype, 0);
        for (size_t i = 0; i < r->count; i++, value += delta) {
            tn_number_write_int(out, r->dtype, i, (int64_t)value);
        }
        return TN_OK;
    }
    const double start = tn_number_read(tn_kernel_in(ctx, 0), r->dtype, 0);
    const double delta = tn_number_read(tn_kernel_in(ctx, 2), r->dtype, 0);
    for (size_t i = 0; i < r->count; i++) {
        tn_number_write(out, r->dtype, i, start + (double)i * delta);
    }
    return TN_OK;
}

static tn_status range_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                                tn_error *err) {
    (void)err;
    tn_one_variant("range", range_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static tn_status range_bind(const tn_bind_context *ctx, void *record) {
    range_record *r = record;
    r->dtype = ctx->node->outputs[0]->dtype;
    r->count = (size_t)ctx->node->outputs[0]->shape.dims[0];
    return TN_OK;
}

/* ---- EyeLike and Trilu: rows that a diagonal crosses ---- */

typedef struct diagonal_params {
    int64_t k; /* EyeLike: of the diagonal; Trilu gets it as an input */
    tn_dtype dtype;
    bool upper;
} diagonal_params;

typedef struct diagonal_record {
    int64_t k;
    int64_t rows, columns; /* of one matrix */
    size_t row_count;      /* of all matrices */
    uint32_t tile_count;
    uint32_t elem_bytes;
    tn_dtype k_dtype;
    bool upper;
    bool has_k; /* as input 1 */
    char one[16];
} diagonal_record;

static tn_status eye_check(const tn_check_context *ctx, void *params) {
    diagonal_params *p = params;
    int64_t dtype = TN_DTYPE_NONE;
    TN_TRY(tn_check_int(ctx, "k", 0, &p->k));
    TN_TRY(tn_check_int(ctx, "dtype", TN_DTYPE_NONE, &dtype));
    const bool is_number = dtype > 0 && dtype < TN_DTYPE_COUNT &&
                           (1u << dtype & (TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL))) != 0;
    TN_REQUIRE(dtype == TN_DTYPE_NONE || is_number, ctx->err, TN_UNSUPPORTED, "dtype %lld",
               (long long)dtype);
    p->dtype = (tn_dtype)dtype;
    return TN_OK;
}

static tn_status eye_infer(const tn_node_facts *node, tn_error *err) {
    const diagonal_params *p = node->params;
    const tn_dtype dtype = p->dtype != TN_DTYPE_NONE ? p->dtype : tn_input_dtype(node, 0);
    tn_shape to = tn_unknown_dims(2);
    if (tn_input_has_rank(node, 0)) {
        to = node->inputs[0]->shape;
        TN_REQUIRE(to.rank == 2, err, TN_INVALID_ARGUMENT, "input rank is %d, not 2", (int)to.rank);
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

static tn_status eye_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)tile0, (void)tile1, (void)worker;
    const diagonal_record *r = record;
    char *out = tn_kernel_out(ctx, 0);
    memset(out, 0, r->row_count * (size_t)r->columns * r->elem_bytes);
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t column = 0;
        if (!tn_i64_add(row, r->k, &column) || column < 0 || column >= r->columns) continue;
        memcpy(out + (size_t)(row * r->columns + column) * r->elem_bytes, r->one, r->elem_bytes);
    }
    return TN_OK;
}

static tn_status eye_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    (void)err;
    tn_one_variant("eye", eye_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static void bind_matrices(const tn_bind_context *ctx, diagonal_record *r) {
    const tn_fact *output = ctx->node->outputs[0];
    const int32_t rank = output->shape.rank;
    r->rows = output->shape.dims[rank - 2];
    r->columns = output->shape.dims[rank - 1];
    r->row_count =
        tn_fact_len_elems(output) == 0 ? 0 : (size_t)tn_dims_product(&output->shape, 0, rank - 1);
    r->elem_bytes = (uint32_t)tn_elem_bytes(output->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
}

static tn_status eye_bind(const tn_bind_context *ctx, void *record) {
    diagonal_record *r = record;
    const diagonal_params *p = ctx->node->params;
    bind_matrices(ctx, r);
    if (r->row_count == 0) r->rows = 0;
    r->k = p->k;
    tn_number_write_int(r->one, ctx->node->outputs[0]->dtype, 0, 1);
    return TN_OK;
}

static tn_status trilu_check(const tn_check_context *ctx, void *params) {
    diagonal_params *p = params;
    int64_t upper = 1;
    TN_TRY(tn_check_int(ctx, "upper", 1, &upper));
    p->upper = upper != 0;
    return TN_OK;
}

static tn_status trilu_infer(const tn_node_facts *node, tn_error *err) {
    TN_REQUIRE(!tn_input_has_rank(node, 0) || node->inputs[0]->shape.rank >= 2, err,
               TN_INVALID_ARGUMENT, "input rank is %d, at least 2 is needed",
               (int)node->inputs[0]->shape.rank);
    return tn_infer_same_as_input0(node, err);
}

static tn_status trilu_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                           uint32_t tile1, uint32_t worker) {
    (void)worker;
    const diagonal_record *r = record;
    const char *in = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    const int64_t k = r->has_k ? tn_read_index(tn_kernel_in(ctx, 1), r->k_dtype, 0) : 0;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        size_t begin = 0;
        size_t end = 0;
        tn_tile_range(r->row_count, r->tile_count, tile, &begin, &end);
        for (size_t row = begin; row < end; row++) {
            /* upper keeps columns from row + k on, lower keeps those up to row + k */
            int64_t edge = 0;
            const int64_t at = (int64_t)(row % (size_t)r->rows) + (r->upper ? 0 : 1);
            if (!tn_i64_add(at, k, &edge)) edge = r->columns;
            edge = tn_i64_min(tn_i64_max(edge, 0), r->columns);
            const size_t cut = (size_t)edge * r->elem_bytes;
            const size_t all = (size_t)r->columns * r->elem_bytes;
            const char *from = in + row * all;
            char *to = out + row * all;
            const size_t kept = r->upper ? cut : 0;
            if (from != to) memcpy(to + kept, from + kept, r->upper ? all - cut : cut);
            memset(to + (r->upper ? 0 : cut), 0, r->upper ? cut : all - cut);
        }
    }
    return TN_OK;
}

static tn_status trilu_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                                tn_error *err) {
    (void)err;
    tn_one_variant("trilu", trilu_run, tn_output_bytes(query->node, 0), SIZE_MAX, out, out_count);
    return TN_OK;
}

static tn_status trilu_bind(const tn_bind_context *ctx, void *record) {
    diagonal_record *r = record;
    const diagonal_params *p = ctx->node->params;
    bind_matrices(ctx, r);
    r->upper = p->upper;
    r->k_dtype = tn_input_dtype(ctx->node, 1);
    r->has_k = tn_node_input(ctx->node, 1) != NULL;
    TN_REQUIRE(tn_node_input(ctx->node, 1) == NULL || tn_fact_len_elems(ctx->node->inputs[1]) == 1,
               ctx->err, TN_INVALID_ARGUMENT, "k is not one number");
    return TN_OK;
}

/* ---- OneHot ---- */

typedef struct one_hot_record {
    size_t outer_count, inner_count; /* of indices around the new axis */
    int64_t depth;
    uint32_t elem_bytes;
    uint32_t tile_count;
    tn_dtype index_dtype;
} one_hot_record;

static tn_status one_hot_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "axis", -1, params);
}

static tn_status one_hot_infer(const tn_node_facts *node, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 2);
    const tn_fact *depth = tn_node_input(node, 1);
    tn_set_output(node, 0, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    const tn_shape *from = &node->inputs[0]->shape;
    int32_t axis = 0;
    TN_REQUIRE(from->rank < TN_MAX_RANK, err, TN_UNSUPPORTED, "rank %d of indices",
               (int)from->rank);
    TN_TRY(tn_infer_axis(*(const int64_t *)node->params, from->rank + 1, &axis, err));
    tn_shape to = {.rank = from->rank + 1};
    for (int32_t i = 0; i < to.rank; i++) {
        to.dims[i] = i == axis ? TN_DIM_UNKNOWN : from->dims[i < axis ? i : i - 1];
    }
    if (depth != NULL && depth->data != NULL && tn_fact_is_sized(depth)) {
        TN_REQUIRE(tn_fact_len_elems(depth) == 1, err, TN_INVALID_ARGUMENT,
                   "depth has %zu elements, not one", tn_fact_len_elems(depth));
        to.dims[axis] = tn_number_read_int(depth->data, depth->dtype, 0);
        TN_REQUIRE(to.dims[axis] >= 0, err, TN_INVALID_ARGUMENT, "depth is %lld",
                   (long long)to.dims[axis]);
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

static tn_status one_hot_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)worker;
    const one_hot_record *r = record;
    const void *indices = tn_kernel_in(ctx, 0);
    const char *off_on = tn_kernel_in(ctx, 2);
    char *out = tn_kernel_out(ctx, 0);
    const size_t plane = (size_t)r->depth * r->inner_count;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        size_t begin = 0;
        size_t end = 0;
        tn_tile_range(r->outer_count, r->tile_count, tile, &begin, &end);
        tn_fill(out + begin * plane * r->elem_bytes, off_on, r->elem_bytes, (end - begin) * plane);
        for (size_t i = begin * r->inner_count; i < end * r->inner_count; i++) {
            int64_t index = tn_number_read_int(indices, r->index_dtype, i);
            if (index < 0 && index >= -r->depth) index += r->depth;
            if (index < 0 || index >= r->depth) continue;
            const size_t at =
                i / r->inner_count * plane + (size_t)index * r->inner_count + i % r->inner_count;
            memcpy(out + at * r->elem_bytes, off_on + r->elem_bytes, r->elem_bytes);
        }
    }
    return TN_OK;
}

/* Outer positions before the new axis; 0 when nothing is written. */
static size_t one_hot_outer(const tn_node_facts *node, int32_t *out_axis) {
    const tn_fact *output = node->outputs[0];
    if (tn_infer_axis(*(const int64_t *)node->params, output->shape.rank, out_axis, NULL) !=
        TN_OK) {
        return 0;
    }
    if (tn_fact_len_elems(output) == 0) return 0;
    return (size_t)tn_dims_product(&output->shape, 0, *out_axis);
}

static tn_status one_hot_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)err;
    int32_t axis = 0;
    const bool is_sized = tn_node_is_sized(query->node);
    tn_one_variant("one hot", one_hot_run, tn_output_bytes(query->node, 0),
                   is_sized ? one_hot_outer(query->node, &axis) : 1, out, out_count);
    return TN_OK;
}

static tn_status one_hot_bind(const tn_bind_context *ctx, void *record) {
    one_hot_record *r = record;
    const tn_fact *output = ctx->node->outputs[0];
    int32_t axis = 0;
    TN_REQUIRE(tn_fact_len_elems(ctx->node->inputs[2]) == 2, ctx->err, TN_INVALID_ARGUMENT,
               "values has %zu elements, not off and on", tn_fact_len_elems(ctx->node->inputs[2]));
    r->outer_count = one_hot_outer(ctx->node, &axis);
    r->inner_count = r->outer_count == 0
                         ? 0
                         : (size_t)tn_dims_product(&output->shape, axis + 1, output->shape.rank);
    r->depth = output->shape.dims[axis];
    r->elem_bytes = (uint32_t)tn_elem_bytes(output->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
    r->index_dtype = ctx->node->inputs[0]->dtype;
    return TN_OK;
}

static const uint32_t number_types[] = {TN_TYPES_NUMBER};
static const uint32_t index_types[] = {TN_TYPES_INDEX};
static const uint32_t trilu_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX};
static const uint32_t one_hot_types[] = {TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL), TN_TYPES_NUMBER,
                                         TN_TYPES_WHOLE};
static const uint32_t eye_types[] = {TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL)};

static const tn_op_def rows[] = {
    {.name = "Shape",
     .since_version = 1,
     .until_version = 14,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_SHAPE_ONLY,
     .params_bytes = sizeof(shape_params),
     .record_bytes = sizeof(numbers_record),
     .check = shape1_check,
     .infer = shape_infer,
     .variants = numbers_variants,
     .bind = shape_bind},
    {.name = "Shape",
     .since_version = 15,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_SHAPE_ONLY,
     .params_bytes = sizeof(shape_params),
     .record_bytes = sizeof(numbers_record),
     .check = shape_check,
     .infer = shape_infer,
     .variants = numbers_variants,
     .bind = shape_bind},
    {.name = "Size",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_SHAPE_ONLY,
     .record_bytes = sizeof(numbers_record),
     .infer = size_infer,
     .variants = numbers_variants,
     .bind = size_bind},
    {.name = "Constant", .since_version = 1, .min_outputs = 1, .flags = TN_OP_CONSTANT},
    {.name = "ConstantOfShape",
     .since_version = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = index_types,
     .input_types_count = 1,
     .params_bytes = sizeof(fill_params),
     .record_bytes = sizeof(fill_record),
     .check = fill_check,
     .infer = fill_infer,
     .variants = fill_variants,
     .bind = fill_bind},
    {.name = "Range",
     .since_version = 11,
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = number_types,
     .input_types_count = 1,
     .same_type_mask = 7,
     .record_bytes = sizeof(range_record),
     .infer = range_infer,
     .variants = range_variants,
     .bind = range_bind},
    {.name = "EyeLike",
     .since_version = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE | TN_OP_SHAPE_ONLY,
     .input_types = eye_types,
     .input_types_count = 1,
     .params_bytes = sizeof(diagonal_params),
     .record_bytes = sizeof(diagonal_record),
     .check = eye_check,
     .infer = eye_infer,
     .variants = eye_variants,
     .bind = eye_bind},
    {.name = "Trilu",
     .since_version = 14,
     .min_inputs = 1,
     .max_inputs = 2,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .in_place_mask = 1,
     .input_types = trilu_types,
     .input_types_count = 2,
     .params_bytes = sizeof(diagonal_params),
     .record_bytes = sizeof(diagonal_record),
     .check = trilu_check,
     .infer = trilu_infer,
     .variants = trilu_variants,
     .bind = trilu_bind},
    {.name = "OneHot",
     .since_version = 9,
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = one_hot_types,
     .input_types_count = 3,
     .params_bytes = sizeof(int64_t),
     .record_bytes = sizeof(one_hot_record),
     .check = one_hot_check,
     .infer = one_hot_infer,
     .variants = one_hot_variants,
     .bind = one_hot_bind},
};
const tn_op_table tn_generate_table = {rows, TN_COUNTOF(rows)};
