/* The header is a Python dict of three known keys; it is searched for them, not interpreted.
 * Lengths are checked against the file before anything is read. */
#include "cli/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/case_reader.h"
#include "cli/cli.h"

typedef struct npy_type {
    const char *code; /* without byte order */
    tn_dtype dtype;
    const char *written_code; /* with byte order */
} npy_type;

/* The first row of a code is the one that reading takes. */
static const npy_type types[] = {
    {"f4", TN_DTYPE_F32, "<f4"},        {"f8", TN_DTYPE_F64, "<f8"},
    {"f2", TN_DTYPE_F16, "<f2"},        {"i1", TN_DTYPE_I8, "|i1"},
    {"u1", TN_DTYPE_U8, "|u1"},         {"i2", TN_DTYPE_I16, "<i2"},
    {"u2", TN_DTYPE_U16, "<u2"},        {"i4", TN_DTYPE_I32, "<i4"},
    {"u4", TN_DTYPE_U32, "<u4"},        {"i8", TN_DTYPE_I64, "<i8"},
    {"u8", TN_DTYPE_U64, "<u8"},        {"b1", TN_DTYPE_BOOL, "|b1"},
    {"c8", TN_DTYPE_C64, "<c8"},        {"c16", TN_DTYPE_C128, "<c16"},
    {"u2", TN_DTYPE_BF16, "<u2"},       {"u1", TN_DTYPE_F8E4M3FN, "|u1"},
    {"u1", TN_DTYPE_F8E4M3FNUZ, "|u1"}, {"u1", TN_DTYPE_F8E5M2, "|u1"},
    {"u1", TN_DTYPE_F8E5M2FNUZ, "|u1"}, {"u1", TN_DTYPE_F8E8M0, "|u1"},
    {"u1", TN_DTYPE_U4, "|u1"},         {"u1", TN_DTYPE_I4, "|u1"},
    {"u1", TN_DTYPE_F4E2M1, "|u1"},     {"u1", TN_DTYPE_U2, "|u1"},
    {"u1", TN_DTYPE_I2, "|u1"},
};

typedef struct npy_header {
    tn_dtype dtype;
    tn_shape shape;
    bool is_fortran, is_big_endian;
    size_t data_offset;
} npy_header;

static tn_status not_npy(tn_error *err, const char *why) {
    return cli_set_error(err, TN_INVALID_ARGUMENT, "this is no .npy file: %s", why);
}

static const char *value_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (at == NULL) return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

static tn_status read_type(const char *text, npy_header *header, tn_error *err) {
    const char *at = value_of(text, "'descr'");
    char code[8] = "";
    if (at == NULL) return not_npy(err, "no 'descr'");
    if (*at != '\'' || sscanf(at + 1, "%*1[<>|=]%7[a-zA-Z0-9]", code) != 1) {
        return cli_set_error(err, TN_UNSUPPORTED, "a .npy file of records is not an input");
    }
    header->is_big_endian = at[1] == '>';
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].code, code) != 0) continue;
        header->dtype = types[i].dtype;
        return TN_OK;
    }
    return cli_set_error(err, TN_UNSUPPORTED, "elements of type '%s' are not read", code);
}

static tn_status read_dims(const char *text, npy_header *header, tn_error *err) {
    const char *at = value_of(text, "'shape'");
    if (at == NULL || *at != '(') return not_npy(err, "no 'shape'");
    for (at++; *at != ')';) {
        char *end = NULL;
        const long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0) return not_npy(err, "'shape' is not a tuple of sizes");
        if (header->shape.rank == TN_MAX_RANK) {
            return cli_set_error(err, TN_UNSUPPORTED, "more than %d dimensions", TN_MAX_RANK);
        }
        header->shape.dims[header->shape.rank++] = dim;
        at = end + strspn(end, ", L");
    }
    return TN_OK;
}

static tn_status read_header(const unsigned char *data, size_t size_bytes, npy_header *header,
                             tn_error *err) {
    char text[4096];
    if (size_bytes < 12 || memcmp(data, "\x93NUMPY", 6) != 0) return not_npy(err, "wrong magic");
    const bool is_long = data[6] >= 2;
    size_t length = (size_t)data[8] | (size_t)data[9] << 8;
    if (is_long) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    const size_t start = is_long ? 12 : 10;
    if (length > size_bytes - start || length >= sizeof text) return not_npy(err, "cut off");
    memcpy(text, data + start, length);
    text[length] = '\0';
    *header = (npy_header){.data_offset = start + length};
    const char *order = value_of(text, "'fortran_order'");
    if (order == NULL) return not_npy(err, "no 'fortran_order'");
    header->is_fortran = strncmp(order, "True", 4) == 0;
    const tn_status status = read_type(text, header, err);
    return status == TN_OK ? read_dims(text, header, err) : status;
}

static void swap_bytes(unsigned char *data, size_t size_bytes, size_t item_bytes) {
    for (size_t at = 0; at + item_bytes <= size_bytes; at += item_bytes) {
        for (size_t i = 0; i < item_bytes / 2; i++) {
            const unsigned char first = data[at + i];
            data[at + i] = data[at + item_bytes - 1 - i];
            data[at + item_bytes - 1 - i] = first;
        }
    }
}

/* Fortran order: the file's first index runs fastest. */
static void copy_fortran(const tn_shape *shape, size_t item_bytes, const unsigned char *from,
                         unsigned char *to, size_t size_bytes) {
    int64_t index[TN_MAX_RANK] = {0};
    size_t strides[TN_MAX_RANK];
    size_t stride = item_bytes;
    for (int32_t d = shape->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= (size_t)shape->dims[d];
    }
    for (size_t done = 0; done < size_bytes; done += item_bytes) {
        size_t at = 0;
        for (int32_t d = 0; d < shape->rank; d++) at += (size_t)index[d] * strides[d];
        memcpy(to + at, from + done, item_bytes);
        for (int32_t d = 0; d < shape->rank; d++) {
            if (++index[d] < shape->dims[d]) break;
            index[d] = 0;
        }
    }
}

tn_status cli_parse_npy(tn_allocator *allocator, const unsigned char *data, size_t size_bytes,
                        tn_value **out, tn_error *err) {
    npy_header header;
    size_t payload_bytes = 0;
    tn_value *value = NULL;
    *out = NULL;
    tn_status status = read_header(data, size_bytes, &header, err);
    if (status == TN_OK) {
        status = tn_shape_size_bytes(&header.shape, header.dtype, &payload_bytes, err);
    }
    if (status == TN_OK && size_bytes - header.data_offset != payload_bytes) {
        status = cli_set_error(err, TN_INVALID_ARGUMENT, "%zu bytes of data, the shape needs %zu",
                               size_bytes - header.data_offset, payload_bytes);
    }
    if (status == TN_OK) {
        status = tn_tensor_create(allocator, header.dtype, &header.shape, &value, err);
    }
    if (status != TN_OK) return status;
    const size_t item_bytes = tn_dtype_bits(header.dtype) / 8;
    unsigned char *target = tn_tensor_borrow_data(value);
    if (header.is_fortran && header.shape.rank > 1) {
        copy_fortran(&header.shape, item_bytes, data + header.data_offset, target, payload_bytes);
    } else if (payload_bytes > 0) {
        memcpy(target, data + header.data_offset, payload_bytes);
    }
    const bool is_complex = header.dtype == TN_DTYPE_C64 || header.dtype == TN_DTYPE_C128;
    if (header.is_big_endian) {
        swap_bytes(target, payload_bytes, is_complex ? item_bytes / 2 : item_bytes);
    }
    *out = value;
    return TN_OK;
}

tn_status cli_read_npy(tn_allocator *allocator, const char *path, tn_value **out, tn_error *err) {
    unsigned char *data = NULL;
    size_t size_bytes = 0;
    *out = NULL;
    tn_status status = cli_read_file(path, &data, &size_bytes, err);
    if (status != TN_OK) return status;
    status = cli_parse_npy(allocator, data, size_bytes, out, err);
    free(data);
    return status;
}

static bool write_header(FILE *file, const char *descr, const tn_shape *shape) {
    char text[512];
    int used =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t d = 0; d < shape->rank; d++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%lld,%s",
                         (long long)shape->dims[d], d + 1 < shape->rank ? " " : "");
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    /* magic, version and length take 10 bytes; all together is a multiple of 64 */
    const int length = (10 + used + 1 + 63) / 64 * 64 - 10;
    const unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)};
    return fwrite(start, 1, sizeof start, file) == sizeof start &&
           fprintf(file, "%s%*s\n", text, length - used - 1, "") == length;
}

/* The code point at *inout_at, moved behind it; a byte that is not UTF-8 stands for itself. */
static uint32_t next_point(const unsigned char **inout_at, const unsigned char *end) {
    const unsigned char *at = *inout_at;
    const int more = at[0] >> 5 == 6 ? 1 : at[0] >> 4 == 14 ? 2 : at[0] >> 3 == 30 ? 3 : 0;
    if (end - at <= more) {
        *inout_at = at + 1;
        return at[0];
    }
    uint32_t point = more == 0 ? at[0] : at[0] & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) point = point << 6 | (at[i] & 0x3Fu);
    *inout_at = at + more + 1;
    return point;
}

static size_t count_points(const tn_string *string) {
    const unsigned char *at = (const unsigned char *)string->data;
    const unsigned char *end = at + string->size_bytes;
    size_t count = 0;
    for (; at < end; count++) (void)next_point(&at, end);
    return count;
}

static bool write_strings(FILE *file, const tn_value *value, size_t count) {
    const tn_string *strings = tn_tensor_borrow_data(value);
    size_t width = 1;
    char descr[32];
    for (size_t i = 0; i < count; i++) {
        const size_t points = count_points(&strings[i]);
        if (points > width) width = points;
    }
    (void)snprintf(descr, sizeof descr, "<U%zu", width);
    bool is_written = write_header(file, descr, tn_tensor_borrow_shape(value));
    for (size_t i = 0; is_written && i < count; i++) {
        const unsigned char *at = (const unsigned char *)strings[i].data;
        const unsigned char *end = at + strings[i].size_bytes;
        for (size_t p = 0; is_written && p < width; p++) {
            const uint32_t point = at < end ? next_point(&at, end) : 0;
            is_written = fwrite(&point, sizeof point, 1, file) == 1;
        }
    }
    return is_written;
}

static bool write_numbers(FILE *file, const tn_value *value) {
    const tn_dtype dtype = tn_tensor_dtype(value);
    const size_t size_bytes = tn_tensor_size_bytes(value);
    tn_shape shape = *tn_tensor_borrow_shape(value);
    const char *descr = "|u1";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].dtype == dtype) descr = types[i].written_code;
    }
    if (tn_dtype_bits(dtype) < 8) shape = (tn_shape){.rank = 1, .dims = {(int64_t)size_bytes}};
    return write_header(file, descr, &shape) &&
           fwrite(tn_tensor_borrow_data(value), 1, size_bytes, file) == size_bytes;
}

tn_status cli_write_npy(const tn_value *value, const char *path, tn_error *err) {
    size_t count = 0;
    tn_status status = tn_shape_len_elems(tn_tensor_borrow_shape(value), &count, err);
    if (status != TN_OK) return status;
    FILE *file = fopen(path, "wb");
    if (file == NULL) return cli_set_error(err, TN_IO, "%s: %s", path, strerror(errno));
    const bool is_string = tn_tensor_dtype(value) == TN_DTYPE_STRING;
    bool is_written = is_string ? write_strings(file, value, count) : write_numbers(file, value);
    is_written = fclose(file) == 0 && is_written;
    if (!is_written) return cli_set_error(err, TN_IO, "%s: writing failed", path);
    return TN_OK;
}
