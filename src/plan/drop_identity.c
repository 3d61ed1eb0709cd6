/* Nodes that hand their input on: readers read the input itself.
 *
 * Exporters leave them between convolutions and what follows, where they would end every fusion. A
 * node counts when its row says that output 0 is input 0's bytes and that its shape is input 0's
 * too. What the model or a branch gives out keeps its node. Exact. */
#include "plan/passes.h"

static bool is_identity(const tn_ir *ir, const tn_ir_node *node) {
    if (node->is_dead || (node->op->flags & TN_OP_VIEW) == 0) return false;
    if (node->op->infer != tn_infer_same_as_input0) return false;
    if (node->input_count == 0 || node->output_count == 0) return false;
    if (node->inputs[0] == TN_NO_VALUE || node->outputs[0] == TN_NO_VALUE) return false;
    for (uint32_t i = 1; i < node->output_count; i++) {
        if (node->outputs[i] != TN_NO_VALUE && ir->values[node->outputs[i]].use_count > 0) {
            return false;
        }
    }
    return true;
}

static bool is_given_out(const tn_ir *ir, uint32_t value) {
    for (uint32_t b = 0; b < ir->block_count; b++) {
        for (uint32_t i = 0; i < ir->blocks[b].output_count; i++) {
            if (ir->blocks[b].outputs[i] == value) return true;
        }
    }
    return false;
}

tn_status tn_pass_drop_identity(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    (void)err;
    if (options->disable_fusion) return TN_OK;
    tn_ir_remove_dead(ir); /* use counts decide */
    for (uint32_t n = 0; n < ir->node_count; n++) {
        const tn_ir_node *node = &ir->nodes[n];
        if (!is_identity(ir, node) || is_given_out(ir, node->outputs[0])) continue;
        tn_ir_replace_value(ir, node->outputs[0], node->inputs[0]);
    }
    tn_ir_remove_dead(ir);
    return TN_OK;
}
