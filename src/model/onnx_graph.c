/* NodeProto, GraphProto and FunctionProto. Each is walked twice: once to count, once to fill arrays
 * of exactly that size. Graphs inside attributes are not entered here; they wait as scopes. */
#include "base/error.h"
#include "model/label.h"
#include "model/onnx_messages.h"

/* A node's attributes are compared pairwise for double names. */
#define MAX_NODE_ATTRIBUTES 256

tn_text tn_onnx_domain(tn_text domain) {
    return tn_text_equals_literal(domain, "ai.onnx") ? (tn_text){NULL, 0} : domain;
}

tn_status tn_onnx_read_texts(tn_loader *loader, tn_wire_list list, const tn_text **out,
                             tn_error *err) {
    const size_t count = list.count;
    *out = NULL;
    if (count == 0) return TN_OK;
    tn_text *texts = tn_record_pool_alloc(loader->records, count, sizeof *texts);
    if (texts == NULL) return tn_record_pool_refusal(loader->records, count, sizeof *texts, err);
    for (size_t i = 0; i < count; i++) {
        tn_bytes bytes;
        TN_TRY(tn_wire_list_next(&list, &bytes, err));
        texts[i] = (tn_text){(const char *)bytes.data, bytes.size_bytes};
    }
    *out = texts;
    return TN_OK;
}

enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8,
};

static tn_status scan_node(tn_wire_reader reader, tn_graph_node *out, tn_error *err) {
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.type != TN_WIRE_BYTES) continue;
        switch (field.number) {
            case NODE_INPUT:
                out->input_count++;
                break;
            case NODE_OUTPUT:
                out->output_count++;
                break;
            case NODE_ATTRIBUTE:
                out->attribute_count++;
                break;
            case NODE_NAME:
                out->name = tn_wire_text(&field);
                break;
            case NODE_OP_TYPE:
                out->op_type = tn_wire_text(&field);
                break;
            case NODE_DOMAIN:
                out->domain = tn_onnx_domain(tn_wire_text(&field));
                break;
            case NODE_OVERLOAD:
                out->overload = tn_wire_text(&field);
                break;
            default:
                break;
        }
    }
    return TN_OK;
}

static tn_status check_attribute_names(const tn_graph_node *node, tn_error *err) {
    for (size_t i = 1; i < node->attribute_count; i++) {
        for (size_t j = 0; j < i; j++) {
            TN_REQUIRE(!tn_text_equals(node->attributes[i].name, node->attributes[j].name), err,
                       TN_INVALID_MODEL, "attribute %s is given twice",
                       tn_label_of(node->attributes[i].name).text);
        }
    }
    return TN_OK;
}

/* Reads the AttributeProtos of `list`. */
static tn_status read_attributes(tn_loader *loader, tn_wire_list list,
                                 const tn_attribute_place *place, const tn_graph_attribute **out,
                                 tn_error *err) {
    const size_t count = list.count;
    *out = NULL;
    if (count == 0) return TN_OK;
    tn_graph_attribute *attributes = tn_record_pool_alloc(loader->records, count, sizeof **out);
    if (attributes == NULL) {
        return tn_record_pool_refusal(loader->records, count, sizeof **out, err);
    }
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_attribute(loader, message, place, &attributes[i], err));
    }
    *out = attributes;
    return TN_OK;
}

static tn_status read_node(tn_loader *loader, tn_bytes message, const tn_attribute_place *place,
                           tn_graph_node *out, tn_error *err) {
    const tn_wire_reader reader = tn_wire_reader_of(message, "NodeProto");
    tn_status status = TN_OK;
    *out = (tn_graph_node){.input_count = 0};

    TN_TRY_GOTO(scan_node(reader, out, err), cleanup);
    TN_REQUIRE_GOTO(!tn_text_is_empty(out->op_type), cleanup, err, TN_INVALID_MODEL,
                    "NodeProto has no op_type");
    TN_REQUIRE_GOTO(out->attribute_count <= MAX_NODE_ATTRIBUTES, cleanup, err, TN_UNSUPPORTED,
                    "NodeProto has %zu attributes, the limit is %d", out->attribute_count,
                    MAX_NODE_ATTRIBUTES);
    const tn_wire_list inputs = {reader, NODE_INPUT, out->input_count};
    const tn_wire_list outputs = {reader, NODE_OUTPUT, out->output_count};
    const tn_wire_list attributes = {reader, NODE_ATTRIBUTE, out->attribute_count};
    TN_TRY_GOTO(tn_onnx_read_texts(loader, inputs, &out->inputs, err), cleanup);
    TN_TRY_GOTO(tn_onnx_read_texts(loader, outputs, &out->outputs, err), cleanup);
    TN_TRY_GOTO(read_attributes(loader, attributes, place, &out->attributes, err), cleanup);
    TN_TRY_GOTO(check_attribute_names(out, err), cleanup);

cleanup:
    if (status != TN_OK) {
        tn_error_set_node(err, tn_label_of_node(out->name, out->op_type, place->owner_node).text);
    }
    return status;
}

tn_status tn_onnx_read_nodes(tn_loader *loader, tn_wire_list list, uint32_t scope, tn_error *err) {
    const size_t count = list.count;
    TN_REQUIRE(count < TN_SCOPE_NONE / 2, err, TN_UNSUPPORTED, "%s has %zu nodes",
               list.reader.message, count);
    tn_graph_node *nodes = tn_record_pool_alloc(loader->records, count, sizeof *nodes);
    if (nodes == NULL) return tn_record_pool_refusal(loader->records, count, sizeof *nodes, err);
    loader->scopes[scope].nodes = nodes;
    loader->scopes[scope].node_count = count;
    tn_attribute_place place = {.scope = scope, .depth = loader->scopes[scope].depth + 2};
    for (; place.owner_node < count; place.owner_node++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(read_node(loader, message, &place, &nodes[place.owner_node], err));
    }
    return TN_OK;
}

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE_INITIALIZER = 15,
    GRAPH_FIELD_COUNT = 16
};

/* Reads the ValueInfoProtos of `list`. */
static tn_status read_value_infos(tn_loader *loader, tn_wire_list list, int depth,
                                  const tn_graph_value_info **out, tn_error *err) {
    const size_t count = list.count;
    *out = NULL;
    if (count == 0) return TN_OK;
    tn_graph_value_info *infos = tn_record_pool_alloc(loader->records, count, sizeof *infos);
    if (infos == NULL) return tn_record_pool_refusal(loader->records, count, sizeof *infos, err);
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_value_info(loader, message, depth, &infos[i], err));
    }
    *out = infos;
    return TN_OK;
}

static tn_status read_initializers(tn_loader *loader, tn_wire_list list, tn_scope *scope,
                                   tn_error *err) {
    const size_t count = list.count;
    if (count == 0) return TN_OK;
    tn_graph_tensor *tensors = tn_record_pool_alloc(loader->records, count, sizeof *tensors);
    if (tensors == NULL) {
        return tn_record_pool_refusal(loader->records, count, sizeof *tensors, err);
    }
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_tensor(loader, message, &tensors[i], err));
        TN_REQUIRE(!tn_text_is_empty(tensors[i].name), err, TN_INVALID_MODEL,
                   "GraphProto.initializer %zu has no name", i);
    }
    scope->initializers = tensors;
    scope->graph->initializers = tensors;
    scope->graph->initializer_count = count;
    return TN_OK;
}

static tn_status read_sparse_initializers(tn_loader *loader, tn_wire_list list, tn_graph *graph,
                                          tn_error *err) {
    const size_t count = list.count;
    if (count == 0) return TN_OK;
    tn_graph_sparse_tensor *sparse = tn_record_pool_alloc(loader->records, count, sizeof *sparse);
    if (sparse == NULL) return tn_record_pool_refusal(loader->records, count, sizeof *sparse, err);
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_sparse_tensor(loader, message, &sparse[i], err));
        TN_REQUIRE(!tn_text_is_empty(sparse[i].values.name), err, TN_INVALID_MODEL,
                   "GraphProto.sparse_initializer %zu has no name", i);
    }
    graph->sparse_initializers = sparse;
    graph->sparse_initializer_count = count;
    return TN_OK;
}

/* The inputs of the whole model must say what they are; those of a body take it from their caller.
 */
static tn_status check_input_types(const tn_graph *graph, tn_error *err) {
    for (size_t i = 0; i < graph->input_count; i++) {
        const tn_graph_value_info *input = &graph->inputs[i];
        const bool is_tensor = input->type.kind == TN_KIND_TENSOR;
        if (input->type.kind != TN_KIND_UNKNOWN && (!is_tensor || input->type.dtype != 0)) continue;
        const tn_label label = tn_label_of(input->name);
        (void)tn_error_set(err, TN_INVALID_MODEL, "graph input %s has no type", label.text);
        tn_error_set_node(err, label.text);
        return TN_INVALID_MODEL;
    }
    return TN_OK;
}

static tn_status scan_graph(tn_wire_reader reader, size_t *counts, tn_graph *out, tn_error *err) {
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number >= GRAPH_FIELD_COUNT || field.type != TN_WIRE_BYTES) continue;
        counts[field.number]++;
        if (field.number == GRAPH_NAME) out->name = tn_wire_text(&field);
    }
    out->input_count = counts[GRAPH_INPUT];
    out->output_count = counts[GRAPH_OUTPUT];
    out->value_info_count = counts[GRAPH_VALUE_INFO];
    return TN_OK;
}

tn_status tn_onnx_read_graph(tn_loader *loader, uint32_t scope, tn_error *err) {
    const tn_wire_reader reader = tn_wire_reader_of(loader->scopes[scope].bytes, "GraphProto");
    tn_graph *graph = loader->scopes[scope].graph;
    const int depth = loader->scopes[scope].depth + 1;
    size_t counts[GRAPH_FIELD_COUNT] = {0};
    TN_TRY(scan_graph(reader, counts, graph, err));

    const tn_wire_list inputs = {reader, GRAPH_INPUT, counts[GRAPH_INPUT]};
    const tn_wire_list outputs = {reader, GRAPH_OUTPUT, counts[GRAPH_OUTPUT]};
    const tn_wire_list values = {reader, GRAPH_VALUE_INFO, counts[GRAPH_VALUE_INFO]};
    const tn_wire_list tensors = {reader, GRAPH_INITIALIZER, counts[GRAPH_INITIALIZER]};
    const tn_wire_list sparse = {reader, GRAPH_SPARSE_INITIALIZER,
                                 counts[GRAPH_SPARSE_INITIALIZER]};
    const tn_wire_list nodes = {reader, GRAPH_NODE, counts[GRAPH_NODE]};
    TN_TRY(read_value_infos(loader, inputs, depth, &graph->inputs, err));
    TN_TRY(read_value_infos(loader, outputs, depth, &graph->outputs, err));
    TN_TRY(read_value_infos(loader, values, depth, &graph->value_infos, err));
    if (scope == 0) TN_TRY(check_input_types(graph, err));
    TN_TRY(read_initializers(loader, tensors, &loader->scopes[scope], err));
    TN_TRY(read_sparse_initializers(loader, sparse, graph, err));
    TN_TRY(tn_onnx_read_nodes(loader, nodes, scope, err));
    graph->node_count = counts[GRAPH_NODE];
    graph->nodes = loader->scopes[scope].nodes;
    return TN_OK;
}

enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_ATTRIBUTE_PROTO = 11,
    FUNCTION_VALUE_INFO = 12,
    FUNCTION_OVERLOAD = 13,
    FUNCTION_FIELD_COUNT = 14
};

static tn_status scan_function(tn_wire_reader reader, size_t *counts, tn_graph_function *out,
                               tn_error *err) {
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number >= FUNCTION_FIELD_COUNT || field.type != TN_WIRE_BYTES) continue;
        counts[field.number]++;
        if (field.number == FUNCTION_NAME) out->name = tn_wire_text(&field);
        if (field.number == FUNCTION_DOMAIN) out->domain = tn_onnx_domain(tn_wire_text(&field));
        if (field.number == FUNCTION_OVERLOAD) out->overload = tn_wire_text(&field);
    }
    out->input_count = counts[FUNCTION_INPUT];
    out->output_count = counts[FUNCTION_OUTPUT];
    out->attribute_count = counts[FUNCTION_ATTRIBUTE];
    out->attribute_default_count = counts[FUNCTION_ATTRIBUTE_PROTO];
    out->node_count = counts[FUNCTION_NODE];
    out->opset_count = counts[FUNCTION_OPSET];
    out->value_info_count = counts[FUNCTION_VALUE_INFO];
    TN_REQUIRE(!tn_text_is_empty(out->name), err, TN_INVALID_MODEL, "FunctionProto has no name");
    return TN_OK;
}

tn_status tn_onnx_read_function(tn_loader *loader, tn_bytes message, uint32_t index,
                                tn_graph_function *out, tn_error *err) {
    const tn_wire_reader reader = tn_wire_reader_of(message, "FunctionProto");
    size_t counts[FUNCTION_FIELD_COUNT] = {0};
    const tn_scope scope = {.function = out,
                            .parent = TN_SCOPE_NONE,
                            .owner_node = TN_SCOPE_NONE,
                            .root_function = index,
                            .depth = 1};
    tn_attribute_place place = {.owner_node = TN_SCOPE_NONE, .depth = 2};
    *out = (tn_graph_function){.input_count = 0};

    TN_TRY(scan_function(reader, counts, out, err));
    TN_TRY(tn_loader_add_scope(loader, &scope, &place.scope, err));
    const tn_wire_list inputs = {reader, FUNCTION_INPUT, out->input_count};
    const tn_wire_list outputs = {reader, FUNCTION_OUTPUT, out->output_count};
    const tn_wire_list attributes = {reader, FUNCTION_ATTRIBUTE, out->attribute_count};
    const tn_wire_list defaults = {reader, FUNCTION_ATTRIBUTE_PROTO, out->attribute_default_count};
    const tn_wire_list opsets = {reader, FUNCTION_OPSET, out->opset_count};
    const tn_wire_list values = {reader, FUNCTION_VALUE_INFO, out->value_info_count};
    const tn_wire_list nodes = {reader, FUNCTION_NODE, out->node_count};
    TN_TRY(tn_onnx_read_texts(loader, inputs, &out->inputs, err));
    TN_TRY(tn_onnx_read_texts(loader, outputs, &out->outputs, err));
    TN_TRY(tn_onnx_read_texts(loader, attributes, &out->attribute_names, err));
    TN_TRY(read_attributes(loader, defaults, &place, &out->attribute_defaults, err));
    TN_TRY(tn_onnx_read_opsets(loader, opsets, &out->opsets, err));
    TN_TRY(read_value_infos(loader, values, 2, &out->value_infos, err));
    TN_TRY(tn_onnx_read_nodes(loader, nodes, place.scope, err));
    out->nodes = loader->scopes[place.scope].nodes;
    return TN_OK;
}
