/* From a group of elementwise nodes to a program: in running order, one accumulator, what is needed
 * again is saved. */
#ifndef TN_PLAN_PROGRAM_BUILDER_H
#define TN_PLAN_PROGRAM_BUILDER_H

#include "plan/ir.h"
#include "plan/program.h"

#define TN_GROUP_MAX_NODES TN_PROGRAM_MAX_STEPS

/* Nodes of one block that become one program. Values made inside are read inside only, except the
 * last node's. */
typedef struct tn_program_group {
    uint32_t host_value;                /* what the accumulator holds at first; TN_NO_VALUE: none */
    uint32_t nodes[TN_GROUP_MAX_NODES]; /* [node_count] in running order */
    uint32_t node_count;
} tn_program_group;

/* Whether `node` can be part of a program; describes it. Its output must be f32. */
bool tn_program_node(tn_ir *ir, uint32_t node, tn_body_use *out);

/* Writes the program of `group` and its operands [TN_PROGRAM_MAX_OPERANDS], value ids by operand
 * number. Returns false when the group needs more steps, operands or saved tiles than there are. */
bool tn_program_build(tn_ir *ir, const tn_program_group *group, tn_program *out,
                      uint32_t *out_operands);

/* The two shapes are the same as far as a structural plan can tell. */
bool tn_program_same_shape(const tn_shape *a, const tn_shape *b);

#endif
