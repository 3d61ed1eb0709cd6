/* The operator contract: what a row must say and do, phase by phase.
 *
 * One row stands for one operator and one span of opsets. Everything the rest of the program may
 * want to know of an operator is in its row; nothing else compares operator names. Kernels get
 * ready-made pointers and scratch: they never allocate, log or keep state.
 *
 *   phase     when                              gives
 *   check     load                              attributes parsed into `params`
 *   infer     structural and sized plan         types and shapes of the outputs
 *   variants  structural and sized plan         kernels that fit, with layouts, scratch, tiles,
 * cost pack      load or first use                 packed weight bind      sized plan immutable
 * record for run run       run                               computes tiles [tile0, tile1)
 *
 * The plan runs `run` of foldable rows itself when every input is known at plan time: so shape
 * arithmetic (Shape, Gather, Concat, Slice, Add ...) needs no second definition. */
#ifndef TN_PLAN_OP_DEF_H
#define TN_PLAN_OP_DEF_H

#include <tenure/status.h>
#include <tenure/tensor.h>

#include "base/cpu_features.h"
#include "base/error.h"
#include "model/graph.h"

#define TN_DIM_UNKNOWN (-1) /* symbols are numbers below this */
#define TN_RANK_UNKNOWN (-1)
#define TN_NO_VALUE UINT32_MAX
#define TN_MAX_PHASES 4
#define TN_MAX_VARIANTS 12
#define TN_VARIADIC UINT8_MAX
#define TN_MAX_WORKERS 64

typedef struct tn_op_def tn_op_def;
typedef struct tn_program tn_program; /* plan/program.h: elementwise programs */
typedef struct tn_body_use tn_body_use;
typedef struct tn_kernel_context tn_kernel_context;

/* Plain: row-major. Blocked: axis 1 is cut into blocks of `block` elements that become the
 * innermost axis: [N, C, spatial...] lies as [N, ceil(C / block), spatial..., block]; the lanes
 * beyond C in the last block are written with zeros by whoever writes the block and are never data.
 */
typedef struct tn_layout {
    uint16_t block; /* 0: plain */
} tn_layout;

/* What the plan knows of one value. */
typedef struct tn_fact {
    tn_value_kind kind; /* TN_KIND_TENSOR for all that is planned by size */
    tn_dtype dtype;     /* NONE: not known yet */
    tn_shape shape;     /* rank TN_RANK_UNKNOWN; dims >= 0, TN_DIM_UNKNOWN, or a symbol below it */
    tn_layout layout;   /* physical order; shape stays logical */
    const void *data;   /* contents when known at plan time, plain layout, aligned to the element
                           unless the value is a mapped weight; else NULL */
    bool is_constant;   /* data is a weight or folded constant: the same for every run */
} tn_fact;

/* A node as every phase sees it. inputs[i] is NULL when input i is left out (also trailing);
 * outputs[i] is NULL when nobody wants output i. In infer the outputs start as rank unknown. */
typedef struct tn_node_facts {
    const tn_op_def *op;
    const void *params; /* [op->params_bytes], parsed by check */
    const char *name;   /* for messages */
    int64_t opset;      /* of the node's domain in its model or function */
    uint32_t input_count;
    uint32_t output_count;
    const tn_fact *const *inputs; /* [input_count] */
    tn_fact *const *outputs;      /* [output_count] */
} tn_node_facts;

/* Inputs of check. Types and shapes may not be known yet: only presence. */
typedef struct tn_check_context {
    const tn_graph_node *node; /* attributes; NULL for nodes that the plan makes itself */
    int64_t opset;
    uint32_t input_count;
    uint32_t output_count;
    const bool *input_present;  /* [input_count] */
    const bool *output_present; /* [output_count] */
    tn_error *err;
} tn_check_context;

/* How far a variant may differ from the operator's definition. */
typedef enum tn_rewrite_class {
    TN_REWRITE_EXACT,        /* bit for bit */
    TN_REWRITE_REASSOCIATED, /* same operations, other order */
    TN_REWRITE_APPROXIMATE   /* other algorithm, stated error */
} tn_rewrite_class;

/* Computes tiles [tile0, tile1) of ctx->phase. Tiles do not depend on the number of threads, and
 * equal tiles give equal bits on any worker. On failure (bad data only) writes
 * tn_kernel_error(ctx, worker) and returns its code. Threads: called from many at once with
 * disjoint tiles; `worker` is below the plan's worker count. */
typedef tn_status (*tn_run_fn)(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                               uint32_t tile1, uint32_t worker);

/* One way to compute a node. */
typedef struct tn_variant {
    const char *name; /* static; printed by the plan: "direct 3x3 avx2" */
    tn_run_fn run;
    tn_layout input_layout;     /* of the inputs in layout_input_mask; the others are plain */
    tn_layout output_layout;    /* of output 0; the others are plain */
    uint32_t layout_input_mask; /* bit i: input i has input_layout */
    uint16_t pack_format;       /* > 0: input pack_input is read in this packed form */
    uint8_t pack_input;
    bool takes_epilogue; /* can apply a program to its output tile by tile */
    tn_rewrite_class rewrite_class;
    uint8_t phase_count;                 /* 0 counts as 1; a barrier lies between phases */
    uint32_t tile_counts[TN_MAX_PHASES]; /* 0 counts as 1; set by the sized plan's query */
    size_t shared_scratch_bytes;         /* one block for all workers, 64-byte aligned */
    size_t worker_scratch_bytes;         /* per worker, 64-byte aligned */
    double cost_ns;                      /* one thread, from a small table; the least one wins */
} tn_variant;

/* Asks for the variants of a node. */
typedef struct tn_variant_query {
    const tn_node_facts *node; /* dims may be symbolic in the structural plan */
    tn_cpu_features cpu;
    uint32_t worker_count;
    size_t scratch_limit_bytes; /* SIZE_MAX: none */
    uint16_t preferred_block;   /* block that blocked layouts use on this processor: 8 or 16 */
    const tn_program *epilogue; /* NULL: none */
} tn_variant_query;

/* Inputs of bind: everything about sizes is known now. */
typedef struct tn_bind_context {
    const tn_node_facts *node;
    const tn_variant *variant; /* the chosen one */
    tn_cpu_features cpu;
    uint32_t worker_count;
    const tn_program *epilogue;    /* outlives the record */
    uint32_t first_epilogue_input; /* input slot where its operands begin */
    bool nontemporal;              /* output 0 is not read again before it leaves the caches */
    tn_error *err;
} tn_bind_context;

typedef struct tn_pack_context {
    const tn_node_facts
        *node; /* inputs[variant->pack_input]->data is the weight, maybe unaligned */
    const tn_variant *variant;
    tn_cpu_features cpu;
    tn_error *err;
} tn_pack_context;

/* Facts about a row. */
enum {
    TN_OP_FOLDABLE = 1u << 0,          /* pure function of its inputs; may run at plan time */
    TN_OP_VIEW = 1u << 1,              /* output 0 is input 0's bytes under another shape or type of
                                          the same width: no step when it may alias */
    TN_OP_DATA_DEPENDENT = 1u << 2,    /* infer may leave output dims unknown; run calls make_output
                                          for exactly those outputs */
    TN_OP_STRIDED_OUTPUT = 1u << 3,    /* output 0 may be a window of a larger tensor (Concat) */
    TN_OP_ANY_LAYOUT = 1u << 4,        /* elementwise: works on any layout shared by its full-size
                                          inputs and output, padding lanes included */
    TN_OP_UNALIGNED_WEIGHTS = 1u << 5, /* reads constant input 0 through memcpy: it may stay
                                          unaligned in the mapping */
    TN_OP_CONTROL = 1u << 6,           /* holds subgraphs; the plan makes BRANCH or LOOP steps */
    TN_OP_VIEW_LEADING = 1u << 7, /* each output is a run of input 0's bytes (Split, Slice on the
                                     leading axis); view_offset says where */
    TN_OP_RANDOM = 1u << 8,       /* never folded, never merged */
    TN_OP_CONSTANT = 1u << 9,     /* no inputs; its attribute is the value: becomes a weight */
    TN_OP_SHAPE_ONLY = 1u << 10   /* depends on input shapes and types alone, never reads the
                                     contents: known as soon as the inputs are sized */
};

#define TN_TYPE_BIT(name) (1u << TN_DTYPE_##name)

/* One operator over one span of opsets. Rows are static const. */
struct tn_op_def {
    const char *name;
    const char *domain; /* NULL: ai.onnx */
    int32_t since_version;
    int32_t until_version; /* last opset of the span; 0: still current */
    uint8_t min_inputs;
    uint8_t max_inputs; /* TN_VARIADIC: any number */
    uint8_t min_outputs;
    uint8_t max_outputs; /* 0 counts as min_outputs */
    uint32_t flags;
    uint32_t in_place_mask; /* bit i: output 0 may be written over input i when sizes agree */
    /* Bit per element type, per input; the last entry repeats for variadic inputs. NULL: any. */
    const uint32_t *input_types;
    uint8_t input_types_count;
    uint32_t same_type_mask; /* inputs whose type must equal that of the lowest one in the mask */
    uint16_t body;           /* elementwise body number (plan/program.h), 0: none */
    size_t params_bytes;     /* aligned to 16, zeroed before check */
    size_t record_bytes;     /* upper bound for bind; 0 with record_size set */

    /* Parses attributes into `params`. NULL: nothing to parse. Errors: TN_INVALID_MODEL for a value
     * that the schema forbids, TN_UNSUPPORTED for one we lack; the message names the attribute. */
    tn_status (*check)(const tn_check_context *ctx, void *params);

    /* Writes kind, dtype and shape of outputs, from whatever is known; may set `data` of an output
     * only through the foldable path. Unknown input ranks give unknown outputs, not errors.
     * Errors: TN_INVALID_MODEL or TN_INVALID_ARGUMENT with the shapes in the message. Checked
     * arithmetic everywhere; a size that overflows is TN_OVERFLOW. */
    tn_status (*infer)(const tn_node_facts *node, tn_error *err);

    /* Fills out[0 .. *out_count), at most TN_MAX_VARIANTS, portable one included. */
    tn_status (*variants)(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err);

    /* Fills `record` [record_bytes or record_size(node)], aligned to 64; holds no pointers to
     * values. NULL: run gets params as its record. */
    tn_status (*bind)(const tn_bind_context *ctx, void *record);
    size_t (*record_size)(const tn_bind_context *ctx); /* optional, for variable records */

    /* Packed size and packing of input variant->pack_input. */
    tn_status (*pack_size)(const tn_pack_context *ctx, size_t *out_bytes);
    tn_status (*pack)(const tn_pack_context *ctx, void *packed);

    /* VIEW_LEADING rows: byte offset of output `slot` in input 0, or false when it is no view for
     * these facts. */
    bool (*view_offset)(const tn_node_facts *node, uint32_t slot, size_t *out_offset_bytes);

    /* y = scale[c] * x + shift[c] along axis 1: fills both [channels] when the node is that for
     * these facts (all inputs but 0 constant), else answers false. NULL: never. */
    bool (*as_affine)(const tn_node_facts *node, size_t channels, float *scale, float *shift);

    /* Rows with a body: what one node computes, as steps of a program (plan/program.h). False when
     * its attributes or inputs do not allow it: then the node is never fused. */
    bool (*describe)(const tn_node_facts *node, tn_body_use *out);

    /* Linear in weights whose axis 0 counts output channels, with an optional bias: such a node can
     * take in an affine that follows it. 0: no. */
    uint8_t affine_weight_input;
    uint8_t affine_bias_input;

    const char *notes; /* one line for the operators table; NULL: none */
};

typedef struct tn_op_table {
    const tn_op_def *rows;
    size_t count;
} tn_op_table;

/* What a kernel may touch while it runs. Pointers are resolved before the first tile. */
struct tn_kernel_context {
    void *const *values; /* the run's value table: address by value id */
    const uint32_t *in;  /* value ids by input slot; TN_NO_VALUE: left out */
    const uint32_t *out;
    uint32_t phase;
    char *shared_scratch;
    char *worker_scratch; /* worker w's part begins at w * worker_scratch_stride */
    size_t worker_scratch_stride;
    tn_error *errors; /* [worker_count] */
    void *runtime;    /* the executor's own */

    /* Data-dependent rows only, from one thread (a single tile): memory of output `slot` once its
     * shape is known, in the arena that the plan gave to that slot; memory until the step's end. */
    tn_status (*make_output)(tn_kernel_context *ctx, uint32_t slot, tn_dtype dtype,
                             const tn_shape *shape, void **out_data);
    tn_status (*make_temporary)(tn_kernel_context *ctx, size_t size_bytes, void **out_data);
};

static inline const void *tn_kernel_in(const tn_kernel_context *ctx, uint32_t slot) {
    return ctx->in[slot] == TN_NO_VALUE ? NULL : ctx->values[ctx->in[slot]];
}

static inline void *tn_kernel_out(const tn_kernel_context *ctx, uint32_t slot) {
    return ctx->out[slot] == TN_NO_VALUE ? NULL : ctx->values[ctx->out[slot]];
}

static inline void *tn_kernel_scratch(const tn_kernel_context *ctx, uint32_t worker) {
    return ctx->worker_scratch + (size_t)worker * ctx->worker_scratch_stride;
}

static inline tn_error *tn_kernel_error(const tn_kernel_context *ctx, uint32_t worker) {
    return &ctx->errors[worker];
}

/* Facts, read without looking twice. */
static inline bool tn_fact_has_rank(const tn_fact *fact) {
    return fact->shape.rank != TN_RANK_UNKNOWN;
}

/* Whether rank and every dim are known numbers. */
bool tn_fact_is_sized(const tn_fact *fact);

/* Elements of a sized fact; physical bytes of a sized fact (layout padding included). */
size_t tn_fact_len_elems(const tn_fact *fact);
tn_status tn_fact_size_bytes(const tn_fact *fact, size_t *out_bytes, tn_error *err);

/* Input `index` of `node`, or NULL when it is left out or beyond the end. */
static inline const tn_fact *tn_node_input(const tn_node_facts *node, uint32_t index) {
    return index < node->input_count ? node->inputs[index] : NULL;
}

static inline tn_fact *tn_node_output(const tn_node_facts *node, uint32_t index) {
    return index < node->output_count ? node->outputs[index] : NULL;
}

/* Reads a known integer input (int32 or int64, any shape up to `capacity` elements), aligned or
 * not. Returns false when the contents are not known; writes the count. */
bool tn_fact_read_ints(const tn_fact *fact, int64_t *values, size_t capacity, size_t *out_count);

/* Common infer functions. */
tn_status tn_infer_same_as_input0(const tn_node_facts *node, tn_error *err);

/* NumPy broadcast of two shapes with unknown dims; TN_INVALID_ARGUMENT with both shapes. */
tn_status tn_infer_broadcast(const tn_shape *a, const tn_shape *b, tn_shape *out, tn_error *err);

/* Turns a negative axis into [0, rank); TN_INVALID_MODEL "axis 5, rank 3". */
tn_status tn_infer_axis(int64_t axis, int32_t rank, int32_t *out_axis, tn_error *err);

/* "[2, 3, ?]" into `text`; returns `text`. */
const char *tn_shape_text(const tn_shape *shape, char *text, size_t capacity);

/* Attribute readers for check: the default when absent, TN_INVALID_MODEL on a wrong type. */
tn_status tn_check_int(const tn_check_context *ctx, const char *name, int64_t fallback,
                       int64_t *out);
tn_status tn_check_float(const tn_check_context *ctx, const char *name, float fallback, float *out);
tn_status tn_check_text(const tn_check_context *ctx, const char *name, const char *fallback,
                        tn_text *out);
/* At most `capacity` numbers; *out_count is 0 when absent and *out_present says which. */
tn_status tn_check_ints(const tn_check_context *ctx, const char *name, int64_t *values,
                        size_t capacity, size_t *out_count, bool *out_present);

/* The newest row of (`domain`, `name`) whose span holds `opset`; NULL when none does. */
const tn_op_def *tn_op_tables_find(const tn_op_table *const *tables, size_t table_count,
                                   tn_text domain, tn_text name, int64_t opset);

#endif
