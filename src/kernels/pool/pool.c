/* MaxPool, AveragePool and their global forms, any number of spatial axes; f32 images also in
 * blocked layout, by the row kernels of convolution.
 *
 * An output row (last axis) is made window element by window element: each pass is a loop over the
 * part of the row that lies inside the input, so that padding costs nothing and never wins. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/window.h"
#include "kernels/conv/conv_kernels.h"

enum { TILE_STEPS = 32 * 1024 };

typedef struct pool_params {
    tn_window_params window;
    bool is_global;
    bool includes_pad;
    bool is_column_major;
} pool_params;

typedef struct pool_record pool_record;
typedef void (*plane_fn)(const pool_record *r, const void *x, void *y, int64_t *indices,
                         size_t plane);

struct pool_record {
    tn_window window;
    tn_window taps; /* the same without elements that see only padding */
    plane_fn fn;
    size_t planes, in_spatial, out_spatial, window_elems;
    size_t tile_planes;
    bool includes_pad, is_column_major;
    bool is_global;
    /* blocked */
    void (*row_fn)(const tn_conv_row *row);
    size_t block, channels, blocks;
};

static tn_status check_pool(const tn_check_context *ctx, void *params) {
    pool_params *p = params;
    int64_t includes_pad = 0;
    int64_t storage_order = 0;
    TN_TRY(tn_window_check(ctx, &p->window));
    TN_TRY(tn_check_int(ctx, "count_include_pad", 0, &includes_pad));
    TN_TRY(tn_check_int(ctx, "storage_order", 0, &storage_order));
    TN_REQUIRE(p->window.kernel_count > 0, ctx->err, TN_INVALID_MODEL,
               "attribute kernel_shape is missing");
    TN_REQUIRE(storage_order == 0 || storage_order == 1, ctx->err, TN_INVALID_MODEL,
               "attribute storage_order is %lld, expected 0 or 1", (long long)storage_order);
    p->includes_pad = includes_pad != 0;
    p->is_column_major = storage_order == 1;
    return TN_OK;
}

static tn_status check_global(const tn_check_context *ctx, void *params) {
    (void)ctx;
    ((pool_params *)params)->is_global = true;
    return TN_OK;
}

static tn_status resolve(const pool_params *p, const tn_shape *x, tn_window *out, tn_error *err) {
    TN_REQUIRE(x->rank >= 3, err, TN_INVALID_ARGUMENT, "the input has rank %d, expected 3 or more",
               (int)x->rank);
    if (!p->is_global) {
        return tn_window_resolve(&p->window, x->dims + 2, p->window.kernel, x->rank - 2, out, err);
    }
    return tn_window_resolve_whole(x->dims + 2, x->rank - 2, out, err);
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *x = tn_node_input(node, 0);
    if (x == NULL) return TN_OK;
    tn_shape shape = {.rank = TN_RANK_UNKNOWN};
    if (x->shape.rank >= 0) {
        tn_window window;
        TN_TRY(resolve(node->params, &x->shape, &window, err));
        shape = x->shape;
        for (int32_t i = 0; i < window.count; i++) shape.dims[2 + i] = window.out[i];
    }
    for (uint32_t i = 0; i < node->output_count && i < 2; i++) {
        tn_fact *y = node->outputs[i];
        if (y == NULL) continue;
        y->kind = TN_KIND_TENSOR;
        y->dtype = i == 0 ? x->dtype : TN_DTYPE_I64;
        y->shape = shape;
    }
    return TN_OK;
}

/* Flat index over the whole tensor of spatial offset `offset`, counted column by column when the
 * model asks for that. */
static int64_t flat_index(const pool_record *r, size_t plane, int64_t offset) {
    const tn_window *w = &r->window;
    if (r->is_column_major) {
        int64_t coordinates[TN_MAX_SPATIAL];
        for (int32_t i = w->count - 1; i >= 0; i--) {
            coordinates[i] = offset % w->in[i];
            offset /= w->in[i];
        }
        int64_t scale = 1;
        for (int32_t i = 0; i < w->count; i++) {
            offset += coordinates[i] * scale;
            scale *= w->in[i];
        }
    }
    return (int64_t)(plane * r->in_spatial) + offset;
}

#define SAME(x) (x)

#define DEFINE_MAX(name, element, key, load, least)                                          \
    static void max_##name(const pool_record *r, const void *x_base, void *y_base,           \
                           int64_t *indices, size_t plane) {                                 \
        const element *x = (const element *)x_base + plane * r->in_spatial;                  \
        const size_t row_elems = (size_t)r->window.out[r->window.count - 1];                 \
        for (size_t row = 0; row * row_elems < r->out_spatial; row++) {                      \
            element *y = (element *)y_base + plane * r->out_spatial + row * row_elems;       \
            int64_t *at =                                                                    \
                indices == NULL ? NULL : indices + plane * r->out_spatial + row * row_elems; \
            for (size_t i = 0; i < row_elems; i++) y[i] = (least);                           \
            for (size_t i = 0; indices != NULL && i < row_elems; i++) at[i] = -1;            \
            for (size_t e = 0; e < r->window_elems; e++) {                                   \
                const tn_window_line line = tn_window_line_of(&r->taps, row, e);             \
                const element *source = x + line.base + line.start;                          \
                if (indices == NULL) {                                                       \
                    for (int64_t i = line.low; i < line.high; i++) {                         \
                        const key v = load(source[i * line.stride]);                         \
                        y[i] = v > load(y[i]) || v != v ? source[i * line.stride] : y[i];    \
                    }                                                                        \
                    continue;                                                                \
                }                                                                            \
                for (int64_t i = line.low; i < line.high; i++) {                             \
                    const key v = load(source[i * line.stride]);                             \
                    if (at[i] >= 0 && !(v > load(y[i]) || v != v)) continue;                 \
                    y[i] = source[i * line.stride];                                          \
                    at[i] = line.base + line.start + i * line.stride;                        \
                }                                                                            \
            }                                                                                \
            for (size_t i = 0; indices != NULL && i < row_elems; i++) {                      \
                at[i] = flat_index(r, plane, at[i] < 0 ? 0 : at[i]);                         \
            }                                                                                \
        }                                                                                    \
    }
DEFINE_MAX(f32, float, float, SAME, -INFINITY)
DEFINE_MAX(f64, double, double, SAME, (double)-INFINITY)
DEFINE_MAX(f16, uint16_t, float, tn_f32_from_f16, 0xfc00)
DEFINE_MAX(bf16, uint16_t, float, tn_f32_from_bf16, 0xff80)
DEFINE_MAX(i8, int8_t, int8_t, SAME, INT8_MIN)
DEFINE_MAX(u8, uint8_t, uint8_t, SAME, 0)

/* Window elements that lie less than `distance` behind the first one. */
static int64_t taps_below(const tn_window *w, int32_t axis, int64_t distance) {
    if (distance <= 0) return 0;
    return tn_i64_min((distance - 1) / w->dilation[axis] + 1, w->kernel[axis]);
}

/* Window elements along one axis that count for output `place`: those inside the input, or inside
 * the input and its declared padding. */
static int64_t axis_count(const tn_window *w, int32_t axis, int64_t place, bool includes_pad) {
    const int64_t low = includes_pad ? -w->pad_begin[axis] : 0;
    const int64_t high = w->in[axis] + (includes_pad ? w->pad_end[axis] : 0);
    const int64_t start = place * w->stride[axis] - w->pad_begin[axis];
    return taps_below(w, axis, high - start) - taps_below(w, axis, low - start);
}

static int64_t outer_count(const pool_record *r, size_t row) {
    const tn_window *w = &r->window;
    int64_t count = 1;
    for (int32_t i = w->count - 2; i >= 0; i--) {
        count *= axis_count(w, i, (int64_t)(row % (size_t)w->out[i]), r->includes_pad);
        row /= (size_t)w->out[i];
    }
    return count;
}

enum { STRIP = 64 };

#define DEFINE_AVERAGE(name, element, sum_type, load, store)                                      \
    static void average_##name(const pool_record *r, const void *x_base, void *y_base,            \
                               int64_t *indices, size_t plane) {                                  \
        const element *x = (const element *)x_base + plane * r->in_spatial;                       \
        const tn_window *w = &r->window;                                                          \
        const int32_t last = w->count - 1;                                                        \
        (void)indices;                                                                            \
        for (size_t row = 0; row * (size_t)w->out[last] < r->out_spatial; row++) {                \
            element *y = (element *)y_base + plane * r->out_spatial + row * (size_t)w->out[last]; \
            const int64_t rows = outer_count(r, row);                                             \
            for (int64_t strip = 0; strip < w->out[last]; strip += STRIP) {                       \
                const int64_t end = tn_i64_min(strip + STRIP, w->out[last]);                      \
                sum_type sums[STRIP] = {0};                                                       \
                for (size_t e = 0; e < r->window_elems; e++) {                                    \
                    const tn_window_line line = tn_window_line_of(&r->taps, row, e);              \
                    const element *source = x + line.base + line.start;                           \
                    const int64_t high = tn_i64_min(line.high, end);                              \
                    for (int64_t i = tn_i64_max(line.low, strip); i < high; i++) {                \
                        sums[i - strip] += load(source[i * line.stride]);                         \
                    }                                                                             \
                }                                                                                 \
                for (int64_t i = strip; i < end; i++) {                                           \
                    const int64_t count = rows * axis_count(w, last, i, r->includes_pad);         \
                    y[i] = store(sums[i - strip] / (sum_type)(count == 0 ? 1 : count));           \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }
DEFINE_AVERAGE(f32, float, float, SAME, SAME)
DEFINE_AVERAGE(f64, double, double, SAME, SAME)
DEFINE_AVERAGE(f16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)
DEFINE_AVERAGE(bf16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32)

/* The mean of a whole plane: eight sums side by side in a fixed order. */
static void global_average_f32(const pool_record *r, const void *x_base, void *y_base,
                               int64_t *indices, size_t plane) {
    const float *x = (const float *)x_base + plane * r->in_spatial;
    float lanes[16] = {0};
    size_t i = 0;
    (void)indices;
    for (; i + 16 <= r->in_spatial; i += 16) {
        for (size_t lane = 0; lane < 16; lane++) lanes[lane] += x[i + lane];
    }
    for (size_t lane = 0; i < r->in_spatial; i++, lane++) lanes[lane] += x[i];
    for (size_t width = 8; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
    }
    ((float *)y_base)[plane] = lanes[0] / (float)r->in_spatial;
}

static const plane_fn max_fns[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = max_f32,   [TN_DTYPE_F64] = max_f64, [TN_DTYPE_F16] = max_f16,
    [TN_DTYPE_BF16] = max_bf16, [TN_DTYPE_I8] = max_i8,   [TN_DTYPE_U8] = max_u8,
};

static const plane_fn average_fns[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = average_f32,
    [TN_DTYPE_F64] = average_f64,
    [TN_DTYPE_F16] = average_f16,
    [TN_DTYPE_BF16] = average_bf16,
};

static tn_status describe(const tn_node_facts *node, const plane_fn *fns, pool_record *r,
                          tn_error *err) {
    const pool_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    memset(r, 0, sizeof *r);
    TN_TRY(resolve(p, &x->shape, &r->window, err));
    r->taps = r->window;
    TN_TRY(tn_window_trim(&r->taps, err));
    r->fn = x->dtype < TN_DTYPE_COUNT ? fns[x->dtype] : NULL;
    TN_REQUIRE(r->fn != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    r->planes = (size_t)x->shape.dims[0] * (size_t)x->shape.dims[1];
    r->in_spatial = tn_window_product(r->window.in, r->window.count);
    r->out_spatial = tn_window_product(r->window.out, r->window.count);
    r->window_elems = tn_window_product(r->taps.kernel, r->taps.count);
    r->includes_pad = p->includes_pad;
    r->is_column_major = p->is_column_major;
    r->is_global = p->is_global;
    const size_t plane_steps = tn_size_max(r->out_spatial * r->window_elems, 1);
    r->tile_planes = TILE_STEPS / plane_steps + 1;
    if (fns == average_fns && p->is_global && x->dtype == TN_DTYPE_F32 && r->in_spatial > 0) {
        r->fn = global_average_f32;
    }
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const pool_record *r = record;
    int64_t *indices = tn_kernel_out(ctx, 1);
    const size_t end = tn_size_min(tile1 * r->tile_planes, r->planes);
    (void)worker;
    for (size_t plane = tile0 * r->tile_planes; plane < end; plane++) {
        if (r->out_spatial == 0) break;
        r->fn(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), indices, plane);
    }
    return TN_OK;
}

static tn_status run_single(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    const pool_record *r = record;
    const size_t end = tn_size_min(tile1 * r->tile_planes, r->planes);
    (void)worker;
    for (size_t plane = tile0 * r->tile_planes; plane < end; plane++) {
        if (r->out_spatial == 0) break;
        r->fn(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), NULL, plane);
    }
    return TN_OK;
}

/* ---- blocked ---- */

enum { MAX_BLOCK = 16, MAX_BLOCKED_KERNEL = 256 };

static void describe_blocked(const tn_fact *x, const plane_fn *fns, const tn_conv_isa *isa,
                             pool_record *r) {
    r->row_fn = fns == max_fns ? isa->max_row : isa->average_row;
    r->block = isa->block;
    r->channels = (size_t)x->shape.dims[1];
    r->blocks = (r->channels + r->block - 1) / r->block;
    r->planes = (size_t)x->shape.dims[0] * r->blocks;
    const size_t steps = tn_size_max(r->out_spatial * r->window_elems, 1) * r->block / 4;
    r->tile_planes = TILE_STEPS / steps + 1;
}

/* Global pooling writes plain layout: the lanes that are channels, side by side. */
static void run_blocked_plane(const pool_record *r, const float *x, float *y, size_t plane) {
    const tn_window *w = &r->window;
    const int32_t last = w->count - 1;
    const bool has_height = last > 0;
    float lanes[MAX_BLOCK];
    tn_conv_row row = {.x = x + plane * r->in_spatial * r->block,
                       .in_h = has_height ? w->in[0] : 1,
                       .in_w = w->in[last],
                       .out_w = w->out[last],
                       .left = -w->pad_begin[last],
                       .stride_w = w->stride[last],
                       .taps_h = has_height ? w->kernel[0] : 1,
                       .taps_w = w->kernel[last],
                       .dilation_h = has_height ? w->dilation[0] : 1,
                       .dilation_w = w->dilation[last],
                       .includes_pad = r->includes_pad,
                       .pad_bottom = has_height ? w->pad_end[0] : 0,
                       .pad_right = w->pad_end[last]};
    const int64_t height = has_height ? w->out[0] : 1;
    for (int64_t h = 0; h < height; h++) {
        row.top = has_height ? h * w->stride[0] - w->pad_begin[0] : 0;
        row.y = r->is_global ? lanes
                             : y + (plane * r->out_spatial + (size_t)(h * row.out_w)) * r->block;
        r->row_fn(&row);
    }
    if (!r->is_global) return;
    const size_t channel = plane % r->blocks * r->block;
    memcpy(y + plane / r->blocks * r->channels + channel, lanes,
           tn_size_min(r->block, r->channels - channel) * sizeof *y);
}

static tn_status run_blocked(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    const pool_record *r = record;
    const size_t end = tn_size_min(tile1 * r->tile_planes, r->planes);
    (void)worker;
    for (size_t plane = tile0 * r->tile_planes; plane < end; plane++) {
        if (r->out_spatial == 0) break;
        run_blocked_plane(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), plane);
    }
    return TN_OK;
}

/* The kernels for blocks of this query, or NULL: f32, one or two spatial axes, no indices. */
static const tn_conv_isa *blocked_isa(const tn_variant_query *query) {
    const tn_fact *x = tn_node_input(query->node, 0);
    if (x == NULL || x->dtype != TN_DTYPE_F32) return NULL;
    if (x->shape.rank < 3 || x->shape.rank > 4 || x->shape.dims[1] < 1) return NULL;
    if (tn_node_output(query->node, 1) != NULL) return NULL;
    const pool_params *p = query->node->params;
    for (int32_t i = 0; i < p->window.kernel_count; i++) {
        if (p->window.kernel[i] > MAX_BLOCKED_KERNEL) return NULL;
    }
    return tn_conv_isa_of_block(query->preferred_block, query->cpu);
}

static tn_variant blocked_variant(const tn_variant_query *query, const plane_fn *fns,
                                  const tn_conv_isa *isa) {
    const pool_params *p = query->node->params;
    const uint16_t block = (uint16_t)isa->block;
    return (tn_variant){
        .name = fns == max_fns ? isa->max_name : isa->average_name,
        .run = run_blocked,
        .input_layout = {block},
        .output_layout = {p->is_global ? 0 : block},
        .layout_input_mask = 1,
        .rewrite_class = fns == max_fns ? TN_REWRITE_EXACT : TN_REWRITE_REASSOCIATED};
}

static tn_status common_variants(const tn_variant_query *query, const plane_fn *fns, tn_run_fn fn,
                                 tn_variant *out, uint32_t *out_count, tn_error *err) {
    pool_record r;
    const tn_conv_isa *isa = blocked_isa(query);
    *out_count = 1;
    out[0] = (tn_variant){.name = "plane by plane", .run = fn};
    if (isa != NULL) out[(*out_count)++] = blocked_variant(query, fns, isa);
    if (!tn_fact_is_sized(tn_node_input(query->node, 0))) return TN_OK;
    TN_TRY(describe(query->node, fns, &r, err));
    const size_t tiles = (r.planes + r.tile_planes - 1) / r.tile_planes;
    out[0].tile_counts[0] = (uint32_t)tn_size_max(tiles, 1);
    out[0].cost_ns = (double)r.planes * (double)(r.out_spatial * r.window_elems);
    if (isa == NULL) return TN_OK;
    out[1].cost_ns = out[0].cost_ns / 8;
    describe_blocked(tn_node_input(query->node, 0), fns, isa, &r);
    out[1].tile_counts[0] =
        (uint32_t)tn_size_max((r.planes + r.tile_planes - 1) / r.tile_planes, 1);
    return TN_OK;
}

static tn_status max_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    const bool has_indices = query->node->output_count > 1;
    return common_variants(query, max_fns, has_indices ? run : run_single, out, out_count, err);
}

static tn_status average_variants(const tn_variant_query *query, tn_variant *out,
                                  uint32_t *out_count, tn_error *err) {
    return common_variants(query, average_fns, run_single, out, out_count, err);
}

static tn_status bind_common(const tn_bind_context *ctx, const plane_fn *fns, pool_record *r) {
    TN_TRY(describe(ctx->node, fns, r, ctx->err));
    const uint32_t block = ctx->variant->input_layout.block;
    if (block == 0) return TN_OK;
    describe_blocked(tn_node_input(ctx->node, 0), fns, tn_conv_isa_of_block(block, ctx->cpu), r);
    return TN_OK;
}

static tn_status max_bind(const tn_bind_context *ctx, void *record) {
    return bind_common(ctx, max_fns, record);
}

static tn_status average_bind(const tn_bind_context *ctx, void *record) {
    return bind_common(ctx, average_fns, record);
}

#define FLOATS (TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64))
static const uint32_t floats_1[] = {FLOATS};
static const uint32_t floats_22[] = {FLOATS | TN_TYPE_BIT(BF16)};
static const uint32_t max_12[] = {FLOATS | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8)};
static const uint32_t max_22[] = {FLOATS | TN_TYPE_BIT(BF16) | TN_TYPE_BIT(I8) | TN_TYPE_BIT(U8)};

#define POOL_ROW(title, since, until, types, outputs, check_fn, kind)                         \
    {                                                                                         \
        .name = (title), .since_version = (since), .until_version = (until), .min_inputs = 1, \
        .max_inputs = 1, .min_outputs = 1, .max_outputs = (outputs), .flags = TN_OP_FOLDABLE, \
        .input_types = (types), .input_types_count = 1, .params_bytes = sizeof(pool_params),  \
        .record_bytes = sizeof(pool_record), .check = (check_fn), .infer = infer,             \
        .variants = kind##_variants, .bind = kind##_bind                                      \
    }

static const tn_op_def pool_ops[] = {
    POOL_ROW("MaxPool", 1, 7, floats_1, 1, check_pool, max),
    POOL_ROW("MaxPool", 8, 11, floats_1, 2, check_pool, max),
    POOL_ROW("MaxPool", 12, 21, max_12, 2, check_pool, max),
    POOL_ROW("MaxPool", 22, 0, max_22, 2, check_pool, max),
    POOL_ROW("AveragePool", 1, 21, floats_1, 1, check_pool, average),
    POOL_ROW("AveragePool", 22, 0, floats_22, 1, check_pool, average),
    POOL_ROW("GlobalAveragePool", 1, 21, floats_1, 1, check_global, average),
    POOL_ROW("GlobalAveragePool", 22, 0, floats_22, 1, check_global, average),
    POOL_ROW("GlobalMaxPool", 1, 21, floats_1, 1, check_global, max),
    POOL_ROW("GlobalMaxPool", 22, 0, floats_22, 1, check_global, max),
};

const tn_op_table tn_pool_table = {pool_ops, TN_COUNTOF(pool_ops)};
