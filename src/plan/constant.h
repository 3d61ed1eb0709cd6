/* Constant values of the intermediate form: from initializers, attributes and sparse tensors. */
#ifndef TN_PLAN_CONSTANT_H
#define TN_PLAN_CONSTANT_H

#include "plan/ir.h"

/* Fills value `id` from `tensor`. Small contents that are not aligned to their element are copied
 * aligned; large ones stay in the mapping and are copied by tn_constant_align when needed. */
tn_status tn_constant_from_tensor(tn_ir *ir, uint32_t id, const tn_graph_tensor *tensor,
                                  tn_error *err);

/* From the attribute of a constant node: value, sparse_value, value_int(s), value_float(s),
 * value_string(s). Exactly one must be there. */
tn_status tn_constant_from_attributes(tn_ir *ir, uint32_t id, const tn_graph_node *node,
                                      tn_error *err);

/* Dense contents of a COO tensor; bounded like every folded value. */
tn_status tn_constant_from_sparse(tn_ir *ir, uint32_t id, const tn_graph_sparse_tensor *sparse,
                                  tn_error *err);

/* Makes the contents of constant `id` aligned to their element, copying them if they are not. */
tn_status tn_constant_align(tn_ir *ir, uint32_t id, tn_error *err);

bool tn_constant_is_aligned(const void *data, tn_dtype dtype);

#endif
