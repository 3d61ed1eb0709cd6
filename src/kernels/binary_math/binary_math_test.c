#include <limits.h>
#include <math.h>

#include "harness.h"
#include "op_case.h"

/* Two int32 vectors through `op`. */
static void check_ints(const char *op, const int32_t *a, const int32_t *b, const int32_t *expected,
                       size_t count, int64_t fmod) {
    op_case c;
    op_case_begin(&c, op, 14);
    if (fmod >= 0) op_case_set_int(&c, "fmod", fmod);
    op_case_input(&c, TN_DTYPE_I32, a, OP_SHAPE((int64_t)count));
    op_case_input(&c, TN_DTYPE_I32, b, OP_SHAPE((int64_t)count));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, count * sizeof *expected);
    op_case_end(&c);
}

static void integer_division_never_traps(void **state) {
    (void)state;
    static const int32_t a[] = {7, -7, 5, INT_MIN, INT_MIN};
    static const int32_t b[] = {2, 2, 0, -1, 0};
    static const int32_t quotients[] = {3, -3, 0, INT_MIN, 0};
    static const int32_t moduli[] = {1, 1, 0, 0, 0};
    static const int32_t remainders[] = {1, -1, 0, 0, 0};
    check_ints("Div", a, b, quotients, 5, -1);
    check_ints("Mod", a, b, moduli, 5, 0);
    check_ints("Mod", a, b, remainders, 5, 1);
}

static void integer_sums_and_products_wrap(void **state) {
    (void)state;
    static const int32_t a[] = {INT_MAX, INT_MIN, 70000};
    static const int32_t b[] = {1, INT_MIN, 70000};
    static const int32_t sums[] = {INT_MIN, 0, 140000};
    static const int32_t products[] = {INT_MAX, 0, 605032704};
    check_ints("Add", a, b, sums, 3, -1);
    check_ints("Mul", a, b, products, 3, -1);
}

/* Opset 6: [2, 3, 2] + [3] at axis 1. */
static void legacy_axis_aligns_the_second_input(void **state) {
    (void)state;
    static const float a[12] = {0};
    static const float b[] = {1, 2, 3};
    static const float expected[] = {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3};
    op_case c;
    op_case_begin(&c, "Add", 6);
    op_case_set_int(&c, "broadcast", 1);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 3, 2));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(3));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        assert_floats(op_case_output(&c, 0), expected, 12, 0);
    }
    op_case_end(&c);
}

static void legacy_shapes_must_be_equal_without_broadcast(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "Add", 6);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void legacy_axis_out_of_range_is_refused(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "Mul", 1);
    op_case_set_int(&c, "broadcast", 1);
    op_case_set_int(&c, "axis", 99);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void shapes_that_do_not_broadcast_are_refused(void **state) {
    (void)state;
    static const float data[6] = {0};
    op_case c;
    op_case_begin(&c, "Add", 14);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void max_and_min_pass_nan_on(void **state) {
    (void)state;
    static const float a[] = {NAN, 1, 2, -1};
    static const float b[] = {1, NAN, 3, -5};
    static const char *const ops[] = {"Max", "Min"};
    for (size_t i = 0; i < 2; i++) {
        op_case c;
        op_case_begin(&c, ops[i], 13);
        op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(4));
        op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(4));
        const uint32_t count = op_case_variant_count(&c);
        for (uint32_t v = 0; v < count; v++) {
            ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
            const float *y = op_case_output(&c, 0);
            assert_true(isnan(y[0]) && isnan(y[1]));
            assert_true(y[2] == (i == 0 ? 3.0F : 2.0F) && y[3] == (i == 0 ? -1.0F : -5.0F));
        }
        op_case_end(&c);
    }
}

static void mean_of_three_broadcasts_and_divides(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, 4};
    static const float b[] = {2, 8};
    static const float c0 = 3;
    static const float expected[] = {2, 13.0F / 3.0F, 8.0F / 3.0F, 5};
    op_case c;
    op_case_begin(&c, "Mean", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 2));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_F32, &c0, OP_SCALAR);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    }
    op_case_end(&c);
}

static void sum_of_one_is_a_copy(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3};
    op_case c;
    op_case_begin(&c, "Sum", 13);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(3));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), a, sizeof a);
    op_case_end(&c);
}

static void power_has_the_type_of_its_base(void **state) {
    (void)state;
    static const int64_t base[] = {2, -3, 10, 5};
    static const float exponent[] = {3, 2, -1, 0.5F};
    static const int64_t expected[] = {8, 9, 0, 2};
    op_case c;
    op_case_begin(&c, "Pow", 15);
    op_case_input(&c, TN_DTYPE_I64, base, OP_SHAPE(4));
    op_case_input(&c, TN_DTYPE_F32, exponent, OP_SHAPE(4));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

/* Squares and roots take other ways than the rest; neighbours must not matter. */
static void power_of_mixed_exponents_matches_the_library(void **state) {
    (void)state;
    enum { LEN = 19 };
    float base[LEN];
    float exponent[LEN];
    float expected[LEN];
    for (size_t i = 0; i < LEN; i++) {
        static const float exponents[] = {2, 0.5F, 3, -1, 0};
        base[i] = 0.25F + (float)i;
        exponent[i] = exponents[i % 5];
        expected[i] = powf(base[i], exponent[i]);
    }
    op_case c;
    op_case_begin(&c, "Pow", 15);
    op_case_input(&c, TN_DTYPE_F32, base, OP_SHAPE(LEN));
    op_case_input(&c, TN_DTYPE_F32, exponent, OP_SHAPE(LEN));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        assert_floats(op_case_output(&c, 0), expected, LEN, 1e-6);
    }
    op_case_end(&c);
}

static void half_floats_add_through_single_precision(void **state) {
    (void)state;
    static const uint16_t a[] = {0x3c00, 0xc000, 0x7bff}; /* 1, -2, 65504 */
    static const uint16_t b[] = {0x3800, 0x4000, 0x7bff}; /* 0.5, 2, 65504 */
    static const uint16_t expected[] = {0x3e00, 0x0000, 0x7c00};
    op_case c;
    op_case_begin(&c, "Add", 14);
    op_case_input(&c, TN_DTYPE_F16, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_F16, b, OP_SHAPE(3));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t v = 0; v < count; v++) {
        ASSERT_OK(op_case_run(&c, (int32_t)v, 1));
        assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    }
    op_case_end(&c);
}

static void shifts_past_the_width_give_zero(void **state) {
    (void)state;
    static const uint8_t a[] = {1, 0x81, 0xff};
    static const uint8_t b[] = {7, 1, 8};
    static const uint8_t left[] = {0x80, 0x02, 0};
    op_case c;
    op_case_begin(&c, "BitShift", 11);
    op_case_set_text(&c, "direction", "LEFT");
    op_case_input(&c, TN_DTYPE_U8, a, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_U8, b, OP_SHAPE(3));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), left, sizeof left);
    op_case_end(&c);
}

static void shift_without_direction_is_refused(void **state) {
    (void)state;
    static const uint8_t a[] = {1};
    op_case c;
    op_case_begin(&c, "BitShift", 11);
    op_case_input(&c, TN_DTYPE_U8, a, OP_SHAPE(1));
    op_case_input(&c, TN_DTYPE_U8, a, OP_SHAPE(1));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(integer_division_never_traps),
        T(integer_sums_and_products_wrap),
        T(legacy_axis_aligns_the_second_input),
        T(legacy_shapes_must_be_equal_without_broadcast),
        T(legacy_axis_out_of_range_is_refused),
        T(shapes_that_do_not_broadcast_are_refused),
        T(max_and_min_pass_nan_on),
        T(mean_of_three_broadcasts_and_divides),
        T(sum_of_one_is_a_copy),
        T(power_has_the_type_of_its_base),
        T(power_of_mixed_exponents_matches_the_library),
        T(half_floats_add_through_single_precision),
        T(shifts_past_the_width_give_zero),
        T(shift_without_direction_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
