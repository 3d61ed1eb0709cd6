/* The protobuf wire format, read in place.
 *
 * Ownership: a reader and everything it gives are views of the caller's bytes; nothing is copied.
 * Threads:   one thread at a time. */
#ifndef TN_MODEL_WIRE_H
#define TN_MODEL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenure/status.h>

#include "base/span.h"

/* Numbers are those of the wire format; groups (3, 4) are refused. */
typedef enum tn_wire_type {
    TN_WIRE_VARINT = 0,
    TN_WIRE_FIXED64 = 1,
    TN_WIRE_BYTES = 2,
    TN_WIRE_FIXED32 = 5
} tn_wire_type;

/* Position in one message. */
typedef struct tn_wire_reader {
    const uint8_t *begin;
    const uint8_t *next;
    const uint8_t *end;
    const char *message; /* its ONNX name, for error texts; borrowed, static */
} tn_wire_reader;

/* One field as met. */
typedef struct tn_wire_field {
    uint32_t number; /* >= 1 */
    tn_wire_type type;
    uint64_t value; /* varint and fixed types */
    tn_bytes bytes; /* TN_WIRE_BYTES: the payload, proved to lie in the message */
} tn_wire_field;

/* Scalars of one field of a repeated scalar: many when packed, one when not. */
typedef struct tn_wire_scalars {
    const uint8_t *next;
    const uint8_t *end;
    tn_wire_type type;
    bool is_single;
    uint64_t value; /* when is_single */
} tn_wire_scalars;

/* The occurrences of one field with bytes in a message, in order. */
typedef struct tn_wire_list {
    tn_wire_reader reader;
    uint32_t number;
    size_t count; /* occurrences that are left, as a walk before has counted them */
} tn_wire_list;

static inline bool tn_wire_at_end(const tn_wire_reader *reader) {
    return reader->next == reader->end;
}

static inline tn_text tn_wire_text(const tn_wire_field *field) {
    return (tn_text){(const char *)field->bytes.data, field->bytes.size_bytes};
}

/* Makes a reader of `bytes`, a message of type `message`. */
tn_wire_reader tn_wire_reader_of(tn_bytes bytes, const char *message);

/* Reads the next field; the reader must not be at its end.
 * Errors: TN_INVALID_MODEL naming message, field and byte: truncated or over-long varint, field
 *         number 0, group or unknown wire type, length that leaves the message. The reader stays.
 */
TN_MUST_USE tn_status tn_wire_next(tn_wire_reader *reader, tn_wire_field *out_field, tn_error *err);

/* Takes the next occurrence of `list`; there must be one left.
 * Errors: as tn_wire_next. */
TN_MUST_USE tn_status tn_wire_list_next(tn_wire_list *list, tn_bytes *out, tn_error *err);

/* Adds the number of scalars in `field` to `*inout_count` and proves that they can be read.
 * A field whose wire type does not fit `type` counts as unknown: it adds nothing.
 * Errors: TN_INVALID_MODEL as above, or a packed length that is no multiple of the width. */
TN_MUST_USE tn_status tn_wire_count(const tn_wire_reader *reader, const tn_wire_field *field,
                                    tn_wire_type type, size_t *inout_count, tn_error *err);

/* Starts over the scalars of `field`, which tn_wire_count has accepted. */
tn_wire_scalars tn_wire_scalars_of(const tn_wire_field *field, tn_wire_type type);

/* Takes the next scalar; false at the end. */
bool tn_wire_scalars_next(tn_wire_scalars *scalars, uint64_t *out_value);

#endif
