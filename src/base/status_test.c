/* Error records: complete, bounded, and harmless when the caller wants none. */
#include "base/error.h"

#include <string.h>

#include "harness.h"

static void error_set_writes_code_and_message(void **state) {
    (void)state;
    tn_error err;

    const tn_status status = tn_error_set(&err, TN_LIMIT, "axis %d, rank %d", 5, 3);

    assert_int_equal(status, TN_LIMIT);
    assert_int_equal(err.code, TN_LIMIT);
    assert_string_equal(err.message, "axis 5, rank 3");
    assert_string_equal(err.node, "");
}

static void error_set_without_record_returns_code(void **state) {
    (void)state;
    assert_int_equal(tn_error_set(NULL, TN_IO, "gone"), TN_IO);
}

static void error_prefix_keeps_the_inner_message(void **state) {
    (void)state;
    tn_error err;
    (void)tn_error_set(&err, TN_IO, "inner");

    tn_error_prefix(&err, "outer");

    assert_string_equal(err.message, "outer: inner");
}

static void error_set_node_keeps_the_first_name(void **state) {
    (void)state;
    tn_error err;
    (void)tn_error_set(&err, TN_IO, "inner");

    tn_error_set_node(&err, "first");
    tn_error_set_node(&err, "second");

    assert_string_equal(err.node, "first");
}

static void status_text_of_every_code_is_known(void **state) {
    (void)state;
    for (int code = 0; code < TN_STATUS_COUNT; code++) {
        assert_true(strlen(tn_status_text((tn_status)code)) > 0);
        assert_string_not_equal(tn_status_name((tn_status)code), "UNKNOWN");
    }
    assert_string_equal(tn_status_name((tn_status)99), "UNKNOWN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(error_set_writes_code_and_message),    T(error_set_without_record_returns_code),
        T(error_prefix_keeps_the_inner_message), T(error_set_node_keeps_the_first_name),
        T(status_text_of_every_code_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
