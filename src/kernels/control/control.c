/* Control flow: rows without kernels. The plan turns the node into BRANCH steps over the nodes of
 * its branches, so there is nothing to run here but what the schema asks of the node itself. */
#include "plan/op_def.h"

static tn_status check_if(const tn_check_context *ctx, void *params) {
    static const char *const branches[] = {"then_branch", "else_branch"};
    (void)params;
    for (size_t i = 0; i < TN_COUNTOF(branches); i++) {
        const tn_graph_attribute *branch =
            ctx->node == NULL ? NULL : tn_graph_node_attribute(ctx->node, branches[i]);
        TN_REQUIRE(branch != NULL && branch->type == TN_ATTRIBUTE_GRAPH && branch->graph != NULL,
                   ctx->err, TN_INVALID_MODEL, "attribute %s is missing or no graph", branches[i]);
        TN_REQUIRE(branch->graph->output_count == ctx->output_count, ctx->err, TN_INVALID_MODEL,
                   "%s makes %zu values, the node has %u outputs", branches[i],
                   branch->graph->output_count, ctx->output_count);
    }
    return TN_OK;
}

static const uint32_t condition_types[] = {TN_TYPE_BIT(BOOL)};

/* Opset 1 asked for equal shapes of both branches; what later ones allow includes that. */
static const tn_op_def control_ops[] = {
    {.name = "If",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = TN_VARIADIC,
     .flags = TN_OP_CONTROL,
     .input_types = condition_types,
     .input_types_count = 1,
     .check = check_if,
     .notes = "planned as branches; tensors only"},
};

const tn_op_table tn_control_table = {control_ops, TN_COUNTOF(control_ops)};
