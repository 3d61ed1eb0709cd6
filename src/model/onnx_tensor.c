/* TensorProto and SparseTensorProto. Payload stays where it is whenever it is dense there: raw
 * data, external data, and packed lists of the element's own width. The other typed fields
 * (varints, lists in pieces) are copied once, dense. What the dims imply is compared with what is
 * present, in both directions, before anything is allocated. */
#include <inttypes.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "model/label.h"
#include "model/onnx_messages.h"
#include "tensor/shape.h"

enum {
    FIELD_DIMS = 1,
    FIELD_DATA_TYPE = 2,
    FIELD_SEGMENT = 3,
    FIELD_FLOAT_DATA = 4,
    FIELD_INT32_DATA = 5,
    FIELD_STRING_DATA = 6,
    FIELD_INT64_DATA = 7,
    FIELD_NAME = 8,
    FIELD_RAW_DATA = 9,
    FIELD_DOUBLE_DATA = 10,
    FIELD_UINT64_DATA = 11,
    FIELD_EXTERNAL_DATA = 13,
    FIELD_DATA_LOCATION = 14,
    FIELD_COUNT = 15
};

#define LOCATION_EXTERNAL 1
#define PAYLOAD_ALIGN 64

typedef struct typed_field {
    bool is_typed;
    tn_wire_type type;
} typed_field;

static const typed_field typed_fields[FIELD_COUNT] = {
    [FIELD_FLOAT_DATA] = {true, TN_WIRE_FIXED32},  [FIELD_INT32_DATA] = {true, TN_WIRE_VARINT},
    [FIELD_STRING_DATA] = {true, TN_WIRE_BYTES},   [FIELD_INT64_DATA] = {true, TN_WIRE_VARINT},
    [FIELD_DOUBLE_DATA] = {true, TN_WIRE_FIXED64}, [FIELD_UINT64_DATA] = {true, TN_WIRE_VARINT},
};

/* The typed field that may hold elements of a type; int32_data where nothing else is said. */
static const uint8_t typed_field_of[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = FIELD_FLOAT_DATA,  [TN_DTYPE_C64] = FIELD_FLOAT_DATA,
    [TN_DTYPE_F64] = FIELD_DOUBLE_DATA, [TN_DTYPE_C128] = FIELD_DOUBLE_DATA,
    [TN_DTYPE_I64] = FIELD_INT64_DATA,  [TN_DTYPE_U32] = FIELD_UINT64_DATA,
    [TN_DTYPE_U64] = FIELD_UINT64_DATA, [TN_DTYPE_STRING] = FIELD_STRING_DATA,
};

static uint32_t typed_field_number(tn_dtype dtype) {
    return typed_field_of[dtype] != 0 ? typed_field_of[dtype] : FIELD_INT32_DATA;
}

/* Payload bytes that one scalar of the typed field stands for: a complex number is two scalars, and
 * bytes of packed small integers are one scalar each. */
static size_t scalar_bytes(tn_dtype dtype) {
    const tn_wire_type type = typed_fields[typed_field_number(dtype)].type;
    const unsigned bits = tn_dtype_bits(dtype);
    if (type == TN_WIRE_FIXED32) return 4;
    if (type == TN_WIRE_FIXED64) return 8;
    return bits < 8 ? 1 : bits / 8;
}

/* What one walk over a TensorProto finds. */
typedef struct tensor_scan {
    size_t counts[FIELD_COUNT];      /* scalars of typed fields and dims; occurrences of others */
    size_t occurrences[FIELD_COUNT]; /* fields met */
    tn_bytes last[FIELD_COUNT];      /* last bytes of fields of that wire type */
    uint64_t dtype;
    uint64_t location;
} tensor_scan;

static tn_status scan_tensor(tn_wire_reader reader, tensor_scan *scan, tn_error *err) {
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        const tn_wire_reader at = reader;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number >= FIELD_COUNT) continue;
        if (field.number == FIELD_DIMS) {
            TN_TRY(tn_wire_count(&at, &field, TN_WIRE_VARINT, &scan->counts[FIELD_DIMS], err));
        } else if (typed_fields[field.number].is_typed) {
            TN_TRY(tn_wire_count(&at, &field, typed_fields[field.number].type,
                                 &scan->counts[field.number], err));
        } else if (field.type == TN_WIRE_BYTES) {
            scan->counts[field.number]++;
        } else if (field.type == TN_WIRE_VARINT) {
            if (field.number == FIELD_DATA_TYPE) scan->dtype = field.value;
            if (field.number == FIELD_DATA_LOCATION) scan->location = field.value;
        }
        if (field.type == TN_WIRE_BYTES) scan->last[field.number] = field.bytes;
        scan->occurrences[field.number]++;
    }
    return TN_OK;
}

/* Reads the dims in field `number` of `reader`'s message, `count` of them. */
static tn_status read_dims(tn_wire_reader reader, uint32_t number, size_t count, tn_shape *out,
                           tn_error *err) {
    TN_REQUIRE(count <= TN_MAX_RANK, err, TN_UNSUPPORTED, "%s has rank %zu, the limit is %d",
               reader.message, count, TN_MAX_RANK);
    *out = (tn_shape){0};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number != number) continue;
        tn_wire_scalars scalars = tn_wire_scalars_of(&field, TN_WIRE_VARINT);
        uint64_t value = 0;
        while (tn_wire_scalars_next(&scalars, &value)) {
            TN_REQUIRE((int64_t)value >= 0, err, TN_INVALID_MODEL,
                       "%s.dims: dim %" PRId64 " of axis %d is negative", reader.message,
                       (int64_t)value, (int)out->rank);
            out->dims[out->rank++] = (int64_t)value;
        }
    }
    return TN_OK;
}

/* `found` and `needed` are in `unit`, named for the message. */
typedef struct data_amount {
    size_t found;
    size_t needed;
    const char *unit;
} data_amount;

static tn_status size_mismatch(const tn_graph_tensor *tensor, const char *field, data_amount amount,
                               tn_error *err) {
    char text[TN_SHAPE_TEXT_BYTES];
    return tn_error_set(err, TN_INVALID_MODEL, "%s has %zu %s, %s %s needs %zu", field,
                        amount.found, amount.unit, tn_dtype_name(tensor->dtype),
                        tn_shape_print(&tensor->shape, text, sizeof text), amount.needed);
}

static bool lies_in(tn_bytes file, const uint8_t *data) {
    return file.size_bytes > 0 && data >= file.data && data < file.data + file.size_bytes;
}

/* Lets `tensor` use `bytes` of the model file (or of a joined message) in place. */
static void use_in_place(const tn_loader *loader, tn_bytes bytes, tn_graph_tensor *tensor) {
    tensor->data = bytes.size_bytes == 0 ? NULL : bytes.data;
    tensor->is_mapped = loader->is_file_mapped && lies_in(loader->file, bytes.data);
}

static tn_status read_strings(tn_loader *loader, tn_wire_list list, tn_graph_tensor *tensor,
                              tn_error *err) {
    const size_t count = list.count;
    tn_string *strings = tn_record_pool_alloc(loader->records, count, sizeof *strings);
    if (strings == NULL) {
        return tn_record_pool_refusal(loader->records, count, sizeof *strings, err);
    }
    for (size_t i = 0; i < count; i++) {
        tn_bytes bytes;
        TN_TRY(tn_wire_list_next(&list, &bytes, err));
        strings[i] = (tn_string){(const char *)bytes.data, bytes.size_bytes};
    }
    tensor->data = strings;
    return TN_OK;
}

/* Writes the scalars of field `number`, each as the low bytes of an element or of half a complex
 * one, one behind the other. */
static tn_status copy_scalars(tn_wire_reader reader, uint32_t number, tn_dtype dtype, uint8_t *out,
                              tn_error *err) {
    const size_t width_bytes = scalar_bytes(dtype);
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number != number) continue;
        tn_wire_scalars scalars = tn_wire_scalars_of(&field, typed_fields[number].type);
        uint64_t value = 0;
        while (tn_wire_scalars_next(&scalars, &value)) {
            if (dtype == TN_DTYPE_BOOL) value = value != 0;
            memcpy(out, &value, width_bytes);
            out += width_bytes;
        }
    }
    return TN_OK;
}

static tn_status read_typed(tn_loader *loader, tn_wire_reader reader, const tensor_scan *scan,
                            tn_graph_tensor *tensor, tn_error *err) {
    const uint32_t number = typed_field_number(tensor->dtype);
    const size_t needed = tensor->size_bytes / scalar_bytes(tensor->dtype);
    for (uint32_t other = 0; other < FIELD_COUNT; other++) {
        TN_REQUIRE(!typed_fields[other].is_typed || other == number || scan->counts[other] == 0,
                   err, TN_INVALID_MODEL, "TensorProto of type %s has data in field %u, not %u",
                   tn_dtype_name(tensor->dtype), (unsigned)other, (unsigned)number);
    }
    if (scan->counts[number] != needed) {
        return size_mismatch(tensor, "TensorProto",
                             (data_amount){scan->counts[number], needed, "elements"}, err);
    }
    if (needed == 0) return TN_OK;
    if (tensor->dtype == TN_DTYPE_STRING) {
        return read_strings(loader, (tn_wire_list){reader, number, needed}, tensor, err);
    }
    if (typed_fields[number].type != TN_WIRE_VARINT && scan->occurrences[number] == 1 &&
        scan->last[number].size_bytes == tensor->size_bytes) {
        use_in_place(loader, scan->last[number], tensor);
        return TN_OK;
    }

    uint8_t *data =
        tn_record_pool_alloc_aligned(loader->records, tensor->size_bytes, PAYLOAD_ALIGN);
    if (data == NULL) return tn_record_pool_refusal(loader->records, tensor->size_bytes, 1, err);
    TN_TRY(copy_scalars(reader, number, tensor->dtype, data, err));
    tensor->data = data;
    return TN_OK;
}

static tn_status parse_decimal(tn_text text, const char *key, uint64_t *out, tn_error *err) {
    const tn_label label = tn_label_of(text);
    uint64_t value = 0;
    bool is_number = text.size_bytes > 0;
    for (size_t i = 0; i < text.size_bytes && is_number; i++) {
        const unsigned digit = (unsigned)(uint8_t)text.data[i] - '0';
        is_number = digit <= 9 && !__builtin_mul_overflow(value, 10u, &value) &&
                    !__builtin_add_overflow(value, digit, &value);
    }
    TN_REQUIRE(is_number && value <= INT64_MAX, err, TN_INVALID_MODEL,
               "TensorProto.external_data: %s \"%s\" is no size", key, label.text);
    *out = value;
    return TN_OK;
}

static tn_status read_range(tn_wire_list entries, tn_external_range *range, tn_error *err) {
    while (entries.count > 0) {
        tn_bytes message;
        tn_model_property entry;
        TN_TRY(tn_wire_list_next(&entries, &message, err));
        TN_TRY(tn_onnx_read_entry(message, &entry, err));
        if (tn_text_equals_literal(entry.key, "location")) {
            range->location = entry.value;
        } else if (tn_text_equals_literal(entry.key, "offset")) {
            TN_TRY(parse_decimal(entry.value, "offset", &range->offset_bytes, err));
        } else if (tn_text_equals_literal(entry.key, "length")) {
            TN_TRY(parse_decimal(entry.value, "length", &range->length_bytes, err));
            range->has_length = true;
        }
    }
    return TN_OK;
}

static tn_status read_external(tn_loader *loader, tn_wire_list entries, tn_graph_tensor *tensor,
                               tn_error *err) {
    tn_external_range range = {0};
    TN_REQUIRE(tensor->dtype != TN_DTYPE_STRING, err, TN_INVALID_MODEL,
               "TensorProto of type string cannot have external_data");
    TN_TRY(read_range(entries, &range, err));
    TN_REQUIRE(range.location.size_bytes > 0, err, TN_INVALID_MODEL,
               "TensorProto.external_data has no location");
    if (range.has_length && range.length_bytes != tensor->size_bytes) {
        return size_mismatch(tensor, "TensorProto.external_data",
                             (data_amount){(size_t)range.length_bytes, tensor->size_bytes, "bytes"},
                             err);
    }
    tn_bytes bytes = {NULL, 0};
    bool is_mapped = false;
    TN_TRY(tn_external_data_find(&loader->external, &range, &bytes, &is_mapped, err));
    if (bytes.size_bytes < tensor->size_bytes) {
        return size_mismatch(tensor, "TensorProto.external_data",
                             (data_amount){bytes.size_bytes, tensor->size_bytes, "bytes"}, err);
    }
    tensor->data = tensor->size_bytes == 0 ? NULL : bytes.data;
    tensor->is_mapped = is_mapped && tensor->size_bytes != 0;
    return TN_OK;
}

static tn_status read_raw(const tn_loader *loader, const tensor_scan *scan, tn_graph_tensor *tensor,
                          tn_error *err) {
    const tn_bytes raw = scan->last[FIELD_RAW_DATA];
    TN_REQUIRE(tensor->dtype != TN_DTYPE_STRING, err, TN_INVALID_MODEL,
               "TensorProto of type string cannot have raw_data");
    for (uint32_t other = 0; other < FIELD_COUNT; other++) {
        TN_REQUIRE(!typed_fields[other].is_typed || scan->counts[other] == 0, err, TN_INVALID_MODEL,
                   "TensorProto has both raw_data and data in field %u", (unsigned)other);
    }
    if (raw.size_bytes != tensor->size_bytes) {
        return size_mismatch(tensor, "TensorProto.raw_data",
                             (data_amount){raw.size_bytes, tensor->size_bytes, "bytes"}, err);
    }
    use_in_place(loader, raw, tensor);
    return TN_OK;
}

static tn_status read_payload(tn_loader *loader, tn_wire_reader reader, const tensor_scan *scan,
                              tn_graph_tensor *tensor, tn_error *err) {
    if (scan->location == LOCATION_EXTERNAL) {
        const tn_wire_list entries = {reader, FIELD_EXTERNAL_DATA,
                                      scan->counts[FIELD_EXTERNAL_DATA]};
        return read_external(loader, entries, tensor, err);
    }
    if (scan->last[FIELD_RAW_DATA].size_bytes > 0) return read_raw(loader, scan, tensor, err);
    return read_typed(loader, reader, scan, tensor, err);
}

tn_status tn_onnx_read_tensor(tn_loader *loader, tn_bytes message, tn_graph_tensor *out,
                              tn_error *err) {
    const tn_wire_reader reader = tn_wire_reader_of(message, "TensorProto");
    tn_status status = TN_OK;
    tensor_scan scan = {.dtype = 0};
    *out = (tn_graph_tensor){.id = loader->tensor_count};

    TN_TRY_GOTO(scan_tensor(reader, &scan, err), cleanup);
    out->name =
        (tn_text){(const char *)scan.last[FIELD_NAME].data, scan.last[FIELD_NAME].size_bytes};
    TN_REQUIRE_GOTO(scan.dtype != 0, cleanup, err, TN_INVALID_MODEL,
                    "TensorProto has no data_type");
    TN_REQUIRE_GOTO(scan.dtype < TN_DTYPE_COUNT, cleanup, err, TN_UNSUPPORTED,
                    "TensorProto.data_type %" PRIu64 " is above the newest known, %d", scan.dtype,
                    TN_DTYPE_COUNT - 1);
    TN_REQUIRE_GOTO(scan.occurrences[FIELD_SEGMENT] == 0, cleanup, err, TN_UNSUPPORTED,
                    "TensorProto.segment: tensors in pieces are not read");
    TN_REQUIRE_GOTO(loader->tensor_count < UINT32_MAX, cleanup, err, TN_UNSUPPORTED,
                    "more than %" PRIu32 " tensors", UINT32_MAX);
    out->dtype = (tn_dtype)scan.dtype;
    TN_TRY_GOTO(read_dims(reader, FIELD_DIMS, scan.counts[FIELD_DIMS], &out->shape, err), cleanup);
    TN_TRY_GOTO(tn_shape_size_bytes(&out->shape, out->dtype, &out->size_bytes, err), cleanup);
    TN_TRY_GOTO(read_payload(loader, reader, &scan, out, err), cleanup);
    loader->tensor_count++;

cleanup:
    if (status != TN_OK && !tn_text_is_empty(out->name)) {
        tn_error_set_node(err, tn_label_of(out->name).text);
    }
    return status;
}

/* Proves that every index lies inside the shape, so that nobody has to ask again. */
static tn_status check_indices(const tn_graph_sparse_tensor *sparse, size_t len_elems,
                               tn_error *err) {
    const size_t rank = (size_t)sparse->shape.rank;
    const bool is_linear = sparse->indices.shape.rank == 1;
    const size_t index_count = sparse->indices.size_bytes / sizeof(int64_t);
    for (size_t i = 0; i < index_count; i++) {
        int64_t index = 0;
        memcpy(&index, (const uint8_t *)sparse->indices.data + i * sizeof index, sizeof index);
        const int64_t limit = is_linear ? (int64_t)len_elems : sparse->shape.dims[i % rank];
        TN_REQUIRE(index >= 0 && index < limit, err, TN_INVALID_MODEL,
                   "SparseTensorProto.indices: %" PRId64 " at %zu is outside [0, %" PRId64 ")",
                   index, i, limit);
    }
    return TN_OK;
}

static tn_status check_sparse_tensor(const tn_graph_sparse_tensor *sparse, tn_error *err) {
    const tn_graph_tensor *values = &sparse->values;
    const tn_graph_tensor *indices = &sparse->indices;
    size_t len_elems = 0;
    TN_TRY(tn_shape_len_elems(&sparse->shape, &len_elems, err));
    TN_REQUIRE(len_elems <= INT64_MAX, err, TN_OVERFLOW,
               "SparseTensorProto.dims: %zu elements are more than an index can name", len_elems);
    TN_REQUIRE(values->shape.rank == 1 && indices->dtype == TN_DTYPE_I64, err, TN_INVALID_MODEL,
               "SparseTensorProto needs values of rank 1 and indices of type int64");
    const bool is_linear = indices->shape.rank == 1;
    const bool is_tuple = indices->shape.rank == 2 && indices->shape.dims[1] == sparse->shape.rank;
    TN_REQUIRE((is_linear || is_tuple) && indices->shape.dims[0] == values->shape.dims[0], err,
               TN_INVALID_MODEL,
               "SparseTensorProto.indices fit neither [nnz] nor [nnz, rank] for %" PRId64
               " values and rank %d",
               values->shape.dims[0], (int)sparse->shape.rank);
    return check_indices(sparse, len_elems, err);
}

tn_status tn_onnx_read_sparse_tensor(tn_loader *loader, tn_bytes message,
                                     tn_graph_sparse_tensor *out, tn_error *err) {
    static const char name[] = "SparseTensorProto";
    tn_wire_reader reader = tn_wire_reader_of(message, name);
    size_t occurrences[3] = {0};
    size_t dim_count = 0;
    tn_bytes part;
    *out = (tn_graph_sparse_tensor){.shape = {0}};
    while (!tn_wire_at_end(&reader)) {
        tn_wire_field field;
        const tn_wire_reader at = reader;
        TN_TRY(tn_wire_next(&reader, &field, err));
        if (field.number <= 2 && field.type == TN_WIRE_BYTES) occurrences[field.number]++;
        if (field.number == 3) TN_TRY(tn_wire_count(&at, &field, TN_WIRE_VARINT, &dim_count, err));
    }
    TN_REQUIRE(occurrences[1] > 0 && occurrences[2] > 0, err, TN_INVALID_MODEL,
               "%s needs values and indices", name);
    const tn_wire_reader start = tn_wire_reader_of(message, name);
    TN_TRY(tn_loader_join(loader, (tn_wire_list){start, 1, occurrences[1]}, &part, err));
    TN_TRY(tn_onnx_read_tensor(loader, part, &out->values, err));
    TN_TRY(tn_loader_join(loader, (tn_wire_list){start, 2, occurrences[2]}, &part, err));
    TN_TRY(tn_onnx_read_tensor(loader, part, &out->indices, err));
    TN_TRY(read_dims(start, 3, dim_count, &out->shape, err));
    const tn_status status = check_sparse_tensor(out, err);
    if (status != TN_OK && !tn_text_is_empty(out->values.name)) {
        tn_error_set_node(err, tn_label_of(out->values.name).text);
    }
    return status;
}
