/* Softmax, LogSoftmax and Hardmax. From opset 13 they work along one axis; before, everything from
 * the axis to the end is one row. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/softmax/softmax_kernels.h"
#include "plan/op_def.h"

enum { TILE_ELEMS = 16 * 1024 };

typedef struct softmax_params {
    int64_t axis;
    tn_softmax_kind kind;
    bool flattens; /* opsets 1 to 12 */
} softmax_params;

typedef struct softmax_record {
    const tn_softmax_kernel *kernel;
    size_t element_bytes;
    size_t outer, length, inner;
    size_t strips;
    size_t tile_units;
} softmax_record;

static const char portable_name[] = "softmax portable";

#define DEFINE_CHECK(name, kind_value)                                                \
    static tn_status check_##name##_flat(const tn_check_context *ctx, void *params) { \
        softmax_params *p = params;                                                   \
        p->kind = kind_value;                                                         \
        p->flattens = true;                                                           \
        return tn_check_int(ctx, "axis", 1, &p->axis);                                \
    }                                                                                 \
    static tn_status check_##name(const tn_check_context *ctx, void *params) {        \
        softmax_params *p = params;                                                   \
        p->kind = kind_value;                                                         \
        return tn_check_int(ctx, "axis", -1, &p->axis);                               \
    }
DEFINE_CHECK(softmax, TN_SOFTMAX_EXP)
DEFINE_CHECK(log_softmax, TN_SOFTMAX_LOG)
DEFINE_CHECK(hardmax, TN_SOFTMAX_HARD)

/* The axis as an index; a flattening one may equal the rank. */
static tn_status axis_of(const tn_node_facts *node, int32_t *out, tn_error *err) {
    const softmax_params *p = node->params;
    const int32_t rank = tn_node_input(node, 0)->shape.rank;
    *out = 0;
    if (rank <= 0) return TN_OK;
    if (p->flattens && p->axis == rank) {
        *out = rank;
        return TN_OK;
    }
    return tn_infer_axis(p->axis, rank, out, err);
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    int32_t axis;
    if (tn_node_input(node, 0) == NULL) return TN_OK;
    TN_TRY(axis_of(node, &axis, err));
    return tn_infer_same_as_input0(node, err);
}

static tn_status describe(const tn_node_facts *node, tn_cpu_features cpu, softmax_record *r,
                          tn_error *err) {
    const softmax_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    int32_t axis;
    TN_TRY(axis_of(node, &axis, err));
    *r = (softmax_record){.kernel = tn_softmax_get(p->kind, x->dtype, cpu),
                          .element_bytes = tn_dtype_bits(x->dtype) / 8,
                          .outer = 1,
                          .length = 1,
                          .inner = 1};
    TN_REQUIRE(r->kernel != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    for (int32_t i = 0; i < x->shape.rank; i++) {
        const size_t dim = x->shape.dims[i] < 0 ? 1 : (size_t)x->shape.dims[i];
        if (i < axis) {
            r->outer *= dim;
        } else if (i == axis || p->flattens) {
            r->length *= dim;
        } else {
            r->inner *= dim;
        }
    }
    r->strips = (r->inner + TN_SOFTMAX_COLS - 1) / TN_SOFTMAX_COLS;
    const size_t unit_elems = r->length * tn_size_min(r->inner, TN_SOFTMAX_COLS);
    r->tile_units = tn_size_max(TILE_ELEMS / tn_size_max(unit_elems, 1), 1);
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const softmax_record *r = record;
    const char *x = tn_kernel_in(ctx, 0);
    char *y = tn_kernel_out(ctx, 0);
    if (r->length == 0) return TN_OK;
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, r->outer * r->strips);
    const tn_softmax_fn fn = r->inner == 1 ? r->kernel->row : r->kernel->columns;
    for (size_t unit = (size_t)tile0 * r->tile_units; unit < end; unit++) {
        const size_t col = unit % r->strips * TN_SOFTMAX_COLS;
        const size_t at = (unit / r->strips * r->length * r->inner + col) * r->element_bytes;
        const tn_softmax_span span = {.x = x + at,
                                      .y = y + at,
                                      .length = r->length,
                                      .stride = r->inner,
                                      .cols = tn_size_min(TN_SOFTMAX_COLS, r->inner - col)};
        fn(&span);
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    softmax_record r;
    TN_TRY(describe(query->node, TN_CPU_PORTABLE, &r, err));
    const size_t units = r.outer * r.strips;
    const double elems = (double)r.outer * (double)r.length * (double)r.inner;
    out[0] = (tn_variant){.name = portable_name, .run = run, .cost_ns = 50.0 + elems * 3.0};
    out[0].tile_counts[0] = (uint32_t)tn_size_max((units + r.tile_units - 1) / r.tile_units, 1);
    *out_count = 1;
    if (tn_node_input(query->node, 0)->dtype != TN_DTYPE_F32 ||
        tn_softmax_f32_fastest(query->cpu) == NULL) {
        return TN_OK;
    }
    out[1] = out[0];
    out[1].name = "softmax vector";
    out[1].cost_ns = 50.0 + elems;
    *out_count = 2;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const bool is_portable = strcmp(ctx->variant->name, portable_name) == 0;
    return describe(ctx->node, is_portable ? TN_CPU_PORTABLE : ctx->cpu, record, ctx->err);
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))

static const uint32_t types_1[] = {FLOATS};
static const uint32_t types_13[] = {FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(op_name, since, until, types, check_fn)                                           \
    {                                                                                         \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = 1,     \
        .max_inputs = 1, .min_outputs = 1, .flags = TN_OP_FOLDABLE, .in_place_mask = 1,       \
        .input_types = types, .input_types_count = 1, .params_bytes = sizeof(softmax_params), \
        .record_bytes = sizeof(softmax_record), .check = check_fn, .infer = infer,            \
        .variants = variants, .bind = bind                                                    \
    }
#define ROWS(op_name, check_name)                                 \
    ROW(op_name, 1, 10, types_1, check_##check_name##_flat),      \
        ROW(op_name, 11, 12, types_1, check_##check_name##_flat), \
        ROW(op_name, 13, 0, types_13, check_##check_name)

static const tn_op_def rows[] = {
    ROWS("Softmax", softmax),
    ROWS("LogSoftmax", log_softmax),
    ROWS("Hardmax", hardmax),
};

const tn_op_table tn_softmax_table = {rows, TN_COUNTOF(rows)};
