#include "op_case.h"

static void cross_entropy_gives_weighted_mean_and_log_probabilities(void **state) {
    (void)state;
    static const float scores[] = {0, 0, 0, 0}; /* [2, 2] */
    static const int64_t targets[] = {0, 1};
    static const float weights[] = {1, 3};
    static const float expected[] = {0.6931472F};
    static const float log_prob[] = {-0.6931472F, -0.6931472F, -0.6931472F, -0.6931472F};
    op_case c;
    op_case_begin(&c, "SoftmaxCrossEntropyLoss", 13);
    op_case_input(&c, TN_DTYPE_F32, scores, OP_SHAPE(2, 2));
    op_case_input(&c, TN_DTYPE_I64, targets, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, weights, OP_SHAPE(2));
    op_case_set_outputs(&c, 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SCALAR);
    assert_floats(op_case_output(&c, 0), expected, 1, 1e-6);
    assert_floats(op_case_output(&c, 1), log_prob, 4, 1e-6);
    op_case_end(&c);
}

static void likelihood_without_reduction_skips_the_ignored_target(void **state) {
    (void)state;
    static const float scores[] = {-1, -2, -3, -4}; /* [1, 2, 2] */
    static const int32_t targets[] = {1, -7};
    static const float expected[] = {3, 0};
    op_case c;
    op_case_begin(&c, "NegativeLogLikelihoodLoss", 13);
    op_case_set_text(&c, "reduction", "none");
    op_case_set_int(&c, "ignore_index", -7);
    op_case_input(&c, TN_DTYPE_F32, scores, OP_SHAPE(1, 2, 2));
    op_case_input(&c, TN_DTYPE_I32, targets, OP_SHAPE(1, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

static void likelihood_of_a_target_outside_the_classes_is_refused(void **state) {
    (void)state;
    static const float scores[] = {-1, -2};
    static const int64_t targets[] = {2};
    op_case c;
    op_case_begin(&c, "NegativeLogLikelihoodLoss", 13);
    op_case_input(&c, TN_DTYPE_F32, scores, OP_SHAPE(1, 2));
    op_case_input(&c, TN_DTYPE_I64, targets, OP_SHAPE(1));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(cross_entropy_gives_weighted_mean_and_log_probabilities),
        T(likelihood_without_reduction_skips_the_ignored_target),
        T(likelihood_of_a_target_outside_the_classes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
