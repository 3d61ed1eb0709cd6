/* Questions about graph records that many layers ask. */
#include "model/graph.h"

const tn_graph_attribute *tn_graph_node_attribute(const tn_graph_node *node, const char *name) {
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (tn_text_equals_literal(node->attributes[i].name, name)) return &node->attributes[i];
    }
    return NULL;
}
