#include "cli/compare.h"

#include <math.h>
#include <string.h>

#include "harness.h"

typedef struct fixture {
    tn_environment *environment;
    tn_allocator *allocator;
    char why[256];
} fixture;

static int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ASSERT_OK(tn_environment_create(NULL, &f.environment, NULL));
    f.allocator = tn_environment_allocator(f.environment);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    tn_environment_release(f->environment);
    return 0;
}

static tn_value *borrow(fixture *f, tn_dtype dtype, int64_t count, void *data) {
    tn_value *value = NULL;
    const tn_shape shape = {.rank = 1, .dims = {count}};
    ASSERT_OK(tn_tensor_create_borrowed(f->allocator, dtype, &shape, NULL, data, NULL, NULL, &value,
                                        NULL));
    return value;
}

static bool agree(fixture *f, tn_dtype dtype, int64_t count, void *got, void *want) {
    tn_value *a = borrow(f, dtype, count, got);
    tn_value *b = borrow(f, dtype, count, want);
    const bool is_same = cli_compare(a, b, 1e-3, 1e-7, f->why, sizeof f->why);
    tn_tensor_release(a);
    tn_tensor_release(b);
    return is_same;
}

static void compare_within_relative_tolerance_agrees(void **state) {
    float want[] = {1000.0f, -1.0f, 0.0f};
    float got[] = {1000.9f, -1.0009f, 0.9e-7f};

    assert_true(agree(*state, TN_DTYPE_F32, 3, got, want));
}

static void compare_past_tolerance_names_the_worst_element(void **state) {
    fixture *f = *state;
    float want[] = {1.0f, 2.0f, 3.0f};
    float got[] = {1.1f, 2.0f, 4.0f};

    assert_false(agree(f, TN_DTYPE_F32, 3, got, want));

    assert_non_null(strstr(f->why, "2 of 3 differ, worst element 2"));
}

static void compare_nan_agrees_with_nan_only(void **state) {
    double nan_value[] = {(double)NAN};
    double one[] = {1.0};

    assert_true(agree(*state, TN_DTYPE_F64, 1, nan_value, nan_value));
    assert_false(agree(*state, TN_DTYPE_F64, 1, one, nan_value));
    assert_false(agree(*state, TN_DTYPE_F64, 1, nan_value, one));
}

static void compare_infinity_agrees_with_itself_only(void **state) {
    float inf[] = {INFINITY};
    float minus_inf[] = {-INFINITY};
    float large[] = {3e38f};

    assert_true(agree(*state, TN_DTYPE_F32, 1, inf, inf));
    assert_false(agree(*state, TN_DTYPE_F32, 1, large, inf));
    assert_false(agree(*state, TN_DTYPE_F32, 1, inf, large));
    assert_false(agree(*state, TN_DTYPE_F32, 1, minus_inf, inf));
}

static void compare_other_type_or_shape_differs(void **state) {
    fixture *f = *state;
    int32_t numbers[] = {1, 2};
    tn_value *two = borrow(f, TN_DTYPE_I32, 2, numbers);
    tn_value *one = borrow(f, TN_DTYPE_I32, 1, numbers);
    tn_value *floats = borrow(f, TN_DTYPE_F32, 2, numbers);

    assert_false(cli_compare(one, two, 1e-3, 1e-7, f->why, sizeof f->why));
    assert_string_equal(f->why, "shape [1], expected [2]");
    assert_false(cli_compare(floats, two, 1e-3, 1e-7, f->why, sizeof f->why));
    assert_string_equal(f->why, "type float, expected int32");

    tn_tensor_release(two);
    tn_tensor_release(one);
    tn_tensor_release(floats);
}

static void compare_strings_is_exact(void **state) {
    fixture *f = *state;
    tn_string want[] = {{"a", 1}, {"bc", 2}};
    tn_string got[] = {{"a", 1}, {"bd", 2}};

    assert_true(agree(f, TN_DTYPE_STRING, 2, want, want));
    assert_false(agree(f, TN_DTYPE_STRING, 2, got, want));
    assert_string_equal(f->why, "string 1 is 'bd', expected 'bc'");
}

typedef struct element_case {
    tn_dtype dtype;
    uint64_t bits;
    double value;
} element_case;

static void element_of_every_small_type_has_its_value(void **state) {
    static const element_case cases[] = {
        {TN_DTYPE_F16, 0x3c00, 1.0},
        {TN_DTYPE_F16, 0x0001, 0x1p-24},
        {TN_DTYPE_F16, 0xfc00, -INFINITY},
        {TN_DTYPE_BF16, 0xc000, -2.0},
        {TN_DTYPE_F8E4M3FN, 0x7e, 448.0},
        {TN_DTYPE_F8E4M3FN, 0x01, 0x1p-9},
        {TN_DTYPE_F8E4M3FNUZ, 0x7f, 240.0},
        {TN_DTYPE_F8E5M2, 0x7b, 57344.0},
        {TN_DTYPE_F8E5M2, 0xfc, -INFINITY},
        {TN_DTYPE_F8E5M2FNUZ, 0x7f, 57344.0},
        {TN_DTYPE_F8E8M0, 127, 1.0},
        {TN_DTYPE_F4E2M1, 0x0d, -3.0},
        {TN_DTYPE_I4, 0x0f, -1.0},
        {TN_DTYPE_U4, 0x0f, 15.0},
        {TN_DTYPE_I2, 0x02, -2.0},
        {TN_DTYPE_U2, 0x03, 3.0},
        {TN_DTYPE_I64, (uint64_t)-3, -3.0},
        {TN_DTYPE_U64, UINT64_C(1) << 63, 0x1p63},
        {TN_DTYPE_BOOL, 1, 1.0},
        {TN_DTYPE_I8, 0x80, -128.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bits = cases[i].bits;
        tn_value *value = borrow(*state, cases[i].dtype, 1, &bits);

        const double got = cli_element(value, 0);

        tn_tensor_release(value);
        if (!(got == cases[i].value)) {
            fail_msg("%s 0x%llx is %.17g, expected %.17g", tn_dtype_name(cases[i].dtype),
                     (unsigned long long)cases[i].bits, got, cases[i].value);
        }
    }
}

static void element_of_a_packed_type_is_the_low_bits_first(void **state) {
    uint8_t bytes[] = {0x21, 0x43};
    tn_value *value = borrow(*state, TN_DTYPE_U4, 4, bytes);

    for (size_t i = 0; i < 4; i++) assert_true(cli_element(value, i) == (double)(i + 1));

    tn_tensor_release(value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(compare_within_relative_tolerance_agrees),
        T(compare_past_tolerance_names_the_worst_element),
        T(compare_nan_agrees_with_nan_only),
        T(compare_infinity_agrees_with_itself_only),
        T(compare_other_type_or_shape_differs),
        T(compare_strings_is_exact),
        T(element_of_every_small_type_has_its_value),
        T(element_of_a_packed_type_is_the_low_bits_first),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
