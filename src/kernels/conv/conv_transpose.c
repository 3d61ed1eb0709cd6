/* ConvTranspose in plain layout, any number of spatial axes.
 *
 * f32 with constant weights: for a run of input positions one matrix product gives every channel's
 * contribution to every window element; these are then added to where they belong. A tile owns its
 * output channels, so additions never meet. Everything else: each output element gathers its sum.
 */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/gemm.h"
#include "kernels/common/half.h"
#include "kernels/common/window.h"

enum { TILE_PANELS = 4, MAX_TILE_ROWS = 256, REFERENCE_TILE_MACS = 50 * 1000 };

typedef struct transpose_params {
    tn_window_params window;
    int64_t group;
    int64_t output_padding[TN_MAX_SPATIAL];
    int64_t output_shape[TN_MAX_SPATIAL + 2];
    size_t output_padding_count, output_shape_count;
} transpose_params;

typedef struct transpose_record {
    tn_window window; /* `in` is the input, `out` the larger output */
    const tn_gemm_isa *isa;
    tn_dtype dtype;
    size_t batch, groups, in_channels, out_channels; /* channels per group */
    size_t in_spatial, out_spatial, window_elems;
    size_t tile_positions, tile_channels, channel_tiles;
    size_t reference_planes; /* of a tile */
    bool has_bias;
} transpose_record;

static tn_status check(const tn_check_context *ctx, void *params) {
    transpose_params *p = params;
    bool present = false;
    TN_TRY(tn_window_check(ctx, &p->window));
    TN_TRY(tn_check_int(ctx, "group", 1, &p->group));
    TN_TRY(tn_check_ints(ctx, "output_padding", p->output_padding, TN_MAX_SPATIAL,
                         &p->output_padding_count, &present));
    TN_TRY(tn_check_ints(ctx, "output_shape", p->output_shape, TN_COUNTOF(p->output_shape),
                         &p->output_shape_count, &present));
    TN_REQUIRE(p->group >= 1 && p->group < INT32_MAX, ctx->err, TN_INVALID_MODEL,
               "attribute group is %lld, expected 1 or more", (long long)p->group);
    for (size_t i = 0; i < p->output_padding_count; i++) {
        TN_REQUIRE(p->output_padding[i] >= 0 && p->output_padding[i] < INT32_MAX, ctx->err,
                   TN_INVALID_MODEL, "attribute output_padding has %lld",
                   (long long)p->output_padding[i]);
    }
    for (size_t i = 0; i < p->output_shape_count; i++) {
        TN_REQUIRE(p->output_shape[i] >= 0 && p->output_shape[i] < INT32_MAX, ctx->err,
                   TN_INVALID_MODEL, "attribute output_shape has %lld",
                   (long long)p->output_shape[i]);
    }
    return TN_OK;
}

/* Padding and size of one output axis, as the operator's text says for each way to give them. */
static tn_status resolve_axis(const transpose_params *p, tn_window *w, int32_t axis, int64_t wanted,
                              tn_error *err) {
    const int64_t in = w->in[axis];
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t extra = p->output_padding_count > 0 ? p->output_padding[axis] : 0;
    const tn_auto_pad mode = p->window.auto_pad;
    const bool is_same = mode == TN_PAD_SAME_UPPER || mode == TN_PAD_SAME_LOWER;
    if (in < 0) {
        w->out[axis] = wanted >= 0 ? wanted : TN_DIM_UNKNOWN;
        return TN_OK;
    }
    TN_REQUIRE(in < INT32_MAX && extent < (int64_t)1 << 40, err, TN_INVALID_ARGUMENT,
               "axis %d: a window of %lld over %lld elements", (int)axis, (long long)extent,
               (long long)in);
    const int64_t whole = w->stride[axis] * (in - 1) + extra + extent;
    if (wanted < 0 && is_same) wanted = in * w->stride[axis];
    if (wanted >= 0) {
        const int64_t total = tn_i64_max(whole - wanted, 0);
        const int64_t small = total / 2;
        w->pad_begin[axis] = mode == TN_PAD_SAME_UPPER ? small : total - small;
        w->pad_end[axis] = total - w->pad_begin[axis];
        w->out[axis] = wanted;
        return TN_OK;
    }
    w->out[axis] = whole - w->pad_begin[axis] - w->pad_end[axis];
    TN_REQUIRE(w->out[axis] >= 0 || in == 0, err, TN_INVALID_ARGUMENT,
               "axis %d: padding of %lld and %lld leaves nothing of %lld", (int)axis,
               (long long)w->pad_begin[axis], (long long)w->pad_end[axis], (long long)whole);
    w->out[axis] = tn_i64_max(w->out[axis], 0);
    return TN_OK;
}

static tn_status resolve(const transpose_params *p, const tn_shape *x, const tn_shape *weights,
                         tn_window *out, tn_error *err) {
    const int32_t count = x->rank - 2;
    int64_t unknown[TN_MAX_SPATIAL];
    for (int32_t i = 0; i < TN_MAX_SPATIAL; i++) unknown[i] = TN_DIM_UNKNOWN;
    /* unknown inputs: lengths and defaults are resolved, sizes follow another formula here */
    TN_TRY(tn_window_resolve(&p->window, unknown, weights->dims + 2, count, out, err));
    TN_REQUIRE(p->output_padding_count == 0 || p->output_padding_count == (size_t)count, err,
               TN_INVALID_MODEL, "attribute output_padding has %zu numbers, expected %d",
               p->output_padding_count, (int)count);
    TN_REQUIRE(p->output_shape_count == 0 || p->output_shape_count >= (size_t)count, err,
               TN_INVALID_MODEL, "attribute output_shape has %zu numbers, expected %d",
               p->output_shape_count, (int)count);
    for (int32_t i = 0; i < count; i++) {
        const size_t skip = p->output_shape_count - (size_t)count;
        const int64_t wanted = p->output_shape_count == 0 ? -1 : p->output_shape[skip + (size_t)i];
        out->in[i] = x->dims[2 + i];
        TN_TRY(resolve_axis(p, out, i, wanted, err));
    }
    return TN_OK;
}

/* What kernels rely on: the window is that of the weights, and every channel has its bias. */
static tn_status check_operands(const transpose_params *p, const tn_shape *w, const tn_fact *bias,
                                tn_error *err) {
    for (int32_t i = 2; i < w->rank && i - 2 < p->window.kernel_count; i++) {
        TN_REQUIRE(w->dims[i] < 0 || p->window.kernel[i - 2] == w->dims[i], err, TN_INVALID_MODEL,
                   "kernel_shape says %lld where the weights have %lld",
                   (long long)p->window.kernel[i - 2], (long long)w->dims[i]);
    }
    if (bias == NULL || bias->shape.rank < 0) return TN_OK;
    int64_t channels = -1;
    if (w->dims[1] >= 0) {
        TN_REQUIRE(tn_i64_mul(w->dims[1], p->group, &channels), err, TN_OVERFLOW,
                   "%lld x %lld output channels", (long long)w->dims[1], (long long)p->group);
    }
    TN_REQUIRE(bias->shape.rank == 1 &&
                   (bias->shape.dims[0] < 0 || channels < 0 || bias->shape.dims[0] == channels),
               err, TN_INVALID_ARGUMENT, "the bias has rank %d and %lld elements, expected %lld",
               (int)bias->shape.rank, (long long)bias->shape.dims[0], (long long)channels);
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const transpose_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    const tn_fact *w = tn_node_input(node, 1);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || w == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = x->dtype;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0 || w->shape.rank < 0) return TN_OK;
    TN_REQUIRE(x->shape.rank == w->shape.rank && x->shape.rank >= 3, err, TN_INVALID_ARGUMENT,
               "the input has rank %d, the weights %d; both must be equal and at least 3",
               (int)x->shape.rank, (int)w->shape.rank);
    const int64_t channels = w->shape.dims[0];
    TN_REQUIRE(channels < 0 || x->shape.dims[1] < 0 || channels == x->shape.dims[1], err,
               TN_INVALID_ARGUMENT, "the input has %lld channels, the weights want %lld",
               (long long)x->shape.dims[1], (long long)channels);
    TN_REQUIRE(channels < 0 || channels % p->group == 0, err, TN_INVALID_ARGUMENT,
               "%lld channels do not divide into %lld groups", (long long)channels,
               (long long)p->group);
    TN_TRY(check_operands(p, &w->shape, tn_node_input(node, 2), err));
    for (int32_t i = 2; i < w->shape.rank; i++) {
        if (w->shape.dims[i] < 0 && p->window.kernel_count == 0) return TN_OK;
    }
    tn_window window;
    TN_TRY(resolve(p, &x->shape, &w->shape, &window, err));
    y->shape.rank = x->shape.rank;
    y->shape.dims[0] = x->shape.dims[0];
    y->shape.dims[1] = TN_DIM_UNKNOWN;
    if (w->shape.dims[1] >= 0) {
        TN_REQUIRE(tn_i64_mul(w->shape.dims[1], p->group, &y->shape.dims[1]), err, TN_OVERFLOW,
                   "%lld x %lld output channels", (long long)w->shape.dims[1], (long long)p->group);
    }
    for (int32_t i = 0; i < window.count; i++) y->shape.dims[2 + i] = window.out[i];
    return TN_OK;
}

static tn_status describe(const tn_node_facts *node, tn_cpu_features cpu, transpose_record *r,
                          tn_error *err) {
    const transpose_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    const tn_fact *w = tn_node_input(node, 1);
    memset(r, 0, sizeof *r);
    TN_TRY(resolve(p, &x->shape, &w->shape, &r->window, err));
    r->isa = tn_gemm_isa_best(cpu);
    r->dtype = x->dtype;
    r->batch = (size_t)x->shape.dims[0];
    r->groups = (size_t)p->group;
    r->in_channels = (size_t)(w->shape.dims[0] / p->group);
    r->out_channels = (size_t)w->shape.dims[1];
    r->in_spatial = tn_window_product(r->window.in, r->window.count);
    r->out_spatial = tn_window_product(r->window.out, r->window.count);
    r->window_elems = tn_window_product(r->window.kernel, r->window.count);
    r->has_bias = tn_node_input(node, 2) != NULL;
    const size_t nr = r->isa->nr;
    const size_t panels = (r->in_spatial + nr - 1) / nr;
    r->tile_positions = tn_size_max(tn_size_min(panels, TILE_PANELS), 1) * nr;
    r->tile_channels = tn_size_max(MAX_TILE_ROWS / tn_size_max(r->window_elems, 1), 1);
    r->tile_channels = tn_size_max(tn_size_min(r->tile_channels, (r->out_channels + 1) / 2), 1);
    r->channel_tiles = (r->out_channels + r->tile_channels - 1) / r->tile_channels;
    const size_t plane_macs = tn_size_max(r->out_spatial * r->in_channels * r->window_elems, 1);
    r->reference_planes = REFERENCE_TILE_MACS / plane_macs + 1;
    return TN_OK;
}

/* Adds a line of contributions of one window element from `count` input positions on. */
static void scatter_line(const transpose_record *r, const float *line, const int64_t *at,
                         size_t position, size_t count, float *plane) {
    const tn_window *w = &r->window;
    const int32_t last = w->count - 1;
    const int64_t row_elems = w->in[last];
    while (count > 0) {
        size_t rest = position / (size_t)row_elems;
        const int64_t first = (int64_t)(position % (size_t)row_elems);
        const size_t run = tn_size_min((size_t)(row_elems - first), count);
        int64_t base = 0;
        int64_t scale = w->out[last];
        bool is_inside = true;
        for (int32_t i = last - 1; i >= 0; i--) {
            const int64_t in = (int64_t)(rest % (size_t)w->in[i]);
            const int64_t out = in * w->stride[i] - w->pad_begin[i] + at[i] * w->dilation[i];
            rest /= (size_t)w->in[i];
            is_inside = is_inside && out >= 0 && out < w->out[i];
            base += out * scale;
            scale *= w->out[i];
        }
        const int64_t start = at[last] * w->dilation[last] - w->pad_begin[last];
        const int64_t stride = w->stride[last];
        int64_t low = start >= 0 ? 0 : (-start + stride - 1) / stride;
        int64_t high = start >= w->out[last] ? 0 : (w->out[last] - start + stride - 1) / stride;
        low = tn_i64_max(low, first);
        high = tn_i64_min(high, first + (int64_t)run);
        for (int64_t i = low; is_inside && i < high; i++) {
            plane[base + start + i * stride] += line[i - first];
        }
        line += run;
        position += run;
        count -= run;
    }
}

/* Contributions of positions [position, position + count) to `rows` pairs of channel and window
 * element, into `terms` [rows][tile_positions]. */
static void multiply(const transpose_record *r, const float *x, const float *w, size_t rows,
                     size_t position, size_t count, float *panels, float *terms) {
    const size_t nr = r->isa->nr;
    for (size_t k0 = 0; k0 < r->in_channels; k0 += r->isa->kc) {
        const size_t k_count = tn_size_min(r->isa->kc, r->in_channels - k0);
        for (size_t done = 0; done < count; done += nr) {
            const size_t run = tn_size_min(nr, count - done);
            for (size_t k = 0; k < k_count; k++) {
                memcpy(panels + k * nr, x + (k0 + k) * r->in_spatial + position + done,
                       run * sizeof *panels);
                if (run < nr) memset(panels + k * nr + run, 0, (nr - run) * sizeof *panels);
            }
            r->isa->panel(&(tn_gemm_panel){.a = w + k0,
                                           .a_row_stride = r->in_channels,
                                           .b = panels,
                                           .b_row_stride = nr,
                                           .c = terms + done,
                                           .c_row_stride = r->tile_positions,
                                           .rows = rows,
                                           .cols = run,
                                           .k = k_count,
                                           .adds = k0 > 0});
        }
    }
}

static void run_gemm_tile(const transpose_record *r, const tn_kernel_context *ctx, size_t tile,
                          float *scratch) {
    const size_t channel0 = tile % r->channel_tiles * r->tile_channels;
    const size_t image = tile / r->channel_tiles;
    const size_t group = image % r->groups;
    const size_t channels = tn_size_min(r->tile_channels, r->out_channels - channel0);
    const size_t rows = channels * r->window_elems;
    const float *x = (const float *)tn_kernel_in(ctx, 0) + image * r->in_channels * r->in_spatial;
    const float *w = (const float *)tn_kernel_in(ctx, 1) +
                     (group * r->out_channels + channel0) * r->window_elems * r->in_channels;
    const float *bias = r->has_bias ? tn_kernel_in(ctx, 2) : NULL;
    float *y =
        (float *)tn_kernel_out(ctx, 0) + (image * r->out_channels + channel0) * r->out_spatial;
    float *panels = scratch;
    float *terms = scratch + tn_size_min(r->in_channels, r->isa->kc) * r->isa->nr;
    for (size_t c = 0; c < channels; c++) {
        const float start = bias == NULL ? 0 : bias[group * r->out_channels + channel0 + c];
        for (size_t i = 0; i < r->out_spatial; i++) y[c * r->out_spatial + i] = start;
    }
    for (size_t position = 0; position < r->in_spatial; position += r->tile_positions) {
        const size_t count = tn_size_min(r->tile_positions, r->in_spatial - position);
        multiply(r, x, w, rows, position, count, panels, terms);
        for (size_t row = 0; row < rows; row++) {
            int64_t at[TN_MAX_SPATIAL];
            tn_window_position(&r->window, row % r->window_elems, at);
            scatter_line(r, terms + row * r->tile_positions, at, position, count,
                         y + row / r->window_elems * r->out_spatial);
        }
    }
}

static tn_status run_gemm(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    const transpose_record *r = record;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        if (r->out_spatial > 0) run_gemm_tile(r, ctx, tile, tn_kernel_scratch(ctx, worker));
    }
    return TN_OK;
}

/* Offset of the input element that reaches output `position` through window element `at`. */
static bool source_offset(const tn_window *w, size_t position, const int64_t *at, size_t *out) {
    int64_t offset = 0;
    int64_t scale = 1;
    for (int32_t i = w->count - 1; i >= 0; i--) {
        const int64_t place = (int64_t)(position % (size_t)w->out[i]);
        const int64_t shifted = place + w->pad_begin[i] - at[i] * w->dilation[i];
        position /= (size_t)w->out[i];
        if (shifted < 0 || shifted % w->stride[i] != 0) return false;
        if (shifted / w->stride[i] >= w->in[i]) return false;
        offset += shifted / w->stride[i] * scale;
        scale *= w->in[i];
    }
    *out = (size_t)offset;
    return true;
}

#define SAME(x) (x)

#define DEFINE_REFERENCE(name, element, sum_type, load, store)                                   \
    static void reference_##name(const transpose_record *r, const void *x_base,                  \
                                 const void *w_base, const void *bias, size_t plane,             \
                                 void *y_base) {                                                 \
        const size_t channel = plane % (r->groups * r->out_channels);                            \
        const size_t group = channel / r->out_channels;                                          \
        const size_t image = plane / (r->groups * r->out_channels) * r->groups + group;          \
        const element *x = (const element *)x_base + image * r->in_channels * r->in_spatial;     \
        const element *w = (const element *)w_base + (group * r->in_channels * r->out_channels + \
                                                      channel % r->out_channels) *               \
                                                         r->window_elems;                        \
        element *y = (element *)y_base + plane * r->out_spatial;                                 \
        for (size_t position = 0; position < r->out_spatial; position++) {                       \
            sum_type sum = bias == NULL ? (sum_type)0 : load(((const element *)bias)[channel]);  \
            for (size_t e = 0; e < r->window_elems; e++) {                                       \
                int64_t at[TN_MAX_SPATIAL];                                                      \
                size_t offset = 0;                                                               \
                tn_window_position(&r->window, e, at);                                           \
                if (!source_offset(&r->window, position, at, &offset)) continue;                 \
                for (size_t c = 0; c < r->in_channels; c++) {                                    \
                    sum += load(x[c * r->in_spatial + offset]) *                                 \
                           load(w[c * r->out_channels * r->window_elems + e]);                   \
                }                                                                                \
            }                                                                                    \
            y[position] = store(sum);                                                            \
        }                                                                                        \
    }
DEFINE_REFERENCE(f32, float, float, SAME, SAME)
DEFINE_REFERENCE(f64, double, double, SAME, SAME)
DEFINE_REFERENCE(f16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)
DEFINE_REFERENCE(bf16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32)

typedef void (*reference_fn)(const transpose_record *r, const void *x_base, const void *w_base,
                             const void *bias, size_t plane, void *y_base);
static const reference_fn reference_fns[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = reference_f32,
    [TN_DTYPE_F64] = reference_f64,
    [TN_DTYPE_F16] = reference_f16,
    [TN_DTYPE_BF16] = reference_bf16,
};

static tn_status run_reference(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                               uint32_t tile1, uint32_t worker) {
    const transpose_record *r = record;
    const size_t planes = r->batch * r->groups * r->out_channels;
    const size_t end = tn_size_min(tile1 * r->reference_planes, planes);
    (void)worker;
    for (size_t plane = tile0 * r->reference_planes; plane < end; plane++) {
        reference_fns[r->dtype](r, tn_kernel_in(ctx, 0), tn_kernel_in(ctx, 1),
                                r->has_bias ? tn_kernel_in(ctx, 2) : NULL, plane,
                                tn_kernel_out(ctx, 0));
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    transpose_record r;
    const tn_fact *x = tn_node_input(query->node, 0);
    const tn_fact *w = tn_node_input(query->node, 1);
    out[0] = (tn_variant){.name = "gather", .run = run_reference};
    *out_count = 1;
    if (!tn_fact_is_sized(x) || !tn_fact_is_sized(w)) return TN_OK;
    TN_TRY(describe(query->node, query->cpu, &r, err));
    const size_t planes = r.batch * r.groups * r.out_channels;
    const double macs =
        (double)planes * (double)r.in_channels * (double)r.window_elems * (double)r.in_spatial;
    const size_t reference_tiles = (planes + r.reference_planes - 1) / r.reference_planes;
    out[0].tile_counts[0] = (uint32_t)tn_size_max(reference_tiles, 1);
    out[0].cost_ns = macs * 4;
    if (x->dtype != TN_DTYPE_F32 || !w->is_constant) return TN_OK;
    const size_t scratch_floats = tn_size_min(r.in_channels, r.isa->kc) * r.isa->nr +
                                  r.tile_channels * r.window_elems * r.tile_positions;
    out[1] = (tn_variant){
        .name = "gemm, then scattered",
        .run = run_gemm,
        .pack_format = 1,
        .pack_input = 1,
        .rewrite_class = TN_REWRITE_REASSOCIATED,
        .tile_counts = {(uint32_t)tn_size_max(r.batch * r.groups * r.channel_tiles, 1)},
        .worker_scratch_bytes = scratch_floats * sizeof(float),
        .cost_ns = macs * 0.1};
    *out_count = 2;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    return describe(ctx->node, ctx->cpu, record, ctx->err);
}

static tn_status pack_size(const tn_pack_context *ctx, size_t *out_bytes) {
    return tn_fact_size_bytes(ctx->node->inputs[1], out_bytes, ctx->err);
}

/* [C, M / group, window] becomes [group, M / group, window, C / group]. */
static tn_status pack(const tn_pack_context *ctx, void *packed) {
    const transpose_params *p = ctx->node->params;
    const tn_fact *w = ctx->node->inputs[1];
    const size_t groups = (size_t)p->group;
    const size_t in_channels = (size_t)w->shape.dims[0] / groups;
    const size_t rows = tn_fact_len_elems(w) / tn_size_max((size_t)w->shape.dims[0], 1);
    float *target = packed;
    for (size_t group = 0; group < groups; group++) {
        for (size_t row = 0; row < rows; row++) {
            for (size_t c = 0; c < in_channels; c++) {
                const size_t from = (group * in_channels + c) * rows + row;
                memcpy(target++, (const char *)w->data + from * sizeof(float), sizeof(float));
            }
        }
    }
    return TN_OK;
}

static const uint32_t types_1[] = {TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64)};
static const uint32_t types_22[] = {TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) |
                                    TN_TYPE_BIT(BF16)};

#define TRANSPOSE_ROW(since, until, types)                                                  \
    {                                                                                       \
        .name = "ConvTranspose", .since_version = (since), .until_version = (until),        \
        .min_inputs = 2, .max_inputs = 3, .min_outputs = 1, .flags = TN_OP_FOLDABLE,        \
        .input_types = (types), .input_types_count = 1, .same_type_mask = 7,                \
        .params_bytes = sizeof(transpose_params), .record_bytes = sizeof(transpose_record), \
        .check = check, .infer = infer, .variants = variants, .bind = bind,                 \
        .pack_size = pack_size, .pack = pack                                                \
    }

static const tn_op_def conv_transpose_ops[] = {
    TRANSPOSE_ROW(1, 21, types_1),
    TRANSPOSE_ROW(22, 0, types_22),
};

const tn_op_table tn_conv_transpose_table = {conv_transpose_ops, TN_COUNTOF(conv_transpose_ops)};
