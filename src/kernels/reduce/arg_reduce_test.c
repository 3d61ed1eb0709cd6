#include "op_case.h"

static void arg_max_of_ties_takes_the_first_or_the_last(void **state) {
    (void)state;
    static const float x[] = {2, 5, 5, 1, 7, 7}; /* [2, 3] */
    static const int64_t firsts[] = {1, 1};
    static const int64_t lasts[] = {2, 2};
    op_case c;
    op_case_begin(&c, "ArgMax", 12);
    op_case_set_int(&c, "axis", -1);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 3));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_shape(&c, 0, OP_SHAPE(2, 1));
    assert_memory_equal(op_case_output(&c, 0), firsts, sizeof firsts);

    op_case_set_int(&c, "select_last_index", 1);
    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_memory_equal(op_case_output(&c, 0), lasts, sizeof lasts);
    op_case_end(&c);
}

static void arg_min_along_the_first_axis_drops_it(void **state) {
    (void)state;
    static const int32_t x[] = {3, -1, 0, 2, -5, 0}; /* [2, 3] */
    static const int64_t expected[] = {1, 1, 0};
    op_case c;
    op_case_begin(&c, "ArgMin", 13);
    op_case_set_int(&c, "keepdims", 0);
    op_case_input(&c, TN_DTYPE_I32, x, OP_SHAPE(2, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void arg_max_of_an_empty_axis_is_refused(void **state) {
    (void)state;
    static const float nothing[1] = {0};
    op_case c;
    op_case_begin(&c, "ArgMax", 13);
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(0, 3));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void arg_max_with_nan_takes_the_nan(void **state) {
    (void)state;
    static const float x[] = {1, NAN, 9, NAN};
    op_case c;
    op_case_begin(&c, "ArgMax", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(4));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_int_equal(*(const int64_t *)op_case_output(&c, 0), 1);
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(arg_max_of_ties_takes_the_first_or_the_last),
        T(arg_min_along_the_first_axis_drops_it),
        T(arg_max_of_an_empty_axis_is_refused),
        T(arg_max_with_nan_takes_the_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
