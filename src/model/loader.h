/* State of one load: what the readers of the ONNX messages share, and the scopes that they find.
 *
 * Nothing here recurses on model data: a reader that meets a subgraph leaves a scope in the list
 * and goes on; the list is worked off in order. Threads: one thread at a time. */
#ifndef TN_MODEL_LOADER_H
#define TN_MODEL_LOADER_H

#include "model/external_data.h"
#include "model/graph.h"
#include "model/record_pool.h"
#include "model/wire.h"

#define TN_MAX_MESSAGE_DEPTH 128
#define TN_MAX_SUBGRAPH_LEVELS 32

/* No scope, no node. */
#define TN_SCOPE_NONE UINT32_MAX

/* A body of nodes with names of its own: the graph, a function, or a graph in an attribute. */
typedef struct tn_scope {
    tn_bytes bytes;                /* the GraphProto still to be read; functions: empty */
    tn_graph *graph;               /* borrowed from the pool; NULL for functions */
    tn_graph_function *function;   /* borrowed from the pool; NULL for graphs */
    tn_graph_node *nodes;          /* the same array as the graph's or function's, to be sorted */
    tn_graph_tensor *initializers; /* the same array as the graph's */
    size_t node_count;
    uint32_t parent;        /* scope whose names are visible; TN_SCOPE_NONE at the top */
    uint32_t owner_node;    /* node of the parent that holds this graph; TN_SCOPE_NONE: none */
    uint32_t root_function; /* index of the function around, TN_SCOPE_NONE outside */
    int level;              /* of subgraphs; 0 at the top */
    int depth;              /* of messages */
} tn_scope;

typedef struct tn_loader {
    tn_allocator *allocator; /* borrowed */
    tn_record_pool *records; /* borrowed: what stays with the model */
    tn_bytes file;           /* the ModelProto */
    bool is_file_mapped;
    tn_external_data external;
    uint32_t tensor_count; /* ids given so far */
    size_t merged_bytes;   /* bytes of split messages joined so far */
    tn_scope *scopes;      /* owned, [scope_capacity] */
    uint32_t scope_count;
    uint32_t scope_capacity;
} tn_loader;

/* Adds a scope and writes its index; `loader->scopes` may move. */
TN_MUST_USE tn_status tn_loader_add_scope(tn_loader *loader, const tn_scope *scope,
                                          uint32_t *out_index, tn_error *err);

/* Gives the one span of a singular message field, all of whose occurrences are in `list`: the
 * field's bytes when there is one, else a joined copy, which by the format's rules equals the
 * merged message. Empty when there is none. Errors: TN_INVALID_MODEL, TN_UNSUPPORTED when joining
 * would multiply the file, TN_LIMIT, TN_OUT_OF_MEMORY. */
TN_MUST_USE tn_status tn_loader_join(tn_loader *loader, tn_wire_list list, tn_bytes *out,
                                     tn_error *err);

#endif
