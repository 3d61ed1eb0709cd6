/* Scatter, ScatterElements, ScatterND, TensorScatter: a copy of the data (none when the plan runs
 * them in place) with elements or slices written over or combined at given indices. Updates are
 * applied in order by one tile, since several may hit one element. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/index_walk.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef enum scatter_reduction {
    SCATTER_REPLACE,
    SCATTER_ADD,
    SCATTER_MUL,
    SCATTER_MAX,
    SCATTER_MIN,
    SCATTER_REDUCTIONS
} scatter_reduction;

typedef void (*combine_fn)(char *to, const char *from);

/* X(dtype, type): integers wrap around, by way of unsigned arithmetic */
#define INTEGER_LIST(X) \
    X(U8, uint8_t)      \
    X(I8, int8_t)       \
    X(U16, uint16_t)    \
    X(I16, int16_t)     \
    X(I32, int32_t)     \
    X(U32, uint32_t)    \
    X(I64, int64_t)     \
    X(U64, uint64_t)

/* X(dtype, storage, wide, load, store): floats with the type they are combined in */
#define FLOAT_LIST(X)                                                      \
    X(F32, float, float, value, wide)                                      \
    X(F64, double, double, value, wide)                                    \
    X(F16, uint16_t, float, tn_f32_from_f16(value), tn_f16_from_f32(wide)) \
    X(BF16, uint16_t, float, tn_f32_from_bf16(value), tn_bf16_from_f32(wide))

#define DEFINE_INTEGER_COMBINE(name, dtype, type, expression) \
    static void name##_##dtype(char *to, const char *from) {  \
        type a;                                               \
        type b;                                               \
        memcpy(&a, to, sizeof a);                             \
        memcpy(&b, from, sizeof b);                           \
        const type combined = (type)(expression);             \
        memcpy(to, &combined, sizeof combined);               \
    }

#define DEFINE_INTEGER_COMBINES(dtype, type)                            \
    DEFINE_INTEGER_COMBINE(add, dtype, type, (uint64_t)a + (uint64_t)b) \
    DEFINE_INTEGER_COMBINE(mul, dtype, type, (uint64_t)a *(uint64_t)b)  \
    DEFINE_INTEGER_COMBINE(max, dtype, type, a > b ? a : b)             \
    DEFINE_INTEGER_COMBINE(min, dtype, type, a < b ? a : b)
INTEGER_LIST(DEFINE_INTEGER_COMBINES)

#define DEFINE_FLOAT_COMBINE(name, dtype, wide_type, expression) \
    static void name##_##dtype(char *to, const char *from) {     \
        const wide_type a = load_##dtype(to);                    \
        const wide_type b = load_##dtype(from);                  \
        store_##dtype(to, expression);                           \
    }

/* NaN wins over any number in max and min, as in NumPy */
#define DEFINE_FLOAT_COMBINES(dtype, storage, wide_type, load, store)    \
    static wide_type load_##dtype(const char *at) {                      \
        storage value;                                                   \
        memcpy(&value, at, sizeof value);                                \
        return load;                                                     \
    }                                                                    \
    static void store_##dtype(char *at, wide_type wide) {                \
        const storage value = store;                                     \
        memcpy(at, &value, sizeof value);                                \
    }                                                                    \
    DEFINE_FLOAT_COMBINE(add, dtype, wide_type, a + b)                   \
    DEFINE_FLOAT_COMBINE(mul, dtype, wide_type, a *b)                    \
    DEFINE_FLOAT_COMBINE(max, dtype, wide_type, a > b || a != a ? a : b) \
    DEFINE_FLOAT_COMBINE(min, dtype, wide_type, a < b || a != a ? a : b)
FLOAT_LIST(DEFINE_FLOAT_COMBINES)

#define COMBINE_ENTRY(dtype, ...) \
    [TN_DTYPE_##dtype] = {NULL, add_##dtype, mul_##dtype, max_##dtype, min_##dtype},
static const combine_fn combines[TN_DTYPE_COUNT][SCATTER_REDUCTIONS] = {
    INTEGER_LIST(COMBINE_ENTRY) FLOAT_LIST(COMBINE_ENTRY)};

typedef struct scatter_params {
    int64_t axis;
    scatter_reduction reduction;
    bool is_circular; /* TensorScatter */
} scatter_params;

static tn_status check_reduction(const tn_check_context *ctx, scatter_params *p) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    tn_text text;
    TN_TRY(tn_check_text(ctx, "reduction", "none", &text));
    for (size_t i = 0; i < TN_COUNTOF(names); i++) {
        if (!tn_text_equals_literal(text, names[i])) continue;
        p->reduction = (scatter_reduction)i;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "reduction %.*s", tn_text_width(text),
                        text.data);
}

static tn_status elements_check(const tn_check_context *ctx, void *params) {
    scatter_params *p = params;
    TN_TRY(tn_check_int(ctx, "axis", 0, &p->axis));
    return check_reduction(ctx, p);
}

static tn_status nd_check(const tn_check_context *ctx, void *params) {
    return check_reduction(ctx, params);
}

static tn_status require_combinable(const tn_node_facts *node, tn_error *err) {
    const scatter_params *p = node->params;
    const tn_dtype dtype = tn_input_dtype(node, 0);
    TN_REQUIRE(p->reduction == SCATTER_REPLACE || dtype == TN_DTYPE_NONE ||
                   combines[dtype][p->reduction] != NULL,
               err, TN_UNSUPPORTED, "%s cannot be reduced", tn_dtype_name(dtype));
    return TN_OK;
}

static tn_status shape_mismatch(const tn_node_facts *node, uint32_t a, uint32_t b, tn_error *err) {
    char text[160];
    char other[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "inputs %u and %u do not fit: %s and %s", a, b,
                        tn_shape_text(&node->inputs[a]->shape, text, sizeof text),
                        tn_shape_text(&node->inputs[b]->shape, other, sizeof other));
}

static bool dims_agree(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

static void copy_data(const tn_kernel_context *ctx, size_t size_bytes) {
    const char *data = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    if (data != out && size_bytes != 0) memcpy(out, data, size_bytes);
}

/* ---- Scatter and ScatterElements ---- */

typedef struct elements_record {
    int32_t rank;
    uint32_t elem_bytes;
    tn_dtype dtype, index_dtype;
    scatter_reduction reduction;
    size_t count; /* of updates */
    size_t total_bytes;
    int64_t axis_dim, axis_stride;
    int64_t dims[TN_MAX_RANK];    /* of the indices */
    int64_t strides[TN_MAX_RANK]; /* bytes of the output, 0 along the axis */
} elements_record;

static tn_status elements_infer(const tn_node_facts *node, tn_error *err) {
    const scatter_params *p = node->params;
    TN_TRY(require_combinable(node, err));
    if (tn_input_has_rank(node, 0) && tn_input_has_rank(node, 1)) {
        const tn_shape *data = &node->inputs[0]->shape;
        const tn_shape *indices = &node->inputs[1]->shape;
        int32_t axis = 0;
        if (data->rank != indices->rank) return shape_mismatch(node, 0, 1, err);
        TN_TRY(tn_infer_axis(p->axis, data->rank, &axis, err));
        for (int32_t i = 0; i < data->rank; i++) {
            const bool fits = i == axis || data->dims[i] < 0 || indices->dims[i] <= data->dims[i];
            if (!fits) return shape_mismatch(node, 0, 1, err);
        }
    }
    if (tn_input_has_rank(node, 1) && tn_input_has_rank(node, 2)) {
        const tn_shape *indices = &node->inputs[1]->shape;
        const tn_shape *updates = &node->inputs[2]->shape;
        if (indices->rank != updates->rank) return shape_mismatch(node, 1, 2, err);
        for (int32_t i = 0; i < indices->rank; i++) {
            if (!dims_agree(indices->dims[i], updates->dims[i])) {
                return shape_mismatch(node, 1, 2, err);
            }
        }
    }
    return tn_infer_same_as_input0(node, err);
}

static tn_status elements_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                              uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1;
    const elements_record *r = record;
    copy_data(ctx, r->total_bytes);
    if (r->count == 0) return TN_OK;
    const void *indices = tn_kernel_in(ctx, 1);
    const char *updates = tn_kernel_in(ctx, 2);
    char *out = tn_kernel_out(ctx, 0);
    const combine_fn combine = combines[r->dtype][r->reduction];
    tn_walk walk;
    walk.rank = r->rank;
    walk.dims = r->dims;
    walk.strides_a = r->strides;
    walk.strides_b = r->strides;
    tn_walk_seek(&walk, 0);
    for (size_t i = 0; i < r->count; i++) {
        const int64_t given = tn_read_index(indices, r->index_dtype, i);
        const int64_t index = given < 0 ? given + r->axis_dim : given;
        if (index < 0 || index >= r->axis_dim) {
            return tn_bad_index(ctx, worker, given, i, r->axis_dim);
        }
        char *to = out + walk.offset_a + index * r->axis_stride;
        const char *from = updates + i * r->elem_bytes;
        if (combine == NULL) {
            tn_copy_small(to, from, r->elem_bytes);
        } else {
            combine(to, from);
        }
        tn_walk_next(&walk);
    }
    return TN_OK;
}

static tn_status elements_variants(const tn_variant_query *query, tn_variant *out,
                                   uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("scatter elements", elements_run, tn_output_bytes(query->node, 0), 1, out,
                   out_count);
    return TN_OK;
}

static tn_status elements_bind(const tn_bind_context *ctx, void *record) {
    elements_record *r = record;
    const scatter_params *p = ctx->node->params;
    const tn_fact *data = ctx->node->inputs[0];
    const tn_fact *indices = ctx->node->inputs[1];
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, data->shape.rank, &axis, ctx->err));
    r->rank = data->shape.rank;
    r->elem_bytes = (uint32_t)tn_elem_bytes(data->dtype);
    r->dtype = data->dtype;
    r->index_dtype = indices->dtype;
    r->reduction = p->reduction;
    r->count = tn_fact_len_elems(indices);
    r->total_bytes = tn_fact_len_elems(data) * r->elem_bytes;
    r->axis_dim = data->shape.dims[axis];
    tn_row_strides(&data->shape, (int64_t)r->elem_bytes, r->strides);
    for (int32_t i = 0; i < r->rank; i++) r->dims[i] = indices->shape.dims[i];
    r->axis_stride = r->strides[axis];
    r->strides[axis] = 0;
    return TN_OK;
}

/* ---- ScatterND ---- */

typedef struct nd_record {
    int32_t tuple_len;
    uint32_t elem_bytes;
    tn_dtype dtype, index_dtype;
    scatter_reduction reduction;
    size_t row_count; /* tuples */
    size_t slice_bytes;
    size_t total_bytes;
    int64_t dims[TN_MAX_RANK];    /* [tuple_len] */
    int64_t strides[TN_MAX_RANK]; /* [tuple_len] bytes */
} nd_record;

static tn_status nd_infer(const tn_node_facts *node, tn_error *err) {
    TN_TRY(require_combinable(node, err));
    if (!tn_input_has_rank(node, 0) || !tn_input_has_rank(node, 1)) {
        return tn_infer_same_as_input0(node, err);
    }
    const tn_shape *data = &node->inputs[0]->shape;
    const tn_shape *indices = &node->inputs[1]->shape;
    if (indices->rank < 1) return shape_mismatch(node, 0, 1, err);
    const int64_t tuple_len = indices->dims[indices->rank - 1];
    if (tuple_len > data->rank) return shape_mismatch(node, 0, 1, err);
    if (tuple_len >= 0 && tn_input_has_rank(node, 2)) {
        const tn_shape *updates = &node->inputs[2]->shape;
        const int32_t batch = indices->rank - 1;
        const int32_t rank = batch + data->rank - (int32_t)tuple_len;
        if (updates->rank != rank) return shape_mismatch(node, 1, 2, err);
        for (int32_t i = 0; i < rank; i++) {
            const int64_t dim = i < batch ? indices->dims[i] : data->dims[tuple_len + i - batch];
            if (!dims_agree(dim, updates->dims[i])) return shape_mismatch(node, 1, 2, err);
        }
    }
    return tn_infer_same_as_input0(node, err);
}

static void combine_slice(const nd_record *r, char *to, const char *from) {
    const combine_fn combine = combines[r->dtype][r->reduction];
    if (combine == NULL) {
        tn_copy_small(to, from, r->slice_bytes);
        return;
    }
    for (size_t at = 0; at < r->slice_bytes; at += r->elem_bytes) combine(to + at, from + at);
}

static tn_status nd_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                        uint32_t worker) {
    (void)tile0, (void)tile1;
    const nd_record *r = record;
    copy_data(ctx, r->total_bytes);
    const void *indices = tn_kernel_in(ctx, 1);
    const char *updates = tn_kernel_in(ctx, 2);
    for (size_t row = 0; row < r->row_count; row++) {
        char *to = tn_kernel_out(ctx, 0);
        for (int32_t i = 0; i < r->tuple_len; i++) {
            const size_t element = row * (size_t)r->tuple_len + (size_t)i;
            const int64_t given = tn_read_index(indices, r->index_dtype, element);
            const int64_t index = given < 0 ? given + r->dims[i] : given;
            if (index < 0 || index >= r->dims[i]) {
                return tn_bad_index(ctx, worker, given, element, r->dims[i]);
            }
            to += index * r->strides[i];
        }
        combine_slice(r, to, updates + row * r->slice_bytes);
    }
    return TN_OK;
}

static tn_status nd_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                             tn_error *err) {
    (void)err;
    tn_one_variant("scatter nd", nd_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static tn_status nd_bind(const tn_bind_context *ctx, void *record) {
    nd_record *r = record;
    const scatter_params *p = ctx->node->params;
    const tn_fact *data = ctx->node->inputs[0];
    const tn_shape *indices = &ctx->node->inputs[1]->shape;
    r->tuple_len = (int32_t)indices->dims[indices->rank - 1];
    r->elem_bytes = (uint32_t)tn_elem_bytes(data->dtype);
    r->dtype = data->dtype;
    r->index_dtype = ctx->node->inputs[1]->dtype;
    r->reduction = p->reduction;
    r->total_bytes = tn_fact_len_elems(data) * r->elem_bytes;
    if (tn_fact_len_elems(ctx->node->inputs[2]) == 0) return TN_OK; /* no rows */
    int64_t strides[TN_MAX_RANK];
    tn_row_strides(&data->shape, (int64_t)r->elem_bytes, strides);
    r->row_count = (size_t)tn_dims_product(indices, 0, indices->rank - 1);
    r->slice_bytes =
        (size_t)tn_dims_product(&data->shape, r->tuple_len, data->shape.rank) * r->elem_bytes;
    for (int32_t i = 0; i < r->tuple_len; i++) {
        r->dims[i] = data->shape.dims[i];
        r->strides[i] = strides[i];
    }
    return TN_OK;
}

/* ---- TensorScatter ---- */

typedef struct cache_record {
    size_t batch_count;
    size_t rows_per_batch; /* positions between the batch axis and the sequence axis */
    int64_t cache_len, update_len;
    size_t step_bytes; /* of one position of the sequence */
    size_t total_bytes;
    tn_dtype index_dtype;
    bool has_indices;
    bool is_circular;
} cache_record;

static tn_status cache_check(const tn_check_context *ctx, void *params) {
    scatter_params *p = params;
    tn_text mode;
    TN_TRY(tn_check_int(ctx, "axis", -2, &p->axis));
    TN_TRY(tn_check_text(ctx, "mode", "linear", &mode));
    p->is_circular = tn_text_equals_literal(mode, "circular");
    TN_REQUIRE(p->is_circular || tn_text_equals_literal(mode, "linear"), ctx->err, TN_INVALID_MODEL,
               "mode %.*s", tn_text_width(mode), mode.data);
    return TN_OK;
}

static tn_status cache_infer(const tn_node_facts *node, tn_error *err) {
    const scatter_params *p = node->params;
    if (tn_input_has_rank(node, 0) && tn_input_has_rank(node, 1)) {
        const tn_shape *cache = &node->inputs[0]->shape;
        const tn_shape *update = &node->inputs[1]->shape;
        int32_t axis = 0;
        if (cache->rank != update->rank) return shape_mismatch(node, 0, 1, err);
        TN_TRY(tn_infer_axis(p->axis, cache->rank, &axis, err));
        TN_REQUIRE(axis > 0, err, TN_INVALID_MODEL, "axis %lld is the batch axis",
                   (long long)p->axis);
        for (int32_t i = 0; i < cache->rank; i++) {
            const bool fits = i == axis ? cache->dims[i] < 0 || update->dims[i] <= cache->dims[i]
                                        : dims_agree(cache->dims[i], update->dims[i]);
            if (!fits) return shape_mismatch(node, 0, 1, err);
        }
    }
    return tn_infer_same_as_input0(node, err);
}

static tn_status write_sequence(const cache_record *r, const tn_kernel_context *ctx, size_t row,
                                int64_t start, uint32_t worker) {
    const char *from =
        (const char *)tn_kernel_in(ctx, 1) + row * (size_t)r->update_len * r->step_bytes;
    char *to = (char *)tn_kernel_out(ctx, 0) + row * (size_t)r->cache_len * r->step_bytes;
    for (int64_t i = 0; i < r->update_len; i++) {
        int64_t at = 0;
        const bool fits = tn_i64_add(start, i, &at);
        if (fits && r->is_circular) {
            at %= r->cache_len;
            if (at < 0) at += r->cache_len;
        }
        if (!fits || at < 0 || at >= r->cache_len) {
            return tn_bad_index(ctx, worker, start, row / r->rows_per_batch, r->cache_len);
        }
        tn_copy_small(to + (size_t)at * r->step_bytes, from + (size_t)i * r->step_bytes,
                      r->step_bytes);
    }
    return TN_OK;
}

static tn_status cache_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                           uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1;
    const cache_record *r = record;
    copy_data(ctx, r->total_bytes);
    for (size_t row = 0; row < r->batch_count * r->rows_per_batch; row++) {
        const int64_t start = r->has_indices ? tn_read_index(tn_kernel_in(ctx, 2), r->index_dtype,
                                                             row / r->rows_per_batch)
                                             : 0;
        TN_TRY(write_sequence(r, ctx, row, start, worker));
    }
    return TN_OK;
}

static tn_status cache_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                                tn_error *err) {
    (void)err;
    tn_one_variant("cache update", cache_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static tn_status cache_bind(const tn_bind_context *ctx, void *record) {
    cache_record *r = record;
    const scatter_params *p = ctx->node->params;
    const tn_fact *cache = ctx->node->inputs[0];
    const tn_fact *indices = tn_node_input(ctx->node, 2);
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(p->axis, cache->shape.rank, &axis, ctx->err));
    r->total_bytes = tn_fact_len_elems(cache) * tn_elem_bytes(cache->dtype);
    r->has_indices = indices != NULL;
    r->is_circular = p->is_circular;
    if (tn_fact_len_elems(ctx->node->inputs[1]) == 0) return TN_OK; /* no rows */
    r->batch_count = (size_t)cache->shape.dims[0];
    if (indices != NULL) {
        TN_REQUIRE(tn_fact_len_elems(indices) == r->batch_count, ctx->err, TN_INVALID_ARGUMENT,
                   "%zu write indices for a batch of %zu", tn_fact_len_elems(indices),
                   r->batch_count);
        r->index_dtype = indices->dtype;
    }
    r->rows_per_batch = (size_t)tn_dims_product(&cache->shape, 1, axis);
    r->cache_len = cache->shape.dims[axis];
    r->update_len = ctx->node->inputs[1]->shape.dims[axis];
    r->step_bytes = (size_t)tn_dims_product(&cache->shape, axis + 1, cache->shape.rank) *
                    tn_elem_bytes(cache->dtype);
    return TN_OK;
}

static const uint32_t scatter_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX, TN_TYPES_WHOLE};
static const uint32_t cache_types[] = {TN_TYPES_WHOLE, TN_TYPES_WHOLE, TN_TYPES_INDEX};

#define SCATTER_ROW                                                                                \
    .min_inputs = 3, .max_inputs = 3, .min_outputs = 1, .flags = TN_OP_FOLDABLE,                   \
    .in_place_mask = 1, .input_types = scatter_types, .input_types_count = 3, .same_type_mask = 5, \
    .params_bytes = sizeof(scatter_params)

static const tn_op_def rows[] = {
    {.name = "Scatter",
     .since_version = 9,
     .until_version = 10,
     .record_bytes = sizeof(elements_record),
     .check = elements_check,
     .infer = elements_infer,
     .variants = elements_variants,
     .bind = elements_bind,
     SCATTER_ROW},
    {.name = "ScatterElements",
     .since_version = 11,
     .record_bytes = sizeof(elements_record),
     .check = elements_check,
     .infer = elements_infer,
     .variants = elements_variants,
     .bind = elements_bind,
     SCATTER_ROW},
    {.name = "ScatterND",
     .since_version = 11,
     .record_bytes = sizeof(nd_record),
     .check = nd_check,
     .infer = nd_infer,
     .variants = nd_variants,
     .bind = nd_bind,
     SCATTER_ROW},
    {.name = "TensorScatter",
     .since_version = 24,
     .min_inputs = 2,
     .max_inputs = 3,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .in_place_mask = 1,
     .input_types = cache_types,
     .input_types_count = 3,
     .same_type_mask = 3,
     .params_bytes = sizeof(scatter_params),
     .record_bytes = sizeof(cache_record),
     .check = cache_check,
     .infer = cache_infer,
     .variants = cache_variants,
     .bind = cache_bind},
};
const tn_op_table tn_scatter_table = {rows, TN_COUNTOF(rows)};
