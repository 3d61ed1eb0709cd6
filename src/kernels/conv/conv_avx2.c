/* Convolution kernels for AVX2 and FMA: blocks of 8 channels, up to 12 sums in 16 registers. */
#include <immintrin.h>

#define CONV_VEC __m256
#define CONV_LANES 8
#define CONV_LOAD(p) _mm256_loadu_ps(p)
#define CONV_STORE(p, v) _mm256_storeu_ps((p), (v))
#define CONV_SET1(x) _mm256_set1_ps(x)
#define CONV_FMA(a, b, c) _mm256_fmadd_ps((a), (b), (c))
#define CONV_ADD(a, b) _mm256_add_ps((a), (b))
#define CONV_MAX(a, b) conv_max((a), (b))

/* The instruction answers its second operand when either is NaN. */
static inline __m256 conv_max(__m256 a, __m256 b) {
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
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
CONV_DEFINE_TILE(7, 1)
CONV_DEFINE_TILE(8, 1)

static const conv_tile_fn tiles[2][CONV_MAX_PIXELS] = {
    {conv_tile_1x1, conv_tile_2x1, conv_tile_3x1, conv_tile_4x1, conv_tile_5x1, conv_tile_6x1,
     conv_tile_7x1, conv_tile_8x1},
    {conv_tile_1x2, conv_tile_2x2, conv_tile_3x2, conv_tile_4x2, conv_tile_5x2, conv_tile_6x2},
};

static void panel_1(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[0], 8);
}

static void panel_2(const tn_conv_panel *panel) {
    conv_panel_run(panel, tiles[1], 6);
}

const tn_conv_isa tn_conv_avx2 = {.dense_name = "blocked by 8, avx2",
                                  .stem_name = "few channels to blocks of 8, avx2",
                                  .depthwise_name = "depthwise avx2",
                                  .max_name = "blocked by 8, avx2",
                                  .average_name = "blocked by 8, avx2",
                                  .block = CONV_LANES,
                                  .tile_blocks = 2,
                                  .k_limit = 320,
                                  .macs_per_ns = 40.0,
                                  .panel = {panel_1, panel_2},
                                  .depthwise_row = conv_depthwise_row,
                                  .max_row = conv_max_row,
                                  .average_row = conv_average_row,
                                  .plain_rows = conv_plain_rows,
                                  .plain_lanes = CONV_LANES};
