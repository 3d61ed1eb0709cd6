/* Convolution and pooling in blocked layout, written once over the macros of
 * conv_rows_template.h and CONV_ADD(a, b), CONV_MAX(a, b): the greater one, NaN when either is.
 * Each pair of tile counts is a function of its own, so that the loops below unroll whole. */
#ifndef TN_KERNELS_CONV_BLOCKED_TEMPLATE_H
#define TN_KERNELS_CONV_BLOCKED_TEMPLATE_H

#include <math.h>

#include "kernels/conv/conv_rows_template.h"

#define CONV_MAX_PIXELS 8

typedef struct conv_sums {
    CONV_VEC at[CONV_MAX_PIXELS][TN_CONV_MAX_TILE_BLOCKS];
} conv_sums;

CONV_INLINE const float *conv_segment(conv_sums *sums, const float *const *x, size_t offset,
                                      const float *w, size_t lanes, const size_t pixels,
                                      const size_t blocks) {
    for (size_t lane = 0; lane < lanes; lane++, w += blocks * CONV_LANES) {
        CONV_VEC weights[TN_CONV_MAX_TILE_BLOCKS];
        CONV_UNROLL
        for (size_t b = 0; b < blocks; b++) weights[b] = CONV_LOAD(w + b * CONV_LANES);
        CONV_UNROLL
        for (size_t p = 0; p < pixels; p++) {
            const CONV_VEC value = CONV_SET1(x[p][offset + lane]);
            CONV_UNROLL
            for (size_t b = 0; b < blocks; b++) {
                sums->at[p][b] = CONV_FMA(value, weights[b], sums->at[p][b]);
            }
        }
    }
    return w;
}

CONV_INLINE void conv_sums_start(conv_sums *sums, const tn_conv_panel *panel, const float *y,
                                 const size_t pixels, const size_t blocks) {
    CONV_UNROLL
    for (size_t p = 0; p < pixels; p++) {
        CONV_UNROLL
        for (size_t b = 0; b < blocks; b++) {
            sums->at[p][b] = panel->adds ? CONV_LOAD(y + b * panel->y_block_step + p * CONV_LANES)
                                         : CONV_LOAD(panel->bias + b * CONV_LANES);
        }
    }
}

CONV_INLINE void conv_tile_run(const tn_conv_panel *panel, const float *const *at, float *y,
                               const size_t pixels, const size_t blocks) {
    conv_sums sums;
    const float *x[CONV_MAX_PIXELS];
    const float *w = panel->w;
    CONV_UNROLL
    for (size_t p = 0; p < pixels; p++) x[p] = at[p];
    conv_sums_start(&sums, panel, y, pixels, blocks);
    for (size_t block = 0; block < panel->blocks; block++) {
        const size_t lanes = block + 1 == panel->blocks ? panel->last_lanes : panel->lanes;
        const size_t skipped = (panel->lanes - lanes) * blocks * CONV_LANES;
        for (size_t tap_h = 0; tap_h < panel->taps_h; tap_h++) {
            size_t offset = block * panel->block_step + tap_h * panel->tap_h_step;
            for (size_t tap_w = 0; tap_w < panel->taps_w; tap_w++) {
                if (lanes == CONV_LANES) {
                    w = conv_segment(&sums, x, offset, w, CONV_LANES, pixels, blocks);
                } else {
                    w = conv_segment(&sums, x, offset, w, lanes, pixels, blocks) + skipped;
                }
                offset += panel->tap_w_step;
            }
        }
    }
    CONV_UNROLL
    for (size_t p = 0; p < pixels; p++) {
        CONV_UNROLL
        for (size_t b = 0; b < blocks; b++) {
            CONV_STORE(y + b * panel->y_block_step + p * CONV_LANES, sums.at[p][b]);
        }
    }
}

typedef void (*conv_tile_fn)(const tn_conv_panel *panel, const float *const *at, float *y);

#define CONV_DEFINE_TILE(pixels, blocks)                                                          \
    static void conv_tile_##pixels##x##blocks(const tn_conv_panel *panel, const float *const *at, \
                                              float *y) {                                         \
        conv_tile_run(panel, at, y, pixels, blocks);                                              \
    }

/* The run of pixels in tiles of nearly equal size; tiles may reach across rows. */
CONV_INLINE void conv_panel_run(const tn_conv_panel *panel, const conv_tile_fn *by_pixels,
                                size_t max_pixels) {
    const size_t tiles = (panel->pixel_count + max_pixels - 1) / max_pixels;
    size_t column = panel->first_pixel % panel->out_w;
    const float *row = panel->x + panel->first_pixel / panel->out_w * panel->row_step;
    float *y = panel->y;
    for (size_t t = 0; t < tiles; t++) {
        const size_t count = (t + 1) * panel->pixel_count / tiles - t * panel->pixel_count / tiles;
        const float *at[CONV_MAX_PIXELS];
        for (size_t p = 0; p < count; p++) {
            at[p] = row + column * panel->pixel_step;
            if (++column == panel->out_w) {
                column = 0;
                row += panel->row_step;
            }
        }
        by_pixels[count - 1](panel, at, y);
        y += count * CONV_LANES;
    }
}

/* Window elements along one axis that lie in [low, high), when element 0 lies at `start`. */
CONV_INLINE void conv_clip(int64_t start, int64_t dilation, int64_t taps, int64_t low, int64_t high,
                           int64_t *first, int64_t *end) {
    int64_t begin = 0;
    int64_t stop = taps;
    while (begin < taps && start + begin * dilation < low) begin++;
    while (stop > begin && start + (stop - 1) * dilation >= high) stop--;
    *first = begin;
    *end = stop;
}

typedef enum conv_row_kind { CONV_ROW_DEPTHWISE, CONV_ROW_MAX, CONV_ROW_AVERAGE } conv_row_kind;

typedef struct conv_row_range {
    int64_t first_h, end_h, first_w, end_w;
} conv_row_range;

/* `count` neighbouring output columns that see the same part of the window. */
CONV_INLINE void conv_row_pixels(const tn_conv_row *r, int64_t column, conv_row_range range,
                                 float divisor, const conv_row_kind kind, const int64_t count) {
    CONV_VEC sums[CONV_MAX_PIXELS];
    const int64_t left = column * r->stride_w + r->left;
    const int64_t step = r->stride_w * CONV_LANES;
    CONV_UNROLL
    for (int64_t i = 0; i < count; i++) {
        sums[i] = kind == CONV_ROW_DEPTHWISE ? CONV_LOAD(r->bias)
                                             : CONV_SET1(kind == CONV_ROW_MAX ? -INFINITY : 0.0F);
    }
    for (int64_t tap_h = range.first_h; tap_h < range.end_h; tap_h++) {
        const float *row = r->x + (r->top + tap_h * r->dilation_h) * r->in_w * CONV_LANES;
        for (int64_t tap_w = range.first_w; tap_w < range.end_w; tap_w++) {
            const float *x = row + (left + tap_w * r->dilation_w) * CONV_LANES;
            const CONV_VEC weight = kind == CONV_ROW_DEPTHWISE
                                        ? CONV_LOAD(r->w + (tap_h * r->taps_w + tap_w) * CONV_LANES)
                                        : CONV_SET1(0.0F);
            CONV_UNROLL
            for (int64_t i = 0; i < count; i++) {
                const CONV_VEC value = CONV_LOAD(x + i * step);
                if (kind == CONV_ROW_DEPTHWISE) sums[i] = CONV_FMA(value, weight, sums[i]);
                if (kind == CONV_ROW_MAX) sums[i] = CONV_MAX(sums[i], value);
                if (kind == CONV_ROW_AVERAGE) sums[i] = CONV_ADD(sums[i], value);
            }
        }
    }
    CONV_UNROLL
    for (int64_t i = 0; i < count; i++) {
        if (kind == CONV_ROW_AVERAGE) sums[i] = sums[i] / CONV_SET1(divisor);
        CONV_STORE(r->y + (column + i) * CONV_LANES, sums[i]);
    }
}

/* Window elements that an average divides by. */
CONV_INLINE float conv_divisor(const tn_conv_row *r, int64_t left, conv_row_range range) {
    if (r->includes_pad) {
        conv_clip(r->top, r->dilation_h, r->taps_h, INT64_MIN, r->in_h + r->pad_bottom,
                  &range.first_h, &range.end_h);
        conv_clip(left, r->dilation_w, r->taps_w, INT64_MIN, r->in_w + r->pad_right, &range.first_w,
                  &range.end_w);
    }
    const int64_t count = (range.end_h - range.first_h) * (range.end_w - range.first_w);
    return count == 0 ? 1.0F : (float)count;
}

CONV_INLINE bool conv_sees_all(const tn_conv_row *r, int64_t column) {
    const int64_t left = column * r->stride_w + r->left;
    return left >= 0 && left + (r->taps_w - 1) * r->dilation_w < r->in_w;
}

CONV_INLINE void conv_row_run(const tn_conv_row *r, const conv_row_kind kind) {
    conv_row_range range;
    conv_clip(r->top, r->dilation_h, r->taps_h, 0, r->in_h, &range.first_h, &range.end_h);
    int64_t column = 0;
    while (column < r->out_w) {
        const int64_t left = column * r->stride_w + r->left;
        conv_clip(left, r->dilation_w, r->taps_w, 0, r->in_w, &range.first_w, &range.end_w);
        const float divisor = kind == CONV_ROW_AVERAGE ? conv_divisor(r, left, range) : 1.0F;
        if (!conv_sees_all(r, column)) {
            conv_row_pixels(r, column, range, divisor, kind, 1);
            column++;
            continue;
        }
        for (; column + 8 <= r->out_w && conv_sees_all(r, column + 7); column += 8) {
            conv_row_pixels(r, column, range, divisor, kind, 8);
        }
        for (; column + 4 <= r->out_w && conv_sees_all(r, column + 3); column += 4) {
            conv_row_pixels(r, column, range, divisor, kind, 4);
        }
        for (; column < r->out_w && conv_sees_all(r, column); column++) {
            conv_row_pixels(r, column, range, divisor, kind, 1);
        }
    }
}

static void conv_depthwise_row(const tn_conv_row *r) {
    conv_row_run(r, CONV_ROW_DEPTHWISE);
}

static void conv_max_row(const tn_conv_row *r) {
    conv_row_run(r, CONV_ROW_MAX);
}

static void conv_average_row(const tn_conv_row *r) {
    conv_row_run(r, CONV_ROW_AVERAGE);
}

#endif
