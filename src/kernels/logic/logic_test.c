#include <math.h>

#include "harness.h"
#include "op_case.h"

static void comparisons_with_nan_are_false(void **state) {
    (void)state;
    static const float a[] = {1, NAN, 2};
    static const float b[] = {2, 1, 2};
    static const struct {
        const char *op;
        uint8_t expected[3];
    } cases[] = {{"Less", {1, 0, 0}},
                 {"LessOrEqual", {1, 0, 1}},
                 {"Greater", {0, 0, 0}},
                 {"GreaterOrEqual", {0, 0, 1}},
                 {"Equal", {0, 0, 1}}};
    for (size_t i = 0; i < TN_COUNTOF(cases); i++) {
        op_case c;
        op_case_begin(&c, cases[i].op, 16);
        op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(3));
        op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(3));
        ASSERT_OK(op_case_run(&c, -1, 1));
        assert_int_equal(c.outputs[0].dtype, TN_DTYPE_BOOL);
        assert_memory_equal(op_case_output(&c, 0), cases[i].expected, 3);
        op_case_end(&c);
    }
}

static void strings_are_equal_by_content(void **state) {
    (void)state;
    static const char text[] = "aab";
    const tn_string a[] = {{text, 1}, {text + 2, 1}, {NULL, 0}};
    const tn_string b[] = {{text + 1, 1}};
    static const uint8_t expected[] = {1, 0, 0};
    op_case c;
    op_case_begin(&c, "Equal", 19);
    op_case_input(&c, TN_DTYPE_STRING, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_STRING, b, OP_SHAPE(1));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, 3);
    op_case_end(&c);
}

static void where_broadcasts_all_three_inputs(void **state) {
    (void)state;
    static const uint8_t condition[] = {1, 0}; /* [2, 1] */
    static const int64_t a[] = {1, 2, 3};      /* [3] */
    static const int64_t b = 9;
    static const int64_t expected[] = {1, 2, 3, 9, 9, 9};
    op_case c;
    op_case_begin(&c, "Where", 16);
    op_case_input(&c, TN_DTYPE_BOOL, condition, OP_SHAPE(2, 1));
    op_case_input(&c, TN_DTYPE_I64, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_I64, &b, OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_int_equal(c.outputs[0].dtype, TN_DTYPE_I64);
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void logic_takes_any_byte_for_true(void **state) {
    (void)state;
    static const uint8_t a[] = {2, 0, 7};
    static const uint8_t b[] = {1, 0, 0};
    static const uint8_t expected[] = {0, 0, 1};
    op_case c;
    op_case_begin(&c, "Xor", 7);
    op_case_input(&c, TN_DTYPE_BOOL, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_BOOL, b, OP_SHAPE(3));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, 3);
    op_case_end(&c);
}

static void types_that_differ_are_refused(void **state) {
    (void)state;
    static const float a[] = {1};
    static const int32_t b[] = {1};
    op_case c;
    op_case_begin(&c, "Less", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_I32, b, OP_SHAPE(1));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(comparisons_with_nan_are_false),    T(strings_are_equal_by_content),
        T(where_broadcasts_all_three_inputs), T(logic_takes_any_byte_for_true),
        T(types_that_differ_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
