/* Editing of the intermediate form: growing tables, replacing values, dropping what nobody reads.
 */
#include "plan/ir.h"

#include <string.h>

#include "base/checked_size.h"

/* Doubles a table that lies in the bump allocator; the old copy stays behind until the form dies.
 */
static bool grow_table(tn_ir *ir, void **table, uint32_t count, uint32_t *capacity,
                       size_t item_bytes) {
    if (count < *capacity) return true;
    if (*capacity > UINT32_MAX / 4) return false;
    const uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = tn_bump_array(&ir->bump, wanted, item_bytes);
    if (grown == NULL) return false;
    if (count > 0) memcpy(grown, *table, count * item_bytes);
    *table = grown;
    *capacity = wanted;
    return true;
}

uint32_t tn_ir_add_value(tn_ir *ir, tn_text name, tn_ir_role role) {
    void *table = ir->values;
    if (!grow_table(ir, &table, ir->value_count, &ir->value_capacity, sizeof *ir->values)) {
        return TN_NO_VALUE;
    }
    ir->values = table;
    tn_ir_value *value = &ir->values[ir->value_count];
    memset(value, 0, sizeof *value);
    value->name = name;
    value->role = role;
    value->fact.shape.rank = TN_RANK_UNKNOWN;
    value->producer = TN_NO_NODE;
    return ir->value_count++;
}

uint32_t *tn_ir_make_operands(tn_bump *bump, const uint32_t *from, uint32_t count) {
    const size_t room = (size_t)count + TN_IR_SPARE_OPERANDS;
    uint32_t *operands = tn_bump_array(bump, room, sizeof *operands);
    if (operands == NULL) return NULL;
    for (size_t i = 0; i < room; i++) {
        operands[i] = from != NULL && i < count ? from[i] : TN_NO_VALUE;
    }
    return operands;
}

uint32_t tn_ir_add_node(tn_ir *ir, const tn_op_def *op, uint32_t input_count,
                        uint32_t output_count) {
    void *table = ir->nodes;
    if (!grow_table(ir, &table, ir->node_count, &ir->node_capacity, sizeof *ir->nodes)) {
        return TN_NO_NODE;
    }
    ir->nodes = table;
    tn_ir_node *node = &ir->nodes[ir->node_count];
    memset(node, 0, sizeof *node);
    node->op = op;
    node->name_text = op->name;
    node->input_count = input_count;
    node->output_count = output_count;
    node->first_epilogue_input = UINT32_MAX;
    node->inputs = tn_ir_make_operands(&ir->bump, NULL, input_count);
    node->outputs = tn_ir_make_operands(&ir->bump, NULL, output_count);
    node->params = tn_bump_get(&ir->bump, tn_align_up(op->params_bytes, 64));
    if (node->inputs == NULL || node->outputs == NULL || node->params == NULL) return TN_NO_NODE;
    return ir->node_count++;
}

uint32_t tn_ir_add_block(tn_ir *ir) {
    void *table = ir->blocks;
    if (!grow_table(ir, &table, ir->block_count, &ir->block_capacity, sizeof *ir->blocks)) {
        return TN_NO_BLOCK;
    }
    ir->blocks = table;
    memset(&ir->blocks[ir->block_count], 0, sizeof *ir->blocks);
    return ir->block_count++;
}

bool tn_ir_block_append(tn_ir *ir, uint32_t block, uint32_t node) {
    return tn_ir_block_insert(ir, block, ir->blocks[block].node_count, node);
}

bool tn_ir_block_insert(tn_ir *ir, uint32_t block_index, uint32_t position, uint32_t node) {
    tn_ir_block *block = &ir->blocks[block_index];
    void *table = block->nodes;
    if (!grow_table(ir, &table, block->node_count, &block->node_capacity, sizeof *block->nodes)) {
        return false;
    }
    block->nodes = table;
    memmove(&block->nodes[position + 1], &block->nodes[position],
            (block->node_count - position) * sizeof *block->nodes);
    block->nodes[position] = node;
    block->node_count++;
    return true;
}

void tn_ir_replace_value(tn_ir *ir, uint32_t from, uint32_t to) {
    for (uint32_t n = 0; n < ir->node_count; n++) {
        tn_ir_node *node = &ir->nodes[n];
        if (node->is_dead) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == from) node->inputs[i] = to;
        }
    }
    for (uint32_t b = 0; b < ir->block_count; b++) {
        tn_ir_block *block = &ir->blocks[b];
        for (uint32_t i = 0; i < block->output_count; i++) {
            if (block->outputs[i] == from) block->outputs[i] = to;
        }
    }
}

bool tn_ir_grow_inputs(tn_ir *ir, uint32_t node_index, uint32_t input_count) {
    tn_ir_node *node = &ir->nodes[node_index];
    uint32_t *inputs = tn_ir_make_operands(&ir->bump, NULL, input_count);
    if (inputs == NULL) return false;
    for (uint32_t i = 0; i < node->input_count && i < input_count; i++) {
        inputs[i] = node->inputs[i];
    }
    node->inputs = inputs;
    node->input_count = input_count;
    return true;
}

static void add_use(tn_ir *ir, uint32_t value) {
    if (value != TN_NO_VALUE) ir->values[value].use_count++;
}

static bool is_read(const tn_ir *ir, const tn_ir_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != TN_NO_VALUE && ir->values[node->outputs[i]].use_count > 0) {
            return true;
        }
    }
    return false;
}

/* Blocks that live nodes reach: the main one, then the branches of nodes found live. Readers come
 * after producers in every block and inside later blocks, so one backward walk per block, outer
 * blocks first, decides. */
static void count_block(tn_ir *ir, uint32_t block_index, uint32_t *pending,
                        uint32_t *pending_count) {
    tn_ir_block *block = &ir->blocks[block_index];
    for (uint32_t i = block->node_count; i-- > 0;) {
        tn_ir_node *node = &ir->nodes[block->nodes[i]];
        if (node->is_dead) continue;
        for (uint32_t k = 0; k < node->input_count; k++) add_use(ir, node->inputs[k]);
        for (uint32_t k = 0; k < node->block_count; k++) {
            pending[(*pending_count)++] = node->blocks[k];
        }
    }
}

static void count_uses(tn_ir *ir, uint32_t *pending) {
    for (uint32_t v = 0; v < ir->value_count; v++) {
        ir->values[v].use_count = 0;
        ir->values[v].output_count = 0;
    }
    uint32_t pending_count = 1;
    pending[0] = ir->main_block;
    for (uint32_t next = 0; next < pending_count; next++) {
        const tn_ir_block *block = &ir->blocks[pending[next]];
        for (uint32_t i = 0; i < block->output_count; i++) {
            add_use(ir, block->outputs[i]);
            if (pending[next] == ir->main_block && block->outputs[i] != TN_NO_VALUE) {
                ir->values[block->outputs[i]].output_count++;
            }
        }
        count_block(ir, pending[next], pending, &pending_count);
    }
}

/* Marks nodes without readers; true when one was found, since its inputs may now lack readers. */
static bool mark_dead(tn_ir *ir) {
    bool found = false;
    for (uint32_t n = 0; n < ir->node_count; n++) {
        tn_ir_node *node = &ir->nodes[n];
        if (node->is_dead || is_read(ir, node)) continue;
        node->is_dead = true;
        found = true;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != TN_NO_VALUE) ir->values[node->inputs[i]].use_count--;
        }
    }
    return found;
}

static void compact_blocks(tn_ir *ir) {
    for (uint32_t b = 0; b < ir->block_count; b++) {
        tn_ir_block *block = &ir->blocks[b];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < block->node_count; i++) {
            if (!ir->nodes[block->nodes[i]].is_dead) block->nodes[kept++] = block->nodes[i];
        }
        block->node_count = kept;
    }
}

void tn_ir_remove_dead(tn_ir *ir) {
    uint32_t *pending = tn_bump_array(&ir->bump, (size_t)ir->block_count + 1, sizeof *pending);
    if (pending == NULL) return; /* dead nodes cost time, not correctness */
    do {
        count_uses(ir, pending);
    } while (mark_dead(ir));
    compact_blocks(ir);
}

void tn_ir_node_facts(tn_ir *ir, uint32_t node_index, const tn_fact **inputs, tn_fact **outputs,
                      tn_node_facts *out) {
    const tn_ir_node *node = &ir->nodes[node_index];
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i] == TN_NO_VALUE ? NULL : &ir->values[node->inputs[i]].fact;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i] = node->outputs[i] == TN_NO_VALUE ? NULL : &ir->values[node->outputs[i]].fact;
    }
    *out = (tn_node_facts){.op = node->op,
                           .params = node->params,
                           .name = node->name_text,
                           .opset = node->opset,
                           .input_count = node->input_count,
                           .output_count = node->output_count,
                           .inputs = inputs,
                           .outputs = outputs};
}

tn_status tn_ir_no_memory(const tn_ir *ir, tn_error *err) {
    return tn_error_set(err, TN_OUT_OF_MEMORY,
                        "the plan needs more memory than it may have (%zu bytes so far, under %s)",
                        ir->bump.used_bytes, tn_allocator_name(ir->bump.allocator));
}
