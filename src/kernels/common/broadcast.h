/* NumPy broadcasting for kernels: which elements of up to three inputs meet at each output element,
 * as runs that a simple loop can take.
 *
 * Axes along which all inputs move alike are merged, so that the common cases (equal shapes, a
 * scalar, a row, a channel) become one or two long runs. Where runs would be short, inputs are
 * gathered into small tiles instead. */
#ifndef TN_KERNELS_BROADCAST_H
#define TN_KERNELS_BROADCAST_H

#include "plan/op_def.h"

#define TN_BROADCAST_MAX_INPUTS 3

typedef struct tn_loop_args tn_loop_args;

/* Computes out[i] from in[k][i * step[k]] for i in [0, len). Output and inputs may be the same
 * memory when their elements have one size; they never overlap otherwise. */
typedef void (*tn_loop_fn)(const tn_loop_args *args);

struct tn_loop_args {
    const void *in[TN_BROADCAST_MAX_INPUTS]; /* NULL: left out */
    size_t step[TN_BROADCAST_MAX_INPUTS];    /* elements: 1, or 0 for one value */
    void *out;
    size_t len;
    const float *params; /* of the body */
    tn_loop_fn inner;    /* loops over 16-bit floats: the f32 loop that they wrap */
    tn_dtype types[2];   /* of inputs 0 and 1, for loops that serve many */
    bool nontemporal;    /* stores may bypass the caches */
};

/* Immutable once made; part of a record. */
typedef struct tn_broadcast {
    size_t len; /* output elements */
    uint32_t input_count;
    uint32_t dim_count; /* >= 1 */
    size_t dims[TN_MAX_RANK];
    size_t strides[TN_BROADCAST_MAX_INPUTS][TN_MAX_RANK]; /* elements */
    uint8_t input_bytes[TN_BROADCAST_MAX_INPUTS];         /* of an element: 1, 2, 4, 8 or 16 */
    uint8_t output_bytes;
} tn_broadcast;

/* Shapes: every inputs[k] broadcasts to `output`, which infer has proved. `axis_shift` >= 0 aligns
 * input 1 at that axis of the output (opsets before 7); -1 aligns all at the end. */
void tn_broadcast_init(tn_broadcast *broadcast, const tn_shape *output,
                       const tn_shape *const *inputs, uint32_t input_count, int32_t axis_shift);

/* Runs `loop` over output elements [first, end). `args` gives in (base addresses), out (base
 * address), params, inner and nontemporal; inputs beyond input_count are handed on as they are. */
void tn_broadcast_run(const tn_broadcast *broadcast, tn_loop_fn loop, const tn_loop_args *args,
                      size_t first, size_t end);

#endif
