/* Programs over memory: binding one to sized facts, and applying it to a tile.
 *
 * The output is seen as a matrix of `rows` x `cols` elements in its physical order, row after row.
 * The host chooses the split: GEMM [M x N]; plain convolution [N * C x spatial]; blocked
 * convolution [N * C / block x spatial * block]. */
#ifndef TN_KERNELS_PROGRAM_RUN_H
#define TN_KERNELS_PROGRAM_RUN_H

#include "plan/op_def.h"
#include "plan/program.h"

#define TN_PROGRAM_MAX_DIMS 8

/* How an operand lies over the output's matrix. */
typedef enum tn_operand_kind {
    TN_OPERAND_FULL,    /* same physical order as the output */
    TN_OPERAND_SPLAT,   /* one value per row */
    TN_OPERAND_COLUMNS, /* one contiguous run of values per row */
    TN_OPERAND_BLOCKS,  /* `period` values that repeat along the row: channels of a block */
    TN_OPERAND_WALK     /* anything else, element by element */
} tn_operand_kind;

typedef struct tn_program_operand {
    tn_operand_kind kind;
    uint32_t period;    /* BLOCKS: elements in a block */
    uint32_t block_dim; /* BLOCKS: the dim that counts blocks along the channel axis */
    size_t channels;    /* BLOCKS: elements along the channel axis; lanes beyond read as 0 */
    size_t strides[TN_PROGRAM_MAX_DIMS]; /* [dim_count] elements per step of the output's dim */
} tn_program_operand;

/* One step as it runs. */
typedef struct tn_program_isa tn_program_isa;
typedef void (*tn_step_fn)(void);
typedef struct tn_bound_step {
    tn_step_fn fn; /* of the instruction set's own type */
    uint32_t slot; /* operand or saved tile */
    float params[TN_BODY_MAX_PARAMS];
} tn_bound_step;

/* A program bound to sizes: immutable, part of a kernel's record. */
typedef struct tn_program_bound {
    const tn_program_isa *isa;
    size_t rows, cols;
    bool nontemporal;
    uint32_t operand_count;
    uint32_t dim_count;     /* of the output in physical order, merged where operands allow */
    uint32_t row_dim_count; /* the first of them, whose product is `rows` */
    size_t dims[TN_PROGRAM_MAX_DIMS];
    tn_program_operand operands[TN_PROGRAM_MAX_OPERANDS];
    tn_bound_step steps[TN_PROGRAM_MAX_STEPS + 1]; /* ends in the store */
} tn_program_bound;

typedef struct tn_program_bind_query {
    const tn_program *program;
    const tn_fact *output;          /* sized; with its layout */
    const tn_fact *const *operands; /* [program->operand_count] sized; FULL ones have the output's
                                       layout, the others are plain */
    size_t rows, cols;              /* their product is the physical element count */
    tn_cpu_features cpu;
    bool nontemporal; /* stores bypass the caches where they may */
} tn_program_bind_query;

/* Fills `out`. Blocked outputs take operands of their own layout and shape, and plain ones that
 * vary along axes 0 and 1 only.
 * Errors: TN_UNSUPPORTED for an operand that is neither and for more than TN_PROGRAM_MAX_DIMS
 * merged dims; TN_INTERNAL when rows x cols does not split the output between two dims. */
tn_status tn_program_bind(const tn_program_bind_query *query, tn_program_bound *out, tn_error *err);

/* A part of the output: `rows` x `cols` elements from (row0, col0). `in` holds the accumulator and
 * `out` receives the result; they may be the same memory. */
typedef struct tn_program_tile {
    const float *in; /* element (0, 0) of the tile; NULL for programs that start with LOAD */
    size_t in_row_stride;
    float *out;
    size_t out_row_stride;
    size_t row0, col0;
    size_t rows, cols;
    const void *const *operands; /* [operand_count] base addresses: element 0 of each operand */
} tn_program_tile;

/* Runs the program over the tile on the calling thread. Threads: any, with disjoint tiles. */
void tn_program_apply(const tn_program_bound *bound, const tn_program_tile *tile);

#endif
