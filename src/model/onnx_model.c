/* ModelProto: the top of the file. It reads the facts, the graph and the functions, and then works
 * off the scopes that were found on the way, outer ones first. */
#include <inttypes.h>

#include "base/error.h"
#include "model/label.h"
#include "model/onnx_messages.h"

enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_DOMAIN = 4,
    MODEL_VERSION = 5,
    MODEL_DOC_STRING = 6,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_PROPERTY = 14,
    MODEL_FUNCTION = 25,
    MODEL_FIELD_COUNT = 26
};

/* Before this version of the format there were no imports: everything was version 1. */
#define FIRST_IR_WITH_OPSETS 3

static const tn_opset_import first_opset = {.version = 1};

static tn_status read_opset(tn_bytes message, tn_opset_import *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "OperatorSetIdProto");
    *out = (tn_opset_import){.version = 0};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number == 1 && field.type == TN_WIRE_BYTES) {
            out->domain = tn_onnx_domain(tn_wire_text(&field));
        }
        if (field.number == 2 && field.type == TN_WIRE_VARINT) out->version = (int64_t)field.value;
    }
    TN_REQUIRE(out->version >= 0, err, TN_INVALID_MODEL,
               "OperatorSetIdProto.version %" PRId64 " is negative", out->version);
    return TN_OK;
}

tn_status tn_onnx_read_opsets(tn_loader *loader, tn_wire_list list, const tn_opset_import **out,
                              tn_error *err) {
    const size_t count = list.count;
    *out = NULL;
    if (count == 0) return TN_OK;
    tn_opset_import *opsets = tn_record_pool_alloc(loader->records, count, sizeof *opsets);
    if (opsets == NULL) return tn_record_pool_refusal(loader->records, count, sizeof *opsets, err);
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(read_opset(message, &opsets[i], err));
    }
    *out = opsets;
    return TN_OK;
}

static void take_text(const tn_wire_field *field, tn_model_info *info) {
    switch (field->number) {
        case MODEL_PRODUCER_NAME:
            info->producer_name = tn_wire_text(field);
            break;
        case MODEL_PRODUCER_VERSION:
            info->producer_version = tn_wire_text(field);
            break;
        case MODEL_DOMAIN:
            info->domain = tn_wire_text(field);
            break;
        case MODEL_DOC_STRING:
            info->doc_string = tn_wire_text(field);
            break;
        default:
            break;
    }
}

static tn_status scan_model(tn_wire_reader reader, size_t *counts, tn_model_info *info,
                            tn_error *err) {
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number >= MODEL_FIELD_COUNT) continue;
        if (field.type == TN_WIRE_BYTES) {
            counts[field.number]++;
            take_text(&field, info);
        } else if (field.type == TN_WIRE_VARINT) {
            if (field.number == MODEL_IR_VERSION) info->ir_version = (int64_t)field.value;
            if (field.number == MODEL_VERSION) info->model_version = (int64_t)field.value;
        }
    }
    info->opset_count = counts[MODEL_OPSET];
    info->property_count = counts[MODEL_PROPERTY];
    info->function_count = counts[MODEL_FUNCTION];
    TN_REQUIRE(info->ir_version > 0, err, TN_INVALID_MODEL, "ModelProto has no ir_version");
    TN_REQUIRE(counts[MODEL_GRAPH] > 0, err, TN_INVALID_MODEL, "ModelProto has no graph");
    TN_REQUIRE(info->opset_count > 0 || info->ir_version < FIRST_IR_WITH_OPSETS, err,
               TN_INVALID_MODEL, "ModelProto has no opset_import");
    TN_REQUIRE(info->function_count < UINT32_MAX, err, TN_UNSUPPORTED, "ModelProto: %zu functions",
               info->function_count);
    return TN_OK;
}

tn_status tn_onnx_read_entry(tn_bytes message, tn_model_property *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "StringStringEntryProto");
    *out = (tn_model_property){.key = {NULL, 0}};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.type != TN_WIRE_BYTES) continue;
        if (field.number == 1) out->key = tn_wire_text(&field);
        if (field.number == 2) out->value = tn_wire_text(&field);
    }
    return TN_OK;
}

static tn_status read_properties(tn_loader *loader, tn_wire_list list, tn_model_info *info,
                                 tn_error *err) {
    const size_t count = list.count;
    if (count == 0) return TN_OK;
    tn_model_property *properties =
        tn_record_pool_alloc(loader->records, count, sizeof *properties);
    if (properties == NULL) {
        return tn_record_pool_refusal(loader->records, count, sizeof *properties, err);
    }
    for (size_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_entry(message, &properties[i], err));
    }
    info->properties = properties;
    return TN_OK;
}

static tn_status read_functions(tn_loader *loader, tn_wire_list list, tn_model_info *info,
                                tn_error *err) {
    const uint32_t count = (uint32_t)list.count;
    if (count == 0) return TN_OK;
    tn_graph_function *functions = tn_record_pool_alloc(loader->records, count, sizeof *functions);
    if (functions == NULL) {
        return tn_record_pool_refusal(loader->records, count, sizeof *functions, err);
    }
    for (uint32_t i = 0; i < count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        const tn_status status = tn_onnx_read_function(loader, message, i, &functions[i], err);
        if (status != TN_OK) {
            tn_error_prefix(err, tn_label_of(functions[i].name).text);
            return status;
        }
    }
    info->functions = functions;
    return TN_OK;
}

static tn_status read_main_graph(tn_loader *loader, tn_wire_list pieces, const tn_graph **out_graph,
                                 tn_error *err) {
    tn_graph *graph = tn_record_pool_alloc(loader->records, 1, sizeof *graph);
    if (graph == NULL) return tn_record_pool_refusal(loader->records, 1, sizeof *graph, err);
    *graph = (tn_graph){.node_count = 0};
    tn_scope scope = {.graph = graph,
                      .parent = TN_SCOPE_NONE,
                      .owner_node = TN_SCOPE_NONE,
                      .root_function = TN_SCOPE_NONE,
                      .depth = 1};
    uint32_t index = 0;
    TN_TRY(tn_loader_join(loader, pieces, &scope.bytes, err));
    TN_TRY(tn_loader_add_scope(loader, &scope, &index, err));
    *out_graph = graph;
    return TN_OK;
}

tn_status tn_onnx_read_model(tn_loader *loader, tn_model_info *out_info, const tn_graph **out_graph,
                             tn_error *err) {
    const tn_wire_reader reader = tn_wire_reader_of(loader->file, "ModelProto");
    size_t counts[MODEL_FIELD_COUNT] = {0};
    tn_model_info info = {.ir_version = 0};
    const tn_graph *graph = NULL;
    TN_TRY(scan_model(reader, counts, &info, err));

    const tn_wire_list opsets = {reader, MODEL_OPSET, counts[MODEL_OPSET]};
    const tn_wire_list properties = {reader, MODEL_PROPERTY, counts[MODEL_PROPERTY]};
    const tn_wire_list pieces = {reader, MODEL_GRAPH, counts[MODEL_GRAPH]};
    const tn_wire_list functions = {reader, MODEL_FUNCTION, counts[MODEL_FUNCTION]};
    TN_TRY(tn_onnx_read_opsets(loader, opsets, &info.opsets, err));
    if (info.opset_count == 0) {
        info.opset_count = 1;
        info.opsets = &first_opset;
    }
    TN_TRY(read_properties(loader, properties, &info, err));
    TN_TRY(read_main_graph(loader, pieces, &graph, err));
    TN_TRY(read_functions(loader, functions, &info, err));
    for (uint32_t scope = 0; scope < loader->scope_count; scope++) {
        if (loader->scopes[scope].graph != NULL) TN_TRY(tn_onnx_read_graph(loader, scope, err));
    }
    info.tensor_count = loader->tensor_count;
    *out_info = info;
    *out_graph = graph;
    return TN_OK;
}
