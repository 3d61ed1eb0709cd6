/* Matrix product micro-kernels for AVX-512: 8 rows of 48 columns, 24 of 32 registers hold sums.
 * Eight row pointers fit the integer registers, which fourteen would not. */
#include <immintrin.h>

#define GEMM_VEC __m512
#define GEMM_LANES 16
#define GEMM_MR 8
#define GEMM_NV 3
#define GEMM_ZERO() _mm512_setzero_ps()
#define GEMM_LOAD(p) _mm512_loadu_ps(p)
#define GEMM_BROADCAST(p) _mm512_set1_ps(*(p))
#define GEMM_FMA(a, b, c) _mm512_fmadd_ps((a), (b), (c))
#define GEMM_ADD(a, b) _mm512_add_ps((a), (b))
#define GEMM_STORE(p, v) _mm512_storeu_ps((p), (v))
#define GEMM_LOAD_PART(p, count) _mm512_maskz_loadu_ps(gemm_part_mask(count), (p))
#define GEMM_STORE_PART(p, v, count) _mm512_mask_storeu_ps((p), gemm_part_mask(count), (v))

/* The first `count` lanes. */
static inline __mmask16 gemm_part_mask(unsigned long count) {
    return (__mmask16)((1u << count) - 1u);
}

#define GEMM_REDUCE(v) _mm512_reduce_add_ps(v)

#include "kernels/common/gemm_template.h"

#define GEMM_DEFINE_COLUMN(vecs) \
    GEMM_DEFINE_TILE(1, vecs)    \
    GEMM_DEFINE_TILE(2, vecs)    \
    GEMM_DEFINE_TILE(3, vecs)    \
    GEMM_DEFINE_TILE(4, vecs)    \
    GEMM_DEFINE_TILE(5, vecs)    \
    GEMM_DEFINE_TILE(6, vecs)    \
    GEMM_DEFINE_TILE(7, vecs)    \
    GEMM_DEFINE_TILE(8, vecs)

GEMM_DEFINE_COLUMN(1)
GEMM_DEFINE_COLUMN(2)
GEMM_DEFINE_COLUMN(3)

static const gemm_tile_fn tiles[GEMM_NV][GEMM_MR] = {
    {gemm_tile_1x1, gemm_tile_2x1, gemm_tile_3x1, gemm_tile_4x1, gemm_tile_5x1, gemm_tile_6x1,
     gemm_tile_7x1, gemm_tile_8x1},
    {gemm_tile_1x2, gemm_tile_2x2, gemm_tile_3x2, gemm_tile_4x2, gemm_tile_5x2, gemm_tile_6x2,
     gemm_tile_7x2, gemm_tile_8x2},
    {gemm_tile_1x3, gemm_tile_2x3, gemm_tile_3x3, gemm_tile_4x3, gemm_tile_5x3, gemm_tile_6x3,
     gemm_tile_7x3, gemm_tile_8x3},
};

static void run_panel(const tn_gemm_panel *panel) {
    gemm_panel_run(panel, tiles);
}

static void run_dots(const tn_gemm_panel *panel) {
    gemm_dots_run(panel);
}

static void run_row(const tn_gemm_panel *panel) {
    gemm_row_run(panel);
}

const tn_gemm_isa tn_gemm_avx512 = {.name = "avx512",
                                    .id = 2,
                                    .mr = GEMM_MR,
                                    .nr = (uint32_t)GEMM_NR,
                                    .kc = 192,
                                    .macs_per_ns = 80.0,
                                    .panel = run_panel,
                                    .dots = run_dots,
                                    .row = run_row,
                                    .row_cols = GEMM_ROW_VECS * GEMM_LANES};
