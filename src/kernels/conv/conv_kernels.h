/* The inner loops of f32 convolution, once per instruction set.
 *
 * Blocked values lie as [N, blocks, H, W, lanes]: one vector holds the channels of a block at one
 * pixel. A dense convolution keeps a tile of pixels x output blocks in registers while it walks
 * segments of input elements that are contiguous for every pixel: the lanes of a block at one
 * window element, or a whole window row of an interleaved image with few channels. */
#ifndef TN_KERNELS_CONV_KERNELS_H
#define TN_KERNELS_CONV_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_features.h"

#define TN_CONV_MAX_TILE_BLOCKS 4

/* One tile of output blocks over a run of pixels and a range of input blocks. Steps count floats.
 */
typedef struct tn_conv_panel {
    const float *x; /* what pixel 0 of row 0 sees through window element 0 */
    size_t pixel_step, row_step;
    size_t out_w;
    size_t first_pixel, pixel_count; /* counted row by row */
    size_t blocks, block_step;       /* input blocks */
    size_t taps_h, tap_h_step;
    size_t taps_w, tap_w_step;
    size_t lanes;      /* of a segment */
    size_t last_lanes; /* of the segments of the last block: 1 .. lanes */
    const float *w;    /* [blocks][taps_h][taps_w][lanes][output lanes of the tile] */
    const float *bias; /* [output lanes of the tile]; read unless `adds` */
    float *y;          /* of first_pixel */
    size_t y_block_step;
    bool adds; /* y += product; else y = bias + product */
} tn_conv_panel;

/* One block, depthwise or pooling, of one output row. */
typedef struct tn_conv_row {
    const float *x; /* of row 0, column 0 of the input block; only existing elements are read */
    int64_t in_h, in_w, out_w;
    int64_t top;  /* input row of window row 0 */
    int64_t left; /* input column of window column 0 of output column 0 */
    int64_t stride_w;
    int64_t taps_h, taps_w;
    int64_t dilation_h, dilation_w;
    const float *w;                /* depthwise: [taps_h][taps_w][lanes] */
    const float *bias;             /* depthwise: [lanes] */
    bool includes_pad;             /* average: the divisor counts the declared padding */
    int64_t pad_bottom, pad_right; /* declared padding behind the input */
    float *y;                      /* [out_w][lanes] */
} tn_conv_row;

/* Depthwise in plain layout: rows of a zero-padded copy of the input whose columns are sorted by
 * their remainder modulo the stride, so that every load is contiguous. */
typedef struct tn_conv_plain_rows {
    const float *x;
    size_t row_step;   /* between input rows */
    size_t phase_step; /* between the remainders of a row */
    size_t rows, out_w;
    size_t stride_h, stride_w;
    size_t taps_h, taps_w;
    size_t dilation_h, dilation_w;
    const float *w; /* [taps_h][taps_w] */
    float bias;
    float *y; /* [rows][out_w] */
} tn_conv_plain_rows;

/* One instruction set. Static and immutable. */
typedef struct tn_conv_isa {
    const char *dense_name;
    const char *stem_name;
    const char *depthwise_name;
    const char *max_name;
    const char *average_name;
    uint32_t block;       /* lanes of a block; 0: no blocked kernels */
    uint32_t tile_blocks; /* most output blocks of a tile */
    uint32_t k_limit;     /* weights of a tile stay in the first cache up to this many rows */
    double macs_per_ns;
    void (*panel[TN_CONV_MAX_TILE_BLOCKS])(const tn_conv_panel *panel); /* by blocks - 1 */
    void (*depthwise_row)(const tn_conv_row *row);
    void (*max_row)(const tn_conv_row *row);
    void (*average_row)(const tn_conv_row *row);
    void (*plain_rows)(const tn_conv_plain_rows *rows);
    uint32_t plain_lanes; /* plain_rows reads its rows in whole vectors of this many floats */
} tn_conv_isa;

/* Lends the fastest one that `cpu` has; never NULL. */
const tn_conv_isa *tn_conv_isa_best(tn_cpu_features cpu);

/* Lends the one whose blocks have `block` lanes, or NULL when `cpu` lacks it. */
const tn_conv_isa *tn_conv_isa_of_block(uint32_t block, tn_cpu_features cpu);

extern const tn_conv_isa tn_conv_portable;
extern const tn_conv_isa tn_conv_avx2;
extern const tn_conv_isa tn_conv_avx512;

#endif
