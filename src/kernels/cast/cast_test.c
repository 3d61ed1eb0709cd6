#include <limits.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "op_case.h"

/* Casts `count` elements and compares the output's bytes. */
static void check_cast(tn_dtype from, const void *in, size_t count, tn_dtype to,
                       const void *expected, size_t expected_bytes) {
    op_case c;
    op_case_begin(&c, "Cast", 25);
    op_case_set_int(&c, "to", to);
    op_case_input(&c, from, in, OP_SHAPE((int64_t)count));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_int_equal(c.outputs[0].dtype, to);
    assert_memory_equal(op_case_output(&c, 0), expected, expected_bytes);
    op_case_end(&c);
}

static void floats_are_truncated_and_kept_in_range(void **state) {
    (void)state;
    static const float in[] = {1.9F, -1.9F, 3e9F, -3e9F, NAN, 0.0F};
    static const int32_t i32[] = {1, -1, INT_MAX, INT_MIN, 0, 0};
    static const int64_t i64[] = {1, -1, 3000000000, -3000000000, 0, 0};
    static const uint8_t bools[] = {1, 1, 1, 1, 1, 0};
    check_cast(TN_DTYPE_F32, in, 6, TN_DTYPE_I32, i32, sizeof i32);
    check_cast(TN_DTYPE_F32, in, 6, TN_DTYPE_I64, i64, sizeof i64);
    check_cast(TN_DTYPE_F32, in, 6, TN_DTYPE_BOOL, bools, sizeof bools);
}

static void integers_keep_their_low_bits(void **state) {
    (void)state;
    static const int64_t in[] = {300, -1, INT64_MIN};
    static const uint8_t u8[] = {44, 255, 0};
    static const uint64_t u64[] = {300, UINT64_MAX, 0x8000000000000000u};
    check_cast(TN_DTYPE_I64, in, 3, TN_DTYPE_U8, u8, sizeof u8);
    check_cast(TN_DTYPE_I64, in, 3, TN_DTYPE_U64, u64, sizeof u64);
}

/* 2049 - 2^-30 lies below the tie of 2048 and 2050 in half precision, but is 2049 in single. */
static void doubles_become_halves_with_one_rounding(void **state) {
    (void)state;
    static const double in[] = {2049.0 - 0x1p-30, 2049.0 + 0x1p-30, 65520.0, 0x1p-25};
    static const uint16_t half[] = {0x6800, 0x6801, 0x7c00, 0x0000};
    check_cast(TN_DTYPE_F64, in, 4, TN_DTYPE_F16, half, sizeof half);
}

static void eight_bit_floats_saturate_unless_told_not_to(void **state) {
    (void)state;
    static const float in[] = {448.0F, 1000.0F, -INFINITY, 0.0F};
    static const uint8_t kept[] = {0x7e, 0x7e, 0xfe, 0x00};
    static const uint8_t free_range[] = {0x7e, 0x7f, 0xff, 0x00};
    check_cast(TN_DTYPE_F32, in, 4, TN_DTYPE_F8E4M3FN, kept, sizeof kept);

    op_case c;
    op_case_begin(&c, "Cast", 25);
    op_case_set_int(&c, "to", TN_DTYPE_F8E4M3FN);
    op_case_set_int(&c, "saturate", 0);
    op_case_input(&c, TN_DTYPE_F32, in, OP_SHAPE(4));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_memory_equal(op_case_output(&c, 0), free_range, sizeof free_range);
    op_case_end(&c);
}

/* Every code of every 8-bit float survives the way to f32 and back. */
static void eight_bit_floats_round_trip(void **state) {
    (void)state;
    static const tn_dtype dtypes[] = {TN_DTYPE_F8E4M3FN, TN_DTYPE_F8E4M3FNUZ, TN_DTYPE_F8E5M2,
                                      TN_DTYPE_F8E5M2FNUZ};
    for (size_t d = 0; d < TN_COUNTOF(dtypes); d++) {
        uint8_t codes[256];
        float floats[256];
        op_case c;
        for (size_t i = 0; i < 256; i++) codes[i] = (uint8_t)i;
        op_case_begin(&c, "Cast", 25);
        op_case_set_int(&c, "to", TN_DTYPE_F32);
        op_case_input(&c, dtypes[d], codes, OP_SHAPE(256));
        ASSERT_OK(op_case_run(&c, -1, 1));
        memcpy(floats, op_case_output(&c, 0), sizeof floats);
        op_case_end(&c);
        op_case_begin(&c, "Cast", 25);
        op_case_set_int(&c, "to", dtypes[d]);
        op_case_set_int(&c, "saturate", 0);
        op_case_input(&c, TN_DTYPE_F32, floats, OP_SHAPE(256));
        ASSERT_OK(op_case_run(&c, -1, 1));
        const uint8_t *back = op_case_output(&c, 0);
        for (size_t i = 0; i < 256; i++) {
            if (!isnan(floats[i])) assert_int_equal(back[i], codes[i]);
        }
        op_case_end(&c);
    }
}

static void packed_integers_pack_low_bits_first(void **state) {
    (void)state;
    static const float in[] = {1, -2, 7, -8, 3};
    static const uint8_t packed[] = {0xe1, 0x87, 0x03};
    static const int8_t back[] = {1, -2, 7, -8, 3};
    check_cast(TN_DTYPE_F32, in, 5, TN_DTYPE_I4, packed, sizeof packed);
    check_cast(TN_DTYPE_I4, packed, 5, TN_DTYPE_I8, back, sizeof back);
}

static void strings_are_parsed(void **state) {
    (void)state;
    static const tn_string in[] = {{"1e-5", 4}, {"-INF", 4}, {"42", 2}};
    static const float expected[] = {1e-5F, -INFINITY, 42};
    check_cast(TN_DTYPE_STRING, in, 3, TN_DTYPE_F32, expected, sizeof expected);
}

static void text_that_is_no_number_is_refused(void **state) {
    (void)state;
    static const tn_string in[] = {{"12x", 3}};
    op_case c;
    op_case_begin(&c, "Cast", 13);
    op_case_set_int(&c, "to", TN_DTYPE_I64);
    op_case_input(&c, TN_DTYPE_STRING, in, OP_SHAPE(1));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void a_target_that_is_no_type_is_refused(void **state) {
    (void)state;
    static const float in[] = {1};
    op_case c;
    op_case_begin(&c, "Cast", 13);
    op_case_set_int(&c, "to", 99);
    op_case_input(&c, TN_DTYPE_F32, in, OP_SHAPE(1));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(floats_are_truncated_and_kept_in_range),
        T(integers_keep_their_low_bits),
        T(doubles_become_halves_with_one_rounding),
        T(eight_bit_floats_saturate_unless_told_not_to),
        T(eight_bit_floats_round_trip),
        T(packed_integers_pack_low_bits_first),
        T(strings_are_parsed),
        T(text_that_is_no_number_is_refused),
        T(a_target_that_is_no_type_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
