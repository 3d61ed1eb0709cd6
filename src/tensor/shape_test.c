#include "tensor/shape.h"

#include <string.h>

#include "harness.h"

static const int64_t two_to_33 = (int64_t)1 << 33;

static void shape_rank_0_is_one_element(void **state) {
    (void)state;
    const tn_shape scalar = {.rank = 0};
    size_t len_elems = 0;
    size_t size_bytes = 0;

    ASSERT_OK(tn_shape_len_elems(&scalar, &len_elems, NULL));
    ASSERT_OK(tn_shape_size_bytes(&scalar, TN_DTYPE_F64, &size_bytes, NULL));

    assert_int_equal(len_elems, 1);
    assert_int_equal(size_bytes, 8);
}

static void shape_sub_byte_types_round_up(void **state) {
    (void)state;
    const tn_shape five = {.rank = 1, .dims = {5}};
    size_t size_bytes = 0;

    ASSERT_OK(tn_shape_size_bytes(&five, TN_DTYPE_I4, &size_bytes, NULL));
    assert_int_equal(size_bytes, 3);
    ASSERT_OK(tn_shape_size_bytes(&five, TN_DTYPE_U2, &size_bytes, NULL));
    assert_int_equal(size_bytes, 2);
    ASSERT_OK(tn_shape_size_bytes(&five, TN_DTYPE_U8, &size_bytes, NULL));
    assert_int_equal(size_bytes, 5);
}

static void shape_zero_dim_beats_overflow(void **state) {
    (void)state;
    const tn_shape shape = {.rank = 3, .dims = {two_to_33, two_to_33, 0}};
    size_t size_bytes = 1;

    ASSERT_OK(tn_shape_size_bytes(&shape, TN_DTYPE_F32, &size_bytes, NULL));

    assert_int_equal(size_bytes, 0);
}

static void shape_product_too_large_is_overflow_with_shape(void **state) {
    (void)state;
    const tn_shape shape = {.rank = 2, .dims = {two_to_33, two_to_33}};
    size_t len_elems = 7;
    tn_error err = {0};

    ASSERT_STATUS(TN_OVERFLOW, tn_shape_len_elems(&shape, &len_elems, &err));

    assert_int_equal(len_elems, 7);
    assert_non_null(strstr(err.message, "[8589934592, 8589934592]"));
}

static void shape_bytes_too_large_is_overflow(void **state) {
    (void)state;
    const tn_shape shape = {.rank = 2, .dims = {two_to_33, (int64_t)1 << 29}};
    size_t size_bytes = 7;

    ASSERT_OK(tn_shape_len_elems(&shape, &size_bytes, NULL));
    size_bytes = 7;
    ASSERT_STATUS(TN_OVERFLOW, tn_shape_size_bytes(&shape, TN_DTYPE_F32, &size_bytes, NULL));

    assert_int_equal(size_bytes, 7);
}

static void shape_negative_dim_is_out_of_range(void **state) {
    (void)state;
    const tn_shape shape = {.rank = 2, .dims = {0, -1}};
    size_t len_elems = 0;
    tn_error err = {0};

    ASSERT_STATUS(TN_OUT_OF_RANGE, tn_shape_len_elems(&shape, &len_elems, &err));

    assert_non_null(strstr(err.message, "axis 1"));
}

static void shape_rank_above_limit_is_unsupported(void **state) {
    (void)state;
    const tn_shape shape = {.rank = TN_MAX_RANK + 1};
    size_t len_elems = 0;

    ASSERT_STATUS(TN_UNSUPPORTED, tn_shape_len_elems(&shape, &len_elems, NULL));
}

static void shape_size_of_no_type_is_invalid(void **state) {
    (void)state;
    const tn_shape shape = {.rank = 0};
    size_t size_bytes = 0;

    ASSERT_STATUS(TN_INVALID_ARGUMENT,
                  tn_shape_size_bytes(&shape, TN_DTYPE_NONE, &size_bytes, NULL));
}

static void shape_print_fits_or_is_cut(void **state) {
    (void)state;
    tn_shape widest = {.rank = TN_MAX_RANK};
    char text[TN_SHAPE_TEXT_BYTES];
    char small[6];

    for (int axis = 0; axis < TN_MAX_RANK; axis++) widest.dims[axis] = INT64_MIN;
    const tn_shape scalar = {.rank = 0};

    assert_string_equal(tn_shape_print(&scalar, text, sizeof text), "[]");
    assert_int_equal(tn_shape_print(&widest, text, sizeof text)[strlen(text) - 1], ']');
    assert_true(strlen(tn_shape_print(&widest, small, sizeof small)) < sizeof small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(shape_rank_0_is_one_element),
        T(shape_sub_byte_types_round_up),
        T(shape_zero_dim_beats_overflow),
        T(shape_product_too_large_is_overflow_with_shape),
        T(shape_bytes_too_large_is_overflow),
        T(shape_negative_dim_is_out_of_range),
        T(shape_rank_above_limit_is_unsupported),
        T(shape_size_of_no_type_is_invalid),
        T(shape_print_fits_or_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
