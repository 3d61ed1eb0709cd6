#include "op_case.h"

static void softmax_of_rows_sums_to_one_and_survives_large_values(void **state) {
    (void)state;
    static const float x[] = {0, 0, 1000, 1000, -1000, 1}; /* [3, 2] */
    static const float expected[] = {0.5F, 0.5F, 0.5F, 0.5F, 0, 1};
    op_case c;
    op_case_begin(&c, "Softmax", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(3, 2));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, 6, 1e-6);
    }
    op_case_end(&c);
}

static void softmax_matches_double_arithmetic_along_any_axis(void **state) {
    (void)state;
    enum { OUTER = 3, LENGTH = 77, INNER = 70, COUNT = OUTER * LENGTH * INNER };
    float *x = malloc(COUNT * sizeof *x);
    float *expected = malloc(COUNT * sizeof *expected);
    assert_true(x != NULL && expected != NULL);
    fill_floats(x, COUNT, 5);
    for (size_t i = 0; i < COUNT; i++) x[i] *= 20.0F;
    for (size_t u = 0; u < OUTER * INNER; u++) {
        const size_t base = u / INNER * LENGTH * INNER + u % INNER;
        double sum = 0;
        for (size_t i = 0; i < LENGTH; i++) sum += exp((double)x[base + i * INNER]);
        for (size_t i = 0; i < LENGTH; i++) {
            expected[base + i * INNER] = (float)(exp((double)x[base + i * INNER]) / sum);
        }
    }
    op_case c;
    op_case_begin(&c, "Softmax", 13);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(OUTER, LENGTH, INNER));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 2));

        assert_floats(op_case_output(&c, 0), expected, COUNT, 1e-6);
    }
    op_case_end(&c);
    free(x);
    free(expected);
}

static void softmax_of_opset_11_flattens_from_the_axis(void **state) {
    (void)state;
    static const float x[8] = {0};
    static const float expected[] = {0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F};
    op_case c;
    op_case_begin(&c, "Softmax", 11);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 8, 1e-7);
    op_case_end(&c);
}

static void log_softmax_keeps_small_probabilities(void **state) {
    (void)state;
    static const float x[] = {0, -200};
    static const float expected[] = {0, -200};
    op_case c;
    op_case_begin(&c, "LogSoftmax", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 2, 1e-7);
    op_case_end(&c);
}

static void hardmax_marks_the_first_greatest(void **state) {
    (void)state;
    static const float x[] = {1, 3, 3, 2};
    static const float expected[] = {0, 1, 0, 0};
    op_case c;
    op_case_begin(&c, "Hardmax", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(4));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 0.0);
    op_case_end(&c);
}

static void softmax_of_nothing_gives_nothing(void **state) {
    (void)state;
    static const float nothing[1] = {0};
    op_case c;
    op_case_begin(&c, "Softmax", 13);
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(3, 0));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3, 0));
    op_case_end(&c);
}

static void softmax_along_a_missing_axis_is_refused(void **state) {
    (void)state;
    static const float x[2] = {0};
    op_case c;
    op_case_begin(&c, "Softmax", 13);
    op_case_set_int(&c, "axis", 3);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2));

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(softmax_of_rows_sums_to_one_and_survives_large_values),
        T(softmax_matches_double_arithmetic_along_any_axis),
        T(softmax_of_opset_11_flattens_from_the_axis),
        T(log_softmax_keeps_small_probabilities),
        T(hardmax_marks_the_first_greatest),
        T(softmax_of_nothing_gives_nothing),
        T(softmax_along_a_missing_axis_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
