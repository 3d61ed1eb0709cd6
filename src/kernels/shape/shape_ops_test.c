/* Views, rearrangements and values made from shapes, each row by its definition. */
#include "op_case.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void begin_with(op_case *c, const char *name, int64_t opset, const void *data,
                       tn_shape shape) {
    op_case_begin(c, name, opset);
    op_case_input(c, TN_DTYPE_F32, data, shape);
}

static void list_input(op_case *c, const int64_t *values, int64_t count) {
    op_case_input(c, TN_DTYPE_I64, values, OP_SHAPE(count));
}

/* ---- Reshape ---- */

static void reshape_copies_zeros_and_infers_one(void **state) {
    (void)state;
    op_case c;
    static const float data[24];
    begin_with(&c, "Reshape", 5, data, OP_SHAPE(2, 3, 4));
    list_input(&c, INTS(0, -1, 2), 3);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 6, 2));
    assert_ptr_equal(op_case_output(&c, 0), data);
    op_case_end(&c);
}

static void reshape_opset_1_reads_its_attribute(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    begin_with(&c, "Reshape", 1, data, OP_SHAPE(2, 3));
    op_case_set_ints(&c, "shape", INTS(3, -1), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3, 2));
    op_case_end(&c);
}

static void reshape_of_symbolic_batch_keeps_the_rest_known(void **state) {
    (void)state;
    op_case c;
    static const float data[1];
    const int64_t target[] = {0, -1};
    begin_with(&c, "Reshape", 14, data, OP_SHAPE(-7, 3, 4));
    list_input(&c, target, 2);

    ASSERT_OK(op_case_infer(&c, false));

    assert_shape(&c, 0, OP_SHAPE(-7, 12));
    op_case_end(&c);
}

static void reshape_allowzero_makes_an_empty_tensor(void **state) {
    (void)state;
    op_case c;
    static const float data[1];
    begin_with(&c, "Reshape", 14, data, OP_SHAPE(0, 3));
    op_case_set_int(&c, "allowzero", 1);
    list_input(&c, INTS(3, 0), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3, 0));
    op_case_end(&c);
}

static void reshape_refuses_targets_that_do_not_fit(void **state) {
    (void)state;
    static const float data[6];
    const int64_t targets[][2] = {{4, 2}, {-1, 4}, {-1, -1}, {-2, 3}, {INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < TN_COUNTOF(targets); i++) {
        op_case c;
        begin_with(&c, "Reshape", 14, data, OP_SHAPE(2, 3));
        list_input(&c, targets[i], 2);
        const tn_status status = op_case_infer(&c, false);
        assert_true(status == TN_INVALID_ARGUMENT || status == TN_OVERFLOW);
        op_case_end(&c);
    }
}

static void view_rows_also_copy_when_they_must(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    begin_with(&c, "Flatten", 13, data, OP_SHAPE(2, 3));
    tn_op_def copying = *c.op;
    copying.flags &= ~(uint32_t)TN_OP_VIEW;
    c.op = &copying;

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_ptr_not_equal(op_case_output(&c, 0), data);
    assert_memory_equal(op_case_output(&c, 0), data, sizeof data);
    op_case_end(&c);
}

/* ---- Squeeze, Unsqueeze, Flatten ---- */

static void squeeze_without_axes_drops_all_ones(void **state) {
    (void)state;
    op_case c;
    static const float data[3];
    begin_with(&c, "Squeeze", 13, data, OP_SHAPE(1, 3, 1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3));
    op_case_end(&c);
}

static void squeeze_refuses_axes_that_are_not_one(void **state) {
    (void)state;
    op_case c;
    static const float data[3];
    begin_with(&c, "Squeeze", 11, data, OP_SHAPE(1, 3));
    op_case_set_ints(&c, "axes", INTS(-1), 1);

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

static void unsqueeze_axes_refer_to_the_output(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    begin_with(&c, "Unsqueeze", 13, data, OP_SHAPE(2, 3));
    list_input(&c, INTS(-1, 0), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 2, 3, 1));
    op_case_end(&c);
}

static void unsqueeze_refuses_an_axis_named_twice(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    begin_with(&c, "Unsqueeze", 11, data, OP_SHAPE(2, 3));
    op_case_set_ints(&c, "axes", INTS(0, 0), 2);

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_infer(&c, false));
    op_case_end(&c);
}

static void flatten_at_rank_gives_one_column(void **state) {
    (void)state;
    op_case c;
    static const float data[6];
    begin_with(&c, "Flatten", 9, data, OP_SHAPE(2, 3));
    op_case_set_int(&c, "axis", 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(6, 1));
    op_case_end(&c);
}

/* ---- Transpose, Expand, Tile, DepthToSpace ---- */

static void transpose_without_perm_reverses(void **state) {
    (void)state;
    op_case c;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const float expected[6] = {1, 4, 2, 5, 3, 6};
    begin_with(&c, "Transpose", 1, data, OP_SHAPE(2, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3, 2));
    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void transpose_equals_itself_for_any_worker_count(void **state) {
    (void)state;
    enum { N = 8, H = 65, W = 67 };
    static float data[N * H * W];
    op_case c;
    op_case d;
    fill_floats(data, TN_COUNTOF(data), 3);
    begin_with(&c, "Transpose", 13, data, OP_SHAPE(N, H, W));
    op_case_set_ints(&c, "perm", INTS(2, 0, 1), 3);
    begin_with(&d, "Transpose", 13, data, OP_SHAPE(N, H, W));
    op_case_set_ints(&d, "perm", INTS(2, 0, 1), 3);

    ASSERT_OK(op_case_run(&c, -1, 1));
    ASSERT_OK(op_case_run(&d, -1, 3));

    assert_memory_equal(op_case_output(&c, 0), op_case_output(&d, 0), sizeof data);
    const float *out = op_case_output(&c, 0);
    assert_true(out[(5 * N + 7) * H + 64] == data[(7 * H + 64) * W + 5]);
    op_case_end(&c);
    op_case_end(&d);
}

static void transpose_refuses_bad_permutations(void **state) {
    (void)state;
    static const float data[6];
    const int64_t perms[][3] = {{0, 0, 1}, {0, 1, 99}, {0, 1, -9}};
    for (size_t i = 0; i < TN_COUNTOF(perms); i++) {
        op_case c;
        begin_with(&c, "Transpose", 13, data, OP_SHAPE(1, 2, 3));
        op_case_set_ints(&c, "perm", perms[i], 3);
        ASSERT_STATUS(TN_INVALID_MODEL, op_case_infer(&c, false));
        op_case_end(&c);
    }
}

static void expand_broadcasts_both_ways(void **state) {
    (void)state;
    op_case c;
    static const float data[3] = {1, 2, 3};
    static const float expected[12] = {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3};
    begin_with(&c, "Expand", 8, data, OP_SHAPE(3, 1));
    list_input(&c, INTS(2, 1, 2), 3);

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(2, 3, 2));
    assert_floats(op_case_output(&c, 0), expected, 12, 0);
    op_case_end(&c);
}

static void expand_beyond_memory_is_an_overflow(void **state) {
    (void)state;
    op_case c;
    static const float data[1];
    begin_with(&c, "Expand", 13, data, OP_SHAPE(1));
    list_input(&c, INTS(INT64_MAX, INT64_MAX), 2);

    ASSERT_STATUS(TN_OVERFLOW, op_case_infer(&c, false));
    op_case_end(&c);
}

static void expand_beyond_signed_offsets_is_an_overflow(void **state) {
    (void)state;
    op_case c;
    static const uint8_t data[1];
    op_case_begin(&c, "Expand", 13);
    op_case_input(&c, TN_DTYPE_U8, data, OP_SHAPE(1));
    list_input(&c, INTS(2, INT64_C(1) << 62), 2);

    ASSERT_STATUS(TN_OVERFLOW, op_case_infer(&c, false));
    op_case_end(&c);
}

static void tile_opset_1_repeats_one_axis(void **state) {
    (void)state;
    op_case c;
    static const float data[2] = {1, 2};
    static const float expected[6] = {1, 2, 1, 2, 1, 2};
    begin_with(&c, "Tile", 1, data, OP_SHAPE(1, 2));
    list_input(&c, INTS(3), 1);
    list_input(&c, INTS(1), 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 6));
    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void tile_repeats_every_axis(void **state) {
    (void)state;
    op_case c;
    static const float data[4] = {1, 2, 3, 4};
    static const float expected[16] = {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4};
    begin_with(&c, "Tile", 6, data, OP_SHAPE(2, 2));
    list_input(&c, INTS(2, 2), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 16, 0);
    op_case_end(&c);
}

static void depth_to_space_and_back_is_the_identity(void **state) {
    (void)state;
    static float data[2 * 8 * 3 * 5];
    op_case there;
    op_case back;
    fill_floats(data, TN_COUNTOF(data), 7);
    begin_with(&there, "DepthToSpace", 13, data, OP_SHAPE(2, 8, 3, 5));
    op_case_set_int(&there, "blocksize", 2);
    ASSERT_OK(op_case_run(&there, -1, 1));
    assert_shape(&there, 0, OP_SHAPE(2, 2, 6, 10));

    begin_with(&back, "SpaceToDepth", 13, op_case_output(&there, 0), OP_SHAPE(2, 2, 6, 10));
    op_case_set_int(&back, "blocksize", 2);
    ASSERT_OK(op_case_run(&back, -1, 1));

    assert_memory_equal(op_case_output(&back, 0), data, sizeof data);
    op_case_end(&there);
    op_case_end(&back);
}

/* ---- Shape, ConstantOfShape, Range, Trilu, OneHot ---- */

static void shape_clamps_start_and_end(void **state) {
    (void)state;
    op_case c;
    static const float data[24];
    begin_with(&c, "Shape", 15, data, OP_SHAPE(2, 3, 4));
    op_case_set_int(&c, "start", -2);
    op_case_set_int(&c, "end", 99);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_memory_equal(op_case_output(&c, 0), INTS(3, 4), 16);
    op_case_end(&c);
}

static void shape_of_reversed_range_is_empty(void **state) {
    (void)state;
    op_case c;
    static const float data[24];
    begin_with(&c, "Shape", 15, data, OP_SHAPE(2, 3, 4));
    op_case_set_int(&c, "start", 2);
    op_case_set_int(&c, "end", INT64_MIN);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(0));
    op_case_end(&c);
}

static void constant_of_empty_shape_is_a_scalar_zero(void **state) {
    (void)state;
    op_case c;
    static const int64_t none[1];
    static const float expected[1] = {0};
    op_case_begin(&c, "ConstantOfShape", 9);
    list_input(&c, none, 0);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SCALAR);
    assert_floats(op_case_output(&c, 0), expected, 1, 0);
    op_case_end(&c);
}

static void range_counts_in_the_type_of_the_elements(void **state) {
    (void)state;
    op_case c;
    const float start = 0.0F;
    const float limit = 0.3F;
    const float delta = 0.1F;
    op_case_begin(&c, "Range", 11);
    op_case_input(&c, TN_DTYPE_F32, &start, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_F32, &limit, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_F32, &delta, OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3));
    op_case_end(&c);
}

static void range_over_all_integers_is_refused(void **state) {
    (void)state;
    const int64_t cases[][3] = {{INT64_MIN, INT64_MAX, 1}, {0, 5, 0}};
    const tn_status expected[] = {TN_OVERFLOW, TN_INVALID_ARGUMENT};
    for (size_t i = 0; i < TN_COUNTOF(cases); i++) {
        op_case c;
        op_case_begin(&c, "Range", 11);
        for (size_t k = 0; k < 3; k++) op_case_input(&c, TN_DTYPE_I64, &cases[i][k], OP_SCALAR);
        ASSERT_STATUS(expected[i], op_case_infer(&c, false));
        op_case_end(&c);
    }
}

static void range_of_unknown_limits_has_unknown_size(void **state) {
    (void)state;
    op_case c;
    const int64_t numbers[3] = {0, 5, 1};
    op_case_begin(&c, "Range", 11);
    for (size_t k = 0; k < 3; k++) op_case_input(&c, TN_DTYPE_I64, &numbers[k], OP_SCALAR);

    ASSERT_OK(op_case_infer(&c, true));

    assert_shape(&c, 0, OP_SHAPE(TN_DIM_UNKNOWN));
    op_case_end(&c);
}

static void trilu_far_diagonal_keeps_or_clears_all(void **state) {
    (void)state;
    static const float data[4] = {1, 2, 3, 4};
    static const float none[4] = {0, 0, 0, 0};
    op_case c;
    begin_with(&c, "Trilu", 14, data, OP_SHAPE(2, 2));
    op_case_input(&c, TN_DTYPE_I64, INTS(INT64_MAX), OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), none, 4, 0);
    op_case_end(&c);

    begin_with(&c, "Trilu", 14, data, OP_SHAPE(2, 2));
    op_case_set_int(&c, "upper", 0);
    op_case_input(&c, TN_DTYPE_I64, INTS(INT64_MAX), OP_SCALAR);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), data, 4, 0);
    op_case_end(&c);
}

static void one_hot_out_of_range_is_off(void **state) {
    (void)state;
    op_case c;
    const int64_t indices[4] = {0, -1, 5, INT64_MIN};
    const float depth = 3.0F;
    static const float off_on[2] = {2, 9};
    static const float expected[12] = {9, 2, 2, 2, 2, 9, 2, 2, 2, 2, 2, 2};
    op_case_begin(&c, "OneHot", 11);
    op_case_input(&c, TN_DTYPE_I64, indices, OP_SHAPE(4));
    op_case_input(&c, TN_DTYPE_F32, &depth, OP_SCALAR);
    op_case_input(&c, TN_DTYPE_F32, off_on, OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(4, 3));
    assert_floats(op_case_output(&c, 0), expected, 12, 0);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(reshape_copies_zeros_and_infers_one),
        T(reshape_opset_1_reads_its_attribute),
        T(reshape_of_symbolic_batch_keeps_the_rest_known),
        T(reshape_allowzero_makes_an_empty_tensor),
        T(reshape_refuses_targets_that_do_not_fit),
        T(view_rows_also_copy_when_they_must),
        T(squeeze_without_axes_drops_all_ones),
        T(squeeze_refuses_axes_that_are_not_one),
        T(unsqueeze_axes_refer_to_the_output),
        T(unsqueeze_refuses_an_axis_named_twice),
        T(flatten_at_rank_gives_one_column),
        T(transpose_without_perm_reverses),
        T(transpose_equals_itself_for_any_worker_count),
        T(transpose_refuses_bad_permutations),
        T(expand_broadcasts_both_ways),
        T(expand_beyond_memory_is_an_overflow),
        T(expand_beyond_signed_offsets_is_an_overflow),
        T(tile_opset_1_repeats_one_axis),
        T(tile_repeats_every_axis),
        T(depth_to_space_and_back_is_the_identity),
        T(shape_clamps_start_and_end),
        T(shape_of_reversed_range_is_empty),
        T(constant_of_empty_shape_is_a_scalar_zero),
        T(range_counts_in_the_type_of_the_elements),
        T(range_over_all_integers_is_refused),
        T(range_of_unknown_limits_has_unknown_size),
        T(trilu_far_diagonal_keeps_or_clears_all),
        T(one_hot_out_of_range_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
