/* Making errors, and the only four macros that may return or jump. */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include <tenure/status.h>

#define TN_COUNTOF(array) (sizeof(array) / sizeof((array)[0]))

/* Writes `code` and the message to `err` (when not NULL), clears its other fields and returns
 * `code`, so that a function can end with `return tn_error_set(...)`. Never allocates. */
tn_status tn_error_set(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);

/* Names the node, field or file at fault, unless an inner caller has named one already. */
void tn_error_set_node(tn_error *err, const char *node);

/* Puts "context: " before the message; used at boundaries only (node name, path). */
void tn_error_prefix(tn_error *err, const char *context);

#define TN_TRY(call)                                      \
    do {                                                  \
        const tn_status tn_try_status = (call);           \
        if (tn_try_status != TN_OK) return tn_try_status; \
    } while (0)

#define TN_TRY_GOTO(call, label)         \
    do {                                 \
        status = (call);                 \
        if (status != TN_OK) goto label; \
    } while (0)

#define TN_REQUIRE(condition, err, code, ...)                              \
    do {                                                                   \
        if (!(condition)) return tn_error_set((err), (code), __VA_ARGS__); \
    } while (0)

#define TN_REQUIRE_GOTO(condition, label, err, code, ...)      \
    do {                                                       \
        if (!(condition)) {                                    \
            status = tn_error_set((err), (code), __VA_ARGS__); \
            goto label;                                        \
        }                                                      \
    } while (0)

#endif
