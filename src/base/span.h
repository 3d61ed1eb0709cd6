/* Spans: non-owning views of bytes that live elsewhere, passed by value. */
#ifndef TN_BASE_SPAN_H
#define TN_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that are text: not NUL-terminated, UTF-8 not trusted. */
typedef struct tn_text {
    const char *data;
    size_t size_bytes;
} tn_text;

typedef struct tn_bytes {
    const uint8_t *data;
    size_t size_bytes;
} tn_bytes;

static inline bool tn_text_is_empty(tn_text text) {
    return text.size_bytes == 0;
}

static inline bool tn_text_equals(tn_text a, tn_text b) {
    return a.size_bytes == b.size_bytes &&
           (a.size_bytes == 0 || memcmp(a.data, b.data, a.size_bytes) == 0);
}

static inline bool tn_text_equals_literal(tn_text a, const char *literal) {
    return a.size_bytes == strlen(literal) &&
           (a.size_bytes == 0 || memcmp(a.data, literal, a.size_bytes) == 0);
}

/* For "%.*s": the length, cut to what a message can hold. */
static inline int tn_text_width(tn_text text) {
    return text.size_bytes < 80 ? (int)text.size_bytes : 80;
}

#endif
