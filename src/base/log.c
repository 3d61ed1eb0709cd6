/* Formatting of log lines and the names of their levels. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {
    [TN_LOG_DEFAULT] = "default", [TN_LOG_OFF] = "off",   [TN_LOG_ERROR] = "error",
    [TN_LOG_WARN] = "warn",       [TN_LOG_INFO] = "info", [TN_LOG_DEBUG] = "debug",
    [TN_LOG_TRACE] = "trace",
};

void tn_log_write(const tn_log *log, tn_log_level level, const char *format, ...) {
    char line[TN_LOG_LINE_BYTES];
    if (!tn_log_is_on(log, level)) return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (log->write != NULL) {
        log->write(log->ctx, level, line);
    } else {
        (void)fprintf(stderr, "tenure: %s: %s\n", level_names[level], line);
    }
}

tn_status tn_log_level_parse(const char *text, tn_log_level *out, tn_error *err) {
    for (size_t i = 0; i < TN_COUNTOF(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *out = (tn_log_level)i;
            return TN_OK;
        }
    }
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "log level \"%.40s\": known are off, error, warn, info, debug and trace",
                        text);
}
