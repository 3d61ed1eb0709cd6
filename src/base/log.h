/* Log lines: a level and a caller's sink, as a value that is passed down. There is no global. */
#ifndef TN_BASE_LOG_H
#define TN_BASE_LOG_H

#include <stdbool.h>

#include "base/error.h"

#define TN_LOG_LINE_BYTES 512

/* Zero logs nothing. Threads: `write` may be called from any thread at once. */
typedef struct tn_log {
    tn_log_level level; /* lines of this level and below it are written */
    void *ctx;
    void (*write)(void *ctx, tn_log_level level, const char *line); /* NULL: standard error */
} tn_log;

static inline bool tn_log_is_on(const tn_log *log, tn_log_level level) {
    return log != NULL && level != TN_LOG_OFF && level <= log->level;
}

/* Writes one line, cut to TN_LOG_LINE_BYTES, without allocating. */
void tn_log_write(const tn_log *log, tn_log_level level, const char *format, ...) TN_PRINTF(3, 4);

/* Reads "error", "warn", "info", "debug", "trace" or "off".
 * Errors: TN_INVALID_ARGUMENT; *out is unchanged then. */
TN_MUST_USE tn_status tn_log_level_parse(const char *text, tn_log_level *out, tn_error *err);

#endif
