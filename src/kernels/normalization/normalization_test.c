#include "op_case.h"

static void batch_norm_applies_given_statistics_by_channel(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4}; /* [1, 2, 2] */
    static const float scale[] = {1, 2};
    static const float bias[] = {0, 1};
    static const float mean[] = {1, 3};
    static const float var[] = {4, 1};
    static const float expected[] = {0, 0.5F, 1, 3};
    op_case c;
    op_case_begin(&c, "BatchNormalization", 15);
    op_case_set_float(&c, "epsilon", 0.0F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2, 2));
    op_case_input(&c, TN_DTYPE_F32, scale, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, bias, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, mean, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, var, OP_SHAPE(2));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    }
    op_case_end(&c);
}

static void batch_norm_in_training_gives_running_statistics(void **state) {
    (void)state;
    static const float x[] = {1, 3, 5, 7}; /* [4, 1] */
    static const float one[] = {1};
    static const float zero[] = {0};
    static const float running_mean[] = {2}; /* 0 * 0.5 + 4 * 0.5 */
    static const float running_var[] = {3};  /* 1 * 0.5 + 5 * 0.5 */
    op_case c;
    op_case_begin(&c, "BatchNormalization", 14);
    op_case_set_int(&c, "training_mode", 1);
    op_case_set_float(&c, "momentum", 0.5F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(4, 1));
    op_case_input(&c, TN_DTYPE_F32, one, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_F32, zero, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_F32, zero, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_F32, one, OP_SHAPE(1));
    op_case_set_outputs(&c, 3);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 1), running_mean, 1, 1e-6);
    assert_floats(op_case_output(&c, 2), running_var, 1, 1e-6);
    op_case_end(&c);
}

static void batch_norm_refuses_statistics_of_another_length(void **state) {
    (void)state;
    static const float data[4] = {0};
    op_case c;
    op_case_begin(&c, "BatchNormalization", 9);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 2, 2));
    for (size_t i = 0; i < 4; i++) op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void layer_norm_gives_mean_and_inverse_deviation(void **state) {
    (void)state;
    static const float x[] = {1, 3, 2, 6};
    static const float scale[] = {1, 2};
    static const float bias[] = {0, 1};
    static const float expected[] = {-1, 3, -1, 3};
    static const float mean[] = {2, 4};
    static const float inverse[] = {1, 0.5F};
    op_case c;
    op_case_begin(&c, "LayerNormalization", 17);
    op_case_set_float(&c, "epsilon", 0.0F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2));
    op_case_input(&c, TN_DTYPE_F32, scale, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, bias, OP_SHAPE(2));
    op_case_set_outputs(&c, 3);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 2));

        assert_shape(&c, 1, OP_SHAPE(2, 1));
        assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
        assert_floats(op_case_output(&c, 1), mean, 2, 1e-6);
        assert_floats(op_case_output(&c, 2), inverse, 2, 1e-6);
    }
    op_case_end(&c);
}

static void layer_norm_over_several_axes_matches_double_arithmetic(void **state) {
    (void)state;
    enum { ROWS = 3, LENGTH = 35 * 37, COUNT = ROWS * LENGTH };
    static float x[COUNT], scale[LENGTH], expected[COUNT];
    fill_floats(x, COUNT, 6);
    fill_floats(scale, LENGTH, 7);
    for (size_t r = 0; r < ROWS; r++) {
        double mean = 0;
        double var = 0;
        for (size_t i = 0; i < LENGTH; i++) mean += (double)x[r * LENGTH + i] / LENGTH;
        for (size_t i = 0; i < LENGTH; i++) var += pow((double)x[r * LENGTH + i] - mean, 2);
        const double factor = 1.0 / sqrt(var / LENGTH + 1e-5);
        for (size_t i = 0; i < LENGTH; i++) {
            const size_t at = r * LENGTH + i;
            expected[at] = (float)(((double)x[at] - mean) * factor * (double)scale[i]);
        }
    }
    op_case c;
    op_case_begin(&c, "LayerNormalization", 17);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(ROWS, 35, 37));
    op_case_input(&c, TN_DTYPE_F32, scale, OP_SHAPE(35, 37));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, COUNT, 1e-5);
    }
    op_case_end(&c);
}

static void rms_norm_takes_the_type_of_its_scale(void **state) {
    (void)state;
    static const uint16_t x[] = {0x4200, 0x4400}; /* 3, 4 as float16 */
    static const float scale[] = {1, 2};
    static const float expected[] = {0.84852814F, 2.2627417F};
    op_case c;
    op_case_begin(&c, "RMSNormalization", 23);
    op_case_set_float(&c, "epsilon", 0.0F);
    op_case_input(&c, TN_DTYPE_F16, x, OP_SHAPE(1, 2));
    op_case_input(&c, TN_DTYPE_F32, scale, OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_int_equal(c.outputs[0].dtype, TN_DTYPE_F32);
    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

static void group_norm_scales_groups_in_18_and_channels_in_21(void **state) {
    (void)state;
    static const float x[] = {-1, 1, -1, 1}; /* [1, 4, 1] */
    static const float scale_groups[] = {1, 3};
    static const float scale_channels[] = {1, 2, 3, 4};
    static const float zeros[4] = {0};
    static const float expected_18[] = {-1, 1, -3, 3};
    static const float expected_21[] = {-1, 2, -3, 4};
    op_case c;
    op_case_begin(&c, "GroupNormalization", 18);
    op_case_set_int(&c, "num_groups", 2);
    op_case_set_float(&c, "epsilon", 0.0F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 4, 1));
    op_case_input(&c, TN_DTYPE_F32, scale_groups, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, zeros, OP_SHAPE(2));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), expected_18, 4, 1e-6);
    op_case_end(&c);

    op_case_begin(&c, "GroupNormalization", 21);
    op_case_set_int(&c, "num_groups", 2);
    op_case_set_float(&c, "epsilon", 0.0F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 4, 1));
    op_case_input(&c, TN_DTYPE_F32, scale_channels, OP_SHAPE(4));
    op_case_input(&c, TN_DTYPE_F32, zeros, OP_SHAPE(4));
    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected_21, 4, 1e-6);
    op_case_end(&c);
}

static void instance_norm_of_constant_planes_gives_the_bias(void **state) {
    (void)state;
    static const float x[] = {5, 5, 5, 7, 7, 7}; /* [1, 2, 3] */
    static const float scale[] = {2, 2};
    static const float bias[] = {1, -1};
    static const float expected[] = {1, 1, 1, -1, -1, -1};
    op_case c;
    op_case_begin(&c, "InstanceNormalization", 6);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2, 3));
    op_case_input(&c, TN_DTYPE_F32, scale, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, bias, OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 6, 1e-6);
    op_case_end(&c);
}

static void lrn_window_is_shorter_before_than_after(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3}; /* [1, 3, 1], window of 2: itself and the next */
    static const float expected[] = {1.0F / 6, 2.0F / 14, 3.0F / 10};
    op_case c;
    op_case_begin(&c, "LRN", 13);
    op_case_set_int(&c, "size", 2);
    op_case_set_float(&c, "alpha", 2.0F);
    op_case_set_float(&c, "beta", 1.0F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 3, 1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 3, 1e-6);
    op_case_end(&c);
}

static void lrn_of_a_hostile_size_stays_inside_its_channels(void **state) {
    (void)state;
    static const float x[] = {1, 1};
    op_case c;
    op_case_begin(&c, "LRN", 13);
    op_case_set_int(&c, "size", INT64_MAX);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2, 1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), x, 2, 1e-6);
    op_case_end(&c);
}

static void lp_norm_of_zeros_gives_zeros(void **state) {
    (void)state;
    static const float x[] = {0, 0, 3, 4};
    static const float expected[] = {0, 0, 0.6F, 0.8F};
    op_case c;
    op_case_begin(&c, "LpNormalization", 22);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    op_case_end(&c);
}

static void mean_variance_norm_normalizes_each_channel(void **state) {
    (void)state;
    static const float x[] = {1, 10, 3, 30}; /* [2, 2, 1, 1] */
    static const float expected[] = {-1, -1, 1, 1};
    op_case c;
    op_case_begin(&c, "MeanVarianceNormalization", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2, 1, 1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(batch_norm_applies_given_statistics_by_channel),
        T(batch_norm_in_training_gives_running_statistics),
        T(batch_norm_refuses_statistics_of_another_length),
        T(layer_norm_gives_mean_and_inverse_deviation),
        T(layer_norm_over_several_axes_matches_double_arithmetic),
        T(rms_norm_takes_the_type_of_its_scale),
        T(group_norm_scales_groups_in_18_and_channels_in_21),
        T(instance_norm_of_constant_planes_gives_the_bias),
        T(lrn_window_is_shorter_before_than_after),
        T(lrn_of_a_hostile_size_stays_inside_its_channels),
        T(lp_norm_of_zeros_gives_zeros),
        T(mean_variance_norm_normalizes_each_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
