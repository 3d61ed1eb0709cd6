/* Binding programs to sizes and running them over tiles.
 *
 * Binding views the output as dims in physical order (blocked: [N, blocks, spatial..., lanes]),
 * gives every operand a stride per dim, merges dims that all operands walk alike, and names the
 * kind of walk along a row. Applying goes row by row: it points each operand's slot at its
 * elements, lets the machine run the whole chunks, and does the rest of the row through zero-filled
 * copies, so that no vector ever reads or writes past its row. */
#include "kernels/elementwise/program_run.h"

#include <string.h>

#include "kernels/elementwise/elementwise_isa.h"

const tn_program_isa *tn_program_isa_best(tn_cpu_features cpu) {
#if defined(__x86_64__)
    if ((cpu & TN_CPU_AVX512) != 0) return &tn_program_avx512;
    if ((cpu & TN_CPU_AVX2) != 0) return &tn_program_avx2;
#endif
    (void)cpu;
    return &tn_program_portable;
}

/* ---- binding ---- */

/* The output's dims before merging, and strides of every operand along them. */
typedef struct layout_view {
    uint32_t dim_count;
    size_t dims[TN_MAX_RANK + 1];
    size_t strides[TN_PROGRAM_MAX_OPERANDS][TN_MAX_RANK + 1];
} layout_view;

static bool same_dims(const tn_shape *a, const tn_shape *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static void view_output(const tn_fact *output, layout_view *view) {
    const uint32_t rank = (uint32_t)output->shape.rank;
    const size_t block = output->layout.block;
    view->dim_count = rank;
    for (uint32_t d = 0; d < rank; d++) view->dims[d] = (size_t)output->shape.dims[d];
    if (block == 0) return;
    view->dims[1] = (view->dims[1] + block - 1) / block;
    view->dims[view->dim_count++] = block;
}

/* Strides of a plain operand over the plain output, from the last dim on. */
static void view_plain(const tn_fact *output, const tn_fact *operand, size_t *strides) {
    const int32_t shift = output->shape.rank - operand->shape.rank;
    size_t stride = 1;
    for (int32_t d = output->shape.rank - 1; d >= 0; d--) {
        const size_t dim = d < shift ? 1 : (size_t)operand->shape.dims[d - shift];
        strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

/* Turns plain strides into those of the blocked output; false when the operand varies along a
 * spatial axis. */
static bool view_blocked(const tn_fact *output, size_t *strides) {
    const uint32_t rank = (uint32_t)output->shape.rank;
    for (uint32_t d = 2; d < rank; d++) {
        if (strides[d] != 0) return false;
    }
    strides[rank] = strides[1];
    strides[1] *= output->layout.block;
    return true;
}

static tn_status view_operand(const tn_program_bind_query *query, uint32_t k, layout_view *view,
                              tn_program_operand *operand, tn_error *err) {
    const tn_fact *output = query->output;
    const tn_fact *fact = query->operands[k];
    if (same_dims(&output->shape, &fact->shape) && output->layout.block == fact->layout.block) {
        operand->kind = TN_OPERAND_FULL;
        return TN_OK;
    }
    operand->kind = TN_OPERAND_WALK;
    operand->block_dim = TN_PROGRAM_MAX_DIMS; /* until an axis of several blocks is seen */
    view_plain(output, fact, view->strides[k]);
    if (output->layout.block == 0) return TN_OK;
    const int32_t axis = fact->shape.rank - output->shape.rank + 1;
    operand->channels = axis < 0 ? 1 : (size_t)fact->shape.dims[axis];
    TN_REQUIRE(fact->layout.block == 0 && view_blocked(output, view->strides[k]), err,
               TN_UNSUPPORTED, "operand %u of a program over a blocked value varies along space",
               k);
    if (view->strides[k][view->dim_count - 1] != 0) operand->kind = TN_OPERAND_BLOCKS;
    return TN_OK;
}

static bool dims_merge(const tn_program_bound *out, const layout_view *view, uint32_t d) {
    const uint32_t last = out->dim_count - 1;
    for (uint32_t k = 0; k < out->operand_count; k++) {
        const tn_program_operand *operand = &out->operands[k];
        if (operand->kind == TN_OPERAND_FULL) continue;
        if (operand->strides[last] != view->strides[k][d] * view->dims[d]) return false;
    }
    return true;
}

/* Merges dims, but never across the border between rows and columns. */
static tn_status merge_dims(const tn_program_bind_query *query, const layout_view *view,
                            tn_program_bound *out, tn_error *err) {
    size_t product = 1;
    bool in_rows = query->rows != 1;
    bool starts_group = true;
    for (uint32_t d = 0; d < view->dim_count; d++) {
        if (view->dims[d] != 1) {
            const bool counts_blocks = d == 1 && query->output->layout.block != 0;
            if (!starts_group && !counts_blocks && dims_merge(out, view, d)) {
                out->dims[out->dim_count - 1] *= view->dims[d];
            } else {
                TN_REQUIRE(out->dim_count < TN_PROGRAM_MAX_DIMS, err, TN_UNSUPPORTED,
                           "a program over more than %d dims", TN_PROGRAM_MAX_DIMS);
                out->dims[out->dim_count++] = view->dims[d];
            }
            for (uint32_t k = 0; k < out->operand_count; k++) {
                out->operands[k].strides[out->dim_count - 1] = view->strides[k][d];
                if (counts_blocks) out->operands[k].block_dim = out->dim_count - 1;
            }
            starts_group = false;
        }
        product *= view->dims[d];
        if (in_rows && product == query->rows) {
            in_rows = false;
            starts_group = true;
            out->row_dim_count = out->dim_count;
            product = 1;
        }
    }
    TN_REQUIRE((!in_rows && product == query->cols) || query->rows * query->cols == 0, err,
               TN_INTERNAL, "%zu x %zu does not split the output", query->rows, query->cols);
    return TN_OK;
}

/* What the walk along a row amounts to. Blocks must lie in rows: lanes beyond the channels are
 * known by the row's block. */
static tn_status name_kind(const tn_program_bound *bound, tn_program_operand *operand, size_t block,
                           tn_error *err) {
    const uint32_t first = bound->row_dim_count;
    if (operand->kind == TN_OPERAND_FULL) return TN_OK;
    if (operand->kind == TN_OPERAND_BLOCKS) {
        operand->period = (uint32_t)block;
        for (uint32_t d = first; d + 1 < bound->dim_count; d++) {
            TN_REQUIRE(operand->strides[d] == 0, err, TN_UNSUPPORTED,
                       "an operand of a program varies from block to block within a row");
        }
    } else if (first == bound->dim_count) {
        operand->kind = TN_OPERAND_SPLAT;
    } else if (first + 1 == bound->dim_count && operand->strides[first] <= 1) {
        operand->kind = operand->strides[first] == 0 ? TN_OPERAND_SPLAT : TN_OPERAND_COLUMNS;
    }
    return TN_OK;
}

static void bind_step(const tn_program_isa *isa, const tn_program_step *step, tn_bound_step *out) {
    uint32_t form = TN_STEP_SLOT;
    if (step->source == TN_SOURCE_IMMEDIATE) form = TN_STEP_IMMEDIATE;
    if (step->is_swapped) form += TN_STEP_SLOT_SWAPPED;
    out->fn = isa->steps[step->body][form];
    out->slot = step->index;
    if (step->source == TN_SOURCE_SAVED) out->slot += TN_PROGRAM_MAX_OPERANDS;
    memcpy(out->params, step->params, sizeof out->params);
}

tn_status tn_program_bind(const tn_program_bind_query *query, tn_program_bound *out,
                          tn_error *err) {
    const tn_program *program = query->program;
    layout_view view;
    memset(&view, 0, sizeof view);
    memset(out, 0, sizeof *out);
    out->isa = tn_program_isa_best(query->cpu);
    out->rows = query->rows;
    out->cols = query->cols;
    out->nontemporal = query->nontemporal;
    out->operand_count = program->operand_count;
    view_output(query->output, &view);
    for (uint32_t k = 0; k < out->operand_count; k++) {
        TN_TRY(view_operand(query, k, &view, &out->operands[k], err));
    }
    TN_TRY(merge_dims(query, &view, out, err));
    for (uint32_t k = 0; k < out->operand_count; k++) {
        TN_TRY(name_kind(out, &out->operands[k], query->output->layout.block, err));
    }
    for (uint32_t i = 0; i < program->step_count; i++) {
        bind_step(out->isa, &program->steps[i], &out->steps[i]);
    }
    out->steps[program->step_count].fn =
        query->nontemporal ? out->isa->store_nontemporal : out->isa->store;
    return TN_OK;
}

/* ---- applying ---- */

/* One tile while it runs. */
typedef struct applier {
    const tn_program_bound *bound;
    const tn_program_tile *tile;
    size_t chunk;
    tn_machine machine;
    size_t bases[TN_PROGRAM_MAX_OPERANDS]; /* of the row: elements from the operand's start */
    /* Splats, block patterns, gathered walks and the copies of a row's tail. */
    float buffers[TN_PROGRAM_MAX_OPERANDS][TN_MACHINE_MAX_CHUNK] __attribute__((aligned(64)));
} applier;

static const float *operand_data(const applier *a, uint32_t k) {
    return a->tile->operands[k];
}

/* Elements from the operand's start to its element at `row`, column 0. */
static size_t row_offset(const tn_program_bound *bound, const tn_program_operand *operand,
                         size_t row) {
    size_t offset = 0;
    for (uint32_t d = bound->row_dim_count; d-- > 0 && row > 0;) {
        offset += row % bound->dims[d] * operand->strides[d];
        row /= bound->dims[d];
    }
    return offset;
}

/* Number of the channel block that `row` (with column `col` when blocks lie in columns) is in. */
static size_t block_of_row(const tn_program_bound *bound, const tn_program_operand *operand,
                           size_t row) {
    for (uint32_t d = bound->row_dim_count; d-- > operand->block_dim + 1;) row /= bound->dims[d];
    return row % bound->dims[operand->block_dim];
}

/* One period of channels, repeated over a chunk that begins at column `col`. */
static void fill_blocks(applier *a, uint32_t k, size_t row, size_t col) {
    const tn_program_operand *operand = &a->bound->operands[k];
    const float *from = operand_data(a, k) + a->bases[k];
    const bool has_many =
        operand->block_dim < a->bound->row_dim_count && operand->strides[operand->block_dim] != 0;
    const size_t first = has_many ? block_of_row(a->bound, operand, row) * operand->period : 0;
    for (size_t i = 0; i < a->chunk; i++) {
        const size_t lane = (col + i) % operand->period;
        a->buffers[k][i] = first + lane < operand->channels ? from[lane] : 0.0F;
    }
}

/* `count` elements of a walk from column `col` of the row on. */
static void fill_walk(applier *a, uint32_t k, size_t col, size_t count) {
    const tn_program_bound *bound = a->bound;
    const tn_program_operand *operand = &bound->operands[k];
    const float *from = operand_data(a, k) + a->bases[k];
    size_t index[TN_PROGRAM_MAX_DIMS] = {0};
    size_t offset = 0;
    for (uint32_t d = bound->dim_count; d-- > bound->row_dim_count;) {
        index[d] = col % bound->dims[d];
        col /= bound->dims[d];
        offset += index[d] * operand->strides[d];
    }
    for (size_t i = 0; i < count; i++) {
        a->buffers[k][i] = from[offset];
        for (uint32_t d = bound->dim_count; d-- > bound->row_dim_count;) {
            offset += operand->strides[d];
            if (++index[d] < bound->dims[d]) break;
            offset -= index[d] * operand->strides[d];
            index[d] = 0;
        }
    }
}

static void start_row(applier *a, size_t r) {
    const tn_program_bound *bound = a->bound;
    const size_t row = a->tile->row0 + r;
    const size_t col = a->tile->col0;
    for (uint32_t k = 0; k < bound->operand_count; k++) {
        const tn_program_operand *operand = &bound->operands[k];
        tn_machine_slot *slot = &a->machine.slots[k];
        *slot = (tn_machine_slot){a->buffers[k], a->chunk / TN_MACHINE_VECTORS, 0};
        if (operand->kind == TN_OPERAND_FULL) {
            slot->at = operand_data(a, k) + row * bound->cols + col;
            slot->advance = a->chunk;
            continue;
        }
        a->bases[k] = row_offset(bound, operand, row);
        if (operand->kind == TN_OPERAND_COLUMNS) {
            slot->at = operand_data(a, k) + a->bases[k] + col;
            slot->advance = a->chunk;
        } else if (operand->kind == TN_OPERAND_SPLAT) {
            const float value = operand_data(a, k)[a->bases[k]];
            for (size_t i = 0; i < slot->step; i++) a->buffers[k][i] = value;
            slot->step = 0;
        } else if (operand->kind == TN_OPERAND_BLOCKS) {
            fill_blocks(a, k, row, col);
        }
    }
    a->machine.in = a->tile->in == NULL ? NULL : a->tile->in + r * a->tile->in_row_stride;
    a->machine.out = a->tile->out + r * a->tile->out_row_stride;
}

/* The last `count` elements of a row, fewer than a chunk. */
static void run_tail(applier *a, const tn_bound_step *steps, size_t col, size_t count) {
    float in[TN_MACHINE_MAX_CHUNK] __attribute__((aligned(64))) = {0};
    float out[TN_MACHINE_MAX_CHUNK] __attribute__((aligned(64)));
    tn_machine *machine = &a->machine;
    float *target = machine->out;
    if (machine->in != NULL) {
        memcpy(in, machine->in, count * sizeof(float));
        machine->in = in;
    }
    machine->out = out;
    for (uint32_t k = 0; k < a->bound->operand_count; k++) {
        tn_machine_slot *slot = &machine->slots[k];
        if (a->bound->operands[k].kind == TN_OPERAND_WALK) {
            memset(a->buffers[k], 0, a->chunk * sizeof(float));
            fill_walk(a, k, col, count);
        }
        if (slot->advance == 0) continue;
        memset(a->buffers[k], 0, a->chunk * sizeof(float));
        memcpy(a->buffers[k], slot->at, count * sizeof(float));
        slot->at = a->buffers[k];
    }
    a->bound->isa->run_chunks(steps, machine, 1);
    memcpy(target, out, count * sizeof(float));
}

static bool has_walks(const tn_program_bound *bound) {
    for (uint32_t k = 0; k < bound->operand_count; k++) {
        if (bound->operands[k].kind == TN_OPERAND_WALK) return true;
    }
    return false;
}

static void run_row(applier *a, const tn_bound_step *steps, bool walks) {
    const size_t whole = a->tile->cols / a->chunk;
    size_t col = a->tile->col0;
    if (!walks) {
        a->bound->isa->run_chunks(steps, &a->machine, whole);
        col += whole * a->chunk;
    }
    for (size_t c = 0; walks && c < whole; c++) {
        for (uint32_t k = 0; k < a->bound->operand_count; k++) {
            if (a->bound->operands[k].kind == TN_OPERAND_WALK) fill_walk(a, k, col, a->chunk);
        }
        a->bound->isa->run_chunks(steps, &a->machine, 1);
        col += a->chunk;
    }
    const size_t rest = a->tile->cols - whole * a->chunk;
    if (rest > 0) run_tail(a, steps, col, rest);
}

/* Streams need aligned rows; without them the store is an ordinary one, so steps are copied with
 * another end. */
static const tn_bound_step *choose_store(const applier *a, tn_bound_step *plain) {
    const tn_program_tile *tile = a->tile;
    const bool is_aligned =
        ((uintptr_t)tile->out | (tile->out_row_stride * sizeof(float))) % 64 == 0;
    if (!a->bound->nontemporal || (is_aligned && tile->cols % a->chunk == 0))
        return a->bound->steps;
    memcpy(plain, a->bound->steps, sizeof a->bound->steps);
    for (uint32_t i = 0; i <= TN_PROGRAM_MAX_STEPS; i++) {
        if (plain[i].fn == a->bound->isa->store_nontemporal) plain[i].fn = a->bound->isa->store;
    }
    return plain;
}

void tn_program_apply(const tn_program_bound *bound, const tn_program_tile *tile) {
    applier a;
    tn_bound_step plain[TN_PROGRAM_MAX_STEPS + 1];
    a.bound = bound;
    a.tile = tile;
    a.chunk = bound->isa->chunk;
    a.machine.slot_count = bound->operand_count;
    const size_t vector = a.chunk / TN_MACHINE_VECTORS;
    for (uint32_t i = 0; i < TN_PROGRAM_MAX_SAVED; i++) {
        a.machine.slots[TN_PROGRAM_MAX_OPERANDS + i] =
            (tn_machine_slot){a.machine.saved[i], vector, 0};
    }
    const bool walks = has_walks(bound);
    const tn_bound_step *steps = choose_store(&a, plain);
    for (size_t r = 0; r < tile->rows; r++) {
        start_row(&a, r);
        run_row(&a, steps, walks);
    }
    if (bound->nontemporal) bound->isa->end_nontemporal();
}
