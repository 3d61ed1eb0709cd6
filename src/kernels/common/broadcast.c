/* Merging of axes and the walk over runs. The walk keeps one counter per axis, so a new run costs
 * additions only; the start of a range is found with divisions. */
#include "kernels/common/broadcast.h"

#include <string.h>

/* Runs shorter than this are gathered into tiles: a call per run would cost more. */
#define SHORT_RUN 32
#define GATHER_ELEMS 256

typedef struct walk {
    size_t index[TN_MAX_RANK];
    size_t offset[TN_BROADCAST_MAX_INPUTS];
} walk;

static void input_strides(const tn_shape *output, const tn_shape *input, int32_t shift,
                          size_t *strides) {
    size_t stride = 1;
    for (int32_t d = output->rank - 1; d >= 0; d--) {
        const int32_t axis = d - shift;
        const bool is_within = axis >= 0 && axis < input->rank;
        const size_t dim = is_within ? (size_t)input->dims[axis] : 1;
        strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

/* Whether axis `next` goes on where `last` (the merged one) ends, for every input. */
static bool axes_merge(const tn_broadcast *broadcast, const size_t (*strides)[TN_MAX_RANK],
                       int32_t next, size_t next_dim) {
    const uint32_t last = broadcast->dim_count - 1;
    for (uint32_t k = 0; k < broadcast->input_count; k++) {
        if (broadcast->strides[k][last] != strides[k][next] * next_dim) return false;
    }
    return true;
}

void tn_broadcast_init(tn_broadcast *broadcast, const tn_shape *output,
                       const tn_shape *const *inputs, uint32_t input_count, int32_t axis_shift) {
    size_t strides[TN_BROADCAST_MAX_INPUTS][TN_MAX_RANK];
    memset(strides, 0, sizeof strides);
    broadcast->input_count = input_count;
    broadcast->dim_count = 0;
    broadcast->len = 1;
    for (uint32_t k = 0; k < input_count; k++) {
        const bool is_shifted = k == 1 && axis_shift >= 0;
        const int32_t shift = is_shifted ? axis_shift : output->rank - inputs[k]->rank;
        input_strides(output, inputs[k], shift, strides[k]);
    }
    for (int32_t d = 0; d < output->rank; d++) {
        const size_t dim = (size_t)output->dims[d];
        broadcast->len *= dim;
        if (dim == 1) continue;
        if (broadcast->dim_count > 0 &&
            axes_merge(broadcast, (const size_t(*)[TN_MAX_RANK])strides, d, dim)) {
            broadcast->dims[broadcast->dim_count - 1] *= dim;
        } else {
            broadcast->dims[broadcast->dim_count++] = dim;
        }
        for (uint32_t k = 0; k < input_count; k++) {
            broadcast->strides[k][broadcast->dim_count - 1] = strides[k][d];
        }
    }
    if (broadcast->dim_count == 0) {
        broadcast->dims[0] = 1;
        broadcast->dim_count = 1;
        for (uint32_t k = 0; k < input_count; k++) broadcast->strides[k][0] = 0;
    }
}

static void walk_start(const tn_broadcast *broadcast, size_t first, walk *w) {
    memset(w->offset, 0, sizeof w->offset);
    for (uint32_t d = broadcast->dim_count; d-- > 0;) {
        w->index[d] = first % broadcast->dims[d];
        first /= broadcast->dims[d];
        for (uint32_t k = 0; k < broadcast->input_count; k++) {
            w->offset[k] += w->index[d] * broadcast->strides[k][d];
        }
    }
}

/* Goes `count` elements on, at most to the end of the innermost axis. */
static void walk_advance(const tn_broadcast *broadcast, size_t count, walk *w) {
    uint32_t d = broadcast->dim_count - 1;
    w->index[d] += count;
    for (uint32_t k = 0; k < broadcast->input_count; k++) {
        w->offset[k] += count * broadcast->strides[k][d];
    }
    while (w->index[d] == broadcast->dims[d] && d > 0) {
        for (uint32_t k = 0; k < broadcast->input_count; k++) {
            w->offset[k] += broadcast->strides[k][d - 1];
            w->offset[k] -= broadcast->dims[d] * broadcast->strides[k][d];
        }
        w->index[d] = 0;
        w->index[--d]++;
    }
}

static bool is_full(const tn_broadcast *broadcast, uint32_t input) {
    size_t stride = 1;
    for (uint32_t d = broadcast->dim_count; d-- > 0;) {
        if (broadcast->strides[input][d] != stride) return false;
        stride *= broadcast->dims[d];
    }
    return true;
}

typedef struct wide {
    uint64_t low, high;
} wide;

/* Gathers runs of one input: `inner` elements, `stride` apart, from the walk's place on. */
#define DEFINE_GATHER(name, type)                                                              \
    static void gather_##name(const tn_broadcast *broadcast, uint32_t input, const void *from, \
                              walk w, size_t count, void *to) {                                \
        const uint32_t last = broadcast->dim_count - 1;                                        \
        const size_t stride = broadcast->strides[input][last];                                 \
        const type *source = from;                                                             \
        type *target = to;                                                                     \
        while (count > 0) {                                                                    \
            const size_t left = broadcast->dims[last] - w.index[last];                         \
            const size_t run = left < count ? left : count;                                    \
            for (size_t i = 0; i < run; i++) target[i] = source[w.offset[input] + i * stride]; \
            target += run;                                                                     \
            count -= run;                                                                      \
            walk_advance(broadcast, run, &w);                                                  \
        }                                                                                      \
    }
DEFINE_GATHER(1, uint8_t)
DEFINE_GATHER(2, uint16_t)
DEFINE_GATHER(4, uint32_t)
DEFINE_GATHER(8, uint64_t)
DEFINE_GATHER(16, wide)

typedef void (*gather_fn)(const tn_broadcast *broadcast, uint32_t input, const void *from, walk w,
                          size_t count, void *to);

static gather_fn gather_of(uint8_t element_bytes) {
    static const gather_fn by_size[] = {
        [1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8, [16] = gather_16};
    return by_size[element_bytes];
}

static const void *at(const void *base, size_t elems, uint8_t element_bytes) {
    return (const char *)base + elems * element_bytes;
}

static void run_gathered(const tn_broadcast *broadcast, tn_loop_fn loop, const tn_loop_args *args,
                         size_t first, size_t end) {
    wide tiles[TN_BROADCAST_MAX_INPUTS][GATHER_ELEMS];
    tn_loop_args part = *args;
    bool full[TN_BROADCAST_MAX_INPUTS] = {false};
    for (uint32_t k = 0; k < broadcast->input_count; k++) {
        full[k] = is_full(broadcast, k);
        part.step[k] = 1;
    }
    for (size_t i = first; i < end; i += part.len) {
        part.len = end - i < GATHER_ELEMS ? end - i : GATHER_ELEMS;
        part.out = (char *)args->out + i * broadcast->output_bytes;
        walk w;
        walk_start(broadcast, i, &w);
        for (uint32_t k = 0; k < broadcast->input_count; k++) {
            if (full[k]) {
                part.in[k] = at(args->in[k], i, broadcast->input_bytes[k]);
            } else {
                gather_of(broadcast->input_bytes[k])(broadcast, k, args->in[k], w, part.len,
                                                     tiles[k]);
                part.in[k] = tiles[k];
            }
        }
        loop(&part);
    }
}

void tn_broadcast_run(const tn_broadcast *broadcast, tn_loop_fn loop, const tn_loop_args *args,
                      size_t first, size_t end) {
    const uint32_t last = broadcast->dim_count - 1;
    if (first >= end) return;
    if (last > 0 && broadcast->dims[last] < SHORT_RUN) {
        run_gathered(broadcast, loop, args, first, end);
        return;
    }
    tn_loop_args part = *args;
    walk w;
    walk_start(broadcast, first, &w);
    for (uint32_t k = 0; k < broadcast->input_count; k++) {
        part.step[k] = broadcast->strides[k][last] == 0 ? 0 : 1;
    }
    for (size_t i = first; i < end; i += part.len) {
        const size_t left = broadcast->dims[last] - w.index[last];
        part.len = left < end - i ? left : end - i;
        part.out = (char *)args->out + i * broadcast->output_bytes;
        for (uint32_t k = 0; k < broadcast->input_count; k++) {
            part.in[k] = at(args->in[k], w.offset[k], broadcast->input_bytes[k]);
        }
        loop(&part);
        walk_advance(broadcast, part.len, &w);
    }
}
