/* Reader of the protobuf wire format. Every length is compared with what is left of the enclosing
 * message before a pointer is made from it, so a span that comes out of here never needs another
 * check. It knows no schema, and does not descend: messages inside messages are spans to their
 * reader, who keeps its own stack. */
#include "model/wire.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "payload of model files is used in place, so the machine must be little endian");

#define MAX_VARINT_BYTES 10
#define MAX_FIELD_NUMBER ((UINT32_C(1) << 29) - 1)

tn_wire_reader tn_wire_reader_of(tn_bytes bytes, const char *message) {
    /* an absent message is an empty one; pointer arithmetic needs an address all the same */
    static const uint8_t nothing[1] = {0};
    const uint8_t *data = bytes.data != NULL ? bytes.data : nothing;
    return (tn_wire_reader){data, data, data + bytes.size_bytes, message};
}

/* Bytes of the varint at `next`, 0 when it is cut short or over-long. */
static size_t read_varint(const uint8_t *next, const uint8_t *end, uint64_t *out_value) {
    const size_t left_bytes = (size_t)(end - next);
    uint64_t value = 0;
    for (size_t i = 0; i < left_bytes && i < MAX_VARINT_BYTES; i++) {
        value |= (uint64_t)(next[i] & 0x7F) << (7 * i);
        if ((next[i] & 0x80) == 0) {
            *out_value = value;
            return i + 1;
        }
    }
    return 0;
}

static tn_status fault(const tn_wire_reader *reader, uint32_t number, const char *what,
                       tn_error *err) {
    return tn_error_set(err, TN_INVALID_MODEL, "%s field %" PRIu32 " at byte %zu of %zu: %s",
                        reader->message, number, (size_t)(reader->next - reader->begin),
                        (size_t)(reader->end - reader->begin), what);
}

static tn_status read_payload(const tn_wire_reader *reader, const uint8_t **inout_next,
                              tn_wire_field *field, tn_error *err) {
    const uint8_t *next = *inout_next;
    const size_t left_bytes = (size_t)(reader->end - next);
    if (field->type == TN_WIRE_FIXED32 || field->type == TN_WIRE_FIXED64) {
        const size_t width_bytes = field->type == TN_WIRE_FIXED32 ? 4 : 8;
        if (left_bytes < width_bytes) return fault(reader, field->number, "value is cut off", err);
        memcpy(&field->value, next, width_bytes);
        *inout_next = next + width_bytes;
        return TN_OK;
    }

    const size_t size_bytes = read_varint(next, reader->end, &field->value);
    if (size_bytes == 0) return fault(reader, field->number, "varint is cut off or too long", err);
    next += size_bytes;
    if (field->type == TN_WIRE_BYTES) {
        TN_REQUIRE(field->value <= (uint64_t)(reader->end - next), err, TN_INVALID_MODEL,
                   "%s field %" PRIu32 " at byte %zu of %zu: length %" PRIu64
                   " leaves the message, %zu bytes are left",
                   reader->message, field->number, (size_t)(reader->next - reader->begin),
                   (size_t)(reader->end - reader->begin), field->value,
                   (size_t)(reader->end - next));
        field->bytes = (tn_bytes){next, (size_t)field->value};
        field->value = 0;
        next += field->bytes.size_bytes;
    }
    *inout_next = next;
    return TN_OK;
}

tn_status tn_wire_next(tn_wire_reader *reader, tn_wire_field *out_field, tn_error *err) {
    uint64_t tag = 0;
    tn_wire_field field = {0};
    const size_t tag_bytes = read_varint(reader->next, reader->end, &tag);
    if (tag_bytes == 0) return fault(reader, 0, "tag is cut off or too long", err);
    const uint8_t *next = reader->next + tag_bytes;

    TN_REQUIRE(tag >> 3 >= 1 && tag >> 3 <= MAX_FIELD_NUMBER, err, TN_INVALID_MODEL,
               "%s at byte %zu of %zu: %" PRIu64 " is no field number", reader->message,
               (size_t)(reader->next - reader->begin), (size_t)(reader->end - reader->begin),
               tag >> 3);
    field.number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
        case TN_WIRE_VARINT:
        case TN_WIRE_FIXED64:
        case TN_WIRE_BYTES:
        case TN_WIRE_FIXED32:
            field.type = (tn_wire_type)(tag & 7);
            break;
        case 3:
        case 4:
            return fault(reader, field.number, "groups are not part of ONNX", err);
        default:
            return fault(reader, field.number, "unknown wire type", err);
    }
    TN_TRY(read_payload(reader, &next, &field, err));
    reader->next = next;
    *out_field = field;
    return TN_OK;
}

tn_status tn_wire_list_next(tn_wire_list *list, tn_bytes *out, tn_error *err) {
    assert(list->count > 0);
    for (;;) {
        tn_wire_field field;
        TN_TRY(tn_wire_next(&list->reader, &field, err));
        if (field.number != list->number || field.type != TN_WIRE_BYTES) continue;
        list->count--;
        *out = field.bytes;
        return TN_OK;
    }
}

tn_status tn_wire_count(const tn_wire_reader *reader, const tn_wire_field *field, tn_wire_type type,
                        size_t *inout_count, tn_error *err) {
    if (field->type == type) {
        *inout_count += 1; /* each scalar took a byte of the file: the sum cannot wrap */
        return TN_OK;
    }
    if (field->type != TN_WIRE_BYTES) return TN_OK;

    const tn_bytes bytes = field->bytes;
    if (type == TN_WIRE_VARINT) {
        const uint8_t *next = bytes.data;
        const uint8_t *end = bytes.data + bytes.size_bytes;
        while (next != end) {
            uint64_t value = 0;
            const size_t size_bytes = read_varint(next, end, &value);
            if (size_bytes == 0) {
                return fault(reader, field->number, "packed varint is cut off or too long", err);
            }
            next += size_bytes;
            *inout_count += 1;
        }
        return TN_OK;
    }
    const size_t width_bytes = type == TN_WIRE_FIXED32 ? 4 : 8;
    if (bytes.size_bytes % width_bytes != 0) {
        return fault(reader, field->number, "packed length is no multiple of the element", err);
    }
    *inout_count += bytes.size_bytes / width_bytes;
    return TN_OK;
}

tn_wire_scalars tn_wire_scalars_of(const tn_wire_field *field, tn_wire_type type) {
    tn_wire_scalars scalars = {.type = type};
    if (field->type == type) {
        scalars.is_single = true;
        scalars.value = field->value;
    } else if (field->type == TN_WIRE_BYTES) {
        scalars.next = field->bytes.data;
        scalars.end = field->bytes.data + field->bytes.size_bytes;
    }
    return scalars;
}

bool tn_wire_scalars_next(tn_wire_scalars *scalars, uint64_t *out_value) {
    if (scalars->is_single) {
        *out_value = scalars->value;
        scalars->is_single = false;
        return true;
    }
    if (scalars->next == scalars->end) return false;
    if (scalars->type == TN_WIRE_VARINT) {
        scalars->next += read_varint(scalars->next, scalars->end, out_value);
        return true;
    }
    const size_t width_bytes = scalars->type == TN_WIRE_FIXED32 ? 4 : 8;
    *out_value = 0;
    memcpy(out_value, scalars->next, width_bytes);
    scalars->next += width_bytes;
    return true;
}
