#include "model/label.h"

#include <string.h>

#include "harness.h"

static tn_label label_of(const char *text) {
    return tn_label_of((tn_text){text, strlen(text)});
}

static void label_plain_and_utf8_text_is_kept(void **state) {
    (void)state;

    assert_string_equal(label_of("conv_1/out:0").text, "conv_1/out:0");
    assert_string_equal(label_of("Gr\xc3\xb6\xc3\x9f"
                                 "e \xe2\x82\xac \xf0\x9f\x98\x80")
                            .text,
                        "Gr\xc3\xb6\xc3\x9f"
                        "e \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_string_equal(tn_label_of((tn_text){NULL, 0}).text, "");
}

static void label_control_and_malformed_bytes_become_question_marks(void **state) {
    (void)state;
    static const char with_zero[] = {'a', '\0', 'b'};

    assert_string_equal(tn_label_of((tn_text){with_zero, 3}).text, "a?b");
    assert_string_equal(label_of("a\nb\x1b[1m").text, "a?b?[1m");
    assert_string_equal(label_of("\xc3").text, "?");                /* cut */
    assert_string_equal(label_of("\xc0\xaf").text, "??");           /* over-long */
    assert_string_equal(label_of("\xed\xa0\x80").text, "???");      /* surrogate */
    assert_string_equal(label_of("\xf4\x90\x80\x80").text, "????"); /* above the last code point */
}

static void label_long_text_is_cut_between_characters(void **state) {
    (void)state;
    char text[3 * TN_LABEL_BYTES];
    for (size_t i = 0; i < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 3);

    const tn_label label = tn_label_of((tn_text){text, sizeof text});

    const size_t size_bytes = strlen(label.text);
    assert_true(size_bytes < TN_LABEL_BYTES);
    assert_string_equal(label.text + size_bytes - 3, "...");
    assert_int_equal((size_bytes - 3) % 3, 0);
}

static void label_of_node_falls_back_to_operator_and_index(void **state) {
    (void)state;
    const tn_text none = {NULL, 0};
    const tn_text op = {"Add", 3};

    assert_string_equal(tn_label_of_node((tn_text){"n1", 2}, op, 4).text, "n1");
    assert_string_equal(tn_label_of_node(none, op, 4).text, "Add (node 4)");
    assert_string_equal(tn_label_of_node(none, none, 4).text, "node 4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(label_plain_and_utf8_text_is_kept),
        T(label_control_and_malformed_bytes_become_question_marks),
        T(label_long_text_is_cut_between_characters),
        T(label_of_node_falls_back_to_operator_and_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
