/* Conv in plain layout, any number of spatial axes.
 *
 * f32: a matrix product of the weights [M, K] with columns that are gathered tile by tile into the
 * caller's scratch (K = channels x window, a tile is a run of output positions), so the unfolded
 * input never exists as a whole. Depthwise: one pass per window element over rows that stay in
 * cache. Other types: the sum as it is written. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/conv/conv_parts.h"

enum {
    MAX_TILE_PANELS = 8,
    TILE_MACS = 400 * 1000,
    ROWS_SCRATCH_FLOATS = 16 * 1024,
    MAX_ROWS_SCRATCH_FLOATS = 2 * 1024 * 1024
};

static tn_status check(const tn_check_context *ctx, void *params) {
    tn_conv_params *p = params;
    TN_TRY(tn_window_check(ctx, &p->window));
    TN_TRY(tn_check_int(ctx, "group", 1, &p->group));
    TN_REQUIRE(p->group >= 1 && p->group < INT32_MAX, ctx->err, TN_INVALID_MODEL,
               "attribute group is %lld, expected 1 or more", (long long)p->group);
    return TN_OK;
}

static tn_status check_channels(const tn_conv_params *p, const tn_shape *x, const tn_shape *w,
                                tn_error *err) {
    TN_REQUIRE(x->rank == w->rank && x->rank >= 3, err, TN_INVALID_ARGUMENT,
               "the input has rank %d, the weights %d; both must be equal and at least 3",
               (int)x->rank, (int)w->rank);
    if (w->dims[0] >= 0) {
        TN_REQUIRE(w->dims[0] % p->group == 0, err, TN_INVALID_ARGUMENT,
                   "%lld output channels do not divide into %lld groups", (long long)w->dims[0],
                   (long long)p->group);
    }
    if (x->dims[1] < 0 || w->dims[1] < 0) return TN_OK;
    TN_REQUIRE(w->dims[1] <= INT64_MAX / p->group && x->dims[1] == w->dims[1] * p->group, err,
               TN_INVALID_ARGUMENT,
               "the input has %lld channels, weights and groups want %lld x %lld",
               (long long)x->dims[1], (long long)w->dims[1], (long long)p->group);
    return TN_OK;
}

static tn_status check_bias(const tn_fact *bias, int64_t channels, tn_error *err) {
    if (bias == NULL || bias->shape.rank < 0) return TN_OK;
    TN_REQUIRE(bias->shape.rank == 1 &&
                   (bias->shape.dims[0] < 0 || channels < 0 || bias->shape.dims[0] == channels),
               err, TN_INVALID_ARGUMENT, "the bias has rank %d and %lld elements, expected %lld",
               (int)bias->shape.rank, (long long)bias->shape.dims[0], (long long)channels);
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_conv_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    const tn_fact *w = tn_node_input(node, 1);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || w == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = x->dtype;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0 || w->shape.rank < 0) return TN_OK;
    TN_TRY(check_channels(p, &x->shape, &w->shape, err));
    TN_TRY(check_bias(tn_node_input(node, 2), w->shape.dims[0], err));
    for (int32_t i = 2; i < w->shape.rank; i++) {
        if (w->shape.dims[i] < 0 && p->window.kernel_count == 0) return TN_OK;
        TN_REQUIRE(p->window.kernel_count == 0 || w->shape.dims[i] < 0 ||
                       i - 2 >= p->window.kernel_count ||
                       p->window.kernel[i - 2] == w->shape.dims[i],
                   err, TN_INVALID_MODEL, "kernel_shape says %lld where the weights have %lld",
                   (long long)p->window.kernel[i - 2], (long long)w->shape.dims[i]);
    }
    tn_window window;
    TN_TRY(tn_window_resolve(&p->window, x->shape.dims + 2, w->shape.dims + 2, x->shape.rank - 2,
                             &window, err));
    y->shape.rank = x->shape.rank;
    y->shape.dims[0] = x->shape.dims[0];
    y->shape.dims[1] = w->shape.dims[0];
    for (int32_t i = 0; i < window.count; i++) y->shape.dims[2 + i] = window.out[i];
    return TN_OK;
}

static bool is_plain_window(const tn_window *w) {
    for (int32_t i = 0; i < w->count; i++) {
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] != 0 || w->pad_end[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool is_depthwise(const tn_conv_record *r) {
    return r->in_channels == 1 && r->groups > 1;
}

/* Depthwise over padded rows: one or two spatial axes. */
static bool has_padded_rows(const tn_conv_record *r) {
    return is_depthwise(r) && r->dtype == TN_DTYPE_F32 && r->window.count <= 2 &&
           r->batch * r->out_channels * r->out_spatial > 0;
}

/* Numbers along height and width; one spatial axis is an image of one row. */
typedef struct rows_window {
    int64_t in_h, in_w, out_h, out_w, taps_h, taps_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t pad_top, pad_left;
} rows_window;

static rows_window rows_of(const tn_window *w) {
    const int32_t x = w->count - 1;
    rows_window r = {.in_h = 1, .out_h = 1, .taps_h = 1, .stride_h = 1, .dilation_h = 1};
    r.in_w = w->in[x];
    r.out_w = w->out[x];
    r.taps_w = w->kernel[x];
    r.stride_w = w->stride[x];
    r.dilation_w = w->dilation[x];
    r.pad_left = w->pad_begin[x];
    if (x == 0) return r;
    r.in_h = w->in[0];
    r.out_h = w->out[0];
    r.taps_h = w->kernel[0];
    r.stride_h = w->stride[0];
    r.dilation_h = w->dilation[0];
    r.pad_top = w->pad_begin[0];
    return r;
}

/* Input rows that `rows` output rows see. */
static size_t rows_seen(const rows_window *w, size_t rows) {
    return (rows - 1) * (size_t)w->stride_h + (size_t)((w->taps_h - 1) * w->dilation_h) + 1;
}

static void describe_rows(tn_conv_record *r) {
    const rows_window w = rows_of(&r->window);
    const size_t lanes = r->kernels->plain_lanes;
    r->phase_width = ((size_t)w.out_w + lanes - 1) / lanes * lanes +
                     (size_t)((w.taps_w - 1) * w.dilation_w / w.stride_w);
    size_t row_floats = 0;
    size_t least_floats = 0;
    if (!tn_size_mul(r->phase_width, (size_t)w.stride_w, &row_floats) ||
        !tn_size_mul(row_floats, rows_seen(&w, 1), &least_floats) ||
        least_floats > MAX_ROWS_SCRATCH_FLOATS) {
        return; /* band_rows stays 0: lines are done without a copy */
    }
    const size_t most = tn_size_max(ROWS_SCRATCH_FLOATS / row_floats, rows_seen(&w, 1));
    r->band_rows = (most - rows_seen(&w, 1)) / (size_t)w.stride_h + 1;
    r->band_rows = tn_size_min(r->band_rows, (size_t)w.out_h);
    r->bands = ((size_t)w.out_h + r->band_rows - 1) / r->band_rows;
    const size_t unit_macs = r->band_rows * (size_t)w.out_w * r->k;
    r->units_per_tile = TILE_MACS / 4 / unit_macs + 1;
}

/* Sizes and tiles for sized facts. */
tn_status tn_conv_describe(const tn_node_facts *node, tn_cpu_features cpu, tn_conv_record *r,
                           tn_error *err) {
    const tn_conv_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    const tn_fact *w = tn_node_input(node, 1);
    memset(r, 0, sizeof *r);
    TN_TRY(tn_window_resolve(&p->window, x->shape.dims + 2, w->shape.dims + 2, x->shape.rank - 2,
                             &r->window, err));
    tn_window_squeeze(&r->window);
    r->isa = tn_gemm_isa_best(cpu);
    r->kernels = tn_conv_isa_best(cpu);
    r->dtype = x->dtype;
    r->batch = (size_t)x->shape.dims[0];
    r->groups = (size_t)p->group;
    r->in_channels = (size_t)w->shape.dims[1];
    r->out_channels = (size_t)(w->shape.dims[0] / p->group);
    r->in_spatial = tn_window_product(r->window.in, r->window.count);
    r->out_spatial = tn_window_product(r->window.out, r->window.count);
    r->window_elems = tn_window_product(r->window.kernel, r->window.count);
    r->k = r->in_channels * r->window_elems;
    r->is_pointwise = is_plain_window(&r->window);
    r->has_bias = tn_node_input(node, 2) != NULL;
    const size_t nr = r->isa->nr;
    const size_t panels = (r->out_spatial + nr - 1) / nr;
    r->tile_positions = tn_size_max(tn_size_min(panels, MAX_TILE_PANELS), 1) * nr;
    r->position_tiles = (r->out_spatial + r->tile_positions - 1) / r->tile_positions;
    r->row_tiles = 1;
    const size_t tiles = r->batch * r->groups * r->position_tiles;
    const size_t macs = r->k * r->out_channels * tn_size_min(r->out_spatial, r->tile_positions);
    while (tiles * r->row_tiles < 8 && macs / r->row_tiles > TILE_MACS &&
           r->out_channels / r->row_tiles > 32) {
        r->row_tiles *= 2;
    }
    r->tile_rows = (r->out_channels + r->row_tiles - 1) / r->row_tiles;
    r->row_tiles = r->tile_rows == 0 ? 0 : (r->out_channels + r->tile_rows - 1) / r->tile_rows;
    const size_t channel_macs = tn_size_max(r->out_spatial * r->k, 1);
    r->tile_channels = TILE_MACS / 8 / channel_macs + 1;
    if (has_padded_rows(r)) describe_rows(r);
    return TN_OK;
}

/* The zero-filled run of input elements that one window element sees: `count` output positions from
 * `position` on. */
static void fill_line(const tn_conv_record *r, const float *channel, const int64_t *at,
                      size_t position, size_t count, float *line) {
    const tn_window *w = &r->window;
    const int32_t last = w->count - 1;
    const int64_t row_elems = w->out[last];
    while (count > 0) {
        size_t rest = position / (size_t)row_elems;
        const int64_t first = (int64_t)(position % (size_t)row_elems);
        const size_t run = tn_size_min((size_t)(row_elems - first), count);
        int64_t base = 0;
        int64_t scale = w->in[last];
        bool is_inside = true;
        for (int32_t i = last - 1; i >= 0; i--) {
            const int64_t out = (int64_t)(rest % (size_t)w->out[i]);
            const int64_t in = out * w->stride[i] - w->pad_begin[i] + at[i] * w->dilation[i];
            rest /= (size_t)w->out[i];
            is_inside = is_inside && in >= 0 && in < w->in[i];
            base += in * scale;
            scale *= w->in[i];
        }
        const int64_t start = at[last] * w->dilation[last] - w->pad_begin[last];
        const int64_t stride = w->stride[last];
        int64_t low = start >= 0 ? 0 : (-start + stride - 1) / stride;
        int64_t high = start >= w->in[last] ? 0 : (w->in[last] - start + stride - 1) / stride;
        low = tn_i64_min(tn_i64_max(low, first), first + (int64_t)run);
        high = tn_i64_max(tn_i64_min(high, first + (int64_t)run), low);
        if (!is_inside) high = low;
        for (int64_t i = first; i < low; i++) line[i - first] = 0;
        const float *source = channel + (is_inside ? base : 0) + start;
        if (stride == 1 && high > low) {
            memcpy(line + (low - first), source + low, (size_t)(high - low) * sizeof *line);
        } else {
            for (int64_t i = low; i < high; i++) line[i - first] = source[i * stride];
        }
        for (int64_t i = high; i < first + (int64_t)run; i++) line[i - first] = 0;
        line += run;
        position += run;
        count -= run;
    }
}

/* Rows [k0, k0 + k_count) of the unfolded input for a tile's positions, as panels of nr columns. */
static void gather_panels(const tn_conv_record *r, const float *image, size_t k0, size_t k_count,
                          size_t position, size_t count, float *line, float *panels) {
    const size_t nr = r->isa->nr;
    for (size_t k = 0; k < k_count; k++) {
        const float *channel = image + (k0 + k) / r->window_elems * r->in_spatial;
        const float *source = channel + position;
        if (!r->is_pointwise) {
            int64_t at[TN_MAX_SPATIAL];
            tn_window_position(&r->window, (k0 + k) % r->window_elems, at);
            fill_line(r, channel, at, position, count, line);
            source = line;
        }
        for (size_t done = 0; done < count; done += nr) {
            float *target = panels + done * k_count + k * nr;
            const size_t run = tn_size_min(nr, count - done);
            memcpy(target, source + done, run * sizeof *target);
            if (run < nr) memset(target + run, 0, (nr - run) * sizeof *target);
        }
    }
}

static void fill_bias(const float *bias, float *y, size_t rows, size_t row_stride, size_t count) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < count; i++) y[row * row_stride + i] = bias[row];
    }
}

void tn_conv_apply_epilogue(const tn_conv_record *r, const tn_kernel_context *ctx, float *y,
                            size_t row0, size_t rows, size_t col0, size_t cols) {
    const void *operands[TN_PROGRAM_MAX_OPERANDS];
    for (uint32_t i = 0; i < r->epilogue_count; i++) {
        operands[i] = tn_kernel_in(ctx, r->first_epilogue_input + i);
    }
    float *tile = y + row0 * r->epilogue_row + col0;
    tn_program_apply(&r->epilogue, &(tn_program_tile){.in = tile,
                                                      .in_row_stride = r->epilogue_row,
                                                      .out = tile,
                                                      .out_row_stride = r->epilogue_row,
                                                      .row0 = row0,
                                                      .col0 = col0,
                                                      .rows = rows,
                                                      .cols = cols,
                                                      .operands = operands});
}

static void run_gemm_tile(const tn_conv_record *r, const tn_kernel_context *ctx, size_t tile,
                          float *scratch) {
    const size_t nr = r->isa->nr;
    const size_t row0 = tile % r->row_tiles * r->tile_rows;
    const size_t position = tile / r->row_tiles % r->position_tiles * r->tile_positions;
    const size_t image = tile / r->row_tiles / r->position_tiles;
    const size_t group = image % r->groups;
    const size_t rows = tn_size_min(r->tile_rows, r->out_channels - row0);
    const size_t count = tn_size_min(r->tile_positions, r->out_spatial - position);
    const size_t channel0 = group * r->out_channels + row0;
    const float *x = (const float *)tn_kernel_in(ctx, 0) + image * r->in_channels * r->in_spatial;
    const float *w = (const float *)tn_kernel_in(ctx, 1) + channel0 * r->k;
    float *base = tn_kernel_out(ctx, 0);
    const size_t out_row = image * r->out_channels + row0;
    float *y = base + out_row * r->out_spatial + position;
    float *panels = scratch + r->tile_positions;
    if (r->has_bias) {
        fill_bias((const float *)tn_kernel_in(ctx, 2) + channel0, y, rows, r->out_spatial, count);
    }
    for (size_t k0 = 0; k0 < r->k; k0 += r->isa->kc) {
        const size_t k_count = tn_size_min(r->isa->kc, r->k - k0);
        gather_panels(r, x, k0, k_count, position, count, scratch, panels);
        for (size_t done = 0; done < count; done += nr) {
            r->isa->panel(&(tn_gemm_panel){.a = w + k0,
                                           .a_row_stride = r->k,
                                           .b = panels + done * k_count,
                                           .b_row_stride = nr,
                                           .c = y + done,
                                           .c_row_stride = r->out_spatial,
                                           .rows = rows,
                                           .cols = tn_size_min(nr, count - done),
                                           .k = k_count,
                                           .adds = r->has_bias || k0 > 0});
        }
    }
    if (r->has_epilogue) tn_conv_apply_epilogue(r, ctx, base, out_row, rows, position, count);
}

static tn_status run_gemm(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    if (r->batch * r->groups * r->out_channels * r->out_spatial == 0) return TN_OK;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        run_gemm_tile(r, ctx, tile, tn_kernel_scratch(ctx, worker));
    }
    return TN_OK;
}

/* One output channel of a depthwise convolution: rows of the output gather window element by window
 * element, so that every pass is a plain multiply-add over a line. */
static void depthwise_channel(const tn_conv_record *r, const float *x, const float *w, float bias,
                              float *line, float *y) {
    const size_t row_elems = (size_t)r->window.out[r->window.count - 1];
    for (size_t position = 0; position < r->out_spatial; position += row_elems) {
        float *row = y + position;
        for (size_t i = 0; i < row_elems; i++) row[i] = bias;
        for (size_t element = 0; element < r->window_elems; element++) {
            int64_t at[TN_MAX_SPATIAL];
            tn_window_position(&r->window, element, at);
            fill_line(r, x, at, position, row_elems, line);
            const float weight = w[element];
            for (size_t i = 0; i < row_elems; i++) row[i] += weight * line[i];
        }
    }
}

static tn_status run_depthwise(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                               uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    const size_t channels = r->groups * r->out_channels;
    const size_t first = tile0 * r->tile_channels;
    const size_t end = tn_size_min(tile1 * r->tile_channels, r->batch * channels);
    const float *bias = r->has_bias ? tn_kernel_in(ctx, 2) : NULL;
    float *y = tn_kernel_out(ctx, 0);
    for (size_t i = first; i < end; i++) {
        const size_t channel = i % channels;
        const size_t in_plane = i / channels * r->groups + channel / r->out_channels;
        depthwise_channel(r, (const float *)tn_kernel_in(ctx, 0) + in_plane * r->in_spatial,
                          (const float *)tn_kernel_in(ctx, 1) + channel * r->k,
                          bias == NULL ? 0 : bias[channel], tn_kernel_scratch(ctx, worker),
                          y + i * r->out_spatial);
        if (r->has_epilogue) tn_conv_apply_epilogue(r, ctx, y, i, 1, 0, r->out_spatial);
    }
    return TN_OK;
}

/* Input rows from `top` on with their border, each sorted by column modulo the stride. */
static void pad_rows(const rows_window *w, const float *x, int64_t top, size_t rows,
                     size_t phase_width, float *to) {
    const int64_t width = (int64_t)phase_width;
    for (size_t row = 0; row < rows; row++) {
        const int64_t in_row = top + (int64_t)row;
        const bool is_inside = in_row >= 0 && in_row < w->in_h;
        for (int64_t phase = 0; phase < w->stride_w; phase++, to += phase_width) {
            const int64_t start = phase - w->pad_left;
            const int64_t stride = w->stride_w;
            int64_t low = start >= 0 ? 0 : (-start + stride - 1) / stride;
            int64_t high = start >= w->in_w ? 0 : (w->in_w - start + stride - 1) / stride;
            low = tn_i64_min(low, width);
            high = is_inside ? tn_i64_max(tn_i64_min(high, width), low) : low;
            const float *from = x + (is_inside ? in_row * w->in_w : 0) + start;
            memset(to, 0, (size_t)low * sizeof *to);
            memset(to + high, 0, (size_t)(width - high) * sizeof *to);
            if (stride == 1 && high > low) {
                memcpy(to + low, from + low, (size_t)(high - low) * sizeof *to);
            } else {
                for (int64_t i = low; i < high; i++) to[i] = from[i * stride];
            }
        }
    }
}

static void run_rows_unit(const tn_conv_record *r, const tn_kernel_context *ctx,
                          const rows_window *w, size_t unit, float *scratch) {
    const size_t plane = unit / r->bands;
    const size_t channels = r->groups * r->out_channels;
    const size_t channel = plane % channels;
    const size_t in_plane = plane / channels * r->groups + channel / r->out_channels;
    const size_t first = unit % r->bands * r->band_rows;
    const size_t rows = tn_size_min(r->band_rows, (size_t)w->out_h - first);
    const size_t position = first * (size_t)w->out_w;
    float *y = tn_kernel_out(ctx, 0);
    pad_rows(w, (const float *)tn_kernel_in(ctx, 0) + in_plane * r->in_spatial,
             (int64_t)first * w->stride_h - w->pad_top, rows_seen(w, rows), r->phase_width,
             scratch);
    r->kernels->plain_rows(&(tn_conv_plain_rows){
        .x = scratch,
        .row_step = r->phase_width * (size_t)w->stride_w,
        .phase_step = r->phase_width,
        .rows = rows,
        .out_w = (size_t)w->out_w,
        .stride_h = (size_t)w->stride_h,
        .stride_w = (size_t)w->stride_w,
        .taps_h = (size_t)w->taps_h,
        .taps_w = (size_t)w->taps_w,
        .dilation_h = (size_t)w->dilation_h,
        .dilation_w = (size_t)w->dilation_w,
        .w = (const float *)tn_kernel_in(ctx, 1) + channel * r->k,
        .bias = r->has_bias ? ((const float *)tn_kernel_in(ctx, 2))[channel] : 0.0F,
        .y = y + plane * r->out_spatial + position});
    if (!r->has_epilogue) return;
    tn_conv_apply_epilogue(r, ctx, y, plane, 1, position, rows * (size_t)w->out_w);
}

static tn_status run_rows(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                          uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    const rows_window w = rows_of(&r->window);
    const size_t units = r->batch * r->groups * r->out_channels * r->bands;
    const size_t end = tn_size_min(tile1 * r->units_per_tile, units);
    for (size_t unit = tile0 * r->units_per_tile; unit < end; unit++) {
        run_rows_unit(r, ctx, &w, unit, tn_kernel_scratch(ctx, worker));
    }
    return TN_OK;
}

/* Offset of the input element that output `position` sees through window element `at`; false in the
 * padding. */
static bool source_offset(const tn_window *w, size_t position, const int64_t *at, size_t *out) {
    int64_t offset = 0;
    int64_t scale = 1;
    for (int32_t i = w->count - 1; i >= 0; i--) {
        const int64_t place = (int64_t)(position % (size_t)w->out[i]);
        const int64_t in = place * w->stride[i] - w->pad_begin[i] + at[i] * w->dilation[i];
        position /= (size_t)w->out[i];
        if (in < 0 || in >= w->in[i]) return false;
        offset += in * scale;
        scale *= w->in[i];
    }
    *out = (size_t)offset;
    return true;
}

#define SAME(x) (x)

#define DEFINE_REFERENCE(name, element, sum_type, load, store)                                    \
    static void reference_##name(const tn_conv_record *r, const void *x_base, const void *w_base, \
                                 const void *bias, size_t plane, void *y_base) {                  \
        const size_t channels = r->groups * r->out_channels;                                      \
        const size_t channel = plane % channels;                                                  \
        const size_t group = channel / r->out_channels;                                           \
        const element *x = (const element *)x_base + (plane / channels * r->groups + group) *     \
                                                         r->in_channels * r->in_spatial;          \
        const element *w = (const element *)w_base + channel * r->k;                              \
        element *y = (element *)y_base + plane * r->out_spatial;                                  \
        for (size_t position = 0; position < r->out_spatial; position++) {                        \
            sum_type sum = bias == NULL ? (sum_type)0 : load(((const element *)bias)[channel]);   \
            for (size_t element_at = 0; element_at < r->window_elems; element_at++) {             \
                int64_t at[TN_MAX_SPATIAL];                                                       \
                size_t offset = 0;                                                                \
                tn_window_position(&r->window, element_at, at);                                   \
                if (!source_offset(&r->window, position, at, &offset)) continue;                  \
                for (size_t c = 0; c < r->in_channels; c++) {                                     \
                    sum += load(x[c * r->in_spatial + offset]) *                                  \
                           load(w[c * r->window_elems + element_at]);                             \
                }                                                                                 \
            }                                                                                     \
            y[position] = store(sum);                                                             \
        }                                                                                         \
    }
DEFINE_REFERENCE(f64, double, double, SAME, SAME)
DEFINE_REFERENCE(f16, uint16_t, float, tn_f32_from_f16, tn_f16_from_f32)
DEFINE_REFERENCE(bf16, uint16_t, float, tn_f32_from_bf16, tn_bf16_from_f32)

static tn_status run_reference(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                               uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    (void)worker;
    const size_t end =
        tn_size_min(tile1 * r->tile_channels, r->batch * r->groups * r->out_channels);
    const void *bias = r->has_bias ? tn_kernel_in(ctx, 2) : NULL;
    for (size_t i = tile0 * r->tile_channels; i < end; i++) {
        if (r->dtype == TN_DTYPE_F64) {
            reference_f64(r, tn_kernel_in(ctx, 0), tn_kernel_in(ctx, 1), bias, i,
                          tn_kernel_out(ctx, 0));
        } else if (r->dtype == TN_DTYPE_F16) {
            reference_f16(r, tn_kernel_in(ctx, 0), tn_kernel_in(ctx, 1), bias, i,
                          tn_kernel_out(ctx, 0));
        } else {
            reference_bf16(r, tn_kernel_in(ctx, 0), tn_kernel_in(ctx, 1), bias, i,
                           tn_kernel_out(ctx, 0));
        }
    }
    return TN_OK;
}

static uint32_t channel_tiles(const tn_conv_record *r) {
    const size_t planes = r->batch * r->groups * r->out_channels;
    return (uint32_t)tn_size_max((planes + r->tile_channels - 1) / r->tile_channels, 1);
}

static tn_variant reference_variant(const tn_conv_record *r, double macs) {
    return (tn_variant){.name = "direct",
                        .run = run_reference,
                        .tile_counts = {channel_tiles(r)},
                        .cost_ns = macs * 2};
}

static tn_variant rows_variant(const tn_conv_record *r, double macs) {
    const rows_window w = rows_of(&r->window);
    const size_t units = r->batch * r->groups * r->out_channels * r->bands;
    const size_t row_floats = r->phase_width * (size_t)w.stride_w;
    return (tn_variant){
        .name = "depthwise by padded rows",
        .run = run_rows,
        .tile_counts = {(uint32_t)((units + r->units_per_tile - 1) / r->units_per_tile)},
        .takes_epilogue = true,
        .rewrite_class = TN_REWRITE_REASSOCIATED,
        .worker_scratch_bytes = rows_seen(&w, r->band_rows) * row_floats * sizeof(float),
        .cost_ns = macs * 0.1};
}

static tn_variant lines_variant(const tn_conv_record *r, double macs) {
    const size_t row = (size_t)r->window.out[r->window.count - 1];
    return (tn_variant){.name = "depthwise by lines",
                        .run = run_depthwise,
                        .tile_counts = {channel_tiles(r)},
                        .takes_epilogue = true,
                        .rewrite_class = TN_REWRITE_EXACT,
                        .worker_scratch_bytes = tn_size_max(row, 1) * sizeof(float),
                        .cost_ns = macs * 0.3};
}

static tn_variant gemm_variant(const tn_conv_record *r, double macs) {
    const size_t tiles = r->batch * r->groups * r->position_tiles * r->row_tiles;
    const size_t k_count = tn_size_min(r->k, r->isa->kc);
    return (tn_variant){.name = "gathered columns, gemm",
                        .run = run_gemm,
                        .tile_counts = {(uint32_t)tn_size_max(tiles, 1)},
                        .takes_epilogue = true,
                        .rewrite_class = TN_REWRITE_REASSOCIATED,
                        .worker_scratch_bytes = r->tile_positions * (k_count + 1) * sizeof(float),
                        .cost_ns = macs / r->isa->macs_per_ns};
}

static void list_plain(const tn_conv_record *r, tn_variant *out, uint32_t *count) {
    const double macs = (double)r->k * (double)r->out_channels * (double)r->groups *
                        (double)r->out_spatial * (double)r->batch;
    if (r->dtype != TN_DTYPE_F32) {
        out[(*count)++] = reference_variant(r, macs);
        return;
    }
    if (r->band_rows > 0) out[(*count)++] = rows_variant(r, macs);
    out[(*count)++] = is_depthwise(r) ? lines_variant(r, macs) : gemm_variant(r, macs);
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    tn_conv_record r;
    const tn_fact *x = tn_node_input(query->node, 0);
    const tn_fact *y = tn_node_output(query->node, 0);
    const uint32_t block = query->preferred_block;
    const tn_conv_form form = tn_conv_form_of(query->node, block, query->cpu);
    const bool is_sized = tn_fact_is_sized(x) && tn_fact_is_sized(tn_node_input(query->node, 1)) &&
                          (y == NULL || tn_fact_is_sized(y));
    *out_count = 0;
    if (!is_sized) {
        out[(*out_count)++] =
            (tn_variant){.name = "plain", .run = run_gemm, .takes_epilogue = true};
        if (form != TN_CONV_PLAIN_ONLY) {
            out[(*out_count)++] = tn_conv_blocked_variant(form, block, query->cpu, NULL);
        }
        return TN_OK;
    }
    TN_TRY(tn_conv_describe(query->node, query->cpu, &r, err));
    list_plain(&r, out, out_count);
    if (form == TN_CONV_PLAIN_ONLY) return TN_OK;
    tn_conv_describe_blocked(form, block, query->cpu, &r);
    out[(*out_count)++] = tn_conv_blocked_variant(form, block, query->cpu, &r);
    return TN_OK;
}

tn_status tn_conv_bind_epilogue(const tn_bind_context *ctx, size_t rows, size_t cols,
                                tn_conv_record *r) {
    const tn_fact *operands[TN_PROGRAM_MAX_OPERANDS];
    r->has_epilogue = true;
    r->epilogue_row = cols;
    r->first_epilogue_input = ctx->first_epilogue_input;
    r->epilogue_count = ctx->epilogue->operand_count;
    for (uint32_t i = 0; i < r->epilogue_count; i++) {
        operands[i] = tn_node_input(ctx->node, ctx->first_epilogue_input + i);
    }
    const tn_program_bind_query query = {.program = ctx->epilogue,
                                         .output = tn_node_output(ctx->node, 0),
                                         .operands = operands,
                                         .rows = rows,
                                         .cols = cols,
                                         .cpu = ctx->cpu,
                                         .nontemporal = false};
    return tn_program_bind(&query, &r->epilogue, ctx->err);
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    tn_conv_record *r = record;
    TN_TRY(tn_conv_describe(ctx->node, ctx->cpu, r, ctx->err));
    if (ctx->variant->output_layout.block != 0) return tn_conv_blocked_bind(ctx, r);
    if (ctx->epilogue == NULL) return TN_OK;
    return tn_conv_bind_epilogue(ctx, r->batch * r->groups * r->out_channels, r->out_spatial, r);
}

#define CONV_TYPES (TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64))
static const uint32_t types_1[] = {CONV_TYPES};
static const uint32_t types_22[] = {CONV_TYPES | TN_TYPE_BIT(BF16)};

#define CONV_ROW(since, until, types)                                                            \
    {                                                                                            \
        .name = "Conv", .since_version = (since), .until_version = (until), .min_inputs = 2,     \
        .max_inputs = 3, .min_outputs = 1, .flags = TN_OP_FOLDABLE, .input_types = (types),      \
        .input_types_count = 1, .same_type_mask = 7, .affine_weight_input = 1,                   \
        .affine_bias_input = 2, .params_bytes = sizeof(tn_conv_params),                          \
        .record_bytes = sizeof(tn_conv_record), .check = check, .infer = infer,                  \
        .variants = variants, .bind = bind, .pack_size = tn_conv_pack_size, .pack = tn_conv_pack \
    }

static const tn_op_def conv_ops[] = {
    CONV_ROW(1, 21, types_1),
    CONV_ROW(22, 0, types_22),
};

const tn_op_table tn_conv_table = {conv_ops, TN_COUNTOF(conv_ops)};
