/* The recurrent operators at work. A tile is one direction and one block of the batch. The products
 * of the input with W are made for a chunk of steps at once; then each step adds the product of the
 * state with R and runs the cell. In a reversed direction, time runs backwards from each entry's
 * own length. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/recurrent/recurrent.h"

typedef struct recurrent_tile {
    const tn_recurrent_record *r;
    const tn_recurrent_geometry *g;
    tn_kernel_context *ctx;
    const tn_recurrent_activation *activations;
    size_t direction;
    size_t batch0, batch_count;
    size_t length; /* steps of this block */
    bool is_reversed;
    const float *w;        /* [gate_width, input], or packed */
    const float *packed_r; /* parts one after another */
    const float *peepholes;
    float *bias, *reset_bias, *gates, *h, *c, *extra, *gemm;
} recurrent_tile;

static void multiply(const recurrent_tile *t, tn_gemm_task *task) {
    tn_gemm_run(t->r->isa, task, t->gemm);
}

/* Sums of the input and recurrence biases; GRU with linear_before_reset keeps the recurrence bias
 * of the hidden gate apart, since the reset gate scales it. */
static void sum_biases(const recurrent_tile *t) {
    const size_t width = t->g->gate_width;
    const size_t hidden = t->g->hidden;
    memset(t->bias, 0, width * sizeof(float));
    memset(t->reset_bias, 0, hidden * sizeof(float));
    if (!t->r->has_input[TN_RECURRENT_B]) return;
    const float *b = (const float *)tn_kernel_in(t->ctx, TN_RECURRENT_B) + t->direction * 2 * width;
    const bool resets_after = t->r->params.resets_after;
    for (size_t j = 0; j < width; j++) {
        const bool is_apart = resets_after && j >= 2 * hidden;
        t->bias[j] = is_apart ? b[j] : b[j] + b[width + j];
        if (is_apart) t->reset_bias[j - 2 * hidden] = b[width + j];
    }
}

/* Position of state row `entry` of this direction in Y_h, Y_c and the initial states. */
static size_t state_at(const recurrent_tile *t, size_t entry) {
    const tn_recurrent_geometry *g = t->g;
    const size_t row = t->r->params.is_batch_first
                           ? (t->batch0 + entry) * g->directions + t->direction
                           : t->direction * g->batch + t->batch0 + entry;
    return row * g->hidden;
}

static void load_state(const recurrent_tile *t, uint32_t slot, float *to) {
    const size_t row_bytes = t->g->hidden * sizeof(float);
    for (size_t b = 0; b < t->batch_count; b++) {
        float *row = to + b * t->g->hidden;
        if (t->r->has_input[slot]) {
            memcpy(row, (const float *)tn_kernel_in(t->ctx, slot) + state_at(t, b), row_bytes);
        } else {
            memset(row, 0, row_bytes);
        }
    }
}

static void store_state(const recurrent_tile *t, uint32_t slot, const float *from) {
    if (!t->r->has_output[slot]) return;
    for (size_t b = 0; b < t->batch_count; b++) {
        memcpy((float *)tn_kernel_out(t->ctx, slot) + state_at(t, b), from + b * t->g->hidden,
               t->g->hidden * sizeof(float));
    }
}

/* Row of Y for step `time` of `entry`. */
static float *y_row(const recurrent_tile *t, size_t time, size_t entry) {
    const tn_recurrent_geometry *g = t->g;
    const size_t b = t->batch0 + entry;
    const size_t row = t->r->params.is_batch_first
                           ? (b * g->steps + time) * g->directions + t->direction
                           : (time * g->directions + t->direction) * g->batch + b;
    return (float *)tn_kernel_out(t->ctx, TN_RECURRENT_Y) + row * g->hidden;
}

static void store_y(const recurrent_tile *t, size_t time, const float *h) {
    if (!t->r->has_output[TN_RECURRENT_Y]) return;
    for (size_t b = 0; b < t->batch_count; b++) {
        memcpy(y_row(t, time, b), h + b * t->g->hidden, t->g->hidden * sizeof(float));
    }
}

/* Steps past the length of an entry give zeros. */
static void clear_tail(const recurrent_tile *t) {
    if (!t->r->has_output[TN_RECURRENT_Y]) return;
    for (size_t time = t->length; time < t->g->steps; time++) {
        for (size_t b = 0; b < t->batch_count; b++) {
            memset(y_row(t, time, b), 0, t->g->hidden * sizeof(float));
        }
    }
}

/* gates [times, batch, gate_width] = bias + x * W^T for times [time0, time0 + count). */
static void make_gates(const recurrent_tile *t, size_t time0, size_t count) {
    const tn_recurrent_geometry *g = t->g;
    const size_t width = g->gate_width;
    for (size_t i = 0; i < count * t->batch_count; i++) {
        memcpy(t->gates + i * width, t->bias, width * sizeof(float));
    }
    const float *x = tn_kernel_in(t->ctx, TN_RECURRENT_X);
    tn_gemm_task task = {.n = width,
                         .k = g->input,
                         .a_row_stride = g->input,
                         .a_k_stride = 1,
                         .b = t->w,
                         .b_is_packed = t->r->packs_w,
                         .b_panel_rows = g->input,
                         .b_k_stride = 1,
                         .b_col_stride = g->input,
                         .adds = true};
    if (t->r->params.is_batch_first) {
        for (size_t b = 0; b < t->batch_count; b++) {
            task.m = count;
            task.a = x + ((t->batch0 + b) * g->steps + time0) * g->input;
            task.c = t->gates + b * width;
            task.c_row_stride = t->batch_count * width;
            multiply(t, &task);
        }
        return;
    }
    const bool is_whole = t->batch_count == g->batch;
    for (size_t i = 0; i < (is_whole ? 1 : count); i++) {
        task.m = is_whole ? count * g->batch : t->batch_count;
        task.a = x + ((time0 + i) * g->batch + t->batch0) * g->input;
        task.c = t->gates + i * t->batch_count * width;
        task.c_row_stride = width;
        multiply(t, &task);
    }
}

/* to [batch, part's columns] (+)= h * R part, rows `stride` apart. */
static void add_recurrence(const recurrent_tile *t, size_t part, const float *h, float *to,
                           size_t stride) {
    const tn_recurrent_geometry *g = t->g;
    const float *r = t->packed_r;
    if (part == 1) {
        size_t first_bytes = 0;
        (void)tn_gemm_packed_bytes(t->r->isa, g->part_cols[0], g->hidden, &first_bytes);
        r += first_bytes / sizeof(float);
    }
    tn_gemm_task task = {.m = t->batch_count,
                         .n = g->part_cols[part],
                         .k = g->hidden,
                         .a = h,
                         .a_row_stride = g->hidden,
                         .a_k_stride = 1,
                         .b = r,
                         .b_is_packed = true,
                         .b_panel_rows = g->hidden,
                         .c = to,
                         .c_row_stride = stride,
                         .adds = true};
    multiply(t, &task);
}

/* Clips, then activates. */
static void activate(const recurrent_tile *t, size_t which, float *x) {
    const float clip = t->r->params.clip;
    const size_t hidden = t->g->hidden;
    for (size_t j = 0; clip > 0.0F && j < hidden; j++) {
        const float high = x[j] > clip ? clip : x[j];
        x[j] = high < -clip ? -clip : high;
    }
    t->r->cells->activate(&t->activations[which], x, hidden);
}

static void add_peephole(const recurrent_tile *t, size_t which, const float *c, float *x) {
    if (t->peepholes == NULL) return;
    const float *p = t->peepholes + which * t->g->hidden;
    for (size_t j = 0; j < t->g->hidden; j++) x[j] += p[j] * c[j];
}

static void lstm_cell(const recurrent_tile *t, float *gates, float *c, float *h) {
    const size_t hidden = t->g->hidden;
    float *in = gates;
    float *out = in + hidden;
    float *forget = out + hidden;
    float *fresh = forget + hidden;
    add_peephole(t, 0, c, in);
    add_peephole(t, 2, c, forget);
    activate(t, 0, in);
    if (t->r->params.couples_gates) {
        for (size_t j = 0; j < hidden; j++) forget[j] = 1.0F - in[j];
    } else {
        activate(t, 0, forget);
    }
    activate(t, 1, fresh);
    for (size_t j = 0; j < hidden; j++) c[j] = forget[j] * c[j] + in[j] * fresh[j];
    add_peephole(t, 1, c, out);
    activate(t, 0, out);
    memcpy(h, c, hidden * sizeof(float));
    t->r->cells->activate(&t->activations[2], h, hidden);
    for (size_t j = 0; j < hidden; j++) h[j] = out[j] * h[j];
}

static void lstm_step(const recurrent_tile *t, float *gates) {
    const size_t width = t->g->gate_width;
    const size_t hidden = t->g->hidden;
    add_recurrence(t, 0, t->h, gates, width);
    for (size_t b = 0; b < t->batch_count; b++) {
        float *c = t->c + b * hidden;
        float *h = t->h + b * hidden;
        if (t->r->is_plain_lstm) {
            const tn_lstm_row row = {gates + b * width, c, h, hidden};
            t->r->cells->lstm_row(&row);
        } else {
            lstm_cell(t, gates + b * width, c, h);
        }
    }
}

static void gru_step(const recurrent_tile *t, float *gates) {
    const size_t width = t->g->gate_width;
    const size_t hidden = t->g->hidden;
    const bool resets_after = t->r->params.resets_after;
    add_recurrence(t, 0, t->h, gates, width);
    for (size_t b = 0; b < t->batch_count; b++) {
        float *update = gates + b * width;
        float *reset = update + hidden;
        activate(t, 0, update);
        activate(t, 0, reset);
        float *extra = t->extra + b * hidden;
        for (size_t j = 0; j < hidden; j++) {
            extra[j] = resets_after ? t->reset_bias[j] : reset[j] * t->h[b * hidden + j];
        }
    }
    if (resets_after) {
        add_recurrence(t, 1, t->h, t->extra, hidden);
    } else {
        add_recurrence(t, 1, t->extra, gates + 2 * hidden, width);
    }
    for (size_t b = 0; b < t->batch_count; b++) {
        const float *update = gates + b * width;
        const float *reset = update + hidden;
        float *fresh = gates + b * width + 2 * hidden;
        float *h = t->h + b * hidden;
        for (size_t j = 0; resets_after && j < hidden; j++) {
            fresh[j] += reset[j] * t->extra[b * hidden + j];
        }
        activate(t, 1, fresh);
        for (size_t j = 0; j < hidden; j++) {
            h[j] = (1.0F - update[j]) * fresh[j] + update[j] * h[j];
        }
    }
}

static void rnn_step(const recurrent_tile *t, float *gates) {
    const size_t hidden = t->g->hidden;
    add_recurrence(t, 0, t->h, gates, hidden);
    for (size_t b = 0; b < t->batch_count; b++) activate(t, 0, gates + b * hidden);
    memcpy(t->h, gates, t->batch_count * hidden * sizeof(float));
}

typedef void (*step_fn)(const recurrent_tile *t, float *gates);

static void run_steps(const recurrent_tile *t) {
    static const step_fn steps[] = {[TN_RECURRENT_RNN] = rnn_step,
                                    [TN_RECURRENT_GRU] = gru_step,
                                    [TN_RECURRENT_LSTM] = lstm_step};
    const step_fn step = steps[t->r->params.kind];
    for (size_t done = 0; done < t->length; done += t->g->chunk_steps) {
        const size_t count = tn_size_min(t->g->chunk_steps, t->length - done);
        const size_t time0 = t->is_reversed ? t->length - done - count : done;
        make_gates(t, time0, count);
        for (size_t i = 0; i < count; i++) {
            const size_t at = t->is_reversed ? count - 1 - i : i;
            step(t, t->gates + at * t->batch_count * t->g->gate_width);
            store_y(t, time0 + at, t->h);
        }
    }
}

/* Steps of this block: all, or what sequence_lens says of its one entry. */
static size_t length_of(const recurrent_tile *t) {
    if (!t->r->has_input[TN_RECURRENT_LENGTHS]) return t->g->steps;
    const int32_t length = ((const int32_t *)tn_kernel_in(t->ctx, TN_RECURRENT_LENGTHS))[t->batch0];
    if (length < 0) return 0;
    return tn_size_min((size_t)length, t->g->steps);
}

void tn_recurrent_run_tile(const tn_recurrent_record *record, tn_kernel_context *ctx, uint32_t tile,
                           uint32_t worker) {
    const tn_recurrent_geometry *g = &record->geometry;
    float *scratch = tn_kernel_scratch(ctx, worker);
    const size_t direction = tile / g->blocks;
    recurrent_tile t = {
        .r = record,
        .g = g,
        .ctx = ctx,
        .activations = record->params.activations[direction],
        .direction = direction,
        .batch0 = tile % g->blocks * g->batch_block,
        .is_reversed = direction == 1 || record->params.direction == TN_RECURRENT_REVERSE,
        .bias = scratch + record->scratch.bias,
        .reset_bias = scratch + record->scratch.bias + g->gate_width,
        .gates = scratch + record->scratch.gates,
        .h = scratch + record->scratch.h,
        .c = scratch + record->scratch.c,
        .extra = scratch + record->scratch.extra,
        .gemm = scratch + record->scratch.gemm};
    t.batch_count = tn_size_min(g->batch_block, g->batch - t.batch0);
    t.length = length_of(&t);
    const float *w = tn_kernel_in(ctx, TN_RECURRENT_W);
    t.w = w + direction * g->gate_width * g->input;
    if (record->packs_w) {
        float *packed = scratch + record->scratch.packed_w;
        tn_gemm_pack(record->isa, t.w, 1, g->input, g->gate_width, g->input, packed);
        t.w = packed;
    }
    const float *r = tn_kernel_in(ctx, TN_RECURRENT_R);
    if (record->r_is_packed) {
        t.packed_r = r + direction * record->packed_r_floats;
    } else {
        float *packed = scratch + record->scratch.packed_r;
        tn_recurrent_pack_r(g, record->isa, r + direction * g->gate_width * g->hidden, packed);
        t.packed_r = packed;
    }
    if (record->has_input[TN_RECURRENT_PEEPHOLES]) {
        t.peepholes =
            (const float *)tn_kernel_in(ctx, TN_RECURRENT_PEEPHOLES) + direction * 3 * g->hidden;
    }
    sum_biases(&t);
    load_state(&t, TN_RECURRENT_INITIAL_H, t.h);
    load_state(&t, TN_RECURRENT_INITIAL_C, t.c);
    run_steps(&t);
    clear_tail(&t);
    store_state(&t, TN_RECURRENT_Y_H, t.h);
    store_state(&t, TN_RECURRENT_Y_C, t.c);
}
