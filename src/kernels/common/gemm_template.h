/* Micro-kernels of the f32 matrix product, written once over a few vector macros:
 *   GEMM_VEC, GEMM_LANES, GEMM_MR (rows), GEMM_NV (vectors per panel row), GEMM_ZERO(),
 *   GEMM_LOAD(p), GEMM_BROADCAST(p), GEMM_FMA(a, b, c) = a * b + c, GEMM_ADD(a, b), GEMM_STORE(p,
 * v), GEMM_LOAD_PART(p, count), GEMM_STORE_PART(p, v, count). A micro-tile of rows x vectors lives
 * in registers while k runs; each pair of counts is a function of its own, so the loops below
 * unroll whole. */
#ifndef TN_KERNELS_GEMM_TEMPLATE_H
#define TN_KERNELS_GEMM_TEMPLATE_H

#include "kernels/common/gemm.h"

#define GEMM_UNROLL _Pragma("GCC unroll 16")
#define GEMM_INLINE static inline __attribute__((always_inline))
#define GEMM_NR ((size_t)GEMM_LANES * GEMM_NV)
#define GEMM_MAX_SPLIT 4 /* independent sums over k when the tile alone cannot hide latency */

typedef struct gemm_tile {
    GEMM_VEC sum[GEMM_MR][GEMM_NV];
} gemm_tile;

GEMM_INLINE void gemm_tile_zero(gemm_tile *tile, const size_t rows, const size_t vecs) {
    GEMM_UNROLL
    for (size_t r = 0; r < rows; r++) {
        GEMM_UNROLL
        for (size_t v = 0; v < vecs; v++) tile->sum[r][v] = GEMM_ZERO();
    }
}

GEMM_INLINE void gemm_tile_step(gemm_tile *tile, const float *b_row, const float *const *a,
                                size_t k, const size_t rows, const size_t vecs) {
    GEMM_VEC b[GEMM_NV];
    GEMM_UNROLL
    for (size_t v = 0; v < vecs; v++) b[v] = GEMM_LOAD(b_row + v * GEMM_LANES);
    GEMM_UNROLL
    for (size_t r = 0; r < rows; r++) {
        const GEMM_VEC x = GEMM_BROADCAST(a[r] + k);
        GEMM_UNROLL
        for (size_t v = 0; v < vecs; v++) tile->sum[r][v] = GEMM_FMA(x, b[v], tile->sum[r][v]);
    }
}

GEMM_INLINE void gemm_tile_merge(gemm_tile *into, const gemm_tile *from, const size_t rows,
                                 const size_t vecs) {
    GEMM_UNROLL
    for (size_t r = 0; r < rows; r++) {
        GEMM_UNROLL
        for (size_t v = 0; v < vecs; v++) {
            into->sum[r][v] = GEMM_ADD(into->sum[r][v], from->sum[r][v]);
        }
    }
}

GEMM_INLINE void gemm_tile_store(const gemm_tile *tile, const tn_gemm_panel *p, size_t row0,
                                 const size_t rows, const size_t vecs) {
    const size_t last_count = p->cols - (vecs - 1) * GEMM_LANES;
    GEMM_UNROLL
    for (size_t r = 0; r < rows; r++) {
        float *c = p->c + (row0 + r) * p->c_row_stride;
        GEMM_UNROLL
        for (size_t v = 0; v < vecs; v++) {
            float *at = c + v * GEMM_LANES;
            GEMM_VEC sum = tile->sum[r][v];
            if (v + 1 < vecs || last_count == GEMM_LANES) {
                if (p->adds) sum = GEMM_ADD(sum, GEMM_LOAD(at));
                GEMM_STORE(at, sum);
            } else {
                if (p->adds) sum = GEMM_ADD(sum, GEMM_LOAD_PART(at, last_count));
                GEMM_STORE_PART(at, sum, last_count);
            }
        }
    }
}

/* `split` sums over interleaved k run side by side: one row of a panel would wait for latency. */
GEMM_INLINE void gemm_tile_run(const tn_gemm_panel *p, size_t row0, const size_t rows,
                               const size_t vecs, const size_t split) {
    gemm_tile tiles[GEMM_MAX_SPLIT];
    const float *a[GEMM_MR];
    GEMM_UNROLL
    for (size_t r = 0; r < rows; r++) a[r] = p->a + (row0 + r) * p->a_row_stride;
    GEMM_UNROLL
    for (size_t s = 0; s < split; s++) gemm_tile_zero(&tiles[s], rows, vecs);
    const size_t b_stride = p->b_row_stride;
    const float *b = p->b;
    size_t k = 0;
    for (; k + split <= p->k; k += split, b += split * b_stride) {
        GEMM_UNROLL
        for (size_t s = 0; s < split; s++) {
            gemm_tile_step(&tiles[s], b + s * b_stride, a, k + s, rows, vecs);
        }
    }
    for (; k < p->k; k++, b += b_stride) gemm_tile_step(&tiles[0], b, a, k, rows, vecs);
    GEMM_UNROLL
    for (size_t s = 1; s < split; s++) gemm_tile_merge(&tiles[0], &tiles[s], rows, vecs);
    gemm_tile_store(&tiles[0], p, row0, rows, vecs);
}

typedef void (*gemm_tile_fn)(const tn_gemm_panel *p, size_t row0);

#define GEMM_DEFINE_TILE(rows, vecs)                                              \
    static void gemm_tile_##rows##x##vecs(const tn_gemm_panel *p, size_t row0) {  \
        gemm_tile_run(p, row0, rows, vecs,                                        \
                      (rows) * (vecs) <= 3 ? 4 : ((rows) * (vecs) <= 6 ? 2 : 1)); \
    }

/* Whole strips of GEMM_MR rows, then one strip of what is left. */
GEMM_INLINE void gemm_panel_run(const tn_gemm_panel *p,
                                const gemm_tile_fn tiles[GEMM_NV][GEMM_MR]) {
    const gemm_tile_fn *by_rows = tiles[(p->cols + GEMM_LANES - 1) / GEMM_LANES - 1];
    size_t row = 0;
    for (; row + GEMM_MR <= p->rows; row += GEMM_MR) by_rows[GEMM_MR - 1](p, row);
    if (row < p->rows) by_rows[p->rows - row - 1](p, row);
}

/* `count` columns of a right side whose columns are contiguous, against one row: two sums for each
 * column, so that latency is hidden. */
GEMM_INLINE void gemm_dot(const float *a, const float *b, size_t b_stride, size_t k, float *out,
                          const size_t count) {
    GEMM_VEC sums[4][2];
    GEMM_UNROLL
    for (size_t j = 0; j < count; j++) sums[j][0] = sums[j][1] = GEMM_ZERO();
    size_t i = 0;
    for (; i + 2 * GEMM_LANES <= k; i += 2 * GEMM_LANES) {
        const GEMM_VEC a0 = GEMM_LOAD(a + i);
        const GEMM_VEC a1 = GEMM_LOAD(a + i + GEMM_LANES);
        GEMM_UNROLL
        for (size_t j = 0; j < count; j++) {
            const float *from = b + j * b_stride + i;
            sums[j][0] = GEMM_FMA(a0, GEMM_LOAD(from), sums[j][0]);
            sums[j][1] = GEMM_FMA(a1, GEMM_LOAD(from + GEMM_LANES), sums[j][1]);
        }
    }
    for (; i < k; i += GEMM_LANES) {
        const size_t left = k - i < GEMM_LANES ? k - i : GEMM_LANES;
        const GEMM_VEC a0 = GEMM_LOAD_PART(a + i, left);
        GEMM_UNROLL
        for (size_t j = 0; j < count; j++) {
            sums[j][0] = GEMM_FMA(a0, GEMM_LOAD_PART(b + j * b_stride + i, left), sums[j][0]);
        }
    }
    GEMM_UNROLL
    for (size_t j = 0; j < count; j++) out[j] = GEMM_REDUCE(GEMM_ADD(sums[j][0], sums[j][1]));
}

GEMM_INLINE void gemm_dots_run(const tn_gemm_panel *p) {
    for (size_t r = 0; r < p->rows; r++) {
        const float *a = p->a + r * p->a_row_stride;
        float *c = p->c + r * p->c_row_stride;
        size_t j = 0;
        for (; j < p->cols; j += j + 4 <= p->cols ? 4 : 1) {
            const float *b = p->b + j * p->b_row_stride;
            float out[4];
            const size_t count = j + 4 <= p->cols ? 4 : 1;
            if (count == 4) {
                gemm_dot(a, b, p->b_row_stride, p->k, out, 4);
            } else {
                gemm_dot(a, b, p->b_row_stride, p->k, out, 1);
            }
            for (size_t i = 0; i < count; i++) c[j + i] = p->adds ? c[j + i] + out[i] : out[i];
        }
    }
}

#define GEMM_ROW_VECS 8

/* One row against a right side in place: eight vectors of columns at a time, so that each row of b
 * is read in long runs. p->cols is a multiple of GEMM_ROW_VECS * GEMM_LANES. */
GEMM_INLINE void gemm_row_run(const tn_gemm_panel *p) {
    for (size_t j = 0; j < p->cols; j += GEMM_ROW_VECS * GEMM_LANES) {
        const float *b = p->b + j;
        GEMM_VEC sums[GEMM_ROW_VECS];
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_ROW_VECS; v++) sums[v] = GEMM_ZERO();
        for (size_t i = 0; i < p->k; i++, b += p->b_row_stride) {
            const GEMM_VEC a = GEMM_BROADCAST(p->a + i);
            GEMM_UNROLL
            for (size_t v = 0; v < GEMM_ROW_VECS; v++) {
                sums[v] = GEMM_FMA(a, GEMM_LOAD(b + v * GEMM_LANES), sums[v]);
            }
        }
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_ROW_VECS; v++) {
            float *c = p->c + j + v * GEMM_LANES;
            GEMM_STORE(c, p->adds ? GEMM_ADD(sums[v], GEMM_LOAD(c)) : sums[v]);
        }
    }
}

#endif
