#include <math.h>

#include "harness.h"
#include "op_case.h"

static void clip_with_crossed_bounds_gives_the_high_one(void **state) {
    (void)state;
    static const float x[] = {-2, 0, 6, NAN};
    static const float low = 2;
    static const float high = 1;
    op_case c;
    op_case_begin(&c, "Clip", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(4));
    op_case_input(&c, TN_DTYPE_F32, &low, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_F32, &high, OP_SCALAR);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        const float *y = op_case_output(&c, 0);
        assert_true(y[0] == 1 && y[1] == 1 && y[2] == 1 && isnan(y[3]));
    }
    op_case_end(&c);
}

static void clip_without_low_bound_keeps_small_values(void **state) {
    (void)state;
    static const int8_t x[] = {-128, 0, 127};
    static const int8_t high = 5;
    static const int8_t expected[] = {-128, 0, 5};
    op_case c;
    op_case_begin(&c, "Clip", 12);
    op_case_input(&c, TN_DTYPE_I8, x, OP_SHAPE(3));
    op_case_skip_input(&c);
    op_case_input(&c, TN_DTYPE_I8, &high, OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void clip_bound_of_two_values_is_refused(void **state) {
    (void)state;
    static const float x[] = {1, 2};
    op_case c;
    op_case_begin(&c, "Clip", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

/* Half precision reads bounds of its own type. */
static void clip_of_halves_uses_half_bounds(void **state) {
    (void)state;
    static const uint16_t x[] = {0xc400, 0x3c00, 0x4400}; /* -4, 1, 4 */
    static const uint16_t low = 0xbc00;                   /* -1 */
    static const uint16_t expected[] = {0xbc00, 0x3c00, 0x4400};
    op_case c;
    op_case_begin(&c, "Clip", 13);
    op_case_input(&c, TN_DTYPE_F16, x, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_F16, &low, OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

/* Opset 6: one slope per channel, on axis 1. */
static void legacy_prelu_takes_a_slope_per_channel(void **state) {
    (void)state;
    static const float x[] = {-1, -2, -3, -4, -5, 6};
    static const float slope[] = {1, 10, 100};
    static const float expected[] = {-1, -2, -30, -40, -500, 6};
    op_case c;
    op_case_begin(&c, "PRelu", 6);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 3, 2));
    op_case_input(&c, TN_DTYPE_F32, slope, OP_SHAPE(3));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        assert_floats(op_case_output(&c, 0), expected, 6, 0);
    }
    op_case_end(&c);
}

static void prelu_slope_never_widens_its_input(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "PRelu", 16);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void gelu_of_an_unknown_kind_is_refused(void **state) {
    (void)state;
    static const float x[] = {1};
    op_case c;
    op_case_begin(&c, "Gelu", 20);
    op_case_set_text(&c, "approximate", "sideways");
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

/* First draws of NumPy's legacy generator with seed 0: 0.549, 0.715, 0.603, 0.545, 0.424, 0.646. */
static void dropout_in_training_draws_as_numpy_does(void **state) {
    (void)state;
    static const float x[] = {1, 1, 1, 1, 1, 1};
    static const float ratio = 0.55F;
    static const uint8_t training = 1;
    static const uint8_t mask[] = {0, 1, 1, 0, 0, 1};
    op_case c;
    op_case_begin(&c, "Dropout", 22);
    op_case_set_int(&c, "seed", 0);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(6));
    op_case_input(&c, TN_DTYPE_F32, &ratio, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_BOOL, &training, OP_SCALAR);
    op_case_set_outputs(&c, 2);
    ASSERT_OK(op_case_run(&c, -1, 1));
    const float *y = op_case_output(&c, 0);
    assert_memory_equal(op_case_output(&c, 1), mask, sizeof mask);
    for (size_t i = 0; i < 6; i++) {
        assert_true(mask[i] != 0 ? fabsf(y[i] - 1.0F / 0.45F) < 1e-5F : y[i] == 0.0F);
    }
    op_case_end(&c);
}

static void dropout_in_inference_keeps_all(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3};
    static const float ones[] = {1, 1, 1};
    op_case c;
    op_case_begin(&c, "Dropout", 7);
    op_case_set_float(&c, "ratio", 0.9F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(3));
    op_case_set_outputs(&c, 2);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), x, sizeof x);
    assert_memory_equal(op_case_output(&c, 1), ones, sizeof ones);
    op_case_end(&c);
}

static void dropout_ratio_of_one_is_refused(void **state) {
    (void)state;
    static const float x[] = {1};
    static const uint8_t training = 1;
    op_case c;
    op_case_begin(&c, "Dropout", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_F32, x, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_BOOL, &training, OP_SCALAR);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(clip_with_crossed_bounds_gives_the_high_one),
        T(clip_without_low_bound_keeps_small_values),
        T(clip_bound_of_two_values_is_refused),
        T(clip_of_halves_uses_half_bounds),
        T(legacy_prelu_takes_a_slope_per_channel),
        T(prelu_slope_never_widens_its_input),
        T(gelu_of_an_unknown_kind_is_refused),
        T(dropout_in_training_draws_as_numpy_does),
        T(dropout_in_inference_keeps_all),
        T(dropout_ratio_of_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
