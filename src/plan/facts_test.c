/* Shared inference: broadcasting with unknown dims, axes, reading of small integers. */
#include <string.h>

#include "harness.h"
#include "plan/op_def.h"

static tn_shape shape2(int64_t a, int64_t b) {
    return (tn_shape){2, {a, b}};
}

static void broadcast_keeps_what_is_known(void **state) {
    (void)state;
    const tn_shape a = shape2(TN_DIM_UNKNOWN, 3);
    const tn_shape b = shape2(4, 1);
    tn_shape out;

    ASSERT_OK(tn_infer_broadcast(&a, &b, &out, NULL));

    assert_int_equal(out.dims[0], 4);
    assert_int_equal(out.dims[1], 3);
}

static void broadcast_of_equal_symbols_stays_a_symbol(void **state) {
    (void)state;
    const tn_shape a = shape2(-5, 3);
    const tn_shape b = shape2(-5, 3);
    tn_shape out;

    ASSERT_OK(tn_infer_broadcast(&a, &b, &out, NULL));

    assert_int_equal(out.dims[0], -5);
}

static void broadcast_mismatch_says_both_shapes(void **state) {
    (void)state;
    const tn_shape a = shape2(2, 3);
    const tn_shape b = shape2(2, 4);
    tn_shape out;
    tn_error err;

    ASSERT_STATUS(TN_INVALID_ARGUMENT, tn_infer_broadcast(&a, &b, &out, &err));

    assert_non_null(strstr(err.message, "[2, 3]"));
    assert_non_null(strstr(err.message, "[2, 4]"));
}

static void broadcast_with_zero_and_rank_zero(void **state) {
    (void)state;
    const tn_shape a = shape2(0, 3);
    const tn_shape scalar = {0, {0}};
    tn_shape out;

    ASSERT_OK(tn_infer_broadcast(&a, &scalar, &out, NULL));

    assert_int_equal(out.rank, 2);
    assert_int_equal(out.dims[0], 0);
}

static void axis_outside_the_rank_is_an_error(void **state) {
    (void)state;
    int32_t axis = 0;
    tn_error err;

    ASSERT_OK(tn_infer_axis(-3, 3, &axis, NULL));
    assert_int_equal(axis, 0);
    ASSERT_STATUS(TN_INVALID_MODEL, tn_infer_axis(3, 3, &axis, &err));
    ASSERT_STATUS(TN_INVALID_MODEL, tn_infer_axis(INT64_MIN, 3, &axis, &err));
}

static void read_ints_takes_unaligned_bytes(void **state) {
    (void)state;
    char bytes[1 + 2 * sizeof(int64_t)];
    const int64_t numbers[2] = {-7, INT64_MAX};
    memcpy(bytes + 1, numbers, sizeof numbers);
    const tn_fact fact = {.dtype = TN_DTYPE_I64, .shape = {1, {2}}, .data = bytes + 1};
    int64_t seen[2];
    size_t count = 0;

    assert_true(tn_fact_read_ints(&fact, seen, 2, &count));
    assert_int_equal(count, 2);
    assert_true(seen[0] == -7 && seen[1] == INT64_MAX);
    assert_false(tn_fact_read_ints(&fact, seen, 1, &count));
}

static void shape_text_shows_unknown_dims(void **state) {
    (void)state;
    char text[64];
    const tn_shape shape = shape2(TN_DIM_UNKNOWN, 7);
    const tn_shape scalar = {0, {0}};
    const tn_shape unknown = {TN_RANK_UNKNOWN, {0}};

    assert_string_equal(tn_shape_text(&shape, text, sizeof text), "[?, 7]");
    assert_string_equal(tn_shape_text(&scalar, text, sizeof text), "[]");
    assert_string_equal(tn_shape_text(&unknown, text, sizeof text), "[?]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(broadcast_keeps_what_is_known),       T(broadcast_of_equal_symbols_stays_a_symbol),
        T(broadcast_mismatch_says_both_shapes), T(broadcast_with_zero_and_rank_zero),
        T(axis_outside_the_rank_is_an_error),   T(read_ints_takes_unaligned_bytes),
        T(shape_text_shows_unknown_dims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
