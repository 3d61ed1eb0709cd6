#include "op_case.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void check_row(const char *name, int64_t opset, bool exclusive, bool reverse,
                      const float *expected) {
    op_case c;
    static const float data[3] = {2, 3, 4};
    op_case_begin(&c, name, opset);
    op_case_set_int(&c, "exclusive", exclusive);
    op_case_set_int(&c, "reverse", reverse);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_I64, INTS(-1), OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 3, 0);
    op_case_end(&c);
}

static void sums_and_products_in_both_directions(void **state) {
    (void)state;
    check_row("CumSum", 11, false, false, (const float[]){2, 5, 9});
    check_row("CumSum", 14, true, false, (const float[]){0, 2, 5});
    check_row("CumSum", 14, false, true, (const float[]){9, 7, 4});
    check_row("CumSum", 14, true, true, (const float[]){7, 4, 0});
    check_row("CumProd", 26, false, false, (const float[]){2, 6, 24});
    check_row("CumProd", 26, true, true, (const float[]){12, 4, 1});
}

static void outer_axis_adds_whole_rows(void **state) {
    (void)state;
    op_case c;
    const int32_t data[6] = {1, 2, 3, 4, 5, INT32_MAX};
    const int32_t expected[6] = {1, 2, 3, 5, 7, INT32_MIN + 2};
    op_case_begin(&c, "CumSum", 14);
    op_case_input(&c, TN_DTYPE_I32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_I64, INTS(0), OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void axis_outside_is_an_error(void **state) {
    (void)state;
    op_case c;
    static const float data[3];
    op_case_begin(&c, "CumSum", 14);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_I64, INTS(99), OP_SCALAR);

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(sums_and_products_in_both_directions),
        T(outer_axis_adds_whole_rows),
        T(axis_outside_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
