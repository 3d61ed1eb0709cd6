/* TypeProto and ValueInfoProto. A type is a chain (sequence of optional of map to tensor), so it is
 * followed in a loop, one record per link. */
#include <inttypes.h>

#include "base/error.h"
#include "model/label.h"
#include "model/onnx_messages.h"

enum {
    TYPE_TENSOR = 1,
    TYPE_SEQUENCE = 4,
    TYPE_MAP = 5,
    TYPE_SPARSE_TENSOR = 8,
    TYPE_OPTIONAL = 9
};

static tn_status read_dtype(uint64_t number, const char *field, tn_dtype *out, tn_error *err) {
    TN_REQUIRE(number < TN_DTYPE_COUNT, err, TN_UNSUPPORTED,
               "%s %" PRIu64 " is above the newest known element type, %d", field, number,
               TN_DTYPE_COUNT - 1);
    *out = (tn_dtype)number;
    return TN_OK;
}

static tn_status read_dim(tn_bytes message, tn_graph_dim *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "Dimension");
    *out = (tn_graph_dim){.value = -1};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        /* one or the other: the later wins. Exporters write -1 for "unknown". */
        if (field.number == 1 && field.type == TN_WIRE_VARINT) {
            *out = (tn_graph_dim){.value = (int64_t)field.value < 0 ? -1 : (int64_t)field.value};
        }
        if (field.number == 2 && field.type == TN_WIRE_BYTES) {
            *out = (tn_graph_dim){.value = -1, .symbol = tn_wire_text(&field)};
        }
    }
    return TN_OK;
}

static tn_status read_shape(tn_loader *loader, tn_bytes message, tn_graph_type *out,
                            tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "TensorShapeProto");
    tn_wire_list list = {reader, 1, 0};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number == 1 && field.type == TN_WIRE_BYTES) list.count++;
    }
    const size_t rank = list.count;
    TN_REQUIRE(rank <= TN_MAX_RANK, err, TN_UNSUPPORTED,
               "TensorShapeProto has rank %zu, the limit is %d", rank, TN_MAX_RANK);
    tn_graph_dim *dims = tn_record_pool_alloc(loader->records, rank, sizeof *dims);
    if (dims == NULL) return tn_record_pool_refusal(loader->records, rank, sizeof *dims, err);
    for (size_t axis = 0; axis < rank; axis++) {
        tn_bytes dim;
        TN_TRY(tn_wire_list_next(&list, &dim, err));
        TN_TRY(read_dim(dim, &dims[axis], err));
    }
    out->rank = (int32_t)rank;
    out->dims = dims;
    return TN_OK;
}

/* TypeProto.Tensor and TypeProto.SparseTensor have the same fields. */
static tn_status read_tensor_type(tn_loader *loader, tn_bytes message, tn_graph_type *out,
                                  tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "TypeProto.Tensor");
    tn_wire_list shapes = {reader, 2, 0};
    uint64_t dtype = 0;
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number == 1 && field.type == TN_WIRE_VARINT) dtype = field.value;
        if (field.number == 2 && field.type == TN_WIRE_BYTES) shapes.count++;
    }
    TN_TRY(read_dtype(dtype, "TypeProto.elem_type", &out->dtype, err));
    if (shapes.count == 0) return TN_OK;
    tn_bytes shape;
    TN_TRY(tn_loader_join(loader, shapes, &shape, err));
    return read_shape(loader, shape, out, err);
}

/* Finds the member of the oneof that counts: the last one, joined with the same ones just before.
 */
static tn_status find_member(tn_loader *loader, tn_bytes message, uint32_t *out_member,
                             tn_bytes *out_bytes, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "TypeProto");
    tn_wire_list members = {reader, 0, 0};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        const tn_wire_reader at = reader;
        TN_TRY(tn_wire_next(&reader, &field, err));
        const bool is_member = field.number == TYPE_TENSOR || field.number == TYPE_SEQUENCE ||
                               field.number == TYPE_MAP || field.number == TYPE_SPARSE_TENSOR ||
                               field.number == TYPE_OPTIONAL;
        if (!is_member || field.type != TN_WIRE_BYTES) continue;
        if (field.number != members.number) members = (tn_wire_list){at, field.number, 0};
        members.count++;
    }
    *out_member = members.number;
    return tn_loader_join(loader, members, out_bytes, err);
}

/* Reads what a sequence, an optional or a map says of its elements, and finds their TypeProto in
 * *inout_message. */
static tn_status find_element(tn_loader *loader, tn_bytes *inout_message, uint32_t member,
                              tn_graph_type *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(*inout_message, "TypeProto element");
    tn_wire_list elements = {reader, member == TYPE_MAP ? 2 : 1, 0};
    uint64_t key_dtype = 0;
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number == elements.number && field.type == TN_WIRE_BYTES) elements.count++;
        if (member == TYPE_MAP && field.number == 1 && field.type == TN_WIRE_VARINT) {
            key_dtype = field.value;
        }
    }
    out->kind = member == TYPE_MAP        ? TN_KIND_MAP
                : member == TYPE_SEQUENCE ? TN_KIND_SEQUENCE
                                          : TN_KIND_OPTIONAL;
    TN_TRY(read_dtype(key_dtype, "TypeProto.Map.key_type", &out->dtype, err));
    return tn_loader_join(loader, elements, inout_message, err);
}

tn_status tn_onnx_read_type(tn_loader *loader, tn_bytes message, int depth, tn_graph_type *out,
                            tn_error *err) {
    for (;;) {
        uint32_t member = 0;
        *out = (tn_graph_type){.rank = -1};
        TN_REQUIRE(depth + 2 <= TN_MAX_MESSAGE_DEPTH, err, TN_UNSUPPORTED,
                   "TypeProto: messages are nested deeper than %d", TN_MAX_MESSAGE_DEPTH);
        TN_TRY(find_member(loader, message, &member, &message, err));
        if (member == 0) return TN_OK;
        if (member == TYPE_TENSOR || member == TYPE_SPARSE_TENSOR) {
            out->kind = member == TYPE_TENSOR ? TN_KIND_TENSOR : TN_KIND_SPARSE_TENSOR;
            return read_tensor_type(loader, message, out, err);
        }
        TN_TRY(find_element(loader, &message, member, out, err));
        tn_graph_type *element = tn_record_pool_alloc(loader->records, 1, sizeof *element);
        if (element == NULL)
            return tn_record_pool_refusal(loader->records, 1, sizeof *element, err);
        out->element = element;
        out = element;
        depth += 2;
    }
}

tn_status tn_onnx_read_value_info(tn_loader *loader, tn_bytes message, int depth,
                                  tn_graph_value_info *out, tn_error *err) {
    tn_wire_reader reader = tn_wire_reader_of(message, "ValueInfoProto");
    tn_status status = TN_OK;
    tn_wire_list types = {reader, 2, 0};
    tn_bytes type = {NULL, 0};
    *out = (tn_graph_value_info){.type = {.rank = -1}};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY_GOTO(tn_wire_next(&reader, &field, err), cleanup);
        if (field.type != TN_WIRE_BYTES) continue;
        if (field.number == 1) out->name = tn_wire_text(&field);
        if (field.number == 2) types.count++;
    }
    TN_TRY_GOTO(tn_loader_join(loader, types, &type, err), cleanup);
    TN_TRY_GOTO(tn_onnx_read_type(loader, type, depth + 1, &out->type, err), cleanup);

cleanup:
    if (status != TN_OK && !tn_text_is_empty(out->name)) {
        tn_error_set_node(err, tn_label_of(out->name).text);
    }
    return status;
}
