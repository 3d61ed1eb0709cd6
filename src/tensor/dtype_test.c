#include <tenure/tensor.h>

#include "harness.h"

static void dtype_known_number_has_bits_and_names(void **state) {
    (void)state;

    assert_int_equal(tn_dtype_bits(TN_DTYPE_F32), 32);
    assert_int_equal(tn_dtype_bits(TN_DTYPE_C128), 128);
    assert_int_equal(tn_dtype_bits(TN_DTYPE_I4), 4);
    assert_int_equal(tn_dtype_bits(TN_DTYPE_U2), 2);
    assert_int_equal(tn_dtype_bits(TN_DTYPE_STRING), 8 * sizeof(tn_string));
    assert_string_equal(tn_dtype_name(TN_DTYPE_F32), "float");
    assert_string_equal(tn_dtype_numpy_name(TN_DTYPE_F32), "float32");
    assert_string_equal(tn_dtype_numpy_name(TN_DTYPE_F4E2M1), "float4_e2m1fn");
}

static void dtype_every_number_below_count_is_described(void **state) {
    (void)state;

    for (int number = 1; number < TN_DTYPE_COUNT; number++) {
        assert_true(tn_dtype_bits((tn_dtype)number) > 0);
        assert_non_null(tn_dtype_name((tn_dtype)number));
        assert_non_null(tn_dtype_numpy_name((tn_dtype)number));
    }
    assert_int_equal(TN_DTYPE_COUNT, 27);
}

static void dtype_unknown_number_has_no_facts(void **state) {
    (void)state;
    const int numbers[] = {0, TN_DTYPE_COUNT, 1000, -1};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_int_equal(tn_dtype_bits((tn_dtype)numbers[i]), 0);
        assert_null(tn_dtype_name((tn_dtype)numbers[i]));
        assert_null(tn_dtype_numpy_name((tn_dtype)numbers[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(dtype_known_number_has_bits_and_names),
        T(dtype_every_number_below_count_is_described),
        T(dtype_unknown_number_has_no_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
