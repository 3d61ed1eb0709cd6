/* Running one node on its own: for constant folding, for shape arithmetic at plan time, for
 * standalone kernel calls and for the tests of kernels. Single-threaded; the same functions of the
 * row that a planned run calls. */
#ifndef TN_PLAN_OP_RUN_H
#define TN_PLAN_OP_RUN_H

#include "plan/op_def.h"

#define TN_OP_RUN_MAX_OPERANDS 64
#define TN_OP_RUN_MAX_WORKERS 4

/* Where scratch, packed weights and outputs come from. `get` returns NULL when refused; memory is
 * 64-byte aligned. The caller frees everything it gave by its own means afterwards. */
typedef struct tn_op_memory {
    void *ctx;
    void *(*get)(void *ctx, size_t size_bytes);
} tn_op_memory;

typedef struct tn_op_call {
    const tn_node_facts *node; /* params parsed; every input that is present has `data` */
    tn_cpu_features cpu;
    uint32_t worker_count; /* workers that the tiles are dealt to, one after another */
    int32_t variant_index; /* -1: the cheapest plain one */
    tn_op_memory memory;
    size_t output_limit_bytes; /* TN_LIMIT when outputs would need more; 0: none */
} tn_op_call;

/* Infers, binds and runs. Outputs' facts get dtype, shape and `data` (from `memory`; views point
 * into their input).
 * Errors: those of the row; TN_OUT_OF_MEMORY; TN_LIMIT for outputs above the limit; TN_OUT_OF_RANGE
 *         when variant_index is beyond the list. */
tn_status tn_op_run(const tn_op_call *call, tn_error *err);

/* The cheapest variant whose layouts are all plain; NULL when there is none. */
const tn_variant *tn_variant_cheapest_plain(const tn_variant *variants, uint32_t count);

/* Checks presence and types of inputs against the row. Unknown types pass. */
tn_status tn_op_check_types(const tn_node_facts *node, tn_error *err);

#endif
