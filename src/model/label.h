/* Texts from model files made fit for messages: one line, valid UTF-8, bounded. */
#ifndef TN_MODEL_LABEL_H
#define TN_MODEL_LABEL_H

#include <tenure/status.h>

#include "base/span.h"

#define TN_LABEL_BYTES 96

typedef struct tn_label {
    char text[TN_LABEL_BYTES]; /* NUL-terminated */
} tn_label;

/* Copies `text` with control bytes and malformed UTF-8 as '?', cut with "..." when too long. */
tn_label tn_label_of(tn_text text);

/* Names the node at `index` for err->node: its name, else "<op_type> (node <index>)". */
tn_label tn_label_of_node(tn_text name, tn_text op_type, size_t index);

#endif
