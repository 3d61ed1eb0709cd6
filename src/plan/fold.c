/* Structural inference and constant folding.
 *
 * One walk over all blocks in running order infers what can be known from declared shapes. A node
 * whose inputs are all constant is run once, now, by its own kernel, within a bound; a view of a
 * constant is a constant; a branch whose condition is constant takes the place of its node. What is
 * too large is left to run time. */
#include <string.h>

#include "base/checked_size.h"
#include "memory/tree.h"
#include "plan/constant.h"
#include "plan/ir.h"
#include "plan/op_run.h"

#define MAX_FOLD_OPERANDS TN_OP_RUN_MAX_OPERANDS

typedef struct fold {
    tn_ir *ir;
    tn_bump trial; /* scratch and outputs of one node; reset after it */
    size_t limit_bytes;
    bool changed;
    bool out_of_memory;
    tn_error *err;
} fold;

static void *get_from_ir(void *ctx, size_t size_bytes) {
    fold *f = ctx;
    void *data = tn_bump_get(&f->trial, tn_size_max(size_bytes, 64));
    if (data == NULL) f->out_of_memory = true;
    return data;
}

static bool inputs_are_constant(const tn_ir *ir, const tn_ir_node *node) {
    const bool by_shape = (node->op->flags & TN_OP_SHAPE_ONLY) != 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == TN_NO_VALUE) continue;
        const tn_fact *fact = &ir->values[node->inputs[i]].fact;
        const bool is_known = by_shape ? tn_fact_is_sized(fact) && fact->dtype != TN_DTYPE_NONE
                                       : fact->is_constant && fact->data != NULL;
        if (!is_known) return false;
    }
    return true;
}

static tn_status align_inputs(tn_ir *ir, const tn_ir_node *node, tn_error *err) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == TN_NO_VALUE) continue;
        if (ir->values[node->inputs[i]].fact.data == NULL) continue;
        TN_TRY(tn_constant_align(ir, node->inputs[i], err));
    }
    return TN_OK;
}

/* Outputs move from the trial's memory into the session's weights. */
static tn_status become_constants(fold *f, tn_ir_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == TN_NO_VALUE) continue;
        tn_ir_value *value = &f->ir->values[node->outputs[i]];
        size_t size_bytes = 0;
        TN_TRY(tn_fact_size_bytes(&value->fact, &size_bytes, f->err));
        void *kept = tn_bump_get(&f->ir->data, tn_size_max(size_bytes, 16));
        if (kept == NULL) return tn_ir_no_memory(f->ir, f->err);
        if (size_bytes > 0) memcpy(kept, value->fact.data, size_bytes);
        value->fact.data = kept;
        value->role = TN_IR_CONSTANT;
        value->producer = TN_NO_NODE;
        value->fact.is_constant = true;
        value->is_inner_constant = true;
    }
    node->is_dead = true;
    return TN_OK;
}

/* Output 0 is input 0's bytes under another shape: no copy, and large weights stay in the file. */
static void become_view(tn_ir *ir, tn_ir_node *node) {
    tn_ir_value *output = &ir->values[node->outputs[0]];
    const tn_ir_value *input = &ir->values[node->inputs[0]];
    output->role = TN_IR_CONSTANT;
    output->producer = TN_NO_NODE;
    output->fact.data = input->fact.data;
    output->fact.is_constant = true;
    output->tensor = input->tensor;
    output->is_inner_constant = input->is_inner_constant;
    node->is_dead = true;
}

/* Bytes that all outputs would need; false when a size is not known. */
static bool outputs_fit(const fold *f, const tn_node_facts *facts) {
    size_t total_bytes = 0;
    for (uint32_t i = 0; i < facts->output_count; i++) {
        size_t size_bytes = 0;
        if (facts->outputs[i] == NULL) continue;
        if (!tn_fact_is_sized(facts->outputs[i])) continue;
        if (tn_fact_size_bytes(facts->outputs[i], &size_bytes, NULL) != TN_OK) return false;
        if (!tn_size_add(total_bytes, size_bytes, &total_bytes)) return false;
    }
    return total_bytes <= f->limit_bytes;
}

static tn_status fold_node(fold *f, uint32_t index, const tn_node_facts *facts) {
    tn_ir *ir = f->ir;
    tn_ir_node *node = &ir->nodes[index];
    if (node->input_count > MAX_FOLD_OPERANDS || node->output_count > MAX_FOLD_OPERANDS) {
        return TN_OK;
    }
    if (!outputs_fit(f, facts)) return TN_OK;
    const bool is_view = (node->op->flags & TN_OP_VIEW) != 0 && node->output_count == 1 &&
                         node->input_count > 0 && node->inputs[0] != TN_NO_VALUE &&
                         node->outputs[0] != TN_NO_VALUE && tn_fact_is_sized(facts->outputs[0]);
    if (is_view) {
        become_view(ir, node);
        f->changed = true;
        return TN_OK;
    }
    if ((node->op->flags & TN_OP_FOLDABLE) == 0 || node->op->variants == NULL) return TN_OK;
    TN_TRY(align_inputs(ir, node, f->err));
    const tn_op_call call = {.node = facts,
                             .cpu = ir->cpu,
                             .worker_count = 1,
                             .variant_index = -1,
                             .memory = {f, get_from_ir},
                             .output_limit_bytes = f->limit_bytes};
    tn_error err;
    const uint64_t refusals = tn_tree_refusal_number(f->trial.allocator);
    tn_status status = tn_op_run(&call, &err);
    status = tn_tree_explain(f->trial.allocator, refusals, status, NULL);
    if (status == TN_LIMIT) { /* left to run time */
        tn_bump_reset(&f->trial);
        return TN_OK;
    }
    if (status != TN_OK) {
        if (f->err != NULL) *f->err = err;
        tn_error_set_node(f->err, node->name_text);
        return status;
    }
    TN_TRY(become_constants(f, node));
    tn_bump_reset(&f->trial);
    f->changed = true;
    return TN_OK;
}

/* Reads a constant boolean condition. */
static bool constant_condition(const tn_ir *ir, const tn_ir_node *node, bool *out) {
    if (node->input_count == 0 || node->inputs[0] == TN_NO_VALUE) return false;
    const tn_fact *fact = &ir->values[node->inputs[0]].fact;
    if (!fact->is_constant || fact->dtype != TN_DTYPE_BOOL || !tn_fact_is_sized(fact)) return false;
    if (tn_fact_len_elems(fact) != 1) return false;
    *out = *(const uint8_t *)fact->data != 0;
    return true;
}

/* The chosen branch's nodes take the place of the control node at `position` of `block`. */
static tn_status inline_branch(fold *f, uint32_t block, uint32_t position, bool condition) {
    tn_ir *ir = f->ir;
    const uint32_t index = ir->blocks[block].nodes[position];
    const uint32_t chosen = ir->nodes[index].blocks[condition ? 0 : 1];
    const tn_ir_block branch = ir->blocks[chosen];
    for (uint32_t i = 0; i < branch.node_count; i++) {
        if (!tn_ir_block_insert(ir, block, position + 1 + i, branch.nodes[i])) {
            return tn_ir_no_memory(ir, f->err);
        }
    }
    tn_ir_node *node = &ir->nodes[index];
    TN_REQUIRE(branch.output_count >= node->output_count, f->err, TN_INVALID_MODEL,
               "node '%s' has %u outputs, its branch makes %u", node->name_text, node->output_count,
               branch.output_count);
    node->is_dead = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != TN_NO_VALUE) {
            tn_ir_replace_value(ir, node->outputs[i], branch.outputs[i]);
        }
    }
    ir->blocks[chosen].node_count = 0;
    f->changed = true;
    return TN_OK;
}

static tn_status infer_node(fold *f, uint32_t index) {
    tn_ir *ir = f->ir;
    const tn_ir_node *node = &ir->nodes[index];
    if (node->op->infer == NULL) return TN_OK;
    tn_node_facts facts;
    const tn_fact *few_inputs[MAX_FOLD_OPERANDS];
    tn_fact *few_outputs[MAX_FOLD_OPERANDS];
    const tn_fact **inputs = few_inputs;
    tn_fact **outputs = few_outputs;
    if (node->input_count > MAX_FOLD_OPERANDS || node->output_count > MAX_FOLD_OPERANDS) {
        inputs = tn_bump_array(&ir->bump, node->input_count + 1u, sizeof *inputs);
        outputs = tn_bump_array(&ir->bump, node->output_count + 1u, sizeof *outputs);
        if (inputs == NULL || outputs == NULL) return tn_ir_no_memory(ir, f->err);
    }
    tn_ir_node_facts(ir, index, inputs, outputs, &facts);
    tn_status status = tn_op_check_types(&facts, f->err);
    if (status == TN_OK) status = node->op->infer(&facts, f->err);
    if (status != TN_OK) {
        tn_error_set_node(f->err, node->name_text);
        return status;
    }
    return inputs_are_constant(ir, node) ? fold_node(f, index, &facts) : TN_OK;
}

static tn_status fold_block(fold *f, uint32_t block) {
    for (uint32_t i = 0; i < f->ir->blocks[block].node_count; i++) {
        const uint32_t index = f->ir->blocks[block].nodes[i];
        const tn_ir_node *node = &f->ir->nodes[index];
        if (node->is_dead) continue;
        bool condition = false;
        if ((node->op->flags & TN_OP_CONTROL) != 0) {
            if (constant_condition(f->ir, node, &condition)) {
                TN_TRY(inline_branch(f, block, i, condition));
            }
            continue;
        }
        const tn_status status = infer_node(f, index);
        /* what does not fit in a branch is an error only if a run takes it */
        const bool is_memory = status == TN_OUT_OF_MEMORY || status == TN_LIMIT;
        if (status != TN_OK && (block == f->ir->main_block || is_memory)) return status;
    }
    return TN_OK;
}

static tn_status fold_all(fold *f) {
    do {
        f->changed = false;
        /* outer blocks have lower numbers, so what a branch captures is inferred before it */
        for (uint32_t b = 0; b < f->ir->block_count; b++) TN_TRY(fold_block(f, b));
    } while (f->changed);
    return TN_OK;
}

tn_status tn_ir_fold(tn_ir *ir, size_t limit_bytes, tn_error *err) {
    fold f = {.ir = ir, .limit_bytes = limit_bytes, .err = err};
    f.trial.allocator = ir->bump.allocator;
    const tn_status status = fold_all(&f);
    tn_bump_deinit(&f.trial);
    if (status == TN_OK) tn_ir_remove_dead(ir);
    return status;
}
