/* Names in model files are not trusted: they may hold anything, of any length. What goes into an
 * error passes through here. */
#include "model/label.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 sequence at `data`, 0 when there is none. */
static size_t utf8_sequence_bytes(const uint8_t *data, size_t left_bytes) {
    const uint8_t lead = data[0];
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;

    const size_t size_bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || left_bytes < size_bytes) return 0;
    for (size_t i = 1; i < size_bytes; i++) {
        if ((data[i] & 0xC0) != 0x80) return 0;
    }
    /* over-long forms, surrogates, and what lies above the last code point */
    if (lead == 0xE0 && data[1] < 0xA0) return 0;
    if (lead == 0xED && data[1] > 0x9F) return 0;
    if (lead == 0xF0 && data[1] < 0x90) return 0;
    if (lead == 0xF4 && data[1] > 0x8F) return 0;
    return size_bytes;
}

tn_label tn_label_of(tn_text text) {
    static const char dots[] = "...";
    tn_label label = {{0}};
    size_t used_bytes = 0;
    size_t offset_bytes = 0;
    while (offset_bytes < text.size_bytes) {
        const uint8_t *data = (const uint8_t *)text.data + offset_bytes;
        const size_t sequence_bytes = utf8_sequence_bytes(data, text.size_bytes - offset_bytes);
        const size_t written_bytes = sequence_bytes == 0 ? 1 : sequence_bytes;
        if (used_bytes + written_bytes + sizeof dots > sizeof label.text) {
            memcpy(label.text + used_bytes, dots, sizeof dots);
            return label;
        }
        if (sequence_bytes == 0) {
            label.text[used_bytes] = '?';
        } else {
            memcpy(label.text + used_bytes, data, sequence_bytes);
        }
        used_bytes += written_bytes;
        offset_bytes += written_bytes;
    }
    return label;
}

tn_label tn_label_of_node(tn_text name, tn_text op_type, size_t index) {
    if (!tn_text_is_empty(name)) return tn_label_of(name);
    tn_label label = {{0}};
    const tn_label op = tn_label_of(op_type);
    if (op.text[0] == '\0') {
        (void)snprintf(label.text, sizeof label.text, "node %zu", index);
    } else {
        (void)snprintf(label.text, sizeof label.text, "%.60s (node %zu)", op.text, index);
    }
    return label;
}
