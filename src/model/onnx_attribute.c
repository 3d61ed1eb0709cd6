/* AttributeProto. One row per attribute type says which field holds its value and how that field
 * becomes a record; a type that is missing (early IR versions) is the first row whose field is
 * filled. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "model/label.h"
#include "model/onnx_messages.h"

enum {
    FIELD_NAME = 1,
    FIELD_F = 2,
    FIELD_I = 3,
    FIELD_S = 4,
    FIELD_T = 5,
    FIELD_G = 6,
    FIELD_FLOATS = 7,
    FIELD_INTS = 8,
    FIELD_STRINGS = 9,
    FIELD_TENSORS = 10,
    FIELD_GRAPHS = 11,
    FIELD_TP = 14,
    FIELD_TYPE_PROTOS = 15,
    FIELD_TYPE = 20,
    FIELD_REF_NAME = 21,
    FIELD_SPARSE_TENSOR = 22,
    FIELD_SPARSE_TENSORS = 23,
    FIELD_COUNT = 24
};

static const char message_name[] = "AttributeProto";

/* What one walk over an AttributeProto finds. */
typedef struct attribute_scan {
    tn_bytes message;
    size_t counts[FIELD_COUNT]; /* scalars of list fields; occurrences of others */
    uint64_t type;
} attribute_scan;

typedef tn_status (*fill_fn)(tn_loader *loader, const attribute_scan *scan,
                             const tn_attribute_place *place, tn_graph_attribute *out,
                             tn_error *err);

/* The occurrences of message field `number`. */
static tn_wire_list list_of(const attribute_scan *scan, uint32_t number) {
    return (tn_wire_list){tn_wire_reader_of(scan->message, message_name), number,
                          scan->counts[number]};
}

static tn_status fill_none(tn_loader *loader, const attribute_scan *scan,
                           const tn_attribute_place *place, tn_graph_attribute *out,
                           tn_error *err) {
    (void)loader, (void)scan, (void)place, (void)out, (void)err;
    return TN_OK; /* the walk has taken single numbers and texts already */
}

static tn_status fill_floats(tn_loader *loader, const attribute_scan *scan,
                             const tn_attribute_place *place, tn_graph_attribute *out,
                             tn_error *err) {
    (void)place;
    tn_wire_reader reader = tn_wire_reader_of(scan->message, message_name);
    float *floats = tn_record_pool_alloc(loader->records, out->count, sizeof *floats);
    if (floats == NULL) {
        return tn_record_pool_refusal(loader->records, out->count, sizeof *floats, err);
    }
    out->floats = floats;
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number != FIELD_FLOATS) continue;
        tn_wire_scalars scalars = tn_wire_scalars_of(&field, TN_WIRE_FIXED32);
        uint64_t value = 0;
        while (tn_wire_scalars_next(&scalars, &value)) memcpy(floats++, &value, sizeof *floats);
    }
    return TN_OK;
}

static tn_status fill_ints(tn_loader *loader, const attribute_scan *scan,
                           const tn_attribute_place *place, tn_graph_attribute *out,
                           tn_error *err) {
    (void)place;
    tn_wire_reader reader = tn_wire_reader_of(scan->message, message_name);
    int64_t *ints = tn_record_pool_alloc(loader->records, out->count, sizeof *ints);
    if (ints == NULL) return tn_record_pool_refusal(loader->records, out->count, sizeof *ints, err);
    out->ints = ints;
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number != FIELD_INTS) continue;
        tn_wire_scalars scalars = tn_wire_scalars_of(&field, TN_WIRE_VARINT);
        uint64_t value = 0;
        while (tn_wire_scalars_next(&scalars, &value)) *ints++ = (int64_t)value;
    }
    return TN_OK;
}

static tn_status fill_strings(tn_loader *loader, const attribute_scan *scan,
                              const tn_attribute_place *place, tn_graph_attribute *out,
                              tn_error *err) {
    (void)place;
    return tn_onnx_read_texts(loader, list_of(scan, FIELD_STRINGS), &out->strings, err);
}

static tn_status fill_tensor(tn_loader *loader, const attribute_scan *scan,
                             const tn_attribute_place *place, tn_graph_attribute *out,
                             tn_error *err) {
    (void)place;
    tn_bytes message;
    TN_TRY(tn_loader_join(loader, list_of(scan, FIELD_T), &message, err));
    tn_graph_tensor *tensor = tn_record_pool_alloc(loader->records, 1, sizeof *tensor);
    if (tensor == NULL) return tn_record_pool_refusal(loader->records, 1, sizeof *tensor, err);
    out->tensor = tensor;
    return tn_onnx_read_tensor(loader, message, tensor, err);
}

static tn_status fill_tensors(tn_loader *loader, const attribute_scan *scan,
                              const tn_attribute_place *place, tn_graph_attribute *out,
                              tn_error *err) {
    (void)place;
    tn_wire_list list = list_of(scan, FIELD_TENSORS);
    tn_graph_tensor *tensors = tn_record_pool_alloc(loader->records, out->count, sizeof *tensors);
    if (tensors == NULL) {
        return tn_record_pool_refusal(loader->records, out->count, sizeof *tensors, err);
    }
    out->tensor = tensors;
    for (size_t i = 0; i < out->count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_tensor(loader, message, &tensors[i], err));
    }
    return TN_OK;
}

static tn_status fill_sparse_tensor(tn_loader *loader, const attribute_scan *scan,
                                    const tn_attribute_place *place, tn_graph_attribute *out,
                                    tn_error *err) {
    (void)place;
    tn_bytes message;
    TN_TRY(tn_loader_join(loader, list_of(scan, FIELD_SPARSE_TENSOR), &message, err));
    tn_graph_sparse_tensor *sparse = tn_record_pool_alloc(loader->records, 1, sizeof *sparse);
    if (sparse == NULL) return tn_record_pool_refusal(loader->records, 1, sizeof *sparse, err);
    out->sparse_tensor = sparse;
    return tn_onnx_read_sparse_tensor(loader, message, sparse, err);
}

static tn_status fill_sparse_tensors(tn_loader *loader, const attribute_scan *scan,
                                     const tn_attribute_place *place, tn_graph_attribute *out,
                                     tn_error *err) {
    (void)place;
    tn_wire_list list = list_of(scan, FIELD_SPARSE_TENSORS);
    tn_graph_sparse_tensor *sparse =
        tn_record_pool_alloc(loader->records, out->count, sizeof *sparse);
    if (sparse == NULL) {
        return tn_record_pool_refusal(loader->records, out->count, sizeof *sparse, err);
    }
    out->sparse_tensor = sparse;
    for (size_t i = 0; i < out->count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_sparse_tensor(loader, message, &sparse[i], err));
    }
    return TN_OK;
}

static tn_status fill_type_proto(tn_loader *loader, const attribute_scan *scan,
                                 const tn_attribute_place *place, tn_graph_attribute *out,
                                 tn_error *err) {
    tn_bytes message;
    TN_TRY(tn_loader_join(loader, list_of(scan, FIELD_TP), &message, err));
    tn_graph_type *type = tn_record_pool_alloc(loader->records, 1, sizeof *type);
    if (type == NULL) return tn_record_pool_refusal(loader->records, 1, sizeof *type, err);
    out->type_proto = type;
    return tn_onnx_read_type(loader, message, place->depth + 1, type, err);
}

static tn_status fill_type_protos(tn_loader *loader, const attribute_scan *scan,
                                  const tn_attribute_place *place, tn_graph_attribute *out,
                                  tn_error *err) {
    tn_wire_list list = list_of(scan, FIELD_TYPE_PROTOS);
    tn_graph_type *types = tn_record_pool_alloc(loader->records, out->count, sizeof *types);
    if (types == NULL) {
        return tn_record_pool_refusal(loader->records, out->count, sizeof *types, err);
    }
    out->type_proto = types;
    for (size_t i = 0; i < out->count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(tn_onnx_read_type(loader, message, place->depth + 1, &types[i], err));
    }
    return TN_OK;
}

/* Leaves the GraphProto `message` for later and gives the record that it will fill. */
static tn_status add_graph(tn_loader *loader, tn_bytes message, const tn_attribute_place *place,
                           const tn_graph **out, tn_error *err) {
    const tn_scope *around = &loader->scopes[place->scope];
    tn_graph *graph = NULL;
    uint32_t index = 0;
    TN_REQUIRE(around->level < TN_MAX_SUBGRAPH_LEVELS, err, TN_UNSUPPORTED,
               "AttributeProto.g: graphs are nested deeper than %d", TN_MAX_SUBGRAPH_LEVELS);
    TN_REQUIRE(place->depth + 1 < TN_MAX_MESSAGE_DEPTH, err, TN_UNSUPPORTED,
               "AttributeProto.g: messages are nested deeper than %d", TN_MAX_MESSAGE_DEPTH);
    graph = tn_record_pool_alloc(loader->records, 1, sizeof *graph);
    if (graph == NULL) return tn_record_pool_refusal(loader->records, 1, sizeof *graph, err);
    *graph = (tn_graph){.parent = around->graph};
    const tn_scope scope = {.bytes = message,
                            .graph = graph,
                            .parent = place->scope,
                            .owner_node = place->owner_node,
                            .root_function = around->root_function,
                            .level = around->level + 1,
                            .depth = place->depth + 1};
    TN_TRY(tn_loader_add_scope(loader, &scope, &index, err));
    *out = graph;
    return TN_OK;
}

static tn_status fill_graph(tn_loader *loader, const attribute_scan *scan,
                            const tn_attribute_place *place, tn_graph_attribute *out,
                            tn_error *err) {
    tn_bytes message;
    TN_TRY(tn_loader_join(loader, list_of(scan, FIELD_G), &message, err));
    return add_graph(loader, message, place, &out->graph, err);
}

static tn_status fill_graphs(tn_loader *loader, const attribute_scan *scan,
                             const tn_attribute_place *place, tn_graph_attribute *out,
                             tn_error *err) {
    tn_wire_list list = list_of(scan, FIELD_GRAPHS);
    const tn_graph **graphs = tn_record_pool_alloc(loader->records, out->count, sizeof *graphs);
    if (graphs == NULL) {
        return tn_record_pool_refusal(loader->records, out->count, sizeof *graphs, err);
    }
    out->graphs = graphs;
    for (size_t i = 0; i < out->count; i++) {
        tn_bytes message;
        TN_TRY(tn_wire_list_next(&list, &message, err));
        TN_TRY(add_graph(loader, message, place, &graphs[i], err));
    }
    return TN_OK;
}

typedef struct attribute_row {
    const char *name; /* of the type, for error texts */
    uint32_t field;
    bool is_list;
    bool needs_value; /* a message that is missing has no default */
    fill_fn fill;
} attribute_row;

#define ATTRIBUTE_TYPE_COUNT (TN_ATTRIBUTE_TYPE_PROTOS + 1)

static const attribute_row attribute_rows[ATTRIBUTE_TYPE_COUNT] = {
    [TN_ATTRIBUTE_NONE] = {"UNDEFINED", 0, false, false, fill_none},
    [TN_ATTRIBUTE_FLOAT] = {"FLOAT", FIELD_F, false, false, fill_none},
    [TN_ATTRIBUTE_INT] = {"INT", FIELD_I, false, false, fill_none},
    [TN_ATTRIBUTE_STRING] = {"STRING", FIELD_S, false, false, fill_none},
    [TN_ATTRIBUTE_TENSOR] = {"TENSOR", FIELD_T, false, true, fill_tensor},
    [TN_ATTRIBUTE_GRAPH] = {"GRAPH", FIELD_G, false, true, fill_graph},
    [TN_ATTRIBUTE_FLOATS] = {"FLOATS", FIELD_FLOATS, true, false, fill_floats},
    [TN_ATTRIBUTE_INTS] = {"INTS", FIELD_INTS, true, false, fill_ints},
    [TN_ATTRIBUTE_STRINGS] = {"STRINGS", FIELD_STRINGS, true, false, fill_strings},
    [TN_ATTRIBUTE_TENSORS] = {"TENSORS", FIELD_TENSORS, true, false, fill_tensors},
    [TN_ATTRIBUTE_GRAPHS] = {"GRAPHS", FIELD_GRAPHS, true, false, fill_graphs},
    [TN_ATTRIBUTE_SPARSE_TENSOR] = {"SPARSE_TENSOR", FIELD_SPARSE_TENSOR, false, true,
                                    fill_sparse_tensor},
    [TN_ATTRIBUTE_SPARSE_TENSORS] = {"SPARSE_TENSORS", FIELD_SPARSE_TENSORS, true, false,
                                     fill_sparse_tensors},
    [TN_ATTRIBUTE_TYPE_PROTO] = {"TYPE_PROTO", FIELD_TP, false, true, fill_type_proto},
    [TN_ATTRIBUTE_TYPE_PROTOS] = {"TYPE_PROTOS", FIELD_TYPE_PROTOS, true, false, fill_type_protos},
};

/* Wire types of the fields that hold values; other fields are not counted. */
static const tn_wire_type field_types[FIELD_COUNT] = {
    [FIELD_NAME] = TN_WIRE_BYTES,
    [FIELD_F] = TN_WIRE_FIXED32,
    [FIELD_I] = TN_WIRE_VARINT,
    [FIELD_S] = TN_WIRE_BYTES,
    [FIELD_T] = TN_WIRE_BYTES,
    [FIELD_G] = TN_WIRE_BYTES,
    [FIELD_FLOATS] = TN_WIRE_FIXED32,
    [FIELD_INTS] = TN_WIRE_VARINT,
    [FIELD_STRINGS] = TN_WIRE_BYTES,
    [FIELD_TENSORS] = TN_WIRE_BYTES,
    [FIELD_GRAPHS] = TN_WIRE_BYTES,
    [FIELD_TP] = TN_WIRE_BYTES,
    [FIELD_TYPE_PROTOS] = TN_WIRE_BYTES,
    [FIELD_TYPE] = TN_WIRE_VARINT,
    [FIELD_REF_NAME] = TN_WIRE_BYTES,
    [FIELD_SPARSE_TENSOR] = TN_WIRE_BYTES,
    [FIELD_SPARSE_TENSORS] = TN_WIRE_BYTES,
};

static void take_single(const tn_wire_field *field, attribute_scan *scan, tn_graph_attribute *out) {
    if (field->type != field_types[field->number]) return;
    switch (field->number) {
        case FIELD_NAME:
            out->name = tn_wire_text(field);
            break;
        case FIELD_F:
            memcpy(&out->f, &field->value, sizeof out->f);
            break;
        case FIELD_I:
            out->i = (int64_t)field->value;
            break;
        case FIELD_S:
            out->s = tn_wire_text(field);
            break;
        case FIELD_TYPE:
            scan->type = field->value;
            break;
        case FIELD_REF_NAME:
            out->ref_name = tn_wire_text(field);
            break;
        default:
            break;
    }
}

static tn_status scan_attribute(attribute_scan *scan, tn_graph_attribute *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(scan->message, message_name);
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        const tn_wire_reader at = reader;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number >= FIELD_COUNT) continue;
        take_single(&field, scan, out);
        if (field.number == FIELD_FLOATS || field.number == FIELD_INTS) {
            TN_TRY(tn_wire_count(&at, &field, field_types[field.number],
                                 &scan->counts[field.number], err));
        } else if (field.type == field_types[field.number]) {
            scan->counts[field.number]++;
        }
    }
    return TN_OK;
}

static tn_status decide_type(const attribute_scan *scan, tn_graph_attribute *out, tn_error *err) {
    TN_REQUIRE(scan->type < ATTRIBUTE_TYPE_COUNT, err, TN_UNSUPPORTED,
               "AttributeProto.type %" PRIu64 " is above the newest known, %d", scan->type,
               ATTRIBUTE_TYPE_COUNT - 1);
    out->type = (tn_attribute_type)scan->type;
    for (int type = 1; type < ATTRIBUTE_TYPE_COUNT && out->type == TN_ATTRIBUTE_NONE; type++) {
        if (scan->counts[attribute_rows[type].field] > 0) out->type = (tn_attribute_type)type;
    }
    TN_REQUIRE(out->type != TN_ATTRIBUTE_NONE || !tn_text_is_empty(out->ref_name), err,
               TN_INVALID_MODEL, "AttributeProto has neither type nor value");
    return TN_OK;
}

tn_status tn_onnx_read_attribute(tn_loader *loader, tn_bytes message,
                                 const tn_attribute_place *place, tn_graph_attribute *out,
                                 tn_error *err) {
    tn_status status = TN_OK;
    attribute_scan scan = {.message = message};
    *out = (tn_graph_attribute){.type = TN_ATTRIBUTE_NONE};

    TN_TRY_GOTO(scan_attribute(&scan, out, err), cleanup);
    TN_REQUIRE_GOTO(!tn_text_is_empty(out->name), cleanup, err, TN_INVALID_MODEL,
                    "AttributeProto has no name");
    TN_REQUIRE_GOTO(tn_text_is_empty(out->ref_name) ||
                        loader->scopes[place->scope].root_function != TN_SCOPE_NONE,
                    cleanup, err, TN_INVALID_MODEL,
                    "AttributeProto.ref_attr_name has no meaning outside a function");
    TN_TRY_GOTO(decide_type(&scan, out, err), cleanup);
    const attribute_row *row = &attribute_rows[out->type];
    const size_t value_count = scan.counts[row->field];
    out->count = row->is_list ? value_count : 1;
    /* inside a function the value comes from the caller */
    if (!tn_text_is_empty(out->ref_name) && value_count == 0) goto cleanup;
    TN_REQUIRE_GOTO(!row->needs_value || value_count > 0, cleanup, err, TN_INVALID_MODEL,
                    "AttributeProto of type %s has no value", row->name);
    TN_TRY_GOTO(row->fill(loader, &scan, place, out, err), cleanup);

cleanup:
    if (status != TN_OK && !tn_text_is_empty(out->name)) {
        char context[TN_LABEL_BYTES + 16];
        const tn_label label = tn_label_of(out->name);
        (void)snprintf(context, sizeof context, "attribute %s", label.text);
        tn_error_prefix(err, context);
    }
    return status;
}
