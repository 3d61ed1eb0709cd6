/* The normalisations whose statistics do not lie in one row: LRN (a window of channels),
 * LpNormalization (one axis), MeanVarianceNormalization (any axes). All compute in double or float
 * per element type through loads and stores by strips of neighbouring elements. */
#include <math.h>

#include "base/checked_size.h"
#include "kernels/normalization/norm_kernels.h"
#include "plan/op_def.h"

enum { STRIP = 64, TILE_ELEMS = 16 * 1024 };

typedef struct window_norm_params {
    int64_t axes[TN_MAX_RANK];
    size_t axes_count;
    int64_t axis;
    int64_t p;
    int64_t size;
    float alpha, beta, bias;
} window_norm_params;

typedef struct window_norm_record {
    tn_dtype dtype;
    size_t outer, length, inner; /* LRN: batch, channels, plane */
    size_t strips;
    size_t tile_units;
    size_t unit_count;
    int64_t p;
    size_t before, after; /* LRN: channels of the window beside the middle one */
    double scale, beta, bias;
    /* MeanVarianceNormalization: kept and reduced axes with their element strides */
    size_t kept_count, reduced_count;
    size_t kept_dims[TN_MAX_RANK], kept_strides[TN_MAX_RANK];
    size_t reduced_dims[TN_MAX_RANK], reduced_strides[TN_MAX_RANK];
    size_t folded;
} window_norm_record;

static tn_status check_lrn(const tn_check_context *ctx, void *params) {
    window_norm_params *p = params;
    TN_TRY(tn_check_float(ctx, "alpha", 0.0001F, &p->alpha));
    TN_TRY(tn_check_float(ctx, "beta", 0.75F, &p->beta));
    TN_TRY(tn_check_float(ctx, "bias", 1.0F, &p->bias));
    TN_TRY(tn_check_int(ctx, "size", 0, &p->size));
    TN_REQUIRE(p->size > 0, ctx->err, TN_INVALID_MODEL, "size is %lld", (long long)p->size);
    p->axis = 1;
    return TN_OK;
}

static tn_status check_lp(const tn_check_context *ctx, void *params) {
    window_norm_params *p = params;
    TN_TRY(tn_check_int(ctx, "axis", -1, &p->axis));
    TN_TRY(tn_check_int(ctx, "p", 2, &p->p));
    TN_REQUIRE(p->p == 1 || p->p == 2, ctx->err, TN_INVALID_MODEL, "p is %lld, must be 1 or 2",
               (long long)p->p);
    return TN_OK;
}

static tn_status check_mvn(const tn_check_context *ctx, void *params) {
    window_norm_params *p = params;
    bool is_present;
    TN_TRY(tn_check_ints(ctx, "axes", p->axes, TN_MAX_RANK, &p->axes_count, &is_present));
    if (is_present) return TN_OK;
    static const int64_t all_but_channels[] = {0, 2, 3};
    for (size_t i = 0; i < TN_COUNTOF(all_but_channels); i++) p->axes[i] = all_but_channels[i];
    p->axes_count = TN_COUNTOF(all_but_channels);
    return TN_OK;
}

static tn_status infer_axis_op(const tn_node_facts *node, tn_error *err) {
    const window_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    int32_t axis;
    if (x != NULL && x->shape.rank >= 0) {
        TN_TRY(tn_infer_axis(p->axis, x->shape.rank, &axis, err));
    }
    return tn_infer_same_as_input0(node, err);
}

static tn_status infer_mvn(const tn_node_facts *node, tn_error *err) {
    const window_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    for (size_t i = 0; x != NULL && x->shape.rank >= 0 && i < p->axes_count; i++) {
        int32_t axis;
        TN_TRY(tn_infer_axis(p->axes[i], x->shape.rank, &axis, err));
    }
    return tn_infer_same_as_input0(node, err);
}

static size_t known(int64_t dim) {
    return dim < 0 ? 1 : (size_t)dim;
}

static tn_status describe_axis(const tn_node_facts *node, window_norm_record *r, tn_error *err) {
    const window_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    int32_t axis = 0;
    if (x->shape.rank >= 0) TN_TRY(tn_infer_axis(p->axis, x->shape.rank, &axis, err));
    *r = (window_norm_record){.dtype = x->dtype, .outer = 1, .length = 1, .inner = 1, .p = p->p};
    for (int32_t i = 0; i < x->shape.rank; i++) {
        *(i < axis ? &r->outer : (i == axis ? &r->length : &r->inner)) *= known(x->shape.dims[i]);
    }
    r->strips = (r->inner + STRIP - 1) / STRIP;
    r->unit_count = r->outer * r->strips;
    const size_t unit_elems = tn_size_max(r->length * tn_size_min(r->inner, STRIP), 1);
    r->tile_units = tn_size_max(TILE_ELEMS / unit_elems, 1);
    if (p->size > 0) {
        const size_t reach = tn_size_max(r->length, 1);
        r->before = tn_size_min((size_t)(p->size - 1) / 2, reach);
        r->after = tn_size_min((size_t)p->size - 1 - (size_t)(p->size - 1) / 2, reach);
        r->scale = (double)p->alpha / (double)p->size;
        r->beta = (double)p->beta;
        r->bias = (double)p->bias;
    }
    return TN_OK;
}

static tn_status describe_mvn(const tn_node_facts *node, window_norm_record *r, tn_error *err) {
    const window_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    bool is_reduced[TN_MAX_RANK] = {false};
    *r = (window_norm_record){.dtype = x->dtype, .folded = 1, .unit_count = 1};
    for (size_t i = 0; x->shape.rank >= 0 && i < p->axes_count; i++) {
        int32_t axis;
        TN_TRY(tn_infer_axis(p->axes[i], x->shape.rank, &axis, err));
        is_reduced[axis] = true;
    }
    size_t stride = 1;
    for (int32_t i = x->shape.rank - 1; i >= 0; i--) {
        const size_t dim = known(x->shape.dims[i]);
        if (is_reduced[i]) {
            r->reduced_dims[r->reduced_count] = dim;
            r->reduced_strides[r->reduced_count++] = stride;
            r->folded *= dim;
        } else {
            r->kept_dims[r->kept_count] = dim;
            r->kept_strides[r->kept_count++] = stride;
            r->unit_count *= dim;
        }
        stride *= dim;
    }
    r->tile_units = tn_size_max(TILE_ELEMS / tn_size_max(r->folded, 1), 1);
    return TN_OK;
}

static double inverse_power(double value, double beta) {
    return beta == 0.75 ? 1.0 / (sqrt(value) * sqrt(sqrt(value))) : pow(value, -beta);
}

/* One strip of neighbours, all channels. */
static void run_lrn_strip(const window_norm_record *r, const void *x, void *y, size_t base,
                          size_t cols) {
    for (size_t c = 0; c < r->length; c++) {
        const size_t first = c < r->before ? 0 : c - r->before;
        const size_t last = tn_size_min(c + r->after, r->length - 1);
        double sums[STRIP] = {0};
        for (size_t w = first; w <= last; w++) {
            for (size_t j = 0; j < cols; j++) {
                const double value = tn_norm_load(r->dtype, x, base + w * r->inner + j);
                sums[j] += value * value;
            }
        }
        for (size_t j = 0; j < cols; j++) {
            const size_t at = base + c * r->inner + j;
            const double factor = inverse_power(r->bias + r->scale * sums[j], r->beta);
            tn_norm_store(r->dtype, y, at, tn_norm_load(r->dtype, x, at) * factor);
        }
    }
}

static void run_lp_strip(const window_norm_record *r, const void *x, void *y, size_t base,
                         size_t cols) {
    double sums[STRIP] = {0};
    for (size_t i = 0; i < r->length; i++) {
        for (size_t j = 0; j < cols; j++) {
            const double value = tn_norm_load(r->dtype, x, base + i * r->inner + j);
            sums[j] += r->p == 1 ? fabs(value) : value * value;
        }
    }
    for (size_t j = 0; j < cols && r->p == 2; j++) sums[j] = sqrt(sums[j]);
    for (size_t i = 0; i < r->length; i++) {
        for (size_t j = 0; j < cols; j++) {
            const size_t at = base + i * r->inner + j;
            const double value = tn_norm_load(r->dtype, x, at);
            tn_norm_store(r->dtype, y, at, sums[j] == 0 ? 0.0 : value / sums[j]);
        }
    }
}

typedef void (*strip_fn)(const window_norm_record *r, const void *x, void *y, size_t base,
                         size_t cols);

static void run_strips(const window_norm_record *r, const tn_kernel_context *ctx, uint32_t tile0,
                       uint32_t tile1, strip_fn fn) {
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, r->unit_count);
    for (size_t unit = (size_t)tile0 * r->tile_units; unit < end; unit++) {
        const size_t col = unit % r->strips * STRIP;
        fn(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0),
           unit / r->strips * r->length * r->inner + col, tn_size_min(STRIP, r->inner - col));
    }
}

static tn_status run_lrn(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)worker;
    run_strips(record, ctx, tile0, tile1, run_lrn_strip);
    return TN_OK;
}

static tn_status run_lp(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                        uint32_t worker) {
    (void)worker;
    run_strips(record, ctx, tile0, tile1, run_lp_strip);
    return TN_OK;
}

static size_t offset_of(const size_t *dims, const size_t *strides, size_t count, size_t index) {
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        offset += index % dims[i] * strides[i];
        index /= dims[i];
    }
    return offset;
}

static tn_status run_mvn(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)worker;
    const window_norm_record *r = record;
    const void *x = tn_kernel_in(ctx, 0);
    void *y = tn_kernel_out(ctx, 0);
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, r->unit_count);
    for (size_t unit = (size_t)tile0 * r->tile_units; unit < end; unit++) {
        const size_t base = offset_of(r->kept_dims, r->kept_strides, r->kept_count, unit);
        double mean = 0;
        double var = 0;
        for (size_t i = 0; i < r->folded; i++) {
            mean += tn_norm_load(
                r->dtype, x,
                base + offset_of(r->reduced_dims, r->reduced_strides, r->reduced_count, i));
        }
        mean /= (double)r->folded;
        for (size_t i = 0; i < r->folded; i++) {
            const double value = tn_norm_load(
                r->dtype, x,
                base + offset_of(r->reduced_dims, r->reduced_strides, r->reduced_count, i));
            var += (value - mean) * (value - mean);
        }
        /* the definition adds 1e-9 to the deviation, not to the variance */
        const double deviation = sqrt(var / (double)r->folded) + 1e-9;
        for (size_t i = 0; i < r->folded; i++) {
            const size_t at =
                base + offset_of(r->reduced_dims, r->reduced_strides, r->reduced_count, i);
            tn_norm_store(r->dtype, y, at, (tn_norm_load(r->dtype, x, at) - mean) / deviation);
        }
    }
    return TN_OK;
}

static void fill_variant(const window_norm_record *r, const char *name, tn_run_fn run, double elems,
                         tn_variant *out) {
    *out = (tn_variant){.name = name, .run = run, .cost_ns = 50.0 + elems * 5.0};
    out->tile_counts[0] =
        (uint32_t)tn_size_max((r->unit_count + r->tile_units - 1) / r->tile_units, 1);
}

#define DEFINE_VARIANTS(suffix, text, describe_fn)                                     \
    static tn_status variants_##suffix(const tn_variant_query *query, tn_variant *out, \
                                       uint32_t *out_count, tn_error *err) {           \
        window_norm_record r;                                                          \
        TN_TRY(describe_fn(query->node, &r, err));                                     \
        const tn_fact *x = tn_node_input(query->node, 0);                              \
        const double elems = tn_fact_is_sized(x) ? (double)tn_fact_len_elems(x) : 1.0; \
        fill_variant(&r, text, run_##suffix, elems, &out[0]);                          \
        *out_count = 1;                                                                \
        return TN_OK;                                                                  \
    }                                                                                  \
    static tn_status bind_##suffix(const tn_bind_context *ctx, void *record) {         \
        return describe_fn(ctx->node, record, ctx->err);                               \
    }
DEFINE_VARIANTS(lrn, "channel window", describe_axis)
DEFINE_VARIANTS(lp, "axis norm", describe_axis)
DEFINE_VARIANTS(mvn, "moments", describe_mvn)
#undef DEFINE_VARIANTS

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))

static const uint32_t types_old[] = {FLOATS};
static const uint32_t types_all[] = {FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(op_name, since, until, types, in_place, suffix, infer_fn)                             \
    {                                                                                             \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = 1,         \
        .max_inputs = 1, .min_outputs = 1, .flags = TN_OP_FOLDABLE, .in_place_mask = in_place,    \
        .input_types = types, .input_types_count = 1, .params_bytes = sizeof(window_norm_params), \
        .record_bytes = sizeof(window_norm_record), .check = check_##suffix, .infer = infer_fn,   \
        .variants = variants_##suffix, .bind = bind_##suffix                                      \
    }

static const tn_op_def rows[] = {
    ROW("LRN", 1, 12, types_old, 0, lrn, infer_axis_op),
    ROW("LRN", 13, 0, types_all, 0, lrn, infer_axis_op),
    ROW("LpNormalization", 1, 21, types_old, 1, lp, infer_axis_op),
    ROW("LpNormalization", 22, 0, types_all, 1, lp, infer_axis_op),
    ROW("MeanVarianceNormalization", 9, 12, types_old, 1, mvn, infer_mvn),
    ROW("MeanVarianceNormalization", 13, 0, types_all, 1, mvn, infer_mvn),
};

const tn_op_table tn_window_norm_table = {rows, TN_COUNTOF(rows)};
