/* Chooses blocked layouts over the main graph.
 *
 * One walk in running order. A convolution whose row offers a blocked variant takes it; pooling and
 * elementwise nodes stay in blocks when their input already lies so; everything else, branches and
 * the model's outputs included, reads plain values. Where both sides disagree a Reorder is put
 * right before the first reader, once per value. Rows say what they can do through their variants:
 * no operator is named here but Reorder itself. The decision needs channels and weights only; dims
 * that are not known yet must be equal symbols where two values share a layout. */
#include <string.h>

#include "plan/passes.h"

#define MAX_NODE_INPUTS 32
#define MAX_NODE_OUTPUTS 8

typedef struct layouter {
    tn_ir *ir;
    const tn_op_def *reorder;
    uint16_t block;
    uint32_t position;    /* of the node in the main block; moves with insertions */
    uint32_t value_count; /* when the pass began: maps hold these values */
    uint32_t *plain_of;   /* [value_count] plain copy of a blocked value, or TN_NO_VALUE */
    uint32_t *blocked_of; /* [value_count] blocked copy of a plain value, or TN_NO_VALUE */
    bool *is_captured;    /* [value_count] read inside a branch */
    bool *is_output;      /* [value_count] an output of the main block */
} layouter;

/* What one node does. */
typedef struct choice {
    bool is_blocked;
    uint32_t blocked_inputs; /* bit per input */
    tn_layout input_layout, output_layout;
} choice;

/* Blocks that the vectors of this processor fill; 0: none that pay. */
static uint16_t block_of_processor(tn_cpu_features cpu) {
    if ((cpu & TN_CPU_AVX512) != 0) return 16;
    return (cpu & TN_CPU_AVX2) != 0 ? 8 : 0;
}

static bool is_same_for_sure(const tn_shape *a, const tn_shape *b) {
    if (a->rank != b->rank || a->rank < 0) return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] == TN_DIM_UNKNOWN || a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

/* Whether a plain operand can meet a blocked output: it varies along the first two axes only. */
static bool is_constant_along_space(const tn_shape *output, const tn_shape *operand) {
    if (operand->rank < 0 || operand->rank > output->rank) return false;
    for (int32_t i = 0; i < operand->rank; i++) {
        const int32_t axis = i + output->rank - operand->rank;
        if (axis > 1 && operand->dims[i] != 1) return false;
    }
    return true;
}

static bool lies_in_blocks(const layouter *l, uint32_t value) {
    return l->ir->values[value].fact.layout.block != 0 ||
           (value < l->value_count && l->blocked_of[value] != TN_NO_VALUE);
}

static void mark_block(layouter *l, uint32_t index) {
    const tn_ir_block *block = &l->ir->blocks[index];
    const bool is_main = index == l->ir->main_block;
    for (uint32_t i = 0; i < block->output_count; i++) {
        if (block->outputs[i] == TN_NO_VALUE) continue;
        (is_main ? l->is_output : l->is_captured)[block->outputs[i]] = true;
    }
    if (is_main) return;
    for (uint32_t n = 0; n < block->node_count; n++) {
        const tn_ir_node *node = &l->ir->nodes[block->nodes[n]];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != TN_NO_VALUE) l->is_captured[node->inputs[i]] = true;
        }
    }
}

static bool start(layouter *l) {
    tn_ir *ir = l->ir;
    const tn_text domain = {"tenure", 6};
    const tn_text name = {"Reorder", 7};
    l->block = block_of_processor(ir->cpu);
    l->reorder = tn_op_tables_find(ir->tables, ir->table_count, domain, name, 1);
    l->value_count = ir->value_count;
    const size_t count = (size_t)l->value_count + 1;
    l->plain_of = tn_bump_array(&ir->bump, count, sizeof *l->plain_of);
    l->blocked_of = tn_bump_array(&ir->bump, count, sizeof *l->blocked_of);
    l->is_captured = tn_bump_array(&ir->bump, count, sizeof *l->is_captured);
    l->is_output = tn_bump_array(&ir->bump, count, sizeof *l->is_output);
    if (l->plain_of == NULL || l->blocked_of == NULL || l->is_captured == NULL ||
        l->is_output == NULL) {
        return false;
    }
    memset(l->plain_of, 0xff, count * sizeof *l->plain_of);
    memset(l->blocked_of, 0xff, count * sizeof *l->blocked_of);
    for (uint32_t b = 0; b < ir->block_count; b++) mark_block(l, b);
    return true;
}

/* ---- choosing ---- */

/* The row's variant in blocks, when it has one that suits the node. */
static bool find_variant(const layouter *l, const tn_ir_node *node, const tn_node_facts *facts,
                         tn_variant *out) {
    tn_variant variants[TN_MAX_VARIANTS];
    uint32_t count = 0;
    memset(variants, 0, sizeof variants);
    const tn_variant_query query = {.node = facts,
                                    .cpu = l->ir->cpu,
                                    .worker_count = l->ir->worker_count,
                                    .scratch_limit_bytes = SIZE_MAX,
                                    .preferred_block = l->block,
                                    .epilogue = node->epilogue};
    if (node->op->variants(&query, variants, &count, NULL) != TN_OK) return false;
    for (uint32_t i = 0; i < count; i++) {
        const tn_variant *v = &variants[i];
        if (v->output_layout.block != l->block && v->input_layout.block != l->block) continue;
        if (node->epilogue != NULL && !v->takes_epilogue) continue;
        *out = *v;
        return true;
    }
    return false;
}

/* Whether every input fits the variant; adds the epilogue's full-size operands to the mask. */
static bool inputs_fit(const tn_ir_node *node, const tn_node_facts *facts, choice *c) {
    const tn_shape *output = &facts->outputs[0]->shape;
    const bool is_elementwise = (node->op->flags & TN_OP_ANY_LAYOUT) != 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const tn_fact *input = facts->inputs[i];
        const bool is_operand = is_elementwise || i >= node->first_epilogue_input;
        if (input == NULL) continue;
        if (is_operand && i >= node->first_epilogue_input &&
            is_same_for_sure(&input->shape, output)) {
            c->blocked_inputs |= 1u << i;
        }
        const bool is_blocked = (c->blocked_inputs >> i & 1u) != 0;
        if (is_blocked && input->dtype != TN_DTYPE_F32) return false;
        if (!is_operand) continue;
        if (is_blocked && !is_same_for_sure(&input->shape, output)) return false;
        if (!is_blocked && !is_constant_along_space(output, &input->shape)) return false;
    }
    return true;
}

/* Convolutions begin chains; other nodes only stay in them. */
static bool is_worth_it(const layouter *l, const tn_ir_node *node, const choice *c) {
    if (node->op->affine_weight_input != 0) return true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if ((c->blocked_inputs >> i & 1u) == 0 || node->inputs[i] == TN_NO_VALUE) continue;
        if (lies_in_blocks(l, node->inputs[i])) return true;
    }
    return false;
}

static choice choose(const layouter *l, uint32_t index) {
    const tn_ir_node *node = &l->ir->nodes[index];
    const tn_fact *inputs[MAX_NODE_INPUTS];
    tn_fact *outputs[MAX_NODE_OUTPUTS];
    tn_node_facts facts;
    tn_variant variant;
    choice c = {.is_blocked = false};
    if (node->op->variants == NULL || node->block_count > 0) return c;
    if (node->input_count > MAX_NODE_INPUTS || node->output_count > MAX_NODE_OUTPUTS) return c;
    if (node->output_count == 0 || node->outputs[0] == TN_NO_VALUE) return c;
    if (l->is_captured[node->outputs[0]]) return c;
    tn_ir_node_facts(l->ir, index, inputs, outputs, &facts);
    if (outputs[0]->dtype != TN_DTYPE_F32 || outputs[0]->shape.rank < 3) return c;
    if (outputs[0]->shape.dims[1] < 1) return c;
    if (!find_variant(l, node, &facts, &variant)) return c;
    c.blocked_inputs = variant.layout_input_mask;
    c.input_layout = variant.input_layout;
    c.output_layout = variant.output_layout;
    c.is_blocked = inputs_fit(node, &facts, &c) && is_worth_it(l, node, &c);
    return c;
}

/* ---- editing ---- */

/* A Reorder of `from` into `to`, put at `position`. */
static tn_status insert_reorder(layouter *l, uint32_t from, uint32_t to, uint32_t position,
                                tn_error *err) {
    tn_ir *ir = l->ir;
    const uint32_t made = tn_ir_add_node(ir, l->reorder, 1, 1);
    if (made == TN_NO_NODE || !tn_ir_block_insert(ir, ir->main_block, position, made)) {
        return tn_ir_no_memory(ir, err);
    }
    tn_ir_node *node = &ir->nodes[made];
    node->opset = 1;
    node->inputs[0] = from;
    node->outputs[0] = to;
    node->input_layout = ir->values[from].fact.layout;
    node->output_layout = ir->values[to].fact.layout;
    ir->values[to].producer = made;
    return TN_OK;
}

/* A value like `value` in the other layout. */
static tn_status add_twin(layouter *l, uint32_t value, uint16_t block, uint32_t *out,
                          tn_error *err) {
    tn_ir *ir = l->ir;
    const uint32_t twin = tn_ir_add_value(ir, ir->values[value].name, TN_IR_NODE);
    if (twin == TN_NO_VALUE) return tn_ir_no_memory(ir, err);
    ir->values[twin].fact = ir->values[value].fact;
    ir->values[twin].fact.layout.block = block;
    ir->values[twin].fact.data = NULL;
    ir->values[twin].fact.is_constant = false;
    *out = twin;
    return TN_OK;
}

/* `value` in the wanted layout, for the node at l->position. */
static tn_status in_layout(layouter *l, uint32_t value, bool is_blocked, uint32_t *out,
                           tn_error *err) {
    const bool lies_blocked = l->ir->values[value].fact.layout.block != 0;
    *out = value;
    if (lies_blocked == is_blocked) return TN_OK;
    uint32_t *twins = is_blocked ? l->blocked_of : l->plain_of;
    if (twins[value] == TN_NO_VALUE) {
        uint32_t twin = TN_NO_VALUE;
        TN_TRY(add_twin(l, value, is_blocked ? l->block : 0, &twin, err));
        TN_TRY(insert_reorder(l, value, twin, l->position++, err));
        twins[value] = twin;
    }
    *out = twins[value];
    return TN_OK;
}

/* The node's output in blocks; an output of the model gets its plain form right behind. */
static tn_status block_output(layouter *l, uint32_t index, tn_error *err) {
    tn_ir *ir = l->ir;
    const uint32_t value = ir->nodes[index].outputs[0];
    if (!l->is_output[value]) {
        ir->values[value].fact.layout.block = l->block;
        return TN_OK;
    }
    uint32_t twin = TN_NO_VALUE;
    TN_TRY(add_twin(l, value, l->block, &twin, err));
    ir->nodes[index].outputs[0] = twin;
    ir->values[twin].producer = index;
    l->blocked_of[value] = twin;
    return insert_reorder(l, twin, value, ++l->position, err);
}

static tn_status visit(layouter *l, uint32_t index, tn_error *err) {
    tn_ir *ir = l->ir;
    const choice c = choose(l, index);
    const uint32_t input_count = ir->nodes[index].input_count;
    for (uint32_t i = 0; i < input_count; i++) {
        const uint32_t value = ir->nodes[index].inputs[i];
        if (value == TN_NO_VALUE) continue;
        const bool is_blocked = c.is_blocked && (c.blocked_inputs >> i & 1u) != 0;
        uint32_t wanted = value;
        TN_TRY(in_layout(l, value, is_blocked, &wanted, err));
        ir->nodes[index].inputs[i] = wanted;
    }
    if (!c.is_blocked) return TN_OK;
    ir->nodes[index].input_layout = c.input_layout;
    ir->nodes[index].output_layout = c.output_layout;
    return c.output_layout.block == 0 ? TN_OK : block_output(l, index, err);
}

tn_status tn_pass_layout(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    layouter l = {.ir = ir};
    if (options->disable_layout || options->disable_fusion || options->exact_only) return TN_OK;
    if (!start(&l)) return tn_ir_no_memory(ir, err);
    if (l.block == 0 || l.reorder == NULL) return TN_OK;
    for (; l.position < ir->blocks[ir->main_block].node_count; l.position++) {
        const uint32_t index = ir->blocks[ir->main_block].nodes[l.position];
        if (!ir->nodes[index].is_dead) TN_TRY(visit(&l, index, err));
    }
    return TN_OK;
}
