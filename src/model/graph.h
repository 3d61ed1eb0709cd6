/* The model as read: ONNX messages with their bytes still in the file.
 *
 * Every text and every payload is a span into the model's mapping (or into the model's own copy for
 * typed fields and external data that had to be copied); the arrays lie in the model's own memory,
 * charged to its allocator. Immutable after load, so safe from any thread. Nothing here knows what
 * an operator does. */
#ifndef TN_MODEL_GRAPH_H
#define TN_MODEL_GRAPH_H

#include <tenure/model.h>
#include <tenure/tensor.h>

#include "base/span.h"

typedef struct tn_graph tn_graph;

/* A constant tensor: initializer, attribute value or default. */
typedef struct tn_graph_tensor {
    tn_text name;
    tn_dtype dtype;
    tn_shape shape;
    const void *data;  /* little endian, dense; may be unaligned; NULL when size_bytes is 0.
                          dtype STRING: const tn_string [len_elems] */
    size_t size_bytes; /* proved equal to what dtype and shape imply */
    bool is_mapped;    /* data lies in a file mapping (main file or external) */
    uint32_t id;       /* unique in the model: key of packed forms */
} tn_graph_tensor;

/* COO, as in SparseTensorProto: values [nnz], indices [nnz] or [nnz, rank]. */
typedef struct tn_graph_sparse_tensor {
    tn_graph_tensor values;
    tn_graph_tensor indices;
    tn_shape shape;
} tn_graph_sparse_tensor;

typedef struct tn_graph_dim {
    int64_t value;  /* >= 0, or -1 when symbolic or unknown */
    tn_text symbol; /* dim_param; empty when none */
} tn_graph_dim;

/* Declared type of a value. */
typedef struct tn_graph_type {
    tn_value_kind kind;
    tn_dtype dtype;                      /* tensors; keys of maps */
    int32_t rank;                        /* -1: no shape declared */
    const tn_graph_dim *dims;            /* [rank] */
    const struct tn_graph_type *element; /* sequence, optional, map value; else NULL */
} tn_graph_type;

typedef struct tn_graph_value_info {
    tn_text name;
    tn_graph_type type;
} tn_graph_value_info;

/* Numbers are those of onnx AttributeProto.AttributeType. */
typedef enum tn_attribute_type {
    TN_ATTRIBUTE_NONE = 0,
    TN_ATTRIBUTE_FLOAT = 1,
    TN_ATTRIBUTE_INT = 2,
    TN_ATTRIBUTE_STRING = 3,
    TN_ATTRIBUTE_TENSOR = 4,
    TN_ATTRIBUTE_GRAPH = 5,
    TN_ATTRIBUTE_FLOATS = 6,
    TN_ATTRIBUTE_INTS = 7,
    TN_ATTRIBUTE_STRINGS = 8,
    TN_ATTRIBUTE_TENSORS = 9,
    TN_ATTRIBUTE_GRAPHS = 10,
    TN_ATTRIBUTE_SPARSE_TENSOR = 11,
    TN_ATTRIBUTE_SPARSE_TENSORS = 12,
    TN_ATTRIBUTE_TYPE_PROTO = 13,
    TN_ATTRIBUTE_TYPE_PROTOS = 14
} tn_attribute_type;

typedef struct tn_graph_attribute {
    tn_text name;
    tn_text ref_name;       /* inside functions: takes the caller's attribute; else empty */
    tn_attribute_type type; /* deduced from the filled field in IR versions that lack it; the value
                               fields are empty when ref_name gives the value */
    size_t count;           /* of the list types; 1 for the single ones */
    int64_t i;
    float f;
    tn_text s;
    const tn_graph_tensor *tensor;               /* TENSOR: one; TENSORS: [count] */
    const tn_graph *graph;                       /* GRAPH: one */
    const tn_graph *const *graphs;               /* GRAPHS: [count] */
    const tn_graph_sparse_tensor *sparse_tensor; /* one, or [count] */
    const tn_graph_type *type_proto;             /* one, or [count] */
    const int64_t *ints;                         /* [count] */
    const float *floats;                         /* [count] */
    const tn_text *strings;                      /* [count] */
} tn_graph_attribute;

typedef struct tn_graph_node {
    tn_text name; /* may be empty */
    tn_text op_type;
    tn_text domain; /* "" for ai.onnx, also when the file says "ai.onnx" */
    tn_text overload;
    size_t input_count;
    const tn_text *inputs; /* [input_count]; empty text: left out */
    size_t output_count;
    const tn_text *outputs;
    size_t attribute_count;
    const tn_graph_attribute *attributes;
} tn_graph_node;

struct tn_graph {
    tn_text name;
    size_t node_count;
    const tn_graph_node *nodes; /* topologically sorted at load */
    size_t input_count;
    const tn_graph_value_info *inputs; /* includes initializers that are inputs (IR 3) */
    size_t output_count;
    const tn_graph_value_info *outputs;
    size_t value_info_count;
    const tn_graph_value_info *value_infos;
    size_t initializer_count;
    const tn_graph_tensor *initializers; /* names are unique */
    size_t sparse_initializer_count;
    const tn_graph_sparse_tensor *sparse_initializers; /* named by values.name */
    const tn_graph *parent; /* the graph whose node holds this one; NULL at the top and directly
                               inside a function */
};

typedef struct tn_opset_import {
    tn_text domain; /* "" for ai.onnx */
    int64_t version;
} tn_opset_import;

/* A model-local function. */
typedef struct tn_graph_function {
    tn_text name;
    tn_text domain;
    tn_text overload;
    size_t input_count;
    const tn_text *inputs;
    size_t output_count;
    const tn_text *outputs;
    size_t attribute_count;
    const tn_text *attribute_names; /* without defaults */
    size_t attribute_default_count;
    const tn_graph_attribute *attribute_defaults;
    size_t node_count;
    const tn_graph_node *nodes; /* topologically sorted */
    size_t opset_count;
    const tn_opset_import *opsets;
    size_t value_info_count;
    const tn_graph_value_info *value_infos;
} tn_graph_function;

typedef struct tn_model_property {
    tn_text key;
    tn_text value;
} tn_model_property;

typedef struct tn_model_info {
    int64_t ir_version;
    int64_t model_version;
    tn_text producer_name, producer_version, domain, doc_string;
    size_t opset_count;
    const tn_opset_import *opsets;
    size_t property_count;
    const tn_model_property *properties;
    size_t function_count;
    const tn_graph_function *functions;
    uint32_t tensor_count; /* ids of tn_graph_tensor are below this */
} tn_model_info;

/* Lends the graph and the facts beside it. Ownership: borrowed, valid while `model` lives. */
const tn_graph *tn_model_graph(const tn_model *model);
const tn_model_info *tn_model_get_info(const tn_model *model);

/* Finds an attribute by name; NULL when absent. */
const tn_graph_attribute *tn_graph_node_attribute(const tn_graph_node *node, const char *name);

/* References that exist now; for caches that hold one themselves. */
uint32_t tn_model_ref_count(const tn_model *model);

/* Tells the model that `tensor`'s mapped bytes are no longer needed in place (it has been packed):
 * whole pages are dropped and its bytes leave `charged` and `mapped`. They stay readable, then
 * uncharged. Idempotent; nothing happens for tensors that are not mapped. Threads: any. */
void tn_model_drop_tensor(const tn_model *model, const tn_graph_tensor *tensor);

#endif
