/* What the layouts of Conv share: parameters, the record and its epilogue. */
#ifndef TN_KERNELS_CONV_PARTS_H
#define TN_KERNELS_CONV_PARTS_H

#include "kernels/common/gemm.h"
#include "kernels/common/window.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/elementwise/program_run.h"

typedef struct tn_conv_params {
    tn_window_params window;
    int64_t group;
} tn_conv_params;

/* How a convolution lies in blocked layout. */
typedef enum tn_conv_form {
    TN_CONV_PLAIN_ONLY,
    TN_CONV_DENSE, /* blocked to blocked, each group a whole number of blocks */
    TN_CONV_STEM,  /* few plain channels to blocks */
    TN_CONV_DEPTHWISE
} tn_conv_form;

/* Blocked forms: sizes along height and width (height 1 for one spatial axis) and the split of the
 * work. Steps count floats. */
typedef struct tn_conv_blocked {
    tn_conv_form form;
    const tn_conv_isa *isa;
    int64_t in_h, in_w, out_h, out_w;
    int64_t taps_h, taps_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t pad_top, pad_left;
    bool copies;                 /* the tile's input is copied, padded, into scratch */
    bool gathers;                /* copied window element by window element, for a strip of a row */
    size_t strips, strip_pixels; /* gathers: per output row; output pixels of one */
    size_t lanes;                /* of an input element group: block, or the stem's channels */
    size_t in_blocks;            /* per group */
    size_t last_lanes;           /* channels in the last of them */
    size_t out_blocks;           /* per group */
    size_t block_tiles;          /* output tiles of a group */
    size_t tile_groups;          /* parts that the output tiles of a group are dealt into */
    size_t band_pixels, bands;   /* dense: output pixels of a task; whole rows when copying */
    size_t band_rows;            /* depthwise */
    size_t units_per_tile;       /* depthwise: bands of planes done by one task */
    size_t copy_rows, copy_width, copy_blocks;
    size_t chunk_blocks; /* input blocks whose weights stay cached */
    size_t tasks;
    size_t scratch_floats;
} tn_conv_blocked;

typedef struct tn_conv_record {
    tn_window window;
    const tn_gemm_isa *isa;
    const tn_conv_isa *kernels;
    tn_dtype dtype;
    size_t batch, groups;
    size_t in_channels, out_channels; /* per group */
    size_t in_spatial, out_spatial, window_elems;
    size_t k;              /* in_channels * window_elems */
    size_t tile_positions; /* multiple of nr */
    size_t tile_rows;      /* output channels of a tile */
    size_t position_tiles, row_tiles;
    size_t tile_channels; /* depthwise and reference: channels of a tile */
    size_t band_rows, bands, units_per_tile, phase_width; /* depthwise by padded rows */
    bool is_pointwise; /* 1x1, stride 1, no padding: a line is the input itself */
    bool has_bias, has_epilogue;
    uint32_t first_epilogue_input, epilogue_count;
    size_t epilogue_row; /* elements of a row of the output as the epilogue sees it */
    tn_program_bound epilogue;
    tn_conv_blocked blocked;
} tn_conv_record;

/* Sizes and plain tiles for sized facts. */
tn_status tn_conv_describe(const tn_node_facts *node, tn_cpu_features cpu, tn_conv_record *r,
                           tn_error *err);

/* Binds the epilogue over an output of rows x cols elements in physical order. */
tn_status tn_conv_bind_epilogue(const tn_bind_context *ctx, size_t rows, size_t cols,
                                tn_conv_record *r);

/* Applies it to `rows` x `cols` elements of `y`, the base of the whole output. */
void tn_conv_apply_epilogue(const tn_conv_record *r, const tn_kernel_context *ctx, float *y,
                            size_t row0, size_t rows, size_t col0, size_t cols);

/* conv_blocked.c. The form depends on types, channels and weights alone, so the structural plan and
 * every sized one agree on it. */
tn_conv_form tn_conv_form_of(const tn_node_facts *node, uint32_t block, tn_cpu_features cpu);

/* Fills in r->blocked of a described record. */
void tn_conv_describe_blocked(tn_conv_form form, uint32_t block, tn_cpu_features cpu,
                              tn_conv_record *r);

/* The blocked variant of `form`; sizes only when `r` is not NULL. */
tn_variant tn_conv_blocked_variant(tn_conv_form form, uint32_t block, tn_cpu_features cpu,
                                   const tn_conv_record *r);

tn_status tn_conv_blocked_bind(const tn_bind_context *ctx, tn_conv_record *r);
tn_status tn_conv_pack_size(const tn_pack_context *ctx, size_t *out_bytes);
tn_status tn_conv_pack(const tn_pack_context *ctx, void *packed);

#endif
