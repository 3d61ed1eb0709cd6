/* Matrix product micro-kernels for any processor: vectors of four floats that every compiler of
 * ours knows how to map. */
#include <stddef.h>
#include <string.h>

typedef float gemm_vec4 __attribute__((vector_size(16)));

static inline gemm_vec4 gemm_vec4_load(const float *p) {
    gemm_vec4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline gemm_vec4 gemm_vec4_broadcast(const float *p) {
    return (gemm_vec4){*p, *p, *p, *p};
}

static inline void gemm_vec4_store(float *p, gemm_vec4 v) {
    memcpy(p, &v, sizeof v);
}

static inline gemm_vec4 gemm_vec4_load_part(const float *p, size_t count) {
    gemm_vec4 v = {0};
    memcpy(&v, p, count * sizeof *p);
    return v;
}

static inline void gemm_vec4_store_part(float *p, gemm_vec4 v, size_t count) {
    memcpy(p, &v, count * sizeof *p);
}

#define GEMM_VEC gemm_vec4
#define GEMM_LANES 4
#define GEMM_MR 4
#define GEMM_NV 2
#define GEMM_ZERO() ((gemm_vec4){0})
#define GEMM_LOAD(p) gemm_vec4_load(p)
#define GEMM_BROADCAST(p) gemm_vec4_broadcast(p)
#define GEMM_FMA(a, b, c) ((a) * (b) + (c))
#define GEMM_ADD(a, b) ((a) + (b))
#define GEMM_STORE(p, v) gemm_vec4_store((p), (v))
#define GEMM_LOAD_PART(p, count) gemm_vec4_load_part((p), (count))
#define GEMM_STORE_PART(p, v, count) gemm_vec4_store_part((p), (v), (count))

#define GEMM_REDUCE(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))

#include "kernels/common/gemm_template.h"

GEMM_DEFINE_TILE(1, 1)
GEMM_DEFINE_TILE(2, 1)
GEMM_DEFINE_TILE(3, 1)
GEMM_DEFINE_TILE(4, 1)
GEMM_DEFINE_TILE(1, 2)
GEMM_DEFINE_TILE(2, 2)
GEMM_DEFINE_TILE(3, 2)
GEMM_DEFINE_TILE(4, 2)

static const gemm_tile_fn tiles[GEMM_NV][GEMM_MR] = {
    {gemm_tile_1x1, gemm_tile_2x1, gemm_tile_3x1, gemm_tile_4x1},
    {gemm_tile_1x2, gemm_tile_2x2, gemm_tile_3x2, gemm_tile_4x2},
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

const tn_gemm_isa tn_gemm_portable = {.name = "portable",
                                      .id = 0,
                                      .mr = GEMM_MR,
                                      .nr = (uint32_t)GEMM_NR,
                                      .kc = 384,
                                      .macs_per_ns = 5.0,
                                      .panel = run_panel,
                                      .dots = run_dots,
                                      .row = run_row,
                                      .row_cols = GEMM_ROW_VECS * GEMM_LANES};
