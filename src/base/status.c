/* Texts of the status codes and the writer of error records. One function formats, so that every
 * message is bounded, one line and complete even when it had to be cut. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_texts[] = {
#define TN_STATUS_TEXT(name, text) [TN_##name] = (text),
    TN_STATUS_LIST(TN_STATUS_TEXT)
#undef TN_STATUS_TEXT
};

static const char *const status_names[] = {
#define TN_STATUS_NAME(name, text) [TN_##name] = #name,
    TN_STATUS_LIST(TN_STATUS_NAME)
#undef TN_STATUS_NAME
};

const char *tn_status_text(tn_status status) {
    return (unsigned)status < TN_STATUS_COUNT ? status_texts[status] : "unknown status";
}

const char *tn_status_name(tn_status status) {
    return (unsigned)status < TN_STATUS_COUNT ? status_names[status] : "UNKNOWN";
}

tn_status tn_error_set(tn_error *err, tn_status code, const char *format, ...) {
    if (err == NULL) return code;
    memset(err, 0, sizeof *err);
    err->code = code;

    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

void tn_error_set_node(tn_error *err, const char *node) {
    if (err == NULL || err->node[0] != '\0' || node == NULL) return;
    (void)snprintf(err->node, sizeof err->node, "%s", node);
}

void tn_error_prefix(tn_error *err, const char *context) {
    if (err == NULL || context == NULL || context[0] == '\0') return;
    char inner[TN_ERROR_MESSAGE_BYTES];
    memcpy(inner, err->message, sizeof inner);
    (void)snprintf(err->message, sizeof err->message, "%.400s: %.1600s", context, inner);
}
