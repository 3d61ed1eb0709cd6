/* What one instruction set offers to elementwise kernels: a loop per body, and the steps of the
 * accumulator machine. */
#ifndef TN_KERNELS_ELEMENTWISE_ISA_H
#define TN_KERNELS_ELEMENTWISE_ISA_H

#include "kernels/common/broadcast.h"
#include "kernels/elementwise/program_run.h"

#define TN_MACHINE_VECTORS 8
#define TN_MACHINE_MAX_CHUNK 128 /* floats: eight vectors of the widest instruction set */
#define TN_MACHINE_SLOTS (TN_PROGRAM_MAX_OPERANDS + TN_PROGRAM_MAX_SAVED)

/* Where an operand is read for the current chunk. */
typedef struct tn_machine_slot {
    const float *at;
    size_t step;    /* floats from vector to vector: 0 repeats one vector */
    size_t advance; /* floats from chunk to chunk */
} tn_machine_slot;

/* The machine's memory; the accumulator itself lives in registers. */
typedef struct tn_machine {
    const float *in; /* first accumulator; NULL: none */
    float *out;
    size_t slot_count;                       /* those that advance */
    tn_machine_slot slots[TN_MACHINE_SLOTS]; /* operands, then saved tiles */
    float saved[TN_PROGRAM_MAX_SAVED][TN_MACHINE_MAX_CHUNK] __attribute__((aligned(64)));
} tn_machine;

/* How a step finds its operand. */
typedef enum tn_step_form {
    TN_STEP_SLOT,
    TN_STEP_IMMEDIATE,
    TN_STEP_SLOT_SWAPPED,
    TN_STEP_IMMEDIATE_SWAPPED,
    TN_STEP_FORM_COUNT
} tn_step_form;

/* Static and immutable. */
struct tn_program_isa {
    const char *name;
    size_t chunk; /* elements per pass of the machine */
    tn_loop_fn loops[TN_BODY_PROGRAM_END];
    tn_step_fn steps[TN_BODY_STEP_END][TN_STEP_FORM_COUNT]; /* unary ones: form 0 */
    tn_step_fn store;
    tn_step_fn store_nontemporal; /* needs `out` aligned to 64 */
    /* Runs `count` whole chunks. */
    void (*run_chunks)(const tn_bound_step *steps, tn_machine *machine, size_t count);
    void (*end_nontemporal)(void);
};

extern const tn_program_isa tn_program_portable;
extern const tn_program_isa tn_program_avx2;
extern const tn_program_isa tn_program_avx512;

/* Lends the best instruction set of `cpu`; never NULL. */
const tn_program_isa *tn_program_isa_best(tn_cpu_features cpu);

#endif
