/* Convolution kernels for AVX-512: blocks of 16 channels, up to 24 sums in 32 registers. */
#include <immintrin.h>

#define CONV_VEC __m512
#define CONV_LANES 16
#define CONV_LOAD(p) _mm512_loadu_ps(p)
#define CONV_STORE(p, v) _mm512_storeu_ps((p), (v))
#define CONV_SET1(x) _mm512_set1_ps(x)
#define CONV_FMA(a, b, c) _mm512_fmadd_ps((a), (b), (c))
#define CONV_ADD(a, b) _mm512_add_ps((a), (b))
#define CONV_MAX(a, b) conv_max((a), (b))

/* The instruction answers its second operand when either is NaN. */
static inline __m512 conv_max(__m512 a, __m512 b) {
    const __mmask16 is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_max_ps(a, b), is_nan, a);
}

#include "kernels/conv/conv_blocked_template.h"

#define CONV_DEFINE_TILES(blocks) \
    CONV_DEFINE_TILE(1, blocks)   \
    CONV_DEFINE_TILE(2, blocks)   \
    CONV_DEFINE_TILE(3, blocks)   \
    CONV_DEFINE_TILE(4, blocks)   \
    CONV_DEFINE_TILE(5, blocks)   \
    CONV_DEFINE_TILE(6, blocks)

CONV_DEFINE_TILES(1)
CONV_DEFINE_TILES(2)
CONV_DEFINE_TILES(3)
CONV_DEFINE_TILES(4)
CONV_DEFINE_TILE(7, 1)
CONV_DEFINE_TILE(8, 1)
CONV_DEFINE_TILE(7, 2)
CONV_DEFINE_TILE(8, 2)
CONV_DEFINE_TILE(7, 3)
CONV_DEFINE_TILE(8, 3)

static const conv_tile_fn tiles[TN_CONV_MAX_TILE_BLOCKS][CONV_MAX_PIXELS] = {
    {conv_tile_1x1, conv_tile_2x1, conv_tile_3x1, conv_tile_4x1, conv_tile_5x1, conv_tile_6x1,
     conv_tile_7x1, conv_tile_8x1},
    {conv_tile_1x2, conv_tile_2x2, conv_tile_3x2, conv_tile_4x2, conv_tile_5x2, conv_tile_6x2,
     conv_tile_7x2, conv_tile_8x2},
    {conv_tile_1x3, conv_tile_2x3, conv_tile_3x3, conv_tile_4x3, conv_tile_5x3, conv_tile_6x3,
     conv_tile_7x3, conv_tile_8x3},
    {conv_tile_1x4, conv_tile_2x4, conv_tile_3x4, conv_tile_4x4, conv_tile_5x4, conv_tile_6x4},
};

static void panel_1(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[0], 8);
}

static void panel_2(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[1], 8);
}

static void panel_3(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[2], 8);
}

static void panel_4(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[3], 6);
}

const tn_conv_isa tn_conv_avx512 = {.dense_name = "blocked by 16, avx512",
                                    .stem_name = "few channels to blocks of 16, avx512",
                                    .depthwise_name = "depthwise avx512",
                                    .max_name = "blocked by 16, avx512",
                                    .average_name = "blocked by 16, avx512",
                                    .block = CONV_LANES,
                                    .tile_blocks = 4,
                                    .k_limit = 160,
                                    .macs_per_ns = 80.0,
                                    .panel = {panel_1, panel_2, panel_3, panel_4},
                                    .depthwise_row = conv_depthwise_row,
                                    .max_row = conv_max_row,
                                    .average_row = conv_average_row,
                                    .plain_rows = conv_plain_rows,
                                    .plain_lanes = CONV_LANES};
