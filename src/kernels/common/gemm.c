/* The blocked driver of the f32 matrix product. For each block of k, the columns of the right side
 * stay in the second cache and one panel in the first, while the rows of the left side pass by. It
 * knows nothing of operators, batches or threads: callers cut their work into tasks. */
#include "kernels/common/gemm.h"

#include <string.h>

#include "base/checked_size.h"

/* Columns and rows of one cache block: 256 columns of 384 floats are 384 KiB. */
enum { BLOCK_COLS = 288, BLOCK_ROWS = 192, A_PAD = 16 };

/* Rows a multiple of this many floats apart fall into few cache sets, so they are copied. */
/* Up to this many rows the right side is read in place where its panels are whole: a copy would
 * cost more than it saves. */
enum { IN_PLACE_ROWS = 12, DOT_ROWS = 4 };

enum { ALIASING_STRIDE = 512, COPY_PAYS_COLS = 128 };

bool tn_gemm_packed_bytes(const tn_gemm_isa *isa, size_t n, size_t k, size_t *out_bytes) {
    size_t cols;
    if (!tn_size_add(n, isa->nr - 1, &cols)) return false;
    cols = cols / isa->nr * isa->nr;
    return tn_size_mul(cols, k, &cols) && tn_size_mul(cols, sizeof(float), out_bytes);
}

/* One panel of `cols` columns; strides in floats, source maybe unaligned. */
static void pack_panel(size_t nr, const char *b, size_t k_stride, size_t col_stride, size_t cols,
                       size_t k, float *packed) {
    if (col_stride == 1) {
        for (size_t i = 0; i < k; i++) {
            memcpy(packed + i * nr, b + i * k_stride * sizeof(float), cols * sizeof(float));
            for (size_t j = cols; j < nr; j++) packed[i * nr + j] = 0.0F;
        }
        return;
    }
    for (size_t j = 0; j < cols; j++) {
        const char *column = b + j * col_stride * sizeof(float);
        for (size_t i = 0; i < k; i++) {
            memcpy(&packed[i * nr + j], column + i * k_stride * sizeof(float), sizeof(float));
        }
    }
    for (size_t j = cols; j < nr; j++) {
        for (size_t i = 0; i < k; i++) packed[i * nr + j] = 0.0F;
    }
}

void tn_gemm_pack(const tn_gemm_isa *isa, const void *b, size_t k_stride, size_t col_stride,
                  size_t n, size_t k, float *packed) {
    const size_t nr = isa->nr;
    for (size_t j = 0; j < n; j += nr) {
        const char *from = (const char *)b + j * col_stride * sizeof(float);
        pack_panel(nr, from, k_stride, col_stride, tn_size_min(nr, n - j), k, packed + j * k);
    }
}

bool tn_gemm_packs_a(size_t a_row_stride, size_t a_k_stride, size_t m, size_t n) {
    if (a_k_stride != 1) return true;
    return m > 4 && n >= COPY_PAYS_COLS && a_row_stride % ALIASING_STRIDE == 0;
}

/* k is cut into equal blocks of at most about kc, so that no short block is left over. */
static size_t k_block(const tn_gemm_isa *isa, size_t k) {
    const size_t count = (k + isa->kc / 2) / isa->kc;
    if (count <= 1) return k;
    return (k + count - 1) / count;
}

static size_t block_cols(const tn_gemm_isa *isa) {
    return BLOCK_COLS / isa->nr * isa->nr;
}

size_t tn_gemm_scratch_bytes(const tn_gemm_isa *isa, size_t m, size_t n, size_t k, bool packs_a,
                             bool packs_b) {
    /* not k_block(k): a smaller k may make a longer block */
    const size_t kb = tn_size_min(k, isa->kc + isa->kc / 2);
    const size_t rows = tn_size_min(m, BLOCK_ROWS);
    const size_t cols = tn_size_min((n + isa->nr - 1) / isa->nr * isa->nr, block_cols(isa));
    size_t floats = 0;
    if (packs_a) floats += tn_align_up(rows * (kb + A_PAD), 16);
    if (packs_b) floats += cols * kb;
    return tn_align_up(floats * sizeof(float), 64);
}

typedef struct gemm_block {
    const tn_gemm_isa *isa;
    const tn_gemm_task *task;
    float *a_scratch;
    float *b_scratch;
    size_t kb;
    bool packs_a;
    bool reads_b_in_place; /* all but a last panel that is not whole */
} gemm_block;

/* Copies a [rows, k] from (row0, k0) into rows kb + A_PAD apart. */
static void pack_a(const gemm_block *block, size_t row0, size_t rows, size_t k0, size_t k) {
    const tn_gemm_task *task = block->task;
    const size_t stride = block->kb + A_PAD;
    if (task->a_k_stride == 1) {
        for (size_t i = 0; i < rows; i++) {
            memcpy(block->a_scratch + i * stride, task->a + (row0 + i) * task->a_row_stride + k0,
                   k * sizeof(float));
        }
        return;
    }
    for (size_t p = 0; p < k; p++) {
        const float *column = task->a + row0 * task->a_row_stride + (k0 + p) * task->a_k_stride;
        for (size_t i = 0; i < rows; i++) {
            block->a_scratch[i * stride + p] = column[i * task->a_row_stride];
        }
    }
}

/* Rows [row0, row0 + rows) against columns [col0, col0 + cols) of one k block. */
static void run_rows(const gemm_block *block, size_t row0, size_t rows, size_t col0, size_t cols,
                     size_t k0, size_t k) {
    const tn_gemm_task *task = block->task;
    const size_t nr = block->isa->nr;
    if (block->packs_a) pack_a(block, row0, rows, k0, k);
    for (size_t j = 0; j < cols; j += nr) {
        const size_t panel_cols = tn_size_min(nr, cols - j);
        const bool in_place = block->reads_b_in_place && panel_cols == nr;
        const float *b = block->b_scratch;
        if (task->b_is_packed) {
            b = task->b + (col0 + j) * task->b_panel_rows + k0 * nr;
        } else if (in_place) {
            b = task->b + k0 * task->b_k_stride + col0 + j;
        } else if (!block->reads_b_in_place) {
            b += j * k;
        }
        const tn_gemm_panel panel = {
            .a = block->packs_a ? block->a_scratch : task->a + row0 * task->a_row_stride + k0,
            .a_row_stride = block->packs_a ? block->kb + A_PAD : task->a_row_stride,
            .b = b,
            .b_row_stride = in_place ? task->b_k_stride : nr,
            .c = task->c + row0 * task->c_row_stride + col0 + j,
            .c_row_stride = task->c_row_stride,
            .rows = rows,
            .cols = panel_cols,
            .k = k,
            .adds = task->adds || k0 > 0};
        block->isa->panel(&panel);
    }
}

/* Copies columns [col0, col0 + cols) of a k block, or only those that cannot be read in place. */
static void pack_b(const gemm_block *block, size_t col0, size_t cols, size_t k0, size_t k) {
    const tn_gemm_task *task = block->task;
    const size_t skip = block->reads_b_in_place ? cols / block->isa->nr * block->isa->nr : 0;
    if (skip == cols) return;
    const float *from = task->b + k0 * task->b_k_stride + (col0 + skip) * task->b_col_stride;
    tn_gemm_pack(block->isa, from, task->b_k_stride, task->b_col_stride, cols - skip, k,
                 block->b_scratch);
}

static void run_blocks(const tn_gemm_isa *isa, const tn_gemm_task *task, void *scratch) {
    gemm_block block = {
        .isa = isa,
        .task = task,
        .kb = k_block(isa, task->k),
        .packs_a = tn_gemm_packs_a(task->a_row_stride, task->a_k_stride, task->m, task->n)};
    block.reads_b_in_place =
        !task->b_is_packed && task->b_col_stride == 1 && task->m <= IN_PLACE_ROWS;
    const size_t a_rows = tn_size_min(task->m, BLOCK_ROWS);
    block.a_scratch = scratch;
    block.b_scratch = scratch;
    if (block.packs_a) block.b_scratch += tn_align_up(a_rows * (block.kb + A_PAD), 16);
    const size_t col_step = block_cols(isa);
    for (size_t col0 = 0; col0 < task->n; col0 += col_step) {
        const size_t cols = tn_size_min(col_step, task->n - col0);
        size_t k0 = 0;
        do { /* once even for k = 0: that writes the zeros */
            const size_t k = tn_size_min(block.kb, task->k - k0);
            if (!task->b_is_packed) pack_b(&block, col0, cols, k0, k);
            for (size_t row0 = 0; row0 < task->m; row0 += BLOCK_ROWS) {
                run_rows(&block, row0, tn_size_min(BLOCK_ROWS, task->m - row0), col0, cols, k0, k);
            }
            k0 += k;
        } while (k0 < task->k);
    }
}

static tn_gemm_panel whole_panel(const tn_gemm_task *task) {
    return (tn_gemm_panel){.a = task->a,
                           .a_row_stride = task->a_row_stride,
                           .b = task->b,
                           .b_row_stride = task->b_col_stride,
                           .c = task->c,
                           .c_row_stride = task->c_row_stride,
                           .rows = task->m,
                           .cols = task->n,
                           .k = task->k,
                           .adds = task->adds};
}

/* Few rows against contiguous columns, or many rows against one contiguous column, are dot
 * products: nothing would be gained by packing. */
static bool run_dots(const tn_gemm_isa *isa, const tn_gemm_task *task) {
    if (task->b_is_packed || task->b_k_stride != 1 || task->a_k_stride != 1) return false;
    tn_gemm_panel panel = whole_panel(task);
    if (task->m <= DOT_ROWS) {
        isa->dots(&panel);
        return true;
    }
    if (task->n != 1 || task->c_row_stride != 1) return false;
    panel.a = task->b;
    panel.b = task->a;
    panel.b_row_stride = task->a_row_stride;
    panel.rows = 1;
    panel.cols = task->m;
    isa->dots(&panel);
    return true;
}

/* One row against contiguous rows: the columns that fill whole runs; returns how many. */
static size_t run_row(const tn_gemm_isa *isa, const tn_gemm_task *task) {
    if (task->m != 1 || task->b_is_packed || task->b_col_stride != 1 || task->a_k_stride != 1) {
        return 0;
    }
    tn_gemm_panel panel = whole_panel(task);
    panel.b_row_stride = task->b_k_stride;
    panel.cols = task->n / isa->row_cols * isa->row_cols;
    isa->row(&panel);
    return panel.cols;
}

void tn_gemm_run(const tn_gemm_isa *isa, const tn_gemm_task *task, void *scratch) {
    if (task->m == 0 || task->n == 0) return;
    if (run_dots(isa, task)) return;
    const size_t done = run_row(isa, task);
    if (done == 0) {
        run_blocks(isa, task, scratch);
    } else if (done < task->n) {
        tn_gemm_task rest = *task;
        rest.n -= done;
        rest.b += done;
        rest.c += done;
        run_blocks(isa, &rest, scratch);
    }
}
