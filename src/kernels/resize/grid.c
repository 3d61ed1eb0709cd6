/* GridSample and AffineGrid. For each output point the taps (element offsets and weights) are found
 * once and used for all channels. The taps of several axes are combined into at most MAX_TAPS. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

#define MAX_TAPS 64
#define MAX_AXIS_TAPS 4
#define MAX_SPATIAL 6
#define FAR 1.0e9F /* coordinates beyond this are all alike */

typedef enum grid_mode { GRID_NEAREST, GRID_LINEAR, GRID_CUBIC } grid_mode;
typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;

typedef struct grid_params {
    grid_mode mode;
    grid_padding padding;
    bool align_corners;
} grid_params;

typedef struct grid_record {
    grid_params params;
    tn_dtype dtype, grid_dtype;
    uint32_t tile_count;
    int32_t spatial_rank;
    size_t batch_count, channel_count;
    size_t point_count; /* per batch item */
    size_t channel_len; /* elements of one channel of X */
    int64_t dims[MAX_SPATIAL];
    int64_t strides[MAX_SPATIAL]; /* elements */
} grid_record;

/* Taps of one point. */
typedef struct grid_taps {
    uint32_t count;
    int64_t offsets[MAX_TAPS];
    float weights[MAX_TAPS];
} grid_taps;

static tn_status choose(const tn_check_context *ctx, const char *name, const char *fallback,
                        const char *const *names, size_t count, size_t *out) {
    tn_text text;
    TN_TRY(tn_check_text(ctx, name, fallback, &text));
    for (size_t i = 0; i < count; i++) {
        if (!tn_text_equals_literal(text, names[i])) continue;
        *out = i;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "%s %.*s", name, tn_text_width(text),
                        text.data);
}

static tn_status grid_check(const tn_check_context *ctx, void *params) {
    /* the names before and since opset 20 */
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic"};
    static const grid_mode mode_of[] = {GRID_NEAREST, GRID_LINEAR, GRID_CUBIC, GRID_LINEAR,
                                        GRID_CUBIC};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    grid_params *p = params;
    size_t mode = 0;
    size_t padding = 0;
    int64_t align_corners = 0;
    TN_TRY(choose(ctx, "mode", "linear", modes, TN_COUNTOF(modes), &mode));
    TN_TRY(choose(ctx, "padding_mode", "zeros", paddings, TN_COUNTOF(paddings), &padding));
    TN_TRY(tn_check_int(ctx, "align_corners", 0, &align_corners));
    p->mode = mode_of[mode];
    p->padding = (grid_padding)padding;
    p->align_corners = align_corners != 0;
    return TN_OK;
}

static uint32_t axis_taps(grid_mode mode) {
    return mode == GRID_NEAREST ? 1 : mode == GRID_LINEAR ? 2 : 4;
}

static tn_status grid_infer(const tn_node_facts *node, tn_error *err) {
    const grid_params *p = node->params;
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0) || !tn_input_has_rank(node, 1)) return TN_OK;
    const tn_shape *x = &node->inputs[0]->shape;
    const tn_shape *grid = &node->inputs[1]->shape;
    const int32_t spatial = x->rank - 2;
    char text[160];
    char other[160];
    const bool fits = spatial >= 1 && grid->rank == x->rank &&
                      (grid->dims[grid->rank - 1] < 0 || grid->dims[grid->rank - 1] == spatial) &&
                      (grid->dims[0] < 0 || x->dims[0] < 0 || grid->dims[0] == x->dims[0]);
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "X %s and grid %s do not fit",
               tn_shape_text(x, text, sizeof text), tn_shape_text(grid, other, sizeof other));
    uint32_t taps = 1;
    for (int32_t i = 0; i < spatial && taps <= MAX_TAPS; i++) taps *= axis_taps(p->mode);
    TN_REQUIRE(spatial <= MAX_SPATIAL && taps <= MAX_TAPS, err, TN_UNSUPPORTED,
               "%d spatial axes in this mode", (int)spatial);
    tn_shape to = {.rank = x->rank,
                   .dims = {x->dims[0] < 0 ? grid->dims[0] : x->dims[0], x->dims[1]}};
    for (int32_t i = 0; i < spatial; i++) {
        to.dims[2 + i] = grid->dims[1 + i];
        TN_REQUIRE(x->dims[2 + i] != 0, err, TN_INVALID_ARGUMENT, "axis %d of X is empty",
                   (int)i + 2);
    }
    return tn_put_output(node, 0, node->inputs[0]->dtype, &to, err);
}

/* Folds a coordinate back into [low, high] at its ends. */
static float reflected(float x, float low, float high) {
    const float range = high - low;
    if (x >= low && x <= high) return x;
    if (!(range > 0.0F)) return low;
    const float beyond = x < low ? low - x : x - high;
    const float turns = floorf(beyond / range);
    const float rest = beyond - turns * range;
    const bool is_even = fmodf(turns, 2.0F) == 0.0F;
    return (x < low) == is_even ? low + rest : high - rest;
}

/* Index of tap `index` on an axis, or -1 when it counts as zero. */
static int64_t padded_index(const grid_record *r, float index, int64_t dim, float low, float high) {
    const float last = (float)(dim - 1);
    if (index >= 0.0F && index <= last) return (int64_t)index;
    if (r->params.padding == GRID_ZEROS) return -1;
    if (r->params.padding == GRID_REFLECTION) index = truncf(reflected(index, low, high));
    return index <= 0.0F ? 0 : index >= last ? dim - 1 : (int64_t)index;
}

static void cubic_weights(float x, float *weights) {
    const float a = -0.75F;
    for (int32_t i = 0; i < 4; i++) {
        const float d = fabsf(x + 1.0F - (float)i);
        weights[i] = d <= 1.0F ? ((a + 2.0F) * d - (a + 3.0F)) * d * d + 1.0F
                               : ((a * d - 5.0F * a) * d + 8.0F * a) * d - 4.0F * a;
    }
}

/* Taps of one axis for coordinate `given` in [-1, 1]; indices of -1 count as zero. */
static void find_axis_taps(const grid_record *r, int32_t axis, float given, int64_t *indices,
                           float *weights) {
    const int64_t dim = r->dims[axis];
    const float len = (float)dim;
    const bool aligned = r->params.align_corners;
    const float low = aligned ? 0.0F : -0.5F;
    const float high = aligned ? len - 1.0F : len - 0.5F;
    float x = aligned ? (given + 1.0F) / 2.0F * (len - 1.0F) : ((given + 1.0F) * len - 1.0F) / 2.0F;
    if (x != x || x < -FAR) x = -FAR;
    if (x > FAR) x = FAR;
    if (r->params.mode == GRID_NEAREST) x = rintf(x);
    if (x < low || x > high) {
        /* a cubic window beyond the border still sees the slope at it */
        const bool clamps = r->params.padding == GRID_BORDER && r->params.mode != GRID_CUBIC;
        if (clamps) x = x < low ? 0.0F : len - 1.0F;
        if (r->params.padding == GRID_REFLECTION) x = reflected(x, low, high);
    }
    const uint32_t count = axis_taps(r->params.mode);
    const float base = r->params.mode == GRID_NEAREST ? truncf(x) : floorf(x);
    const float first = base - (r->params.mode == GRID_CUBIC ? 1.0F : 0.0F);
    weights[0] = 1.0F;
    if (r->params.mode == GRID_LINEAR) {
        weights[0] = 1.0F - (x - base);
        weights[1] = x - base;
    } else if (r->params.mode == GRID_CUBIC) {
        cubic_weights(x - base, weights);
    }
    for (uint32_t t = 0; t < count; t++) {
        indices[t] = padded_index(r, first + (float)t, dim, low, high);
    }
}

/* Combines the taps of all axes; those that count as zero are left out. */
static void find_taps(const grid_record *r, const void *grid, size_t point, grid_taps *taps) {
    const uint32_t each = axis_taps(r->params.mode);
    taps->count = 1;
    taps->offsets[0] = 0;
    taps->weights[0] = 1.0F;
    for (int32_t axis = 0; axis < r->spatial_rank; axis++) {
        int64_t indices[MAX_AXIS_TAPS];
        float weights[MAX_AXIS_TAPS];
        grid_taps before = *taps;
        /* the grid names the last axis first */
        const size_t at = point * (size_t)r->spatial_rank + (size_t)(r->spatial_rank - 1 - axis);
        find_axis_taps(r, axis, (float)tn_number_read(grid, r->grid_dtype, at), indices, weights);
        taps->count = 0;
        for (uint32_t b = 0; b < before.count; b++) {
            for (uint32_t t = 0; t < each; t++) {
                if (indices[t] < 0) continue;
                taps->offsets[taps->count] = before.offsets[b] + indices[t] * r->strides[axis];
                taps->weights[taps->count++] = before.weights[b] * weights[t];
            }
        }
    }
}

static float sample_f32(const char *channel, const grid_taps *taps) {
    float sum = 0.0F;
    for (uint32_t t = 0; t < taps->count; t++) {
        float value;
        memcpy(&value, channel + taps->offsets[t] * (int64_t)sizeof value, sizeof value);
        sum += taps->weights[t] * value;
    }
    return sum;
}

static double sample_any(const char *channel, tn_dtype dtype, const grid_taps *taps) {
    double sum = 0.0;
    for (uint32_t t = 0; t < taps->count; t++) {
        sum += (double)taps->weights[t] * tn_number_read(channel, dtype, (size_t)taps->offsets[t]);
    }
    return sum;
}

static void sample_point(const grid_record *r, const tn_kernel_context *ctx, size_t at) {
    const size_t elem_bytes = tn_elem_bytes(r->dtype);
    const size_t batch = at / r->point_count;
    const size_t point = at % r->point_count;
    const char *x = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    grid_taps taps;
    find_taps(r, tn_kernel_in(ctx, 1), at, &taps);
    for (size_t c = 0; c < r->channel_count; c++) {
        const size_t plane = batch * r->channel_count + c;
        const char *channel = x + plane * r->channel_len * elem_bytes;
        const size_t to = plane * r->point_count + point;
        if (r->dtype == TN_DTYPE_F32) {
            const float value = sample_f32(channel, &taps);
            memcpy(out + to * sizeof value, &value, sizeof value);
        } else {
            tn_number_write(out, r->dtype, to, sample_any(channel, r->dtype, &taps));
        }
    }
}

static tn_status grid_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    (void)worker;
    const grid_record *r = record;
    size_t at = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->batch_count * r->point_count, r->tile_count, tile0, &at, &ignored);
    tn_tile_range(r->batch_count * r->point_count, r->tile_count, tile1 - 1, &ignored, &end);
    for (; at < end; at++) sample_point(r, ctx, at);
    return TN_OK;
}

static tn_status grid_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                               tn_error *err) {
    (void)err;
    /* a point costs about as much as moving 32 times its bytes */
    const size_t bytes = tn_output_bytes(query->node, 0);
    const size_t limit = bytes == 0 ? 1 : tn_fact_len_elems(query->node->outputs[0]);
    tn_one_variant("grid", grid_run, bytes, limit, out, out_count);
    if (bytes != 0) out[0].tile_counts[0] = tn_tiles_for_bytes(bytes * 32, limit);
    return TN_OK;
}

static tn_status grid_bind(const tn_bind_context *ctx, void *record) {
    grid_record *r = record;
    const tn_fact *x = ctx->node->inputs[0];
    const tn_shape *to = &ctx->node->outputs[0]->shape;
    memcpy(&r->params, ctx->node->params, sizeof r->params);
    r->dtype = x->dtype;
    r->grid_dtype = ctx->node->inputs[1]->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    r->spatial_rank = x->shape.rank - 2;
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return TN_OK; /* no points */
    int64_t strides[TN_MAX_RANK];
    tn_row_strides(&x->shape, 1, strides);
    r->batch_count = (size_t)x->shape.dims[0];
    r->channel_count = (size_t)x->shape.dims[1];
    r->point_count = (size_t)tn_dims_product(to, 2, to->rank);
    r->channel_len = (size_t)tn_dims_product(&x->shape, 2, x->shape.rank);
    for (int32_t i = 0; i < r->spatial_rank; i++) {
        r->dims[i] = x->shape.dims[2 + i];
        r->strides[i] = strides[2 + i];
    }
    return TN_OK;
}

/* ---- AffineGrid ---- */

typedef struct affine_record {
    tn_dtype dtype;
    uint32_t tile_count;
    int32_t spatial_rank;
    bool align_corners;
    size_t batch_count, point_count;
    int64_t dims[3];
} affine_record;

static tn_status affine_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "align_corners", 0, params);
}

static tn_status affine_infer(const tn_node_facts *node, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_int_list size;
    TN_TRY(tn_read_int_list(node, 1, &size, err));
    tn_set_output(node, 0, dtype, NULL);
    if (!size.is_known) return TN_OK;
    TN_REQUIRE(size.count == 4 || size.count == 5, err, TN_INVALID_ARGUMENT,
               "size has %zu numbers, not 4 or 5", size.count);
    const int32_t spatial = (int32_t)size.count - 2;
    tn_shape to = {.rank = spatial + 2};
    to.dims[0] = size.values[0];
    for (int32_t i = 0; i < spatial; i++) to.dims[1 + i] = size.values[2 + i];
    to.dims[1 + spatial] = spatial;
    for (int32_t i = 0; i < to.rank; i++) {
        TN_REQUIRE(to.dims[i] >= 0, err, TN_INVALID_ARGUMENT, "dim %d is %lld", (int)i,
                   (long long)to.dims[i]);
    }
    if (tn_input_has_rank(node, 0)) {
        const tn_shape *theta = &node->inputs[0]->shape;
        char text[160];
        const bool fits = theta->rank == 3 &&
                          (theta->dims[0] < 0 || theta->dims[0] == size.values[0]) &&
                          (theta->dims[1] < 0 || theta->dims[1] == spatial) &&
                          (theta->dims[2] < 0 || theta->dims[2] == spatial + 1);
        TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "theta %s does not fit %d spatial axes",
                   tn_shape_text(theta, text, sizeof text), (int)spatial);
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

/* Position `index` of `dim` in [-1, 1]. */
static double unit_coordinate(int64_t index, int64_t dim, bool align_corners) {
    if (align_corners) return dim == 1 ? -1.0 : 2.0 * (double)index / (double)(dim - 1) - 1.0;
    return (2.0 * (double)index + 1.0) / (double)dim - 1.0;
}

static void affine_point(const affine_record *r, const tn_kernel_context *ctx, size_t at) {
    double homogeneous[4] = {0};
    const size_t rank = (size_t)r->spatial_rank;
    size_t rest = at % r->point_count;
    for (size_t axis = rank; axis-- > 0;) {
        const size_t dim = (size_t)r->dims[axis];
        /* x belongs to the last axis */
        homogeneous[rank - 1 - axis] =
            unit_coordinate((int64_t)(rest % dim), r->dims[axis], r->align_corners);
        rest /= dim;
    }
    homogeneous[rank] = 1.0;
    const size_t theta = at / r->point_count * rank * (rank + 1);
    for (size_t row = 0; row < rank; row++) {
        double sum = 0.0;
        for (size_t i = 0; i <= rank; i++) {
            sum += tn_number_read(tn_kernel_in(ctx, 0), r->dtype, theta + row * (rank + 1) + i) *
                   homogeneous[i];
        }
        tn_number_write(tn_kernel_out(ctx, 0), r->dtype, at * rank + row, sum);
    }
}

static tn_status affine_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                            uint32_t tile1, uint32_t worker) {
    (void)worker;
    const affine_record *r = record;
    size_t at = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->batch_count * r->point_count, r->tile_count, tile0, &at, &ignored);
    tn_tile_range(r->batch_count * r->point_count, r->tile_count, tile1 - 1, &ignored, &end);
    for (; at < end; at++) affine_point(r, ctx, at);
    return TN_OK;
}

static tn_status affine_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    (void)err;
    tn_one_variant("affine grid", affine_run, tn_output_bytes(query->node, 0), SIZE_MAX, out,
                   out_count);
    return TN_OK;
}

static tn_status affine_bind(const tn_bind_context *ctx, void *record) {
    affine_record *r = record;
    const tn_shape *to = &ctx->node->outputs[0]->shape;
    r->dtype = ctx->node->inputs[0]->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    r->align_corners = *(const int64_t *)ctx->node->params != 0;
    r->spatial_rank = to->rank - 2;
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return TN_OK; /* no points */
    r->batch_count = (size_t)to->dims[0];
    r->point_count = (size_t)tn_dims_product(to, 1, to->rank - 1);
    for (int32_t i = 0; i < r->spatial_rank; i++) r->dims[i] = to->dims[1 + i];
    return TN_OK;
}

static const uint32_t grid_types[] = {TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL), TN_TYPES_FLOAT};
static const uint32_t affine_types[] = {TN_TYPES_FLOAT, TN_TYPES_INDEX};

static const tn_op_def rows[] = {
    {.name = "GridSample",
     .since_version = 16,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = grid_types,
     .input_types_count = 2,
     .params_bytes = sizeof(grid_params),
     .record_bytes = sizeof(grid_record),
     .check = grid_check,
     .infer = grid_infer,
     .variants = grid_variants,
     .bind = grid_bind},
    {.name = "AffineGrid",
     .since_version = 20,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = affine_types,
     .input_types_count = 2,
     .params_bytes = sizeof(int64_t),
     .record_bytes = sizeof(affine_record),
     .check = affine_check,
     .infer = affine_infer,
     .variants = affine_variants,
     .bind = affine_bind},
};
const tn_op_table tn_grid_table = {rows, TN_COUNTOF(rows)};
