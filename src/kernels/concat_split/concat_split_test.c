/* Concat, Split, Pad, CenterCropPad, Col2Im by their definitions. */
#include "op_case.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void list_input(op_case *c, const int64_t *values, int64_t count) {
    op_case_input(c, TN_DTYPE_I64, values, OP_SHAPE(count));
}

static void concat_on_inner_axis_joins_rows(void **state) {
    (void)state;
    op_case c;
    static const float a[2] = {1, 2};
    static const float b[4] = {3, 4, 5, 6};
    static const float none[1];
    static const float expected[6] = {1, 3, 4, 2, 5, 6};
    op_case_begin(&c, "Concat", 13);
    op_case_set_int(&c, "axis", -1);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(2, 1));
    op_case_input(&c, TN_DTYPE_F32, none, OP_SHAPE(2, 0));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(2, 3));
    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void concat_of_many_tiles_equals_one(void **state) {
    (void)state;
    enum { ROWS = 301, A = 130, B = 77 };
    static float a[ROWS * A];
    static float b[ROWS * B];
    op_case c;
    fill_floats(a, TN_COUNTOF(a), 1);
    fill_floats(b, TN_COUNTOF(b), 2);
    op_case_begin(&c, "Concat", 4);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, a, OP_SHAPE(ROWS, A));
    op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(ROWS, B));

    ASSERT_OK(op_case_run(&c, -1, 4));

    const float *out = op_case_output(&c, 0);
    for (size_t row = 0; row < ROWS; row++) {
        assert_memory_equal(out + row * (A + B), a + row * A, A * sizeof(float));
        assert_memory_equal(out + row * (A + B) + A, b + row * B, B * sizeof(float));
    }
    op_case_end(&c);
}

static void concat_refuses_other_dims_that_differ(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    op_case_begin(&c, "Concat", 13);
    op_case_set_int(&c, "axis", 0);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 2));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

static void concat_of_symbolic_dims_keeps_what_is_known(void **state) {
    (void)state;
    op_case c;
    static const float data[1];
    op_case_begin(&c, "Concat", 13);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(-5, 3, 4));
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 1, -6));

    ASSERT_OK(op_case_infer(&c, false));

    assert_shape(&c, 0, OP_SHAPE(2, 4, 4));
    op_case_end(&c);
}

static void split_last_part_may_be_short_from_opset_18(void **state) {
    (void)state;
    op_case c;
    static const float data[7] = {1, 2, 3, 4, 5, 6, 7};
    op_case_begin(&c, "Split", 18);
    op_case_set_int(&c, "num_outputs", 4);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(7));
    op_case_set_outputs(&c, 4);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2));
    assert_shape(&c, 3, OP_SHAPE(1));
    assert_floats(op_case_output(&c, 3), data + 6, 1, 0);
    op_case_end(&c);
}

static void split_inner_axis_leaves_unwanted_parts_out(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const float expected[4] = {2, 3, 5, 6};
    op_case_begin(&c, "Split", 13);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    list_input(&c, INTS(1, 2), 2);
    op_case_set_outputs(&c, 2);
    c.output_present[0] = false;

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 1), expected, 4, 0);
    op_case_end(&c);
}

static void split_parts_of_the_leading_axis_are_views(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    op_case_begin(&c, "Split", 2);
    op_case_set_int(&c, "axis", 0);
    op_case_set_ints(&c, "split", INTS(1, 2), 2);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3, 2));
    op_case_set_outputs(&c, 2);
    ASSERT_OK(op_case_check(&c));
    const tn_node_facts facts = op_case_facts(&c);
    ASSERT_OK(c.op->infer(&facts, NULL));

    size_t offset_bytes = 0;
    assert_true(c.op->view_offset(&facts, 1, &offset_bytes));

    assert_int_equal(offset_bytes, 2 * sizeof(float));
    op_case_end(&c);
}

static void split_refuses_lengths_that_do_not_sum_up(void **state) {
    (void)state;
    const int64_t lengths[][2] = {{1, 1}, {-1, 4}, {INT64_MAX, INT64_MAX}};
    static const float data[3];
    for (size_t i = 0; i < TN_COUNTOF(lengths); i++) {
        op_case c;
        op_case_begin(&c, "Split", 13);
        op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
        list_input(&c, lengths[i], 2);
        op_case_set_outputs(&c, 2);
        ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
        op_case_end(&c);
    }
}

/* Pads [1, 2, 3] by two on each side. */
static void check_pad_mode(const char *mode, const float *expected) {
    op_case c;
    static const float data[3] = {1, 2, 3};
    const float value = 9;
    op_case_begin(&c, "Pad", 19);
    op_case_set_text(&c, "mode", mode);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    list_input(&c, INTS(2, 2), 2);
    op_case_input(&c, TN_DTYPE_F32, &value, OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 7, 0);
    op_case_end(&c);
}

static void pad_modes_fill_from_their_own_source(void **state) {
    (void)state;
    check_pad_mode("constant", (const float[]){9, 9, 1, 2, 3, 9, 9});
    check_pad_mode("reflect", (const float[]){3, 2, 1, 2, 3, 2, 1});
    check_pad_mode("edge", (const float[]){1, 1, 1, 2, 3, 3, 3});
    check_pad_mode("wrap", (const float[]){2, 3, 1, 2, 3, 1, 2});
}

static void pad_reflects_more_than_once(void **state) {
    (void)state;
    op_case c;
    static const float data[2] = {1, 2};
    static const float expected[7] = {2, 1, 2, 1, 2, 1, 2};
    op_case_begin(&c, "Pad", 11);
    op_case_set_text(&c, "mode", "reflect");
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2));
    list_input(&c, INTS(3, 2), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 7, 0);
    op_case_end(&c);
}

static void pad_negative_crops_outer_axes(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const float expected[3] = {3, 4, 0};
    op_case_begin(&c, "Pad", 2);
    op_case_set_ints(&c, "pads", INTS(-1, 0, -1, 1), 4);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 3));
    assert_floats(op_case_output(&c, 0), expected, 3, 0);
    op_case_end(&c);
}

static void pad_refuses_hostile_amounts(void **state) {
    (void)state;
    const int64_t pads[][2] = {{INT64_MAX, INT64_MAX}, {INT64_MIN, 0}, {-2, -2}, {-4, 4}};
    static const float data[3];
    for (size_t i = 0; i < TN_COUNTOF(pads); i++) {
        op_case c;
        op_case_begin(&c, "Pad", 13);
        op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
        list_input(&c, pads[i], 2);
        const tn_status status = op_case_infer(&c, false);
        assert_true(status == TN_INVALID_ARGUMENT || status == TN_OVERFLOW);
        op_case_end(&c);
    }
}

static void center_crop_pad_does_both_at_once(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const float expected[4] = {0, 2, 5, 0};
    op_case_begin(&c, "CenterCropPad", 18);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 3));
    list_input(&c, INTS(4, 1), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(4, 1));
    assert_floats(op_case_output(&c, 0), expected, 4, 0);
    op_case_end(&c);
}

static void col2im_adds_what_overlaps(void **state) {
    (void)state;
    op_case c;
    /* a block of two over an image of three: columns at 0 and 1 */
    static const float data[4] = {1, 2, 10, 20};
    static const float expected[3] = {1, 12, 20};
    op_case_begin(&c, "Col2Im", 18);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 2, 2));
    list_input(&c, INTS(3), 1);
    list_input(&c, INTS(2), 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 1, 3));
    assert_floats(op_case_output(&c, 0), expected, 3, 0);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(concat_on_inner_axis_joins_rows),
        T(concat_of_many_tiles_equals_one),
        T(concat_refuses_other_dims_that_differ),
        T(concat_of_symbolic_dims_keeps_what_is_known),
        T(split_last_part_may_be_short_from_opset_18),
        T(split_inner_axis_leaves_unwanted_parts_out),
        T(split_parts_of_the_leading_axis_are_views),
        T(split_refuses_lengths_that_do_not_sum_up),
        T(pad_modes_fill_from_their_own_source),
        T(pad_reflects_more_than_once),
        T(pad_negative_crops_outer_axes),
        T(pad_refuses_hostile_amounts),
        T(center_crop_pad_does_both_at_once),
        T(col2im_adds_what_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
