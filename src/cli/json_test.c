#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* Runs `write` on a document and compares it with `wanted`, spaces and line ends left out. */
static void assert_writes(void (*write)(cli_json *), const char *wanted) {
    char *text = NULL;
    size_t size_bytes = 0;
    cli_json json;
    FILE *file = open_memstream(&text, &size_bytes);
    assert_non_null(file);
    cli_json_init(&json, file);
    write(&json);
    assert_int_equal(fclose(file), 0);
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != ' ' && *from != '\n') *to++ = *from;
    }
    *to = '\0';
    assert_string_equal(text, wanted);
    free(text);
}

static void write_nested(cli_json *json) {
    cli_json_open(json, NULL, '{');
    cli_json_u64(json, "most", UINT64_MAX);
    cli_json_i64(json, "least", INT64_MIN);
    cli_json_open(json, "list", '[');
    cli_json_bool(json, NULL, true);
    cli_json_text(json, NULL, NULL);
    cli_json_open(json, NULL, '{');
    cli_json_close(json, '}');
    cli_json_close(json, ']');
    cli_json_open(json, "empty", '[');
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void write_reals(cli_json *json) {
    cli_json_open(json, NULL, '[');
    cli_json_real(json, NULL, 0.5);
    cli_json_real(json, NULL, (double)NAN);
    cli_json_real(json, NULL, (double)INFINITY);
    cli_json_close(json, ']');
}

static void write_texts(cli_json *json) {
    cli_json_open(json, NULL, '[');
    cli_json_text(json, NULL, "a\"b\\c\n\x01");
    cli_json_text(json, NULL, "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80");
    cli_json_text(json, NULL, "\xff|\xc3|\xc0\x80|\xed\xa0\x80|\xf8");
    cli_json_text_n(json, NULL, "cut here", 3);
    cli_json_close(json, ']');
}

static void json_nested_values_have_commas_between(void **state) {
    (void)state;
    assert_writes(write_nested,
                  "{\"most\":18446744073709551615,\"least\":-9223372036854775808,"
                  "\"list\":[true,null,{}],\"empty\":[]}");
}

static void json_numbers_that_are_not_finite_become_null(void **state) {
    (void)state;
    assert_writes(write_reals, "[0.5,null,null]");
}

static void json_text_is_escaped_and_valid_utf8(void **state) {
    (void)state;
    assert_writes(write_texts,
                  "[\"a\\\"b\\\\c\\u000a\\u0001\","
                  "\"gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80\","
                  "\"\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\",\"cut\"]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(json_nested_values_have_commas_between),
        T(json_numbers_that_are_not_finite_become_null),
        T(json_text_is_escaped_and_valid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
