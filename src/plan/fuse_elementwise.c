/* Groups of elementwise nodes become one node that runs a program: intermediates never reach
 * memory.
 *
 * From the last node backwards: a group begins with a node and takes in the maker of an input when
 * that is elementwise, has the same shape, and is read inside the group only. Exact: the same
 * bodies in the same order. */
#include <string.h>

#include "plan/passes.h"
#include "plan/program_builder.h"

typedef struct fuser {
    tn_ir *ir;
    const tn_op_def *fused; /* the row of program nodes */
    uint32_t block;
    uint32_t node_count; /* when the pass began: nodes made since are no part of groups */
    uint32_t *position;  /* [node_count] in its block, plus 1; 0: another block */
} fuser;

static bool group_has(const tn_program_group *group, uint32_t node) {
    for (uint32_t i = 0; i < group->node_count; i++) {
        if (group->nodes[i] == node) return true;
    }
    return false;
}

static uint32_t reads_in_group(const fuser *f, const tn_program_group *group, uint32_t value) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < group->node_count; n++) {
        const tn_ir_node *node = &f->ir->nodes[group->nodes[n]];
        for (uint32_t i = 0; i < node->input_count; i++) count += node->inputs[i] == value;
    }
    return count;
}

/* Puts `node` where running order wants it. */
static void insert_node(const fuser *f, tn_program_group *group, uint32_t node) {
    uint32_t at = group->node_count++;
    while (at > 0 && f->position[group->nodes[at - 1]] > f->position[node]) {
        group->nodes[at] = group->nodes[at - 1];
        at--;
    }
    group->nodes[at] = node;
}

/* A value whose maker may join: all its readers are inside and it has the group's shape. */
static bool may_join(fuser *f, const tn_program_group *group, uint32_t value,
                     const tn_shape *shape) {
    tn_body_use use;
    if (value == TN_NO_VALUE || group->node_count == TN_GROUP_MAX_NODES) return false;
    const tn_ir_value *made = &f->ir->values[value];
    if (made->role != TN_IR_NODE || made->producer == TN_NO_NODE) return false;
    if (made->producer >= f->node_count || f->position[made->producer] == 0 ||
        group_has(group, made->producer))
        return false;
    if (made->use_count != reads_in_group(f, group, value)) return false;
    if (!tn_program_same_shape(&made->fact.shape, shape)) return false;
    return tn_program_node(f->ir, made->producer, &use);
}

/* Takes in one more node when the program still fits. */
static bool grow(fuser *f, tn_program_group *group, const tn_shape *shape, tn_program *program,
                 uint32_t *operands) {
    for (uint32_t n = group->node_count; n-- > 0;) {
        const tn_ir_node *node = &f->ir->nodes[group->nodes[n]];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!may_join(f, group, node->inputs[i], shape)) continue;
            tn_program_group larger = *group;
            insert_node(f, &larger, f->ir->values[node->inputs[i]].producer);
            if (!tn_program_build(f->ir, &larger, program, operands)) continue;
            *group = larger;
            return true;
        }
    }
    return false;
}

/* The group's nodes die; one node with the program makes the last one's output. */
static tn_status replace_group(fuser *f, const tn_program_group *group, const tn_program *program,
                               const uint32_t *operands, tn_error *err) {
    tn_ir *ir = f->ir;
    const uint32_t last = group->nodes[group->node_count - 1];
    const uint32_t made = tn_ir_add_node(ir, f->fused, program->operand_count, 1);
    if (made == TN_NO_NODE) return tn_ir_no_memory(ir, err);
    tn_ir_node *node = &ir->nodes[made];
    memcpy(node->params, program, sizeof *program);
    memcpy(node->inputs, operands, program->operand_count * sizeof *operands);
    node->name = ir->nodes[last].name;
    node->name_text = ir->nodes[last].name_text;
    node->opset = 1;
    node->outputs[0] = ir->nodes[last].outputs[0];
    ir->values[node->outputs[0]].producer = made;
    ir->blocks[f->block].nodes[f->position[last] - 1] = made;
    for (uint32_t i = 0; i < group->node_count; i++) {
        ir->nodes[group->nodes[i]].is_dead = true;
        f->position[group->nodes[i]] = 0;
    }
    return TN_OK;
}

static tn_status fuse_at(fuser *f, uint32_t index, tn_error *err) {
    tn_program_group group = {.host_value = TN_NO_VALUE, .nodes = {index}, .node_count = 1};
    tn_program program;
    uint32_t operands[TN_PROGRAM_MAX_OPERANDS];
    tn_body_use use;
    if (f->position[index] == 0 || !tn_program_node(f->ir, index, &use)) return TN_OK;
    const tn_shape shape = f->ir->values[f->ir->nodes[index].outputs[0]].fact.shape;
    while (grow(f, &group, &shape, &program, operands)) continue;
    if (group.node_count < 2) return TN_OK;
    /* the last attempt to grow may have failed half-way */
    if (!tn_program_build(f->ir, &group, &program, operands)) return TN_OK;
    return replace_group(f, &group, &program, operands, err);
}

tn_status tn_pass_fuse_elementwise(tn_ir *ir, const tn_pass_options *options, tn_error *err) {
    const tn_text domain = {"tenure", 6};
    const tn_text name = {"FusedElementwise", 16};
    fuser f = {.ir = ir};
    if (options->disable_fusion) return TN_OK;
    f.fused = tn_op_tables_find(ir->tables, ir->table_count, domain, name, 1);
    if (f.fused == NULL) return TN_OK;
    tn_ir_remove_dead(ir); /* use counts decide below */
    f.node_count = ir->node_count;
    f.position = tn_bump_array(&ir->bump, (size_t)f.node_count + 1, sizeof *f.position);
    if (f.position == NULL) return tn_ir_no_memory(ir, err);
    for (f.block = 0; f.block < ir->block_count; f.block++) {
        memset(f.position, 0, f.node_count * sizeof *f.position);
        for (uint32_t i = 0; i < ir->blocks[f.block].node_count; i++) {
            f.position[ir->blocks[f.block].nodes[i]] = i + 1;
        }
        for (uint32_t i = ir->blocks[f.block].node_count; i-- > 0;) {
            TN_TRY(fuse_at(&f, ir->blocks[f.block].nodes[i], err));
        }
        /* dead nodes stay listed until the next sweep */
        tn_ir_remove_dead(ir);
    }
    return TN_OK;
}
