/* The intermediate form of a model: values, nodes and blocks with numbers for names.
 *
 * Functions are inlined, Constant nodes and initializers are constant values, every node knows its
 * row and its parsed parameters. Blocks are the main graph and the branches of control nodes; all
 * share one value table, so a captured value is an ordinary one. Passes edit it in place; sized
 * plans only read it. Everything lies in one bump allocator. One thread at a time while it is
 * edited, immutable afterwards. */
#ifndef TN_PLAN_IR_H
#define TN_PLAN_IR_H

#include "plan/bump.h"
#include "plan/op_def.h"

#define TN_NO_NODE UINT32_MAX
#define TN_NO_BLOCK UINT32_MAX
#define TN_MAX_NODE_BLOCKS 2

typedef enum tn_ir_role {
    TN_IR_NODE,    /* made by a node */
    TN_IR_INPUT,   /* fed by the caller */
    TN_IR_CONSTANT /* fact.data is its contents */
} tn_ir_role;

typedef struct tn_ir_value {
    tn_text name;
    tn_ir_role role;
    tn_fact fact;                  /* declared, later inferred; dims may be symbols */
    const tn_graph_tensor *tensor; /* constants straight from the file; else NULL */
    uint32_t producer;             /* node; TN_NO_NODE for inputs and constants */
    uint32_t input_index;          /* INPUT: position among the model's declared inputs */
    uint32_t use_count;            /* reads by live nodes and block outputs; see tn_ir_count_uses */
    uint32_t output_count;         /* how often it is listed as an output of the model */
    bool is_inner_constant;        /* folded or copied: data lies in the session's own memory */
} tn_ir_value;

/* Lists of operands end in so many TN_NO_VALUE beyond their count: a kernel may ask for optional
 * operands that the node's list is too short to mention. */
#define TN_IR_SPARE_OPERANDS 8

typedef struct tn_ir_node {
    const tn_op_def *op;
    void *params;
    tn_text name;          /* as in the file, or "" */
    const char *name_text; /* for messages: name or operator and number, NUL-terminated */
    int64_t opset;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t *inputs;  /* [input_count] value ids or TN_NO_VALUE */
    uint32_t *outputs; /* [output_count] */
    uint32_t block_count;
    uint32_t blocks[TN_MAX_NODE_BLOCKS]; /* control nodes: then, else */
    const tn_program *epilogue;          /* applied to output 0; its operands are further inputs */
    uint32_t first_epilogue_input;       /* inputs from here on belong to `epilogue` */
    tn_layout input_layout;              /* chosen by the layout pass */
    tn_layout output_layout;
    bool is_dead;
} tn_ir_node;

typedef struct tn_ir_block {
    uint32_t *nodes; /* [node_count] in running order */
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t output_count;
    uint32_t *outputs; /* [output_count] value ids */
} tn_ir_block;

typedef struct tn_ir {
    tn_bump bump;          /* the form itself */
    tn_bump data;          /* contents of folded constants: weights of the session */
    const tn_model *model; /* borrowed */
    const tn_op_table *const *tables;
    size_t table_count;
    tn_cpu_features cpu;
    uint32_t worker_count;
    tn_ir_value *values;
    uint32_t value_count, value_capacity;
    tn_ir_node *nodes;
    uint32_t node_count, node_capacity;
    tn_ir_block *blocks;
    uint32_t block_count, block_capacity;
    uint32_t main_block;
    uint32_t input_count;
    uint32_t
        *inputs; /* [input_count] value of each declared input; constants when folded as default */
    bool *input_has_default; /* [input_count] an initializer of the same name exists */
} tn_ir;

typedef struct tn_ir_options {
    tn_allocator *allocator;         /* borrowed; charged for the form */
    tn_allocator *weights_allocator; /* borrowed; charged for folded constants */
    const tn_op_table *const *tables;
    size_t table_count;
    tn_cpu_features cpu;
    uint32_t worker_count;
    const bool *fed_inputs; /* [declared inputs]: inputs with defaults that this plan is fed; NULL:
                               none, defaults are constants */
} tn_ir_options;

/* Builds the form of `model`. All unsupported operators, types and attributes are reported at once.
 * Ownership: *out is freed with tn_ir_destroy. `model` must outlive it.
 * Errors:    TN_UNSUPPORTED, TN_INVALID_MODEL (node named), TN_OUT_OF_MEMORY, TN_LIMIT. */
tn_status tn_ir_create(const tn_model *model, const tn_ir_options *options, tn_ir **out,
                       tn_error *err);
void tn_ir_destroy(tn_ir *ir);

/* Editing. Each returns TN_NO_VALUE, TN_NO_NODE or false when memory is refused. */
uint32_t tn_ir_add_value(tn_ir *ir, tn_text name, tn_ir_role role);
uint32_t tn_ir_add_node(tn_ir *ir, const tn_op_def *op, uint32_t input_count,
                        uint32_t output_count);
uint32_t tn_ir_add_block(tn_ir *ir);
bool tn_ir_block_append(tn_ir *ir, uint32_t block, uint32_t node);
/* Puts `node` at `position` of `block`; positions after it move up. */
bool tn_ir_block_insert(tn_ir *ir, uint32_t block, uint32_t position, uint32_t node);
/* Makes every live reader of `from`, block outputs included, read `to`. */
void tn_ir_replace_value(tn_ir *ir, uint32_t from, uint32_t to);
/* A list of `count` operands copied from `from`, or TN_NO_VALUE when that is NULL, and its spare
 * entries. NULL when memory is refused. */
uint32_t *tn_ir_make_operands(tn_bump *bump, const uint32_t *from, uint32_t count);

/* Gives node more room for inputs: the first stay, the rest are TN_NO_VALUE. */
bool tn_ir_grow_inputs(tn_ir *ir, uint32_t node, uint32_t input_count);

/* Fresh use counts of all values and removal of nodes that nobody reads. */
void tn_ir_remove_dead(tn_ir *ir);

/* Node facts of `node` over the form's own (structural) facts, for passes. `inputs` and `outputs`
 * have room for the node's counts. */
void tn_ir_node_facts(tn_ir *ir, uint32_t node, const tn_fact **inputs, tn_fact **outputs,
                      tn_node_facts *out);

/* "out of memory while planning" with the node's name when there is one. */
tn_status tn_ir_no_memory(const tn_ir *ir, tn_error *err);

/* Structural inference, constant folding (at most `limit_bytes` per value), views of constants and
 * branches whose condition is known. Idempotent. */
tn_status tn_ir_fold(tn_ir *ir, size_t limit_bytes, tn_error *err);

#endif
