/* Readers of the ONNX messages: bytes in, records of graph.h out.
 *
 * Every reader counts first and then fills arrays from the loader's pool. `depth` is the number of
 * messages around the one that is read. On error the records hold nothing of use; the pool goes as
 * a whole. Errors of all: TN_INVALID_MODEL, TN_UNSUPPORTED, TN_OVERFLOW, TN_IO (external data),
 * TN_LIMIT, TN_OUT_OF_MEMORY. Threads: one thread at a time. */
#ifndef TN_MODEL_ONNX_MESSAGES_H
#define TN_MODEL_ONNX_MESSAGES_H

#include "model/loader.h"

/* Reads a TensorProto; typed fields become dense copies unless they are so in the file. */
TN_MUST_USE tn_status tn_onnx_read_tensor(tn_loader *loader, tn_bytes message, tn_graph_tensor *out,
                                          tn_error *err);

/* Reads a SparseTensorProto. */
TN_MUST_USE tn_status tn_onnx_read_sparse_tensor(tn_loader *loader, tn_bytes message,
                                                 tn_graph_sparse_tensor *out, tn_error *err);

/* Reads a TypeProto, following nested types to the end. */
TN_MUST_USE tn_status tn_onnx_read_type(tn_loader *loader, tn_bytes message, int depth,
                                        tn_graph_type *out, tn_error *err);

/* Reads a ValueInfoProto. */
TN_MUST_USE tn_status tn_onnx_read_value_info(tn_loader *loader, tn_bytes message, int depth,
                                              tn_graph_value_info *out, tn_error *err);

/* Where an attribute stands. */
typedef struct tn_attribute_place {
    uint32_t scope;      /* whose node holds the attribute */
    uint32_t owner_node; /* that node; TN_SCOPE_NONE for a function's default */
    int depth;
} tn_attribute_place;

/* Reads an AttributeProto; graphs in it are added to the loader's scopes, unread. */
TN_MUST_USE tn_status tn_onnx_read_attribute(tn_loader *loader, tn_bytes message,
                                             const tn_attribute_place *place,
                                             tn_graph_attribute *out, tn_error *err);

/* Reads the NodeProtos of `list`, which are the body of scope `scope`. */
TN_MUST_USE tn_status tn_onnx_read_nodes(tn_loader *loader, tn_wire_list list, uint32_t scope,
                                         tn_error *err);

/* Reads the GraphProto that scope `scope` still has to read. */
TN_MUST_USE tn_status tn_onnx_read_graph(tn_loader *loader, uint32_t scope, tn_error *err);

/* Reads the FunctionProto `message` as function `index`, adding its scope. */
TN_MUST_USE tn_status tn_onnx_read_function(tn_loader *loader, tn_bytes message, uint32_t index,
                                            tn_graph_function *out, tn_error *err);

/* Reads the OperatorSetIdProtos of `list`. */
TN_MUST_USE tn_status tn_onnx_read_opsets(tn_loader *loader, tn_wire_list list,
                                          const tn_opset_import **out, tn_error *err);

/* Reads the ModelProto `loader->file` with everything in it. */
TN_MUST_USE tn_status tn_onnx_read_model(tn_loader *loader, tn_model_info *out_info,
                                         const tn_graph **out_graph, tn_error *err);

/* Reads the texts of `list`. */
TN_MUST_USE tn_status tn_onnx_read_texts(tn_loader *loader, tn_wire_list list, const tn_text **out,
                                         tn_error *err);

/* Reads a StringStringEntryProto. */
TN_MUST_USE tn_status tn_onnx_read_entry(tn_bytes message, tn_model_property *out, tn_error *err);

/* "" for "ai.onnx", which are two names of one domain; others unchanged. */
tn_text tn_onnx_domain(tn_text domain);

#endif
