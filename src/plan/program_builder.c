/* A node's first input should be in the accumulator: it is when the node before made it; otherwise
 * it is loaded. A value that is read later than by the next step is saved when it is made. */
#include "plan/program_builder.h"

#include <string.h>

#define MAX_NODE_OPERANDS 64

typedef struct builder {
    tn_ir *ir;
    const tn_program_group *group;
    tn_program *program;
    uint32_t *operands;
    uint32_t accumulator;                 /* value in the accumulator; TN_NO_VALUE: none */
    uint32_t saved[TN_PROGRAM_MAX_SAVED]; /* value in each saved tile; TN_NO_VALUE: free */
} builder;

bool tn_program_same_shape(const tn_shape *a, const tn_shape *b) {
    if (a->rank != b->rank) return false;
    return a->rank < 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

bool tn_program_node(tn_ir *ir, uint32_t index, tn_body_use *out) {
    const tn_ir_node *node = &ir->nodes[index];
    const tn_fact *inputs[MAX_NODE_OPERANDS];
    tn_fact *outputs[1];
    tn_node_facts facts;
    if (node->is_dead || node->op->describe == NULL || node->block_count > 0) return false;
    if (node->epilogue != NULL || node->output_count != 1) return false;
    if (node->input_count > MAX_NODE_OPERANDS || node->outputs[0] == TN_NO_VALUE) return false;
    const tn_fact *output = &ir->values[node->outputs[0]].fact;
    if (output->dtype != TN_DTYPE_F32 || output->layout.block != 0) return false;
    tn_ir_node_facts(ir, index, inputs, outputs, &facts);
    if (!node->op->describe(&facts, out)) return false;
    if (tn_body_is_unary(out->body)) return out->input_count == 1;
    return tn_body_is_binary(out->body) && out->input_count >= 2;
}

/* Reads of `value` by the group's nodes from `first` on. */
static uint32_t reads_from(const builder *b, uint32_t first, uint32_t value) {
    uint32_t count = 0;
    for (uint32_t n = first; n < b->group->node_count; n++) {
        const tn_ir_node *node = &b->ir->nodes[b->group->nodes[n]];
        for (uint32_t i = 0; i < node->input_count; i++) count += node->inputs[i] == value;
    }
    return count;
}

static bool find_saved(const builder *b, uint32_t value, uint8_t *out) {
    for (uint8_t i = 0; i < TN_PROGRAM_MAX_SAVED; i++) {
        if (b->saved[i] == value) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool save(builder *b) {
    uint8_t slot;
    if (find_saved(b, b->accumulator, &slot)) return true;
    if (!find_saved(b, TN_NO_VALUE, &slot)) return false;
    b->saved[slot] = b->accumulator;
    if (slot >= b->program->saved_count) b->program->saved_count = (uint8_t)(slot + 1);
    return tn_program_append(b->program, &(tn_program_step){.body = TN_BODY_SAVE, .index = slot});
}

/* A constant of one element that does not raise the rank of what it meets. */
static bool read_immediate(const builder *b, uint32_t value, int32_t rank, float *out) {
    const tn_fact *fact = &b->ir->values[value].fact;
    if (!fact->is_constant || fact->data == NULL || !tn_fact_is_sized(fact)) return false;
    if (fact->dtype != TN_DTYPE_F32 || tn_fact_len_elems(fact) != 1) return false;
    if (fact->shape.rank > (rank < 0 ? 0 : rank)) return false;
    memcpy(out, fact->data, sizeof *out);
    return true;
}

static bool is_inner(const builder *b, uint32_t value) {
    if (value == b->group->host_value) return true;
    for (uint32_t n = 0; n < b->group->node_count; n++) {
        if (b->ir->nodes[b->group->nodes[n]].outputs[0] == value) return true;
    }
    return false;
}

/* Names where `value` comes from: a saved tile, an immediate, or an operand. `keeps_rank` is the
 * rank that the program has from elsewhere, so that an immediate may be left out of its inputs. */
static bool set_source(builder *b, uint32_t value, int32_t keeps_rank, tn_program_step *step) {
    if (find_saved(b, value, &step->index)) {
        step->source = TN_SOURCE_SAVED;
        return true;
    }
    if (read_immediate(b, value, keeps_rank, &step->params[0])) {
        step->source = TN_SOURCE_IMMEDIATE;
        return true;
    }
    if (is_inner(b, value)) return false;
    step->source = TN_SOURCE_INPUT;
    for (uint8_t i = 0; i < b->program->operand_count; i++) {
        step->index = i;
        if (b->operands[i] == value) return true;
    }
    if (b->program->operand_count == TN_PROGRAM_MAX_OPERANDS) return false;
    step->index = b->program->operand_count;
    b->operands[b->program->operand_count++] = value;
    return true;
}

static bool load(builder *b, uint32_t value) {
    tn_program_step step = {.body = TN_BODY_LOAD};
    if (!set_source(b, value, -1, &step)) return false;
    if (step.source == TN_SOURCE_IMMEDIATE) return false; /* constants fold by themselves */
    b->accumulator = value;
    return tn_program_append(b->program, &step);
}

static int32_t rank_of(const builder *b, uint32_t value) {
    return b->ir->values[value].fact.shape.rank;
}

/* Puts input 0 into the accumulator, or leaves input 1 there when two inputs may be swapped. */
static bool place_first(builder *b, const tn_ir_node *node, const tn_body_use *use,
                        bool *out_swapped) {
    float number;
    *out_swapped = false;
    if (node->inputs[0] == b->accumulator) return true;
    if (use->input_count != 2) return load(b, node->inputs[0]);
    const int32_t rank = rank_of(b, node->inputs[1]);
    const bool is_immediate = read_immediate(b, node->inputs[0], rank, &number);
    if (node->inputs[1] != b->accumulator && !is_immediate) return load(b, node->inputs[0]);
    *out_swapped = true;
    return node->inputs[1] == b->accumulator || load(b, node->inputs[1]);
}

/* Frees tiles whose values nobody reads from node `first` on. */
static void free_saved(builder *b, uint32_t first) {
    for (uint32_t i = 0; i < TN_PROGRAM_MAX_SAVED; i++) {
        if (b->saved[i] != TN_NO_VALUE && reads_from(b, first, b->saved[i]) == 0) {
            b->saved[i] = TN_NO_VALUE;
        }
    }
}

/* Inner values that are read once more than the accumulator can serve are kept. */
static bool keep_accumulator(builder *b, uint32_t n) {
    if (b->accumulator == TN_NO_VALUE || !is_inner(b, b->accumulator)) return true;
    const tn_ir_node *node = &b->ir->nodes[b->group->nodes[n]];
    const uint32_t here = reads_from(b, n, b->accumulator) - reads_from(b, n + 1, b->accumulator);
    const uint32_t later = reads_from(b, n + 1, b->accumulator);
    const bool is_first =
        node->inputs[0] == b->accumulator || (node->input_count == 2 && here == 1);
    const bool needs_copy = here > 1 || later > 0 || (here == 1 && !is_first);
    return !needs_copy || save(b);
}

static bool build_node(builder *b, uint32_t n) {
    const tn_ir_node *node = &b->ir->nodes[b->group->nodes[n]];
    tn_body_use use;
    bool is_swapped;
    if (!tn_program_node(b->ir, b->group->nodes[n], &use)) return false;
    if (!keep_accumulator(b, n)) return false;
    if (!place_first(b, node, &use, &is_swapped)) return false;
    tn_program_step step = {.body = use.body};
    if (use.input_count == 1) {
        memcpy(step.params, use.params, sizeof step.params);
        if (!tn_program_append(b->program, &step)) return false;
    }
    for (uint32_t i = 1; i < use.input_count; i++) {
        const uint32_t other = node->inputs[is_swapped ? 0 : i];
        step = (tn_program_step){.body = use.body, .is_swapped = is_swapped};
        if (!set_source(b, other, rank_of(b, node->inputs[is_swapped ? 1 : 0]), &step)) {
            return false;
        }
        if (!tn_program_append(b->program, &step)) return false;
    }
    b->accumulator = node->outputs[0];
    free_saved(b, n + 1);
    return true;
}

bool tn_program_build(tn_ir *ir, const tn_program_group *group, tn_program *out,
                      uint32_t *out_operands) {
    builder b = {.ir = ir,
                 .group = group,
                 .program = out,
                 .operands = out_operands,
                 .accumulator = group->host_value};
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < TN_PROGRAM_MAX_SAVED; i++) b.saved[i] = TN_NO_VALUE;
    for (uint32_t n = 0; n < group->node_count; n++) {
        if (!build_node(&b, n)) return false;
    }
    return out->step_count > 0;
}
