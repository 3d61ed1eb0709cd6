/* Depthwise convolution over plain rows, written once over a few vector macros:
 *   CONV_VEC, CONV_LANES, CONV_LOAD(p), CONV_STORE(p, v), CONV_SET1(x), CONV_FMA(a, b, c) =
 *   a * b + c.
 * Four vectors of output columns stay in registers while the window is walked. */
#ifndef TN_KERNELS_CONV_ROWS_TEMPLATE_H
#define TN_KERNELS_CONV_ROWS_TEMPLATE_H

#include <string.h>

#include "kernels/conv/conv_kernels.h"

#define CONV_UNROLL _Pragma("GCC unroll 16")
#define CONV_INLINE static inline __attribute__((always_inline))

/* Floats from column 0 of a row to what output column 0 sees through window column `tap`. */
CONV_INLINE size_t conv_tap_offset(const tn_conv_plain_rows *p, size_t tap) {
    const size_t column = tap * p->dilation_w;
    return column % p->stride_w * p->phase_step + column / p->stride_w;
}

CONV_INLINE void conv_plain_columns(const tn_conv_plain_rows *p, const float *x, float *y,
                                    size_t count, const size_t taps_h, const size_t taps_w,
                                    const size_t vecs) {
    CONV_VEC sums[4];
    CONV_UNROLL
    for (size_t v = 0; v < vecs; v++) sums[v] = CONV_SET1(p->bias);
    for (size_t tap_h = 0; tap_h < taps_h; tap_h++) {
        const float *row = x + tap_h * p->dilation_h * p->row_step;
        for (size_t tap_w = 0; tap_w < taps_w; tap_w++) {
            const float *from = row + conv_tap_offset(p, tap_w);
            const CONV_VEC weight = CONV_SET1(p->w[tap_h * taps_w + tap_w]);
            CONV_UNROLL
            for (size_t v = 0; v < vecs; v++) {
                sums[v] = CONV_FMA(weight, CONV_LOAD(from + v * CONV_LANES), sums[v]);
            }
        }
    }
    if (count == vecs * CONV_LANES) {
        CONV_UNROLL
        for (size_t v = 0; v < vecs; v++) CONV_STORE(y + v * CONV_LANES, sums[v]);
        return;
    }
    float rest[4 * CONV_LANES];
    CONV_UNROLL
    for (size_t v = 0; v < vecs; v++) CONV_STORE(rest + v * CONV_LANES, sums[v]);
    memcpy(y, rest, count * sizeof *y);
}

CONV_INLINE void conv_plain_run(const tn_conv_plain_rows *p, const size_t taps_h,
                                const size_t taps_w) {
    for (size_t row = 0; row < p->rows; row++) {
        const float *x = p->x + row * p->stride_h * p->row_step;
        float *y = p->y + row * p->out_w;
        size_t col = 0;
        for (; col + 3 * CONV_LANES < p->out_w; col += 4 * CONV_LANES) {
            const size_t left = p->out_w - col;
            conv_plain_columns(p, x + col, y + col, left < 4 * CONV_LANES ? left : 4 * CONV_LANES,
                               taps_h, taps_w, 4);
        }
        for (; col < p->out_w; col += CONV_LANES) {
            const size_t left = p->out_w - col;
            conv_plain_columns(p, x + col, y + col, left < CONV_LANES ? left : CONV_LANES, taps_h,
                               taps_w, 1);
        }
    }
}

static void conv_plain_rows(const tn_conv_plain_rows *p) {
    if (p->taps_h == 3 && p->taps_w == 3) {
        conv_plain_run(p, 3, 3);
    } else if (p->taps_h == 5 && p->taps_w == 5) {
        conv_plain_run(p, 5, 5);
    } else {
        conv_plain_run(p, p->taps_h, p->taps_w);
    }
}

#endif
