/* Errors as one line on stderr, and what they mean for the exit status. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

void cli_say_error(const char *what, const char *where, const char *why) {
    const char *const parts[] = {what, where, why};
    (void)fputs("tenure", stderr);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i] == NULL || parts[i][0] == '\0') continue;
        (void)fputs(": ", stderr);
        for (const char *c = parts[i]; *c != '\0'; c++) {
            if (*c == '\n' && c[1] == '\0') break;
            (void)fputc(*c == '\n' || *c == '\r' ? ' ' : *c, stderr);
        }
    }
    (void)fputc('\n', stderr);
}

tn_status cli_set_error(tn_error *err, tn_status code, const char *format, ...) {
    if (err == NULL) return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

static void say_status(const tn_error *err, const char *where) {
    const bool names_node = err->node[0] != '\0' && strstr(err->message, err->node) == NULL;
    char place[TN_ERROR_NAME_BYTES + 512];
    (void)snprintf(place, sizeof place, "%s%s%s", where == NULL ? "" : where,
                   where != NULL && names_node ? ": " : "", names_node ? err->node : "");
    const bool is_said = where != NULL && !names_node && strstr(err->message, where) != NULL;
    cli_say_error(tn_status_text(err->code), is_said ? NULL : place, err->message);
}

static bool is_about_memory(tn_status code) {
    return code == TN_LIMIT || code == TN_OUT_OF_MEMORY;
}

int cli_fail_run(const tn_error *err, const char *where) {
    say_status(err, where);
    return is_about_memory(err->code) ? CLI_LIMIT : CLI_FAILED;
}

int cli_fail_load(const tn_error *err, const char *where) {
    say_status(err, where);
    return is_about_memory(err->code) ? CLI_LIMIT : CLI_REFUSED;
}
