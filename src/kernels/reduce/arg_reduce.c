/* ArgMax and ArgMin: positions of extremes along one axis. Ties go to the first one, or to the last
 * when asked; the first NaN wins over any number. */
#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "plan/op_def.h"

enum { STRIP_COLS = 64, TILE_ELEMS = 32 * 1024 };

typedef struct arg_params {
    int64_t axis;
    bool keeps_dims;
    bool selects_last;
    bool seeks_least;
} arg_params;

typedef struct arg_span {
    const void *x;
    size_t length; /* of the axis */
    size_t stride; /* elements between its steps */
    size_t cols;   /* neighbours, at most STRIP_COLS */
    bool selects_last;
    bool seeks_least;
} arg_span;

typedef void (*arg_fn)(const arg_span *span, int64_t *y);

typedef struct arg_record {
    arg_fn fn;
    size_t element_bytes;
    size_t outer, length, inner;
    size_t strips;
    size_t tile_units;
    bool selects_last;
    bool seeks_least;
} arg_record;

#define SAME(x) (x)
#define IS_NAN_F(x) ((x) != (x))
#define IS_NAN_I(x) false

#define DEFINE_ARG(name, element, value, load, class)                                 \
    static void arg_##name(const arg_span *span, int64_t *y) {                        \
        const element *x = span->x;                                                   \
        value best[STRIP_COLS];                                                       \
        for (size_t j = 0; j < span->cols; j++) {                                     \
            best[j] = load(x[j]);                                                     \
            y[j] = 0;                                                                 \
        }                                                                             \
        for (size_t i = 1; i < span->length; i++) {                                   \
            const element *row = x + i * span->stride;                                \
            for (size_t j = 0; j < span->cols; j++) {                                 \
                const value v = load(row[j]);                                         \
                const bool better = span->seeks_least ? v < best[j] : v > best[j];    \
                const bool equal = span->selects_last && v == best[j];                \
                const bool first_nan = IS_NAN_##class(v) && !IS_NAN_##class(best[j]); \
                if (better || equal || first_nan) {                                   \
                    best[j] = v;                                                      \
                    y[j] = (int64_t)i;                                                \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    }

#define ARG_TYPES(X)                              \
    X(F32, float, float, SAME, F)                 \
    X(F64, double, double, SAME, F)               \
    X(F16, uint16_t, float, tn_f32_from_f16, F)   \
    X(BF16, uint16_t, float, tn_f32_from_bf16, F) \
    X(I8, int8_t, int8_t, SAME, I)                \
    X(U8, uint8_t, uint8_t, SAME, I)              \
    X(I16, int16_t, int16_t, SAME, I)             \
    X(U16, uint16_t, uint16_t, SAME, I)           \
    X(I32, int32_t, int32_t, SAME, I)             \
    X(U32, uint32_t, uint32_t, SAME, I)           \
    X(I64, int64_t, int64_t, SAME, I)             \
    X(U64, uint64_t, uint64_t, SAME, I)
ARG_TYPES(DEFINE_ARG)

static const arg_fn arg_fns[TN_DTYPE_COUNT] = {
#define ARG_ENTRY(name, ...) [TN_DTYPE_##name] = arg_##name,
    ARG_TYPES(ARG_ENTRY)
#undef ARG_ENTRY
};

static tn_status check_common(const tn_check_context *ctx, arg_params *p) {
    int64_t keepdims;
    int64_t selects_last;
    TN_TRY(tn_check_int(ctx, "axis", 0, &p->axis));
    TN_TRY(tn_check_int(ctx, "keepdims", 1, &keepdims));
    TN_TRY(tn_check_int(ctx, "select_last_index", 0, &selects_last));
    p->keeps_dims = keepdims != 0;
    p->selects_last = selects_last != 0;
    return TN_OK;
}

static tn_status check_max(const tn_check_context *ctx, void *params) {
    return check_common(ctx, params);
}

static tn_status check_min(const tn_check_context *ctx, void *params) {
    arg_params *p = params;
    p->seeks_least = true;
    return check_common(ctx, p);
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const arg_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = TN_DTYPE_I64;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0) return TN_OK;
    int32_t axis = 0;
    if (x->shape.rank > 0) TN_TRY(tn_infer_axis(p->axis, x->shape.rank, &axis, err));
    y->shape.rank = 0;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        if (i != axis) {
            y->shape.dims[y->shape.rank++] = x->shape.dims[i];
            continue;
        }
        TN_REQUIRE(x->shape.dims[i] != 0, err, TN_INVALID_ARGUMENT,
                   "axis %d has no elements to choose from", (int)axis);
        if (p->keeps_dims) y->shape.dims[y->shape.rank++] = 1;
    }
    return TN_OK;
}

static tn_status describe(const tn_node_facts *node, arg_record *r, tn_error *err) {
    const arg_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    int32_t axis = 0;
    if (x->shape.rank > 0) TN_TRY(tn_infer_axis(p->axis, x->shape.rank, &axis, err));
    *r = (arg_record){.outer = 1,
                      .length = 1,
                      .inner = 1,
                      .selects_last = p->selects_last,
                      .seeks_least = p->seeks_least,
                      .fn = x->dtype < TN_DTYPE_COUNT ? arg_fns[x->dtype] : NULL,
                      .element_bytes = tn_dtype_bits(x->dtype) / 8};
    TN_REQUIRE(r->fn != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    for (int32_t i = 0; i < x->shape.rank; i++) {
        const size_t dim = x->shape.dims[i] < 0 ? 1 : (size_t)x->shape.dims[i];
        size_t *side = i < axis ? &r->outer : (i == axis ? &r->length : &r->inner);
        *side *= dim;
    }
    r->strips = (r->inner + STRIP_COLS - 1) / STRIP_COLS;
    const size_t unit_elems = r->length * tn_size_min(r->inner, STRIP_COLS);
    r->tile_units = tn_size_max(TILE_ELEMS / tn_size_max(unit_elems, 1), 1);
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const arg_record *r = record;
    const char *x = tn_kernel_in(ctx, 0);
    int64_t *y = tn_kernel_out(ctx, 0);
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, r->outer * r->strips);
    for (size_t unit = (size_t)tile0 * r->tile_units; unit < end; unit++) {
        const size_t outer = unit / r->strips;
        const size_t col = unit % r->strips * STRIP_COLS;
        const size_t at = outer * r->length * r->inner + col;
        const arg_span span = {.x = x + at * r->element_bytes,
                               .length = r->length,
                               .stride = r->inner,
                               .cols = tn_size_min(STRIP_COLS, r->inner - col),
                               .selects_last = r->selects_last,
                               .seeks_least = r->seeks_least};
        r->fn(&span, y + outer * r->inner + col);
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    arg_record r;
    TN_TRY(describe(query->node, &r, err));
    const size_t units = r.outer * r.strips;
    out[0] = (tn_variant){.name = "scan", .run = run};
    out[0].tile_counts[0] = (uint32_t)tn_size_max((units + r.tile_units - 1) / r.tile_units, 1);
    out[0].cost_ns = 50.0 + (double)r.outer * (double)r.length * (double)r.inner;
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    return describe(ctx->node, record, ctx->err);
}

#define NUMBERS                                                                                   \
    (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16) | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8) | \
     TN_TYPE_BIT(I16) | TN_TYPE_BIT(U16) | TN_TYPE_BIT(I32) | TN_TYPE_BIT(U32) |                  \
     TN_TYPE_BIT(I64) | TN_TYPE_BIT(U64))

static const uint32_t types_1[] = {NUMBERS};
static const uint32_t types_13[] = {NUMBERS | TN_TYPE_BIT(BF16)};

#define ROW(op_name, since, until, types, check_fn)                                       \
    {                                                                                     \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = 1, \
        .max_inputs = 1, .min_outputs = 1, .flags = TN_OP_FOLDABLE, .input_types = types, \
        .input_types_count = 1, .params_bytes = sizeof(arg_params),                       \
        .record_bytes = sizeof(arg_record), .check = check_fn, .infer = infer,            \
        .variants = variants, .bind = bind                                                \
    }
#define ROWS(op_name, check_fn)                                                      \
    ROW(op_name, 1, 10, types_1, check_fn), ROW(op_name, 11, 11, types_1, check_fn), \
        ROW(op_name, 12, 12, types_1, check_fn), ROW(op_name, 13, 0, types_13, check_fn)

static const tn_op_def rows[] = {ROWS("ArgMax", check_max), ROWS("ArgMin", check_min)};

const tn_op_table tn_arg_reduce_table = {rows, TN_COUNTOF(rows)};
