/* Einsum and Det by their definitions. */
#include "op_case.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void begin_einsum(op_case *c, const char *equation) {
    op_case_begin(c, "Einsum", 12);
    op_case_set_text(c, "equation", equation);
}

static void matrix_product_sums_the_shared_letter(void **state) {
    (void)state;
    op_case c;
    static const float expected[4] = {22, 28, 49, 64};
    begin_einsum(&c, "ij, jk -> ik");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(3, 2));

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(2, 2));
    assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    op_case_end(&c);
}

static void implicit_output_puts_capitals_first(void **state) {
    (void)state;
    op_case c;
    static const float expected[6] = {1, 4, 2, 5, 3, 6};
    begin_einsum(&c, "aB");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3, 2));
    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void repeated_letter_is_the_diagonal(void **state) {
    (void)state;
    op_case c;
    static const float expected[2] = {1, 4};
    begin_einsum(&c, "ii->i");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 2, 0);
    op_case_end(&c);
}

static void ellipsis_broadcasts_from_the_right(void **state) {
    (void)state;
    op_case c;
    static const float factors[3] = {1, 10, 100};
    static const float expected[6] = {1, 20, 300, 4, 50, 600};
    begin_einsum(&c, "...,...->...");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, factors, OP_SHAPE(3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 3));
    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void empty_sum_is_zero(void **state) {
    (void)state;
    op_case c;
    static const float zeros[2] = {0, 0};
    begin_einsum(&c, "ij->i");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 0));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), zeros, 2, 0);
    op_case_end(&c);
}

static void bad_equations_are_refused_at_check(void **state) {
    (void)state;
    const char *const bad[] = {"i,j->ij", "i->k", "i->ii", "i-",   "i..",
                               "i->i,",   "1",    "->...", "....."};
    for (size_t i = 0; i < TN_COUNTOF(bad); i++) {
        op_case c;
        begin_einsum(&c, bad[i]);
        op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2));
        ASSERT_STATUS(TN_INVALID_MODEL, op_case_check(&c));
        op_case_end(&c);
    }
}

static void operands_that_disagree_are_refused(void **state) {
    (void)state;
    op_case c;
    begin_einsum(&c, "i,i->i");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(3));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

static void determinant_swaps_rows_when_it_must(void **state) {
    (void)state;
    op_case c;
    static const float data[8] = {0, 2, 3, 4, 1, 2, 2, 4};
    static const float expected[2] = {-6, 0};
    op_case_begin(&c, "Det", 11);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2));
    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

static void determinant_of_no_rows_is_one(void **state) {
    (void)state;
    op_case c;
    static const float one[1] = {1};
    op_case_begin(&c, "Det", 22);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(0, 0));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), one, 1, 0);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(matrix_product_sums_the_shared_letter),
        T(implicit_output_puts_capitals_first),
        T(repeated_letter_is_the_diagonal),
        T(ellipsis_broadcasts_from_the_right),
        T(empty_sum_is_zero),
        T(bad_equations_are_refused_at_check),
        T(operands_that_disagree_are_refused),
        T(determinant_swaps_rows_when_it_must),
        T(determinant_of_no_rows_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
