/* Elementwise nodes behind a matrix product or convolution become its epilogue: a program that the
 * kernel applies to each tile of its output while that is in the cache.
 *
 * From a host forwards: nodes that read its output, or one another's, join as long as they keep the
 * output's shape; the longest run of them that leaves a single value for the rest of the graph is
 * taken. The host moves to the place of its last node, where all operands exist. Exact. */
#include <string.h>

#include "plan/passes.h"
#include "plan/program_builder.h"

#define MAX_HOST_INPUTS 32

/* The group so far, and the longest part of it that may be taken. */
typedef struct search {
    tn_ir *ir;
    uint32_t block;
    uint32_t host;
    tn_program_group group;
    uint32_t positions[TN_GROUP_MAX_NODES]; /* of the group's nodes in the block */
    uint32_t reads;                         /* of inner values, by the group */
    uint32_t best_count;
    tn_program program; /* of the best part */
    uint32_t operands[TN_PROGRAM_MAX_OPERANDS];
} search;

/* Whether some variant of `host` applies a program to its output. */
static bool takes_epilogue(tn_ir *ir, uint32_t host) {
    const tn_program empty = {.step_count = 0};
    const tn_ir_node *node = &ir->nodes[host];
    tn_variant variants[TN_MAX_VARIANTS];
    const tn_fact *inputs[MAX_HOST_INPUTS];
    tn_fact *outputs[1];
    tn_node_facts facts;
    uint32_t count = 0;
    if (node->op->variants == NULL || node->input_count > MAX_HOST_INPUTS) return false;
    tn_ir_node_facts(ir, host, inputs, outputs, &facts);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->dtype != TN_DTYPE_F32) return false;
    }
    memset(variants, 0, sizeof variants);
    const tn_variant_query query = {.node = &facts,
                                    .cpu = ir->cpu,
                                    .worker_count = ir->worker_count,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .epilogue = &empty};
    if (node->op->variants(&query, variants, &count, NULL) != TN_OK) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!variants[i].takes_epilogue) return false;
    }
    return count > 0;
}

static bool is_host(tn_ir *ir, uint32_t index) {
    const tn_ir_node *node = &ir->nodes[index];
    if (node->is_dead || node->epilogue != NULL || node->op->describe != NULL) return false;
    if (node->block_count > 0 || node->output_count != 1) return false;
    if (node->outputs[0] == TN_NO_VALUE || node->op->max_inputs == TN_VARIADIC) return false;
    if (ir->values[node->outputs[0]].fact.dtype != TN_DTYPE_F32) return false;
    return takes_epilogue(ir, index);
}

static bool is_inner(const search *s, uint32_t value) {
    if (value == s->group.host_value) return true;
    for (uint32_t n = 0; n < s->group.node_count; n++) {
        if (s->ir->nodes[s->group.nodes[n]].outputs[0] == value) return true;
    }
    return false;
}

/* Operands of convolutions may later meet a blocked output: they have its shape, or vary along the
 * first two axes only. */
static bool operand_fits(const search *s, const tn_fact *operand, const tn_shape *shape) {
    if (operand->dtype != TN_DTYPE_F32 || operand->shape.rank < 0) return false;
    if (operand->shape.rank > shape->rank) return false;
    if (s->ir->nodes[s->host].op->affine_weight_input == 0) return true;
    if (tn_program_same_shape(&operand->shape, shape)) return true;
    for (int32_t i = 0; i < operand->shape.rank; i++) {
        const int32_t axis = i + shape->rank - operand->shape.rank;
        if (axis > 1 && operand->shape.dims[i] != 1) return false;
    }
    return true;
}

static bool may_join(const search *s, uint32_t index, uint32_t *out_reads) {
    const tn_ir *ir = s->ir;
    const tn_ir_node *node = &ir->nodes[index];
    const tn_shape *shape = &ir->values[s->group.host_value].fact.shape;
    tn_body_use use;
    *out_reads = 0;
    if (!tn_program_node(s->ir, index, &use)) return false;
    if (!tn_program_same_shape(&ir->values[node->outputs[0]].fact.shape, shape)) return false;
    for (uint32_t i = 0; i < use.input_count; i++) {
        if (is_inner(s, node->inputs[i])) {
            (*out_reads)++;
        } else if (!operand_fits(s, &ir->values[node->inputs[i]].fact, shape)) {
            return false;
        }
    }
    return *out_reads > 0;
}

/* Uses of the host's value and of all group values but the last: when the group makes all of them,
 * only the last value leaves it. */
static uint32_t inner_uses(const search *s) {
    uint32_t uses = s->ir->values[s->group.host_value].use_count;
    for (uint32_t n = 0; n + 1 < s->group.node_count; n++) {
        uses += s->ir->values[s->ir->nodes[s->group.nodes[n]].outputs[0]].use_count;
    }
    return uses;
}

static void find_group(search *s, uint32_t host_position) {
    const tn_ir_block *block = &s->ir->blocks[s->block];
    for (uint32_t i = host_position + 1; i < block->node_count; i++) {
        tn_program program;
        uint32_t operands[TN_PROGRAM_MAX_OPERANDS];
        uint32_t reads = 0;
        const bool is_closed = s->best_count == s->group.node_count && s->group.node_count > 0;
        const uint32_t last =
            is_closed ? s->ir->nodes[s->group.nodes[s->group.node_count - 1]].outputs[0] : 0;
        if (is_closed && s->ir->values[last].output_count > 0) return;
        if (s->group.node_count == TN_GROUP_MAX_NODES) return;
        if (!may_join(s, block->nodes[i], &reads)) continue;
        s->positions[s->group.node_count] = i;
        s->group.nodes[s->group.node_count++] = block->nodes[i];
        s->reads += reads;
        if (!tn_program_build(s->ir, &s->group, &program, operands)) return;
        if (s->reads != inner_uses(s)) continue;
        s->best_count = s->group.node_count;
        s->program = program;
        memcpy(s->operands, operands, sizeof operands);
    }
}

static void move_host(const search *s, uint32_t host_position) {
    uint32_t *nodes = s->ir->blocks[s->block].nodes;
    const uint32_t to = s->positions[s->best_count - 1];
    memmove(&nodes[host_position], &nodes[host_position + 1], (to - host_position) * sizeof *nodes);
    nodes[to] = s->host;
}

static tn_status take_group(search *s, uint32_t host_position, tn_error *err) {
    tn_ir *ir = s->ir;
    const uint32_t first = ir->nodes[s->host].op->max_inputs;
    tn_program *kept = tn_bump_get(&ir->bump, sizeof *kept);
    if (kept == NULL || !tn_ir_grow_inputs(ir, s->host, first + s->program.operand_count)) {
        return tn_ir_no_memory(ir, err);
    }
    *kept = s->program;
    tn_ir_node *host = &ir->nodes[s->host];
    host->epilogue = kept;
    host->first_epilogue_input = first;
    memcpy(host->inputs + first, s->operands, kept->operand_count * sizeof *s->operands);
    host->outputs[0] = ir->nodes[s->group.nodes[s->best_count - 1]].outputs[0];
    ir->values[host->outputs[0]].producer = s->host;
    for (uint32_t n = 0; n < s->best_count; n++) ir->nodes[s->group.nodes[n]].is_dead = true;
    move_host(s, host_position);
    return TN_OK;
}

tn_status tn_pass_fuse_epilogue(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    if (options->disable_fusion) return TN_OK;
    tn_ir_remove_dead(ir); /* use counts decide below */
    for (uint32_t b = 0; b < ir->block_count; b++) {
        /* backwards: a host that moves goes behind what is still to be looked at */
        for (uint32_t i = ir->blocks[b].node_count; i-- > 0;) {
            const uint32_t index = ir->blocks[b].nodes[i];
            if (!is_host(ir, index)) continue;
            search s = {.ir = ir, .block = b, .host = index};
            s.group.host_value = ir->nodes[index].outputs[0];
            find_group(&s, i);
            if (s.best_count > 0) TN_TRY(take_group(&s, i, err));
        }
    }
    tn_ir_remove_dead(ir);
    return TN_OK;
}
