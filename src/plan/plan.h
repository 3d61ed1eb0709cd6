/* The sized plan: everything a run needs to know, decided before it starts.
 *
 * Made from the intermediate form for one signature of input shapes: the steps in order with their
 * kernels bound, where every value lies (a weight, the caller's input, an offset in the slab, an
 * I/O block, inside another value), and what the run will need in bytes. What depends on data is
 * marked dynamic: such steps are inferred and bound by the executor when their inputs exist.
 *
 * Immutable once made; used by many contexts at once. */
#ifndef TN_PLAN_PLAN_H
#define TN_PLAN_PLAN_H

#include "plan/ir.h"

/* What an input is for this signature. `data` NULL: contents unknown until the run. */
typedef struct tn_plan_input {
    tn_dtype dtype;
    tn_shape shape;
    const void *data;
} tn_plan_input;

typedef enum tn_place {
    TN_PLACE_NONE,     /* never made or never read */
    TN_PLACE_CONSTANT, /* `data`: weight, packed weight, or known for this signature */
    TN_PLACE_INPUT,    /* the caller's memory, or its staged copy */
    TN_PLACE_SLAB,     /* offset in the context's slab */
    TN_PLACE_IO,       /* an I/O block of its own */
    TN_PLACE_DYNAMIC   /* size known when it is made: class arena, or I/O arena for outputs */
} tn_place;

/* Where a value lies. Values that share storage have the same root. */
typedef struct tn_plan_slot {
    tn_fact fact;
    const void *data;       /* CONSTANT */
    size_t size_bytes;      /* physical; 0 while unknown */
    size_t root_offset;     /* bytes from the root's start */
    size_t slab_offset;     /* SLAB roots */
    uint32_t root;          /* the value itself when it owns its storage */
    uint32_t birth, death;  /* steps, roots only: first write and last read; death is step_count for
                               what leaves the run */
    uint32_t io_index;      /* IO roots: output position */
    uint32_t dynamic_index; /* values without a size: position in the run's table; else ~0u */
    tn_place place;         /* of roots; others follow their root */
    bool is_output;         /* dynamic values: listed as an output, so made in the I/O arena */
} tn_plan_slot;

typedef enum tn_step_kind {
    TN_STEP_KERNEL,
    TN_STEP_COPY,   /* in[0] to out[0]: a planned copy, counted */
    TN_STEP_ASSIGN, /* a branch's result becomes the control node's output */
    TN_STEP_BRANCH, /* in[0] false: go to `target` */
    TN_STEP_JUMP    /* go to `target` */
} tn_step_kind;

typedef struct tn_step {
    tn_step_kind kind;
    bool is_dynamic;     /* inferred and bound at run time */
    bool makes_outputs;  /* kernel calls make_output for outputs without size */
    uint8_t phase_count; /* >= 1 */
    uint32_t node;       /* TN_NO_NODE for COPY, ASSIGN, JUMP */
    uint32_t target;     /* BRANCH, JUMP: step */
    uint32_t in_count, out_count;
    const uint32_t *in;
    const uint32_t *out;
    tn_run_fn run;
    const void *record;
    uint32_t tile_counts[TN_MAX_PHASES];
    size_t shared_scratch_offset; /* in the slab */
    size_t worker_scratch_offset;
    size_t worker_scratch_stride;
    size_t scratch_bytes; /* shared and workers' together */
    const char *variant_name;
    double cost_ns;
    tn_rewrite_class rewrite_class;
    uint32_t release_first, release_count; /* dynamic roots that die after this step */
} tn_step;

typedef struct tn_plan_output {
    uint32_t value; /* whose bytes and shape the caller gets */
    bool is_copy;   /* made by a COPY step */
} tn_plan_output;

typedef struct tn_plan {
    tn_bump bump;
    const tn_ir *ir;     /* borrowed; outlives the plan */
    tn_plan_slot *slots; /* [slot_count]: the form's values, then copies and packed weights */
    uint32_t slot_count;
    tn_step *steps;
    uint32_t step_count;
    tn_plan_output *outputs; /* [output_count] */
    uint32_t output_count;
    uint32_t *releases; /* dynamic roots by step */
    uint32_t *late;     /* values whose address follows an input, I/O or dynamic root */
    uint32_t late_count;
    size_t slab_bytes;
    size_t lower_bound_bytes; /* of the slab: the largest sum of what is live at one step */
    size_t workspace_peak_bytes;
    size_t io_bytes; /* capacities that fresh I/O blocks would have */
    uint32_t copy_count;
    size_t copy_bytes;
    uint32_t dynamic_count;       /* roots without a size before the run */
    uint32_t dynamic_value_count; /* values without a size, views included */
    bool is_complete;             /* no dynamic value: the prediction covers everything */
    uint32_t peak_step;           /* where the slab is fullest */
} tn_plan;

/* Gives the packed form of a weight, made once and kept by the runtime.
 * Ownership: *out_data stays valid while the session lives. */
typedef struct tn_pack_source {
    void *ctx;
    tn_status (*get)(void *ctx, const tn_ir *ir, const tn_ir_node *node,
                     const tn_pack_context *pack, const void **out_data);
    /* A copy of the constant `data` [size_bytes] aligned to 64; made once, kept like packed forms.
     * `is_inner`: folded by the form, not from the file. */
    tn_status (*align)(void *ctx, const void *data, size_t size_bytes, bool is_inner,
                       const void **out_data, tn_error *err);
} tn_pack_source;

typedef struct tn_plan_options {
    tn_allocator *allocator; /* charged for the plan */
    tn_pack_source pack;
    bool disable_in_place;
    bool disable_reuse; /* no two values share bytes of the slab */
    bool exact_only;
} tn_plan_options;

/* Plans `ir` for `inputs` [ir->input_count] (entries of inputs with folded defaults are ignored).
 * Ownership: *out is freed with tn_plan_destroy; `ir` must outlive it.
 * Errors:    those of infer, variants and bind, with the node's name; TN_OUT_OF_MEMORY, TN_LIMIT,
 *            TN_OVERFLOW. */
tn_status tn_plan_create(tn_ir *ir, const tn_plan_input *inputs, const tn_plan_options *options,
                         tn_plan **out, tn_error *err);
void tn_plan_destroy(tn_plan *plan);

/* Chooses and binds the variant of one node whose facts are complete: also what the executor does
 * for dynamic steps. `slots_for_pack` receives the packed weight's address, NULL when none. */
typedef struct tn_bound {
    tn_variant variant;
    const void *record;
    const void *packed; /* replaces input variant.pack_input; NULL: none */
} tn_bound;
tn_status tn_plan_bind_node(const tn_ir *ir, const tn_ir_node *node, const tn_node_facts *facts,
                            const tn_plan_options *options, tn_bump *bump, tn_bound *out,
                            tn_error *err);

/* Offsets for intervals (pack.c). Each item lies at [offset, offset + size) during
 * [birth, death]; items that overlap in time never overlap in space. */
typedef struct tn_pack_item {
    size_t size_bytes; /* multiple of 64 */
    uint32_t birth, death;
    size_t offset;
} tn_pack_item;

/* Greedy best fit in two orders, the better one kept.
 * Units: bytes. `scratch` gives temporary memory. Errors: TN_OUT_OF_MEMORY, TN_OVERFLOW. */
tn_status tn_pack_offsets(tn_pack_item *items, size_t count, uint32_t step_count, tn_bump *scratch,
                          size_t *out_bytes, size_t *out_lower_bound, uint32_t *out_peak_step,
                          tn_error *err);

#endif
