/* The f32 matrix product that MatMul, Gemm, the recurrent operators and convolutions share: packed
 * right-hand sides, cache blocks, one micro-kernel per instruction set.
 *
 * The right-hand side is read as panels of `nr` columns: panel p holds [k][nr] floats, columns
 * beyond n are zeros. The left-hand side is read in place when its rows are contiguous, else block
 * by block through the caller's scratch. Nothing here allocates. The order of every sum depends on
 * the instruction set and the shape only, so equal tasks give equal bits. */
#ifndef TN_KERNELS_GEMM_H
#define TN_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_features.h"

/* Rows of the left side against one panel, or part of its k range. */
typedef struct tn_gemm_panel {
    const float *a;      /* [rows][k], rows a_row_stride apart */
    size_t a_row_stride; /* floats */
    const float *b;      /* [k][cols rounded up to whole vectors], rows b_row_stride apart */
    size_t b_row_stride;
    float *c; /* [rows][cols], rows c_row_stride apart */
    size_t c_row_stride;
    size_t rows;
    size_t cols; /* 1 .. nr */
    size_t k;
    bool adds; /* c += product; else c = product */
} tn_gemm_panel;

/* One instruction set. Static and immutable. */
typedef struct tn_gemm_isa {
    const char *name;
    uint32_t id; /* 0, 1, 2 in order of speed: part of packing formats */
    uint32_t mr; /* rows of a micro-tile */
    uint32_t nr; /* columns of a panel */
    uint32_t kc; /* k of a cache block */
    double macs_per_ns;
    void (*panel)(const tn_gemm_panel *panel);
    /* The same product for few rows and a right side whose columns are contiguous: column j begins
     * at b + j * b_row_stride; any number of columns. */
    void (*dots)(const tn_gemm_panel *panel);
    /* The same product for one row and a right side whose rows are contiguous; `cols` is a multiple
     * of row_cols. */
    void (*row)(const tn_gemm_panel *panel);
    uint32_t row_cols;
} tn_gemm_isa;

#define TN_GEMM_ISA_COUNT 3

/* Lends the instruction set numbered `id`, or NULL when `cpu` or this build lacks it. */
const tn_gemm_isa *tn_gemm_isa_get(uint32_t id, tn_cpu_features cpu);

/* Lends the fastest one that `cpu` has; never NULL. */
const tn_gemm_isa *tn_gemm_isa_best(tn_cpu_features cpu);

/* c [m, n] = (adds ? c : 0) + a [m, k] * b [k, n]. Strides count floats. */
typedef struct tn_gemm_task {
    size_t m, n, k;
    const float *a;
    size_t a_row_stride, a_k_stride;
    const float *b; /* panels when b_is_packed; then the strides are not read */
    size_t
        b_panel_rows; /* packed: rows of a panel in memory, >= k; a part of k starts at b + k0*nr */
    size_t b_k_stride, b_col_stride;
    float *c;
    size_t c_row_stride;
    bool b_is_packed;
    bool adds;
} tn_gemm_task;

/* Bytes of the packed form of b [k, n]; false on overflow. */
bool tn_gemm_packed_bytes(const tn_gemm_isa *isa, size_t n, size_t k, size_t *out_bytes);

/* Packs b [k, n], element (i, j) at b + i * k_stride + j * col_stride, maybe unaligned, into
 * panels. `packed` must be aligned to 4. */
void tn_gemm_pack(const tn_gemm_isa *isa, const void *b, size_t k_stride, size_t col_stride,
                  size_t n, size_t k, float *packed);

/* Scratch that tn_gemm_run needs for tasks of at most this shape; a multiple of 64. */
size_t tn_gemm_scratch_bytes(const tn_gemm_isa *isa, size_t m, size_t n, size_t k, bool packs_a,
                             bool packs_b);

/* Whether tn_gemm_run copies the left side into scratch for these strides. */
bool tn_gemm_packs_a(size_t a_row_stride, size_t a_k_stride, size_t m, size_t n);

/* Does the task on the calling thread. `scratch`: tn_gemm_scratch_bytes, 64-byte aligned; may be
 * NULL when that is 0. k = 0 gives zeros. Threads: any, with disjoint c and scratch. */
void tn_gemm_run(const tn_gemm_isa *isa, const tn_gemm_task *task, void *scratch);

extern const tn_gemm_isa tn_gemm_portable;
extern const tn_gemm_isa tn_gemm_avx2;
extern const tn_gemm_isa tn_gemm_avx512;

#endif
