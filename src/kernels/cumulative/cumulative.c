/* CumSum and CumProd: running sums and products along one axis, which is an input. Each step adds a
 * row of the input to the row written before, in the type of the elements, in the order of the
 * axis; so results do not depend on tiles. Integers wrap around. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef struct cumulative_params {
    bool is_exclusive;
    bool is_reverse;
} cumulative_params;

typedef struct cumulative_record {
    tn_dtype dtype, axis_dtype;
    uint32_t elem_bytes;
    bool is_exclusive;
    bool is_reverse;
    size_t len_elems;
    tn_shape shape;
} cumulative_record;

/* One plane of the axis: rows of `inner` elements, `len` of them. */
typedef struct cumulative_plane {
    const char *in;
    char *out;
    size_t len, inner;
    bool is_exclusive;
    bool is_reverse;
} cumulative_plane;

typedef void (*plane_fn)(const cumulative_plane *plane);

/* X(dtype, type, wide, load, store) */
#define CUMULATIVE_LIST(X)                                                    \
    X(F32, float, float, value, wide)                                         \
    X(F64, double, double, value, wide)                                       \
    X(F16, uint16_t, float, tn_f32_from_f16(value), tn_f16_from_f32(wide))    \
    X(BF16, uint16_t, float, tn_f32_from_bf16(value), tn_bf16_from_f32(wide)) \
    X(I8, int8_t, uint64_t, (uint64_t)value, (int8_t)wide)                    \
    X(U8, uint8_t, uint64_t, (uint64_t)value, (uint8_t)wide)                  \
    X(I16, int16_t, uint64_t, (uint64_t)value, (int16_t)wide)                 \
    X(U16, uint16_t, uint64_t, (uint64_t)value, (uint16_t)wide)               \
    X(I32, int32_t, uint64_t, (uint64_t)value, (int32_t)wide)                 \
    X(U32, uint32_t, uint64_t, (uint64_t)value, (uint32_t)wide)               \
    X(I64, int64_t, uint64_t, (uint64_t)value, (int64_t)wide)                 \
    X(U64, uint64_t, uint64_t, (uint64_t)value, (uint64_t)wide)

/* Row `to` becomes row `before` of the output combined with row `added` of the input. */
#define DEFINE_PLANE(name, dtype, type, wide_type, load, store, start, operator)              \
    static void name##_##dtype(const cumulative_plane *p) {                                   \
        for (size_t i = 0; i < p->len; i++) {                                                 \
            const size_t row = p->is_reverse ? p->len - 1 - i : i;                            \
            const size_t last = p->is_reverse ? row + 1 : row - 1;                            \
            const size_t before = last * p->inner;                                            \
            const size_t added = (p->is_exclusive ? last : row) * p->inner;                   \
            char *to = p->out + row * p->inner * sizeof(type);                                \
            for (size_t k = 0; i == 0 && k < p->inner; k++) {                                 \
                const wide_type wide =                                                        \
                    p->is_exclusive ? (wide_type)(start) : load_##dtype(p->in, added + k);    \
                const type value = store;                                                     \
                memcpy(to + k * sizeof value, &value, sizeof value);                          \
            }                                                                                 \
            for (size_t k = 0; i > 0 && k < p->inner; k++) {                                  \
                const wide_type wide =                                                        \
                    load_##dtype(p->out, before + k) operator load_##dtype(p->in, added + k); \
                const type value = store;                                                     \
                memcpy(to + k * sizeof value, &value, sizeof value);                          \
            }                                                                                 \
        }                                                                                     \
    }

#define DEFINE_PLANES(dtype, type, wide_type, load, store)               \
    static inline wide_type load_##dtype(const char *at, size_t index) { \
        type value;                                                      \
        memcpy(&value, at + index * sizeof value, sizeof value);         \
        return load;                                                     \
    }                                                                    \
    DEFINE_PLANE(sum, dtype, type, wide_type, load, store, 0, +)         \
    DEFINE_PLANE(product, dtype, type, wide_type, load, store, 1, *)
CUMULATIVE_LIST(DEFINE_PLANES)

#define SUM_ENTRY(dtype, ...) [TN_DTYPE_##dtype] = sum_##dtype,
#define PRODUCT_ENTRY(dtype, ...) [TN_DTYPE_##dtype] = product_##dtype,
static const plane_fn sums[TN_DTYPE_COUNT] = {CUMULATIVE_LIST(SUM_ENTRY)};
static const plane_fn products[TN_DTYPE_COUNT] = {CUMULATIVE_LIST(PRODUCT_ENTRY)};

static tn_status cumulative_check(const tn_check_context *ctx, void *params) {
    cumulative_params *p = params;
    int64_t exclusive = 0;
    int64_t reverse = 0;
    TN_TRY(tn_check_int(ctx, "exclusive", 0, &exclusive));
    TN_TRY(tn_check_int(ctx, "reverse", 0, &reverse));
    p->is_exclusive = exclusive != 0;
    p->is_reverse = reverse != 0;
    return TN_OK;
}

static tn_status run_planes(const cumulative_record *r, tn_kernel_context *ctx, const plane_fn *fns,
                            uint32_t worker) {
    const int64_t given = tn_read_index(tn_kernel_in(ctx, 1), r->axis_dtype, 0);
    int32_t axis = 0;
    TN_TRY(tn_infer_axis(given, r->shape.rank, &axis, tn_kernel_error(ctx, worker)));
    if (r->len_elems == 0) return TN_OK;
    cumulative_plane plane = {.in = tn_kernel_in(ctx, 0),
                              .out = tn_kernel_out(ctx, 0),
                              .len = (size_t)r->shape.dims[axis],
                              .is_exclusive = r->is_exclusive,
                              .is_reverse = r->is_reverse};
    plane.inner = (size_t)tn_dims_product(&r->shape, axis + 1, r->shape.rank);
    const size_t plane_len = plane.len * plane.inner;
    for (size_t done = 0; done < r->len_elems; done += plane_len) {
        fns[r->dtype](&plane);
        plane.in += plane_len * r->elem_bytes;
        plane.out += plane_len * r->elem_bytes;
    }
    return TN_OK;
}

static tn_status sum_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)tile0, (void)tile1;
    return run_planes(record, ctx, sums, worker);
}

static tn_status product_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)tile0, (void)tile1;
    return run_planes(record, ctx, products, worker);
}

static tn_status sum_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    (void)err;
    tn_one_variant("cumulative", sum_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static tn_status product_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("cumulative", product_run, tn_output_bytes(query->node, 0), 1, out, out_count);
    return TN_OK;
}

static tn_status cumulative_bind(const tn_bind_context *ctx, void *record) {
    cumulative_record *r = record;
    const cumulative_params *p = ctx->node->params;
    const tn_fact *input = ctx->node->inputs[0];
    TN_REQUIRE(tn_fact_len_elems(ctx->node->inputs[1]) == 1, ctx->err, TN_INVALID_ARGUMENT,
               "axis has %zu elements, not one", tn_fact_len_elems(ctx->node->inputs[1]));
    r->dtype = input->dtype;
    r->axis_dtype = ctx->node->inputs[1]->dtype;
    r->elem_bytes = (uint32_t)tn_elem_bytes(input->dtype);
    r->is_exclusive = p->is_exclusive;
    r->is_reverse = p->is_reverse;
    r->len_elems = tn_fact_len_elems(input);
    r->shape = input->shape;
    return TN_OK;
}

static const uint32_t cumulative_types[] = {TN_TYPES_NUMBER, TN_TYPES_INDEX};

#define CUMULATIVE_ROW                                                                    \
    .min_inputs = 2, .max_inputs = 2, .min_outputs = 1, .flags = TN_OP_FOLDABLE,          \
    .input_types = cumulative_types, .input_types_count = 2,                              \
    .params_bytes = sizeof(cumulative_params), .record_bytes = sizeof(cumulative_record), \
    .check = cumulative_check, .infer = tn_infer_same_as_input0, .bind = cumulative_bind

static const tn_op_def rows[] = {
    {.name = "CumSum", .since_version = 11, .variants = sum_variants, CUMULATIVE_ROW},
    {.name = "CumProd", .since_version = 26, .variants = product_variants, CUMULATIVE_ROW},
};
const tn_op_table tn_cumulative_table = {rows, TN_COUNTOF(rows)};
