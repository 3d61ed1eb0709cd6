/* Stable topological order of numbered vertices. Threads: one thread at a time. */
#ifndef TN_MODEL_TOPOLOGICAL_SORT_H
#define TN_MODEL_TOPOLOGICAL_SORT_H

#include "model/record_pool.h"

typedef struct tn_edge {
    uint32_t from; /* comes first */
    uint32_t to;
} tn_edge;

typedef struct tn_topological_input {
    uint32_t vertex_count;
    size_t edge_count;
    const tn_edge *edges; /* [edge_count]; double ones are harmless */
} tn_topological_input;

/* No vertex. */
#define TN_VERTEX_NONE UINT32_MAX

/* Writes the order in which always the smallest free vertex comes next: an input that is in order
 * stays as it is.
 * Ownership: `order` [vertex_count] is the caller's; `scratch` grows by O(vertices + edges).
 * Errors:    TN_INVALID_MODEL on a cycle, without message: *out_on_cycle is a vertex of one (else
 *            TN_VERTEX_NONE) and the caller knows its name; TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_topological_sort(const tn_topological_input *input,
                                          tn_record_pool *scratch, uint32_t *order,
                                          uint32_t *out_on_cycle, tn_error *err);

#endif
