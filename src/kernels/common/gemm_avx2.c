/* Matrix product micro-kernels for AVX2 and FMA: 6 rows of 16 columns, 12 of 16 registers hold
 * sums. */
#include <immintrin.h>

#define GEMM_VEC __m256
#define GEMM_LANES 8
#define GEMM_MR 6
#define GEMM_NV 2
#define GEMM_ZERO() _mm256_setzero_ps()
#define GEMM_LOAD(p) _mm256_loadu_ps(p)
#define GEMM_BROADCAST(p) _mm256_broadcast_ss(p)
#define GEMM_FMA(a, b, c) _mm256_fmadd_ps((a), (b), (c))
#define GEMM_ADD(a, b) _mm256_add_ps((a), (b))
#define GEMM_STORE(p, v) _mm256_storeu_ps((p), (v))
#define GEMM_LOAD_PART(p, count) _mm256_maskload_ps((p), gemm_part_mask(count))
#define GEMM_STORE_PART(p, v, count) _mm256_maskstore_ps((p), gemm_part_mask(count), (v))

/* The first `count` lanes. */
static inline __m256i gemm_part_mask(unsigned long count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline float gemm_reduce(__m256 v) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

#define GEMM_REDUCE(v) gemm_reduce(v)

#include "kernels/common/gemm_template.h"

#define GEMM_DEFINE_COLUMN(vecs) \
    GEMM_DEFINE_TILE(1, vecs)    \
    GEMM_DEFINE_TILE(2, vecs)    \
    GEMM_DEFINE_TILE(3, vecs)    \
    GEMM_DEFINE_TILE(4, vecs)    \
    GEMM_DEFINE_TILE(5, vecs)    \
    GEMM_DEFINE_TILE(6, vecs)

GEMM_DEFINE_COLUMN(1)
GEMM_DEFINE_COLUMN(2)

static const gemm_tile_fn tiles[GEMM_NV][GEMM_MR] = {
    {gemm_tile_1x1, gemm_tile_2x1, gemm_tile_3x1, gemm_tile_4x1, gemm_tile_5x1, gemm_tile_6x1},
    {gemm_tile_1x2, gemm_tile_2x2, gemm_tile_3x2, gemm_tile_4x2, gemm_tile_5x2, gemm_tile_6x2},
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

const tn_gemm_isa tn_gemm_avx2 = {.name = "avx2",
                                  .id = 1,
                                  .mr = GEMM_MR,
                                  .nr = (uint32_t)GEMM_NR,
                                  .kc = 384,
                                  .macs_per_ns = 40.0,
                                  .panel = run_panel,
                                  .dots = run_dots,
                                  .row = run_row,
                                  .row_cols = GEMM_ROW_VECS * GEMM_LANES};
