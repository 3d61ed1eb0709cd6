/* A reader of one message, TensorProto: enough of protobuf for test data, with the same care about
 * lengths as the library's own reader. */
#include "cli/case_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const unsigned char *at;
    const unsigned char *end;
} reader;

typedef struct span {
    const unsigned char *data;
    size_t size_bytes;
} span;

typedef struct tensor_proto {
    tn_shape shape;
    int dtype;
    span raw;
    bool has_raw;
    unsigned char *typed; /* owned; little-endian elements collected from typed fields */
    size_t typed_bytes, typed_capacity;
    tn_string *strings; /* owned; point into the message */
    size_t string_count, string_capacity;
} tensor_proto;

static tn_status fail(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);

static tn_status fail(tn_error *err, tn_status code, const char *format, ...) {
    if (err == NULL) return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

tn_status cli_read_file(const char *path, unsigned char **out_data, size_t *out_bytes,
                        tn_error *err) {
    unsigned char *data = NULL;
    FILE *file = fopen(path, "rb");
    *out_data = NULL;
    if (file == NULL) return fail(err, TN_IO, "%s: %s", path, strerror(errno));
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    bool is_read = size >= 0 && fseek(file, 0, SEEK_SET) == 0;
    if (is_read) {
        data = malloc((size_t)size + 1);
        is_read = data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size;
    }
    (void)fclose(file);
    if (!is_read) {
        free(data);
        return fail(err, TN_IO, "%s: cannot be read", path);
    }
    *out_data = data;
    *out_bytes = (size_t)size;
    return TN_OK;
}

static bool read_varint(reader *r, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->at == r->end) return false;
        const unsigned char byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_span(reader *r, span *out) {
    uint64_t size = 0;
    if (!read_varint(r, &size) || size > (uint64_t)(r->end - r->at)) return false;
    *out = (span){r->at, (size_t)size};
    r->at += size;
    return true;
}

static bool grow(void **data, size_t *capacity, size_t wanted, size_t item_bytes) {
    if (wanted <= *capacity) return true;
    size_t capacity_now = *capacity == 0 ? 64 : *capacity;
    while (capacity_now < wanted) capacity_now *= 2;
    void *grown = realloc(*data, capacity_now * item_bytes);
    if (grown == NULL) return false;
    *data = grown;
    *capacity = capacity_now;
    return true;
}

static bool add_typed(tensor_proto *proto, const void *bytes, size_t size_bytes) {
    void *data = proto->typed;
    if (!grow(&data, &proto->typed_capacity, proto->typed_bytes + size_bytes, 1)) return false;
    proto->typed = data;
    memcpy(proto->typed + proto->typed_bytes, bytes, size_bytes);
    proto->typed_bytes += size_bytes;
    return true;
}

/* One number of int32_data, int64_data or uint64_data: its low bytes in the element's own width. */
static bool add_number(tensor_proto *proto, uint64_t number) {
    const unsigned bits = tn_dtype_bits((tn_dtype)proto->dtype);
    return add_typed(proto, &number, bits < 8 ? 1 : bits / 8);
}

static bool add_string(tensor_proto *proto, span text) {
    void *data = proto->strings;
    if (!grow(&data, &proto->string_capacity, proto->string_count + 1, sizeof *proto->strings)) {
        return false;
    }
    proto->strings = data;
    proto->strings[proto->string_count++] = (tn_string){(const char *)text.data, text.size_bytes};
    return true;
}

static bool add_dim(tensor_proto *proto, uint64_t dim) {
    if (proto->shape.rank >= TN_MAX_RANK) return false;
    proto->shape.dims[proto->shape.rank++] = (int64_t)dim;
    return true;
}

static bool add_varint_field(tensor_proto *proto, uint64_t field, uint64_t value) {
    if (field == 1) return add_dim(proto, value);
    if (field == 2) proto->dtype = (int)value;
    if (field == 5 || field == 7 || field == 11) return add_number(proto, value);
    return true;
}

static bool add_packed(tensor_proto *proto, uint64_t field, span packed) {
    reader r = {packed.data, packed.data + packed.size_bytes};
    while (r.at < r.end) {
        uint64_t value = 0;
        if (!read_varint(&r, &value) || !add_varint_field(proto, field, value)) return false;
    }
    return true;
}

static bool add_span_field(tensor_proto *proto, uint64_t field, span value) {
    switch (field) {
        case 1:
        case 5:
        case 7:
        case 11:
            return add_packed(proto, field, value);
        case 4:
        case 10:
            return add_typed(proto, value.data, value.size_bytes);
        case 6:
            return add_string(proto, value);
        case 9:
            proto->raw = value;
            proto->has_raw = true;
            return true;
        default:
            return true;
    }
}

/* Type first: typed numbers need its width, and the field may come behind them. */
static bool find_type(reader r, int *out) {
    while (r.at < r.end) {
        uint64_t key = 0;
        uint64_t value = 0;
        span skipped;
        if (!read_varint(&r, &key)) return false;
        const unsigned wire = (unsigned)(key & 7);
        if (wire == 0) {
            if (!read_varint(&r, &value)) return false;
            if (key >> 3 == 2) *out = (int)value;
        } else if (wire == 2) {
            if (!read_span(&r, &skipped)) return false;
        } else if (wire == 5 || wire == 1) {
            const size_t width = wire == 5 ? 4 : 8;
            if ((size_t)(r.end - r.at) < width) return false;
            r.at += width;
        } else {
            return false;
        }
    }
    return true;
}

static bool read_message(reader r, tensor_proto *proto) {
    if (!find_type(r, &proto->dtype)) return false;
    while (r.at < r.end) {
        uint64_t key = 0;
        uint64_t value = 0;
        span bytes;
        if (!read_varint(&r, &key)) return false;
        const unsigned wire = (unsigned)(key & 7);
        if (wire == 0) {
            if (!read_varint(&r, &value) || !add_varint_field(proto, key >> 3, value)) return false;
        } else if (wire == 2) {
            if (!read_span(&r, &bytes) || !add_span_field(proto, key >> 3, bytes)) return false;
        } else {
            const size_t width = wire == 5 ? 4 : 8;
            if ((size_t)(r.end - r.at) < width || !add_typed(proto, r.at, width)) return false;
            r.at += width;
        }
    }
    return true;
}

static void free_bytes(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

/* References and bytes of all strings in one block, so that one free ends both. */
static void *own_strings(const tensor_proto *proto) {
    size_t size_bytes = proto->string_count * sizeof(tn_string) + 1;
    for (size_t i = 0; i < proto->string_count; i++) size_bytes += proto->strings[i].size_bytes;
    tn_string *copies = malloc(size_bytes);
    if (copies == NULL) return NULL;
    char *bytes = (char *)(copies + proto->string_count);
    for (size_t i = 0; i < proto->string_count; i++) {
        memcpy(bytes, proto->strings[i].data, proto->strings[i].size_bytes);
        copies[i] = (tn_string){bytes, proto->strings[i].size_bytes};
        bytes += proto->strings[i].size_bytes;
    }
    return copies;
}

/* Packed sub-byte elements that int32_data holds one byte at a time are packed already. */
static tn_status make_tensor(tn_allocator *allocator, const tensor_proto *proto, tn_value **out,
                             tn_error *err) {
    const tn_dtype dtype = (tn_dtype)proto->dtype;
    size_t size_bytes = 0;
    tn_status status = tn_shape_size_bytes(&proto->shape, dtype, &size_bytes, err);
    if (status != TN_OK) return status;
    const bool is_string = dtype == TN_DTYPE_STRING;
    const size_t given_bytes = is_string        ? proto->string_count * sizeof(tn_string)
                               : proto->has_raw ? proto->raw.size_bytes
                                                : proto->typed_bytes;
    if (given_bytes != size_bytes) {
        return fail(err, TN_INVALID_ARGUMENT, "a tensor of %zu bytes comes with %zu", size_bytes,
                    given_bytes);
    }
    void *data = is_string ? own_strings(proto) : malloc(size_bytes + 1);
    if (data == NULL) return fail(err, TN_OUT_OF_MEMORY, "%zu bytes for a tensor", size_bytes);
    if (!is_string && size_bytes > 0) {
        memcpy(data, proto->has_raw ? proto->raw.data : proto->typed, size_bytes);
    }
    status = tn_tensor_create_borrowed(allocator, dtype, &proto->shape, NULL, data, free_bytes,
                                       NULL, out, err);
    if (status != TN_OK) free(data);
    return status;
}

tn_status cli_parse_tensor_pb(tn_allocator *allocator, const unsigned char *data, size_t size_bytes,
                              tn_value **out, tn_error *err) {
    tensor_proto proto;
    memset(&proto, 0, sizeof proto);
    *out = NULL;
    tn_status status = TN_OK;
    const reader r = {data, data + size_bytes};
    if (!read_message(r, &proto) || tn_dtype_bits((tn_dtype)proto.dtype) == 0) {
        status = fail(err, TN_INVALID_ARGUMENT, "this is no TensorProto");
    } else {
        status = make_tensor(allocator, &proto, out, err);
    }
    free(proto.typed);
    free(proto.strings);
    return status;
}

tn_status cli_read_tensor_pb(tn_allocator *allocator, const char *path, tn_value **out,
                             tn_error *err) {
    unsigned char *data = NULL;
    size_t size_bytes = 0;
    *out = NULL;
    tn_status status = cli_read_file(path, &data, &size_bytes, err);
    if (status != TN_OK) return status;
    status = cli_parse_tensor_pb(allocator, data, size_bytes, out, err);
    free(data);
    return status;
}
