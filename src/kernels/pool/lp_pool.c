/* LpPool and GlobalLpPool: the p-norm of each window, padding counts as nothing.
 *
 * Rows are made window element by window element as in pool.c, in strips of sums. Powers one and
 * two, which is what models use, need no call of pow. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/window.h"

enum { STRIP = 64, TILE_STEPS = 32 * 1024, POW_STEPS = 16 };

typedef enum norm_kind { NORM_SUM, NORM_SQUARE, NORM_ANY } norm_kind;

typedef struct lp_params {
    tn_window_params window;
    double p;
    bool is_global;
} lp_params;

typedef struct lp_record lp_record;
typedef void (*row_fn)(const lp_record *r, const void *x, void *y, size_t plane, size_t row);

struct lp_record {
    tn_window window;
    row_fn fn;
    norm_kind kind;
    double p;
    size_t planes, in_spatial, out_spatial, window_elems;
    size_t row_elems;
    size_t tile_planes;
};

/* Version 1 has a float, later ones an integer. */
static tn_status check_p(const tn_check_context *ctx, bool is_float, double *out) {
    int64_t integer = 2;
    float number = 2;
    if (is_float) {
        TN_TRY(tn_check_float(ctx, "p", 2, &number));
        *out = (double)number;
    } else {
        TN_TRY(tn_check_int(ctx, "p", 2, &integer));
        *out = (double)integer;
    }
    TN_REQUIRE(*out > 0 && isfinite(*out), ctx->err, TN_INVALID_MODEL,
               "attribute p is %g, expected a finite number above 0", *out);
    return TN_OK;
}

static tn_status check_window(const tn_check_context *ctx, lp_params *p) {
    TN_TRY(tn_window_check(ctx, &p->window));
    TN_REQUIRE(p->window.kernel_count > 0, ctx->err, TN_INVALID_MODEL,
               "attribute kernel_shape is missing");
    return TN_OK;
}

static tn_status check_pool_1(const tn_check_context *ctx, void *params) {
    TN_TRY(check_window(ctx, params));
    return check_p(ctx, true, &((lp_params *)params)->p);
}

static tn_status check_pool_2(const tn_check_context *ctx, void *params) {
    TN_TRY(check_window(ctx, params));
    return check_p(ctx, false, &((lp_params *)params)->p);
}

static tn_status check_global_1(const tn_check_context *ctx, void *params) {
    ((lp_params *)params)->is_global = true;
    return check_p(ctx, true, &((lp_params *)params)->p);
}

static tn_status check_global_2(const tn_check_context *ctx, void *params) {
    ((lp_params *)params)->is_global = true;
    return check_p(ctx, false, &((lp_params *)params)->p);
}

static tn_status resolve(const lp_params *p, const tn_shape *x, tn_window *out, tn_error *err) {
    TN_REQUIRE(x->rank >= 3, err, TN_INVALID_ARGUMENT, "the input has rank %d, expected 3 or more",
               (int)x->rank);
    if (p->is_global) return tn_window_resolve_whole(x->dims + 2, x->rank - 2, out, err);
    return tn_window_resolve(&p->window, x->dims + 2, p->window.kernel, x->rank - 2, out, err);
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *x = tn_node_input(node, 0);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = x->dtype;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0) return TN_OK;
    tn_window window;
    TN_TRY(resolve(node->params, &x->shape, &window, err));
    y->shape = x->shape;
    for (int32_t i = 0; i < window.count; i++) y->shape.dims[2 + i] = window.out[i];
    return TN_OK;
}

#define SAME(x) (x)

/* Sums of |x|^p over the window for one strip, then the root. */
#define DEFINE_ROW(name, element, sum_type, load, store, fabs_fn, pow_fn, sqrt_fn)             \
    static void row_##name(const lp_record *r, const void *x_base, void *y_base, size_t plane, \
                           size_t row) {                                                       \
        const element *x = (const element *)x_base + plane * r->in_spatial;                    \
        element *y = (element *)y_base + plane * r->out_spatial + row * r->row_elems;          \
        const sum_type p = (sum_type)r->p;                                                     \
        for (int64_t strip = 0; strip < (int64_t)r->row_elems; strip += STRIP) {               \
            const int64_t end = tn_i64_min(strip + STRIP, (int64_t)r->row_elems);              \
            sum_type sums[STRIP] = {0};                                                        \
            for (size_t e = 0; e < r->window_elems; e++) {                                     \
                const tn_window_line line = tn_window_line_of(&r->window, row, e);             \
                const int64_t first = line.base + line.start;                                  \
                const int64_t high = tn_i64_min(line.high, end);                               \
                for (int64_t i = tn_i64_max(line.low, strip); i < high; i++) {                 \
                    const sum_type v = fabs_fn(load(x[first + i * line.stride]));              \
                    sums[i - strip] += r->kind == NORM_SUM      ? v                            \
                                       : r->kind == NORM_SQUARE ? v * v                        \
                                                                : pow_fn(v, p);                \
                }                                                                              \
            }                                                                                  \
            for (int64_t i = strip; i < end; i++) {                                            \
                const sum_type sum = sums[i - strip];                                          \
                y[i] = store(r->kind == NORM_SUM      ? sum                                    \
                             : r->kind == NORM_SQUARE ? sqrt_fn(sum)                           \
                                                      : pow_fn(sum, 1 / p));                   \
            }                                                                                  \
        }                                                                                      \
    }
DEFINE_ROW(f32, float, float, SAME, SAME, fabsf, powf, sqrtf)
DEFINE_ROW(f64, double, double, SAME, SAME, fabs, pow, sqrt)
DEFINE_ROW(f16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32, fabsf, powf, sqrtf)
DEFINE_ROW(bf16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32, fabsf, powf, sqrtf)

static const row_fn row_fns[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = row_f32,
    [TN_DTYPE_F64] = row_f64,
    [TN_DTYPE_F16] = row_f16,
    [TN_DTYPE_BF16] = row_bf16,
};

static size_t plane_steps(const lp_record *r) {
    const size_t per_element = r->kind == NORM_ANY ? POW_STEPS : 1;
    size_t steps = 0;
    if (!tn_size_mul(r->out_spatial, r->window_elems, &steps) ||
        !tn_size_mul(steps, per_element, &steps)) {
        return SIZE_MAX;
    }
    return tn_size_max(steps, 1);
}

static tn_status describe(const tn_node_facts *node, lp_record *r, tn_error *err) {
    const lp_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    memset(r, 0, sizeof *r);
    TN_TRY(resolve(p, &x->shape, &r->window, err));
    TN_TRY(tn_window_trim(&r->window, err));
    r->fn = x->dtype < TN_DTYPE_COUNT ? row_fns[x->dtype] : NULL;
    TN_REQUIRE(r->fn != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    TN_TRY(tn_window_sizes(&r->window, &r->in_spatial, &r->out_spatial, &r->window_elems, err));
    r->p = p->p;
    r->kind = r->p == 1 ? NORM_SUM : r->p == 2 ? NORM_SQUARE : NORM_ANY;
    r->planes = (size_t)x->shape.dims[0] * (size_t)x->shape.dims[1];
    r->row_elems = (size_t)r->window.out[r->window.count - 1];
    r->tile_planes = TILE_STEPS / plane_steps(r) + 1;
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const lp_record *r = record;
    const size_t end = tn_size_min(tile1 * r->tile_planes, r->planes);
    (void)worker;
    if (r->out_spatial == 0) return TN_OK;
    for (size_t plane = tile0 * r->tile_planes; plane < end; plane++) {
        for (size_t row = 0; row < r->out_spatial / r->row_elems; row++) {
            r->fn(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), plane, row);
        }
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    lp_record r;
    *out_count = 1;
    out[0] = (tn_variant){.name = "row by row", .run = run};
    if (!tn_fact_is_sized(tn_node_input(query->node, 0))) return TN_OK;
    TN_TRY(describe(query->node, &r, err));
    const size_t tiles = (r.planes + r.tile_planes - 1) / r.tile_planes;
    out[0].tile_counts[0] = (uint32_t)tn_size_max(tiles, 1);
    out[0].cost_ns = (double)r.planes * (double)plane_steps(&r);
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    return describe(ctx->node, record, ctx->err);
}

#define FLOATS (TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64))
static const uint32_t floats_1[] = {FLOATS};
static const uint32_t floats_22[] = {FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(title, since, until, types, check_fn)                                             \
    {                                                                                         \
        .name = (title), .since_version = (since), .until_version = (until), .min_inputs = 1, \
        .max_inputs = 1, .min_outputs = 1, .max_outputs = 1, .flags = TN_OP_FOLDABLE,         \
        .input_types = (types), .input_types_count = 1, .params_bytes = sizeof(lp_params),    \
        .record_bytes = sizeof(lp_record), .check = (check_fn), .infer = infer,               \
        .variants = variants, .bind = bind                                                    \
    }

static const tn_op_def rows[] = {
    ROW("LpPool", 1, 1, floats_1, check_pool_1),
    ROW("LpPool", 2, 10, floats_1, check_pool_2),
    ROW("LpPool", 11, 17, floats_1, check_pool_2),
    ROW("LpPool", 18, 21, floats_1, check_pool_2),
    ROW("LpPool", 22, 0, floats_22, check_pool_2),
    ROW("GlobalLpPool", 1, 1, floats_1, check_global_1),
    ROW("GlobalLpPool", 2, 21, floats_1, check_global_2),
    ROW("GlobalLpPool", 22, 0, floats_22, check_global_2),
};

const tn_op_table tn_lp_pool_table = {rows, TN_COUNTOF(rows)};
