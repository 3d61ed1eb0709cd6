/* Log lines reach the sink of their level and no other. */
#include "base/log.h"

#include <string.h>

#include "harness.h"

typedef struct seen_lines {
    int count;
    tn_log_level level;
    char last[TN_LOG_LINE_BYTES];
} seen_lines;

static void remember(void *ctx, tn_log_level level, const char *line) {
    seen_lines *const seen = ctx;
    seen->count++;
    seen->level = level;
    strcpy(seen->last, line);
}

static void log_write_above_the_level_is_silent(void **state) {
    (void)state;
    seen_lines seen = {0};
    const tn_log log = {.level = TN_LOG_WARN, .ctx = &seen, .write = remember};

    tn_log_write(&log, TN_LOG_INFO, "no");
    tn_log_write(NULL, TN_LOG_ERROR, "no");
    tn_log_write(&log, TN_LOG_OFF, "no");
    assert_int_equal(seen.count, 0);
    tn_log_write(&log, TN_LOG_WARN, "yes %d", 1);

    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.level, TN_LOG_WARN);
    assert_string_equal(seen.last, "yes 1");
}

static void log_write_cuts_long_lines(void **state) {
    (void)state;
    char text[2 * TN_LOG_LINE_BYTES];
    seen_lines seen = {0};
    const tn_log log = {.level = TN_LOG_TRACE, .ctx = &seen, .write = remember};
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';

    tn_log_write(&log, TN_LOG_ERROR, "%s", text);

    assert_int_equal(strlen(seen.last), TN_LOG_LINE_BYTES - 1);
}

static void log_level_parse_refuses_unknown_names(void **state) {
    (void)state;
    tn_log_level level = TN_LOG_INFO;
    tn_error err;

    ASSERT_OK(tn_log_level_parse("trace", &level, &err));
    assert_int_equal(level, TN_LOG_TRACE);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_log_level_parse("loud", &level, &err));
    assert_int_equal(level, TN_LOG_TRACE);
    assert_non_null(strstr(err.message, "loud"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(log_write_above_the_level_is_silent),
        T(log_write_cuts_long_lines),
        T(log_level_parse_refuses_unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
