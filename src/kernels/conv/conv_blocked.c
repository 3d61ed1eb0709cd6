/* Conv in blocked layout: packed weights, split of the work, and the loops around the kernels.
 *
 * Dense: a task is a band of output pixels and some tiles of output blocks. Inputs with padding are
 * copied into the worker's scratch with their border, a few input blocks at a time, so the inner
 * loop knows no border; without padding the input is read in place. For every output tile the input
 * blocks are walked in chunks whose weights stay in the first cache. Depthwise: a task is some rows
 * of some blocks. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/conv/conv_parts.h"

enum {
    PACK_FORMAT_BASE = 0x2000,
    STEM_MAX_CHANNELS = 4,
    BAND_PIXELS = 192,
    TASK_MACS = 1000 * 1000,
    DEPTHWISE_TASK_MACS = 200 * 1000,
    MIN_TASKS = 8,
    COPY_FLOATS = 64 * 1024,
    MAX_COPY_FLOATS = 256 * 1024,
    DEPTHWISE_BAND_FLOATS = 8 * 1024,
    MAX_BLOCK = 16
};

static size_t blocks_of(size_t channels, size_t block) {
    return (channels + block - 1) / block;
}

tn_conv_form tn_conv_form_of(const tn_node_facts *node, uint32_t block, tn_cpu_features cpu) {
    const tn_conv_params *p = node->params;
    const tn_fact *x = tn_node_input(node, 0);
    const tn_fact *w = tn_node_input(node, 1);
    if (tn_conv_isa_of_block(block, cpu) == NULL || x == NULL || w == NULL) {
        return TN_CONV_PLAIN_ONLY;
    }
    if (w->data == NULL || !w->is_constant || !tn_fact_is_sized(w)) return TN_CONV_PLAIN_ONLY;
    if (x->dtype != TN_DTYPE_F32 || w->dtype != TN_DTYPE_F32) return TN_CONV_PLAIN_ONLY;
    if (x->shape.rank != w->shape.rank || x->shape.rank < 3 || x->shape.rank > 4) {
        return TN_CONV_PLAIN_ONLY;
    }
    const int64_t in = w->shape.dims[1];
    const int64_t out = w->shape.dims[0] / p->group;
    const int64_t lanes = block;
    if (in < 1 || out < 1 || x->shape.dims[1] != in * p->group) return TN_CONV_PLAIN_ONLY;
    for (int32_t i = 2; i < w->shape.rank; i++) {
        if (w->shape.dims[i] < 1) return TN_CONV_PLAIN_ONLY;
    }
    if (p->group > 1 && in == 1 && out == 1) {
        return p->group * 2 > lanes ? TN_CONV_DEPTHWISE : TN_CONV_PLAIN_ONLY;
    }
    if (p->group > 1) {
        return in % lanes == 0 && out % lanes == 0 ? TN_CONV_DENSE : TN_CONV_PLAIN_ONLY;
    }
    if (out * 2 < lanes) return TN_CONV_PLAIN_ONLY;
    return in <= STEM_MAX_CHANNELS ? TN_CONV_STEM : TN_CONV_DENSE;
}

/* Output blocks of a group are dealt to tiles of nearly equal width. */
static size_t tile_start(const tn_conv_blocked *b, size_t tile) {
    return tile * b->out_blocks / b->block_tiles;
}

static void set_window(const tn_window *w, tn_conv_blocked *b) {
    const int32_t x = w->count - 1;
    b->in_w = w->in[x];
    b->out_w = w->out[x];
    b->taps_w = w->kernel[x];
    b->stride_w = w->stride[x];
    b->dilation_w = w->dilation[x];
    b->pad_left = w->pad_begin[x];
    b->in_h = b->out_h = b->taps_h = b->stride_h = b->dilation_h = 1;
    if (x == 0) return;
    b->in_h = w->in[0];
    b->out_h = w->out[0];
    b->taps_h = w->kernel[0];
    b->stride_h = w->stride[0];
    b->dilation_h = w->dilation[0];
    b->pad_top = w->pad_begin[0];
}

static bool needs_border(const tn_conv_blocked *b) {
    const int64_t last_h = (b->out_h - 1) * b->stride_h + (b->taps_h - 1) * b->dilation_h;
    const int64_t last_w = (b->out_w - 1) * b->stride_w + (b->taps_w - 1) * b->dilation_w;
    return b->pad_top != 0 || b->pad_left != 0 || last_h >= b->in_h || last_w >= b->in_w;
}

/* Strips of output rows, for which every window element is copied on its own: scratch grows neither
 * with the width of the image nor with the reach of the window. */
static void split_gather(tn_conv_blocked *b) {
    const size_t out_w = (size_t)b->out_w;
    const size_t pixel_floats = (size_t)(b->taps_h * b->taps_w) * b->lanes;
    const size_t most = tn_size_max(COPY_FLOATS / pixel_floats, 1);
    b->gathers = true;
    b->strip_pixels = blocks_of(out_w, blocks_of(out_w, most));
    b->strips = blocks_of(out_w, b->strip_pixels);
    b->band_pixels = b->strip_pixels;
    b->bands = (size_t)b->out_h * b->strips;
    b->copy_blocks = 1;
    b->scratch_floats = pixel_floats * b->strip_pixels;
}

/* Sizes the padded copy of one input block under `rows` output rows; false when it is too large. */
static bool measure_copy(tn_conv_blocked *b, size_t rows, size_t *out_floats) {
    b->copy_rows = (rows - 1) * (size_t)b->stride_h + (size_t)((b->taps_h - 1) * b->dilation_h) + 1;
    b->copy_width = ((size_t)b->out_w - 1) * (size_t)b->stride_w +
                    (size_t)((b->taps_w - 1) * b->dilation_w) + 1;
    return tn_size_mul(b->copy_rows, b->copy_width, out_floats) &&
           tn_size_mul(*out_floats, b->lanes, out_floats) && *out_floats <= MAX_COPY_FLOATS;
}

/* Rows of a band, and how much of its input is copied at once. */
static void split_copy(tn_conv_blocked *b) {
    const size_t out_w = (size_t)b->out_w;
    size_t rows = tn_size_min(blocks_of(b->band_pixels, out_w), (size_t)b->out_h);
    size_t block_floats = 0;
    while (rows > 1 && !measure_copy(b, rows, &block_floats)) rows /= 2;
    b->bands = blocks_of((size_t)b->out_h, rows);
    const size_t band_rows = blocks_of((size_t)b->out_h, b->bands);
    if (!measure_copy(b, band_rows, &block_floats)) {
        split_gather(b);
        return;
    }
    b->band_pixels = band_rows * out_w;
    b->copy_blocks = tn_size_max(tn_size_min(COPY_FLOATS / block_floats, b->in_blocks), 1);
    b->scratch_floats = block_floats * b->copy_blocks;
}

static void split_dense(const tn_conv_record *r, tn_conv_blocked *b) {
    const size_t pixels = r->out_spatial;
    const size_t taps = r->window_elems;
    const size_t pixel_macs = r->k * r->out_channels;
    b->block_tiles = blocks_of(b->out_blocks, b->isa->tile_blocks);
    b->band_pixels = tn_size_max(BAND_PIXELS, TASK_MACS / pixel_macs);
    b->band_pixels = blocks_of(pixels, blocks_of(pixels, b->band_pixels));
    b->copy_blocks = b->in_blocks;
    b->bands = blocks_of(pixels, b->band_pixels);
    if (b->copies) split_copy(b);
    b->chunk_blocks = tn_size_max(b->isa->k_limit / (taps * b->lanes), 1);
    b->chunk_blocks = blocks_of(b->in_blocks, blocks_of(b->in_blocks, b->chunk_blocks));
    b->tile_groups = 1;
    const size_t bands = r->batch * r->groups * b->bands;
    const size_t macs = pixel_macs * b->band_pixels;
    while (bands * b->tile_groups < MIN_TASKS && b->tile_groups * 2 <= b->block_tiles &&
           macs / b->tile_groups > 4 * (size_t)TASK_MACS) {
        b->tile_groups *= 2;
    }
    b->tasks = bands * b->tile_groups;
}

static void split_depthwise(const tn_conv_record *r, tn_conv_blocked *b) {
    const size_t row_floats = (size_t)b->out_w * b->isa->block;
    b->band_rows =
        tn_size_max(tn_size_min(DEPTHWISE_BAND_FLOATS / row_floats, (size_t)b->out_h), 1);
    b->bands = blocks_of((size_t)b->out_h, b->band_rows);
    const size_t unit_macs = b->band_rows * row_floats * r->window_elems;
    b->units_per_tile = DEPTHWISE_TASK_MACS / unit_macs + 1;
    b->tasks = blocks_of(r->batch * b->out_blocks * b->bands, b->units_per_tile);
}

void tn_conv_describe_blocked(tn_conv_form form, uint32_t block, tn_cpu_features cpu,
                              tn_conv_record *r) {
    tn_conv_blocked *b = &r->blocked;
    memset(b, 0, sizeof *b);
    b->form = form;
    b->isa = tn_conv_isa_of_block(block, cpu);
    set_window(&r->window, b);
    if (form == TN_CONV_DEPTHWISE) {
        b->out_blocks = blocks_of(r->groups, block);
        if (r->batch * r->out_spatial > 0) split_depthwise(r, b);
        return;
    }
    b->lanes = form == TN_CONV_STEM ? r->in_channels : block;
    b->in_blocks = blocks_of(r->in_channels, b->lanes);
    b->last_lanes = r->in_channels - (b->in_blocks - 1) * b->lanes;
    b->out_blocks = blocks_of(r->out_channels, block);
    b->copies = form == TN_CONV_STEM || needs_border(b);
    if (r->batch * r->out_spatial > 0) split_dense(r, b);
}

/* ---- weights ---- */

typedef struct pack_shape {
    size_t block, groups, in, out, taps; /* channels per group */
    size_t lanes, in_blocks, out_blocks;
    size_t block_tiles;
    bool is_depthwise;
} pack_shape;

static void shape_of_pack(const tn_pack_context *ctx, pack_shape *s) {
    const tn_conv_params *p = ctx->node->params;
    const tn_shape *w = &tn_node_input(ctx->node, 1)->shape;
    const uint32_t format = ctx->variant->pack_format - PACK_FORMAT_BASE;
    const tn_conv_form form = format & 3u;
    s->block = format >> 2;
    s->groups = (size_t)p->group;
    s->in = (size_t)w->dims[1];
    s->out = (size_t)(w->dims[0] / p->group);
    s->taps = 1;
    for (int32_t i = 2; i < w->rank; i++) s->taps *= (size_t)w->dims[i];
    s->is_depthwise = form == TN_CONV_DEPTHWISE;
    s->lanes = form == TN_CONV_STEM ? s->in : s->block;
    s->in_blocks = blocks_of(s->in, s->lanes);
    s->out_blocks = blocks_of(s->is_depthwise ? s->groups : s->out, s->block);
    const tn_conv_isa *isa = tn_conv_isa_of_block((uint32_t)s->block, ctx->cpu);
    s->block_tiles = blocks_of(s->out_blocks, isa == NULL ? 1 : isa->tile_blocks);
}

tn_status tn_conv_pack_size(const tn_pack_context *ctx, size_t *out_bytes) {
    pack_shape s;
    size_t floats = 0;
    shape_of_pack(ctx, &s);
    bool fits = tn_size_mul(s.out_blocks * s.block, s.taps, &floats);
    if (!s.is_depthwise) {
        fits = fits && tn_size_mul(floats, s.in_blocks * s.lanes, &floats) &&
               tn_size_mul(floats, s.groups, &floats);
    }
    TN_REQUIRE(fits && tn_size_mul(floats, sizeof(float), out_bytes), ctx->err, TN_OVERFLOW,
               "packed weights of %zu x %zu channels are too large", s.out, s.in);
    return TN_OK;
}

/* Weights of one output tile: [in_blocks][taps][lanes][width]. */
static float *pack_tile(const pack_shape *s, const char *weights, size_t group, size_t first,
                        size_t width, float *to) {
    for (size_t in_block = 0; in_block < s->in_blocks; in_block++) {
        for (size_t tap = 0; tap < s->taps; tap++) {
            for (size_t lane = 0; lane < s->lanes; lane++, to += width) {
                const size_t in = in_block * s->lanes + lane;
                for (size_t i = 0; i < width; i++) {
                    const size_t out = first + i;
                    to[i] = 0;
                    if (out >= s->out || in >= s->in) continue;
                    const size_t from = ((group * s->out + out) * s->in + in) * s->taps + tap;
                    memcpy(&to[i], weights + from * sizeof *to, sizeof *to);
                }
            }
        }
    }
    return to;
}

static void pack_depthwise(const pack_shape *s, const char *weights, float *to) {
    for (size_t block = 0; block < s->out_blocks; block++) {
        for (size_t tap = 0; tap < s->taps; tap++) {
            for (size_t lane = 0; lane < s->block; lane++, to++) {
                const size_t channel = block * s->block + lane;
                *to = 0;
                if (channel >= s->groups) continue;
                memcpy(to, weights + (channel * s->taps + tap) * sizeof *to, sizeof *to);
            }
        }
    }
}

tn_status tn_conv_pack(const tn_pack_context *ctx, void *packed) {
    pack_shape s;
    float *to = packed;
    const char *weights = tn_node_input(ctx->node, 1)->data;
    shape_of_pack(ctx, &s);
    if (s.is_depthwise) {
        pack_depthwise(&s, weights, to);
        return TN_OK;
    }
    for (size_t group = 0; group < s.groups; group++) {
        for (size_t tile = 0; tile < s.block_tiles; tile++) {
            const size_t first = tile * s.out_blocks / s.block_tiles;
            const size_t end = (tile + 1) * s.out_blocks / s.block_tiles;
            to = pack_tile(&s, weights, group, first * s.block, (end - first) * s.block, to);
        }
    }
    return TN_OK;
}

/* ---- running: dense and stem ---- */

/* One task of a dense convolution. */
typedef struct dense_task {
    size_t image, group;
    size_t first_pixel, pixel_count;
    size_t first_tile, end_tile;
} dense_task;

static dense_task task_of(const tn_conv_record *r, size_t index) {
    const tn_conv_blocked *b = &r->blocked;
    dense_task t;
    const size_t part = index % b->tile_groups;
    index /= b->tile_groups;
    const size_t band = index % b->bands;
    index /= b->bands;
    if (b->gathers) {
        const size_t column = band % b->strips * b->strip_pixels;
        t.first_pixel = band / b->strips * (size_t)b->out_w + column;
        t.pixel_count = tn_size_min(b->strip_pixels, (size_t)b->out_w - column);
    } else {
        t.first_pixel = band * b->band_pixels;
        t.pixel_count = tn_size_min(b->band_pixels, r->out_spatial - t.first_pixel);
    }
    t.group = index % r->groups;
    t.image = index / r->groups;
    t.first_tile = part * b->block_tiles / b->tile_groups;
    t.end_tile = (part + 1) * b->block_tiles / b->tile_groups;
    return t;
}

/* One padded row of one input block; `from` is the input row or NULL for a border row. */
static void copy_row(const tn_conv_blocked *b, const float *from, float *to) {
    const size_t lanes = b->lanes;
    if (from == NULL) {
        memset(to, 0, b->copy_width * lanes * sizeof *to);
        return;
    }
    const int64_t width = (int64_t)b->copy_width;
    const int64_t low = tn_i64_min(b->pad_left, width);
    const int64_t high = tn_i64_max(tn_i64_min(b->pad_left + b->in_w, width), low);
    memset(to, 0, (size_t)low * lanes * sizeof *to);
    memcpy(to + (size_t)low * lanes, from, (size_t)(high - low) * lanes * sizeof *to);
    memset(to + (size_t)high * lanes, 0, (size_t)(width - high) * lanes * sizeof *to);
}

/* The same from plain channels, `channel_step` floats apart: pixels become interleaved. */
static void interleave_row(const tn_conv_blocked *b, const float *from, size_t channel_step,
                           float *to) {
    const size_t lanes = b->lanes;
    memset(to, 0, b->copy_width * lanes * sizeof *to);
    if (from == NULL) return;
    const int64_t width = (int64_t)b->copy_width;
    const int64_t high = tn_i64_min(b->pad_left + b->in_w, width);
    for (size_t lane = 0; lane < lanes; lane++) {
        const float *channel = from + lane * channel_step;
        for (int64_t i = b->pad_left; i < high; i++) {
            to[(size_t)i * lanes + lane] = channel[i - b->pad_left];
        }
    }
}

static void copy_blocks(const tn_conv_record *r, const float *x, const dense_task *t, size_t first,
                        size_t count, float *to) {
    const tn_conv_blocked *b = &r->blocked;
    const int64_t top = (int64_t)t->first_pixel / b->out_w * b->stride_h - b->pad_top;
    const size_t row_floats = b->copy_width * b->lanes;
    for (size_t block = first; block < first + count; block++) {
        for (size_t row = 0; row < b->copy_rows; row++, to += row_floats) {
            const int64_t in_row = top + (int64_t)row;
            const bool is_inside = in_row >= 0 && in_row < b->in_h;
            if (b->form == TN_CONV_STEM) {
                interleave_row(b, is_inside ? x + in_row * b->in_w : NULL, r->in_spatial, to);
            } else {
                const float *plane = x + block * r->in_spatial * b->lanes;
                const size_t offset = (size_t)(in_row * b->in_w) * b->lanes;
                copy_row(b, is_inside ? plane + offset : NULL, to);
            }
        }
    }
}

static void gather_pixel(const tn_conv_record *r, const float *x, int64_t row, int64_t column,
                         float *to) {
    const tn_conv_blocked *b = &r->blocked;
    if (row < 0 || row >= b->in_h || column < 0 || column >= b->in_w) {
        memset(to, 0, b->lanes * sizeof *to);
        return;
    }
    const size_t pixel = (size_t)(row * b->in_w + column);
    if (b->form == TN_CONV_STEM) {
        for (size_t lane = 0; lane < b->lanes; lane++) to[lane] = x[lane * r->in_spatial + pixel];
    } else {
        memcpy(to, x + pixel * b->lanes, b->lanes * sizeof *to);
    }
}

/* What each window element sees of the strip: [taps_h][taps_w][strip_pixels][lanes]. */
static void gather_block(const tn_conv_record *r, const float *x, const dense_task *t, float *to) {
    const tn_conv_blocked *b = &r->blocked;
    const int64_t top = (int64_t)t->first_pixel / b->out_w * b->stride_h - b->pad_top;
    const int64_t left = (int64_t)t->first_pixel % b->out_w * b->stride_w - b->pad_left;
    for (int64_t tap_h = 0; tap_h < b->taps_h; tap_h++) {
        for (int64_t tap_w = 0; tap_w < b->taps_w; tap_w++) {
            for (size_t i = 0; i < t->pixel_count; i++) {
                gather_pixel(r, x, top + tap_h * b->dilation_h,
                             left + tap_w * b->dilation_w + (int64_t)i * b->stride_w,
                             to + i * b->lanes);
            }
            to += b->strip_pixels * b->lanes;
        }
    }
}

static void aim_gathered_panel(const tn_conv_record *r, const dense_task *t, tn_conv_panel *panel) {
    const tn_conv_blocked *b = &r->blocked;
    panel->out_w = panel->pixel_count = t->pixel_count;
    panel->pixel_step = panel->lanes = b->lanes;
    panel->taps_h = (size_t)b->taps_h;
    panel->taps_w = (size_t)b->taps_w;
    panel->tap_w_step = b->strip_pixels * b->lanes;
    panel->tap_h_step = panel->taps_w * panel->tap_w_step;
    panel->block_step = panel->taps_h * panel->tap_h_step;
    panel->y_block_step = r->out_spatial * b->isa->block;
}

/* Steps through the input, copied or in place. */
static void aim_panel(const tn_conv_record *r, const dense_task *t, tn_conv_panel *panel) {
    const tn_conv_blocked *b = &r->blocked;
    if (b->gathers) {
        aim_gathered_panel(r, t, panel);
        return;
    }
    const size_t width = b->copies ? b->copy_width : (size_t)b->in_w;
    const size_t height = b->copies ? b->copy_rows : (size_t)b->in_h;
    panel->out_w = (size_t)b->out_w;
    panel->first_pixel = b->copies ? 0 : t->first_pixel;
    panel->pixel_count = t->pixel_count;
    panel->pixel_step = (size_t)b->stride_w * b->lanes;
    panel->row_step = (size_t)b->stride_h * width * b->lanes;
    panel->block_step = width * height * b->lanes;
    panel->taps_h = (size_t)b->taps_h;
    panel->taps_w = (size_t)b->taps_w;
    panel->tap_h_step = (size_t)b->dilation_h * width * b->lanes;
    panel->tap_w_step = (size_t)b->dilation_w * b->lanes;
    panel->lanes = b->lanes;
    panel->y_block_step = r->out_spatial * b->isa->block;
    if (b->form == TN_CONV_STEM && b->dilation_w == 1) {
        panel->lanes = b->lanes * (size_t)b->taps_w; /* a window row is contiguous */
        panel->taps_w = 1;
    }
}

/* `count` biases from channel `first` of `channels` on, with zeros behind the last one. */
static void load_bias(const float *from, size_t channels, size_t first, size_t count, float *bias) {
    for (size_t i = 0; i < count; i++) {
        bias[i] = from != NULL && first + i < channels ? from[first + i] : 0.0F;
    }
}

static const float *bias_of(const tn_conv_record *r, const tn_kernel_context *ctx, size_t channel) {
    return r->has_bias ? (const float *)tn_kernel_in(ctx, 2) + channel : NULL;
}

/* One output tile over input blocks [first, first + count), which begin at panel->x. */
static void run_tile(const tn_conv_record *r, const float *w, size_t tile_blocks, size_t first,
                     size_t count, tn_conv_panel *panel) {
    const tn_conv_blocked *b = &r->blocked;
    const float *x = panel->x;
    const size_t weight_step = r->window_elems * b->lanes * tile_blocks * b->isa->block;
    for (size_t done = 0; done < count; done += panel->blocks) {
        panel->blocks = tn_size_min(b->chunk_blocks, count - done);
        const bool is_last = first + done + panel->blocks == b->in_blocks;
        panel->last_lanes = is_last && b->form == TN_CONV_DENSE ? b->last_lanes : panel->lanes;
        panel->x = x + done * panel->block_step;
        panel->w = w + (first + done) * weight_step;
        panel->adds = first + done > 0;
        b->isa->panel[tile_blocks - 1](panel);
    }
    panel->x = x;
}

/* The epilogue over rows [row, row + rows) of blocks; lanes behind the last channel stay zeros. */
static void finish_blocks(const tn_conv_record *r, const tn_kernel_context *ctx, float *y,
                          size_t row, size_t rows, size_t first_pixel, size_t pixel_count) {
    const tn_conv_blocked *b = &r->blocked;
    const size_t block = b->isa->block;
    const size_t channels = b->form == TN_CONV_DEPTHWISE ? r->groups : r->out_channels;
    const size_t used = channels % block;
    if (!r->has_epilogue) return;
    tn_conv_apply_epilogue(r, ctx, y, row, rows, first_pixel * block, pixel_count * block);
    if (used == 0 || (row + rows) % b->out_blocks != 0) return;
    float *last = y + ((row + rows - 1) * r->out_spatial + first_pixel) * block;
    for (size_t pixel = 0; pixel < pixel_count; pixel++) {
        memset(last + pixel * block + used, 0, (block - used) * sizeof *last);
    }
}

static void run_dense_task(const tn_conv_record *r, const tn_kernel_context *ctx, size_t index,
                           float *scratch) {
    const tn_conv_blocked *b = &r->blocked;
    const dense_task t = task_of(r, index);
    const size_t block = b->isa->block;
    const size_t group_weights = b->out_blocks * block * b->in_blocks * b->lanes * r->window_elems;
    const float *w = (const float *)tn_kernel_in(ctx, 1) + t.group * group_weights;
    const size_t plane = t.image * r->groups + t.group;
    const float *x =
        (const float *)tn_kernel_in(ctx, 0) + plane * b->in_blocks * b->lanes * r->in_spatial;
    float *y_base = tn_kernel_out(ctx, 0);
    float bias[TN_CONV_MAX_TILE_BLOCKS * MAX_BLOCK];
    tn_conv_panel panel = {.bias = bias};
    aim_panel(r, &t, &panel);
    for (size_t first = 0; first < b->in_blocks; first += b->copy_blocks) {
        const size_t count = tn_size_min(b->copy_blocks, b->in_blocks - first);
        panel.x = b->copies ? scratch : x + first * panel.block_step;
        if (b->gathers) {
            gather_block(r, x + first * r->in_spatial * b->lanes, &t, scratch);
        } else if (b->copies) {
            copy_blocks(r, x, &t, first, count, scratch);
        }
        for (size_t tile = t.first_tile; tile < t.end_tile; tile++) {
            const size_t start = tile_start(b, tile);
            const size_t blocks = tile_start(b, tile + 1) - start;
            const size_t row = plane * b->out_blocks + start;
            load_bias(bias_of(r, ctx, t.group * r->out_channels), r->out_channels, start * block,
                      blocks * block, bias);
            panel.y = y_base + row * panel.y_block_step + t.first_pixel * block;
            run_tile(r, w + start * block * b->in_blocks * b->lanes * r->window_elems, blocks,
                     first, count, &panel);
            if (first + count < b->in_blocks) continue;
            finish_blocks(r, ctx, y_base, row, blocks, t.first_pixel, t.pixel_count);
        }
    }
}

static tn_status run_dense(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                           uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    if (r->batch * r->out_spatial == 0) return TN_OK;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        run_dense_task(r, ctx, tile, tn_kernel_scratch(ctx, worker));
    }
    return TN_OK;
}

/* ---- running: depthwise ---- */

static void run_depthwise_unit(const tn_conv_record *r, const tn_kernel_context *ctx, size_t unit) {
    const tn_conv_blocked *b = &r->blocked;
    const size_t block = b->isa->block;
    const size_t plane = unit / b->bands;
    const size_t channel_block = plane % b->out_blocks;
    const int64_t first = (int64_t)(unit % b->bands * b->band_rows);
    const int64_t end = tn_i64_min(first + (int64_t)b->band_rows, b->out_h);
    float bias[MAX_BLOCK];
    float *y = tn_kernel_out(ctx, 0);
    load_bias(bias_of(r, ctx, 0), r->groups, channel_block * block, block, bias);
    tn_conv_row row = {
        .x = (const float *)tn_kernel_in(ctx, 0) + plane * r->in_spatial * block,
        .in_h = b->in_h,
        .in_w = b->in_w,
        .out_w = b->out_w,
        .left = -b->pad_left,
        .stride_w = b->stride_w,
        .taps_h = b->taps_h,
        .taps_w = b->taps_w,
        .dilation_h = b->dilation_h,
        .dilation_w = b->dilation_w,
        .w = (const float *)tn_kernel_in(ctx, 1) + channel_block * r->window_elems * block,
        .bias = bias};
    for (int64_t h = first; h < end; h++) {
        row.top = h * b->stride_h - b->pad_top;
        row.y = y + (plane * r->out_spatial + (size_t)(h * b->out_w)) * block;
        b->isa->depthwise_row(&row);
    }
    finish_blocks(r, ctx, y, plane, 1, (size_t)(first * b->out_w),
                  (size_t)((end - first) * b->out_w));
}

static tn_status run_depthwise(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                               uint32_t tile1, uint32_t worker) {
    const tn_conv_record *r = record;
    const tn_conv_blocked *b = &r->blocked;
    const size_t units = r->batch * b->out_blocks * b->bands;
    const size_t end = tn_size_min(tile1 * b->units_per_tile, units);
    (void)worker;
    for (size_t unit = tile0 * b->units_per_tile; unit < end; unit++) {
        run_depthwise_unit(r, ctx, unit);
    }
    return TN_OK;
}

/* ---- the contract ---- */

tn_variant tn_conv_blocked_variant(tn_conv_form form, uint32_t block, tn_cpu_features cpu,
                                   const tn_conv_record *r) {
    const tn_conv_isa *isa = tn_conv_isa_of_block(block, cpu);
    tn_variant v = {.name = isa->dense_name,
                    .run = run_dense,
                    .input_layout = {(uint16_t)block},
                    .output_layout = {(uint16_t)block},
                    .layout_input_mask = 1,
                    .pack_format = (uint16_t)(PACK_FORMAT_BASE + (block << 2) + (uint32_t)form),
                    .pack_input = 1,
                    .takes_epilogue = true,
                    .rewrite_class = TN_REWRITE_REASSOCIATED};
    if (form == TN_CONV_STEM) {
        v.name = isa->stem_name;
        v.input_layout.block = 0;
        v.layout_input_mask = 0;
    }
    if (form == TN_CONV_DEPTHWISE) {
        v.name = isa->depthwise_name;
        v.run = run_depthwise;
    }
    if (r == NULL) return v;
    const double macs = (double)r->k * (double)r->out_channels * (double)r->groups *
                        (double)r->out_spatial * (double)r->batch;
    v.tile_counts[0] = (uint32_t)tn_size_max(r->blocked.tasks, 1);
    v.worker_scratch_bytes = r->blocked.scratch_floats * sizeof(float);
    v.cost_ns = macs / (form == TN_CONV_DEPTHWISE ? 10.0 : isa->macs_per_ns);
    return v;
}

tn_status tn_conv_blocked_bind(const tn_bind_context *ctx, tn_conv_record *r) {
    const uint32_t block = ctx->variant->output_layout.block;
    const tn_conv_form form = (ctx->variant->pack_format - PACK_FORMAT_BASE) & 3u;
    tn_conv_describe_blocked(form, block, ctx->cpu, r);
    if (ctx->epilogue == NULL) return TN_OK;
    const size_t blocks =
        form == TN_CONV_DEPTHWISE ? r->blocked.out_blocks : r->groups * r->blocked.out_blocks;
    return tn_conv_bind_epilogue(ctx, r->batch * blocks, r->out_spatial * block, r);
}
