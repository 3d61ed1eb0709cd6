/* Slice, Gather*, Scatter*, NonZero, Compress, ReverseSequence by their definitions. */
#include "op_case.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void list_input(op_case *c, const int64_t *values, int64_t count) {
    op_case_input(c, TN_DTYPE_I64, values, OP_SHAPE(count));
}

static void begin_slice(op_case *c, tn_shape shape, const int64_t *starts, const int64_t *ends,
                        const int64_t *axes, const int64_t *steps, int64_t count) {
    op_case_begin(c, "Slice", 13);
    op_case_input(c, TN_DTYPE_F32, six, shape);
    list_input(c, starts, count);
    list_input(c, ends, count);
    list_input(c, axes, count);
    list_input(c, steps, count);
}

static void slice_backwards_reaches_the_first_element(void **state) {
    (void)state;
    op_case c;
    static const float expected[3] = {6, 4, 2};
    begin_slice(&c, OP_SHAPE(6), INTS(-1), INTS(INT64_MIN), INTS(0), INTS(-2), 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 3, 0);
    op_case_end(&c);
}

static void slice_with_extreme_steps_gives_one_element(void **state) {
    (void)state;
    const int64_t steps[] = {INT64_MIN, INT64_MAX};
    const int64_t ends[] = {INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < TN_COUNTOF(steps); i++) {
        op_case c;
        begin_slice(&c, OP_SHAPE(6), INTS(2), &ends[i], INTS(0), &steps[i], 1);
        ASSERT_OK(op_case_run(&c, -1, 1));
        assert_shape(&c, 0, OP_SHAPE(1));
        assert_floats(op_case_output(&c, 0), six + 2, 1, 0);
        op_case_end(&c);
    }
}

static void slice_refuses_a_step_of_zero(void **state) {
    (void)state;
    op_case c;
    begin_slice(&c, OP_SHAPE(6), INTS(0), INTS(1), INTS(0), INTS(0), 1);

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

static void slice_opset_1_takes_attributes(void **state) {
    (void)state;
    op_case c;
    static const float expected[2] = {3, 6};
    op_case_begin(&c, "Slice", 1);
    op_case_set_ints(&c, "starts", INTS(2), 1);
    op_case_set_ints(&c, "ends", INTS(1000), 1);
    op_case_set_ints(&c, "axes", INTS(1), 1);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 1));
    assert_floats(op_case_output(&c, 0), expected, 2, 0);
    op_case_end(&c);
}

/* Whether the slice of `shape` is a view, and where. */
static bool view_of(tn_shape shape, int64_t axis, int64_t start, int64_t end, size_t *offset) {
    op_case c;
    const int64_t step = 1;
    begin_slice(&c, shape, &start, &end, &axis, &step, 1);
    ASSERT_OK(op_case_check(&c));
    const tn_node_facts facts = op_case_facts(&c);
    ASSERT_OK(c.op->infer(&facts, NULL));
    const bool is_view = c.op->view_offset(&facts, 0, offset);
    op_case_end(&c);
    return is_view;
}

static void slice_is_a_view_only_when_it_is_one_run(void **state) {
    (void)state;
    size_t offset = 0;
    assert_true(view_of(OP_SHAPE(3, 2), 0, 1, 3, &offset));
    assert_int_equal(offset, 2 * sizeof(float));
    assert_true(view_of(OP_SHAPE(1, 6), 1, 4, 6, &offset));
    assert_int_equal(offset, 4 * sizeof(float));
    assert_false(view_of(OP_SHAPE(3, 2), 1, 0, 1, &offset));
}

static void slice_of_unknown_bounds_leaves_other_axes_known(void **state) {
    (void)state;
    op_case c;
    begin_slice(&c, OP_SHAPE(2, 3), INTS(0), INTS(1), INTS(1), INTS(1), 1);
    ASSERT_OK(op_case_check(&c));
    c.inputs[1].data = NULL;

    ASSERT_OK(op_case_infer(&c, false));

    assert_shape(&c, 0, OP_SHAPE(2, TN_DIM_UNKNOWN));
    op_case_end(&c);
}

static void gather_takes_negative_indices(void **state) {
    (void)state;
    op_case c;
    static const float expected[4] = {3, 1, 6, 4};
    op_case_begin(&c, "Gather", 11);
    op_case_set_int(&c, "axis", 1);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    list_input(&c, INTS(-1, 0), 2);

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_floats(op_case_output(&c, 0), expected, 4, 0);
    op_case_end(&c);
}

static void gather_of_scalar_index_drops_the_axis(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "Gather", 1);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_I64, INTS(1), OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3));
    assert_floats(op_case_output(&c, 0), six + 3, 3, 0);
    op_case_end(&c);
}

static void gather_outside_names_the_index(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "Gather", 13);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    list_input(&c, INTS(0, -3), 2);

    ASSERT_STATUS(TN_OUT_OF_RANGE, op_case_run(&c, -1, 1));

    assert_non_null(strstr(c.err.message, "index -3 (element 1"));
    op_case_end(&c);
}

static void gather_reads_unaligned_weights(void **state) {
    (void)state;
    op_case c;
    char bytes[1 + sizeof six];
    memcpy(bytes + 1, six, sizeof six);
    op_case_begin(&c, "Gather", 13);
    op_case_weight(&c, TN_DTYPE_F32, bytes + 1, OP_SHAPE(3, 2));
    list_input(&c, INTS(2), 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), six + 4, 2, 0);
    op_case_end(&c);
}

static void gather_elements_picks_along_the_axis(void **state) {
    (void)state;
    op_case c;
    static const float expected[4] = {4, 2, 1, 5};
    op_case_begin(&c, "GatherElements", 13);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_I64, INTS(1, 0, 0, -1), OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 0);
    op_case_end(&c);
}

static void gather_nd_with_batch_picks_slices(void **state) {
    (void)state;
    op_case c;
    static const float expected[2] = {2, 6};
    op_case_begin(&c, "GatherND", 12);
    op_case_set_int(&c, "batch_dims", 1);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_I64, INTS(1, 2), OP_SHAPE(2, 1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2));
    assert_floats(op_case_output(&c, 0), expected, 2, 0);
    op_case_end(&c);
}

static void scatter_elements_adds_duplicates(void **state) {
    (void)state;
    op_case c;
    static const float updates[3] = {10, 20, 40};
    static const float expected[6] = {51, 2, 3, 4, 25, 6};
    op_case_begin(&c, "ScatterElements", 16);
    op_case_set_text(&c, "reduction", "add");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(6));
    list_input(&c, INTS(0, -2, 0), 3);
    op_case_input(&c, TN_DTYPE_F32, updates, OP_SHAPE(3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void scatter_max_keeps_nan(void **state) {
    (void)state;
    op_case c;
    const float data[2] = {NAN, 1};
    const float updates[2] = {5, NAN};
    op_case_begin(&c, "ScatterElements", 18);
    op_case_set_text(&c, "reduction", "max");
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2));
    list_input(&c, INTS(0, 1), 2);
    op_case_input(&c, TN_DTYPE_F32, updates, OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    const float *out = op_case_output(&c, 0);
    assert_true(isnan(out[0]) && isnan(out[1]));
    op_case_end(&c);
}

static void scatter_nd_writes_slices(void **state) {
    (void)state;
    op_case c;
    static const float updates[2] = {8, 9};
    static const float expected[6] = {1, 2, 8, 9, 5, 6};
    op_case_begin(&c, "ScatterND", 13);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(3, 2));
    op_case_input(&c, TN_DTYPE_I64, INTS(1), OP_SHAPE(1, 1));
    op_case_input(&c, TN_DTYPE_F32, updates, OP_SHAPE(1, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void scatter_outside_is_an_error(void **state) {
    (void)state;
    op_case c;
    static const float updates[1] = {8};
    op_case_begin(&c, "Scatter", 9);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(6));
    list_input(&c, INTS(6), 1);
    op_case_input(&c, TN_DTYPE_F32, updates, OP_SHAPE(1));

    ASSERT_STATUS(TN_OUT_OF_RANGE, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void tensor_scatter_wraps_around(void **state) {
    (void)state;
    op_case c;
    static const float updates[2] = {8, 9};
    static const float expected[6] = {9, 2, 3, 4, 5, 8};
    op_case_begin(&c, "TensorScatter", 24);
    op_case_set_text(&c, "mode", "circular");
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(1, 6, 1));
    op_case_input(&c, TN_DTYPE_F32, updates, OP_SHAPE(1, 2, 1));
    list_input(&c, INTS(5), 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

static void nonzero_ignores_negative_zero_and_finds_nan(void **state) {
    (void)state;
    op_case c;
    const float data[4] = {-0.0F, 2, NAN, 0};
    op_case_begin(&c, "NonZero", 13);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 2));
    assert_memory_equal(op_case_output(&c, 0), INTS(0, 1, 1, 0), 32);
    op_case_end(&c);
}

static void nonzero_of_a_scalar_has_no_rows(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "NonZero", 9);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SCALAR);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(0, 1));
    op_case_end(&c);
}

static void compress_takes_a_short_condition(void **state) {
    (void)state;
    op_case c;
    const uint8_t condition[2] = {0, 1};
    static const float expected[2] = {2, 5};
    op_case_begin(&c, "Compress", 11);
    op_case_set_int(&c, "axis", -1);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    op_case_input(&c, TN_DTYPE_BOOL, condition, OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(2, 1));
    assert_floats(op_case_output(&c, 0), expected, 2, 0);
    op_case_end(&c);
}

static void reverse_sequence_turns_only_its_length(void **state) {
    (void)state;
    op_case c;
    static const float expected[6] = {2, 1, 3, 6, 5, 4};
    op_case_begin(&c, "ReverseSequence", 10);
    op_case_set_int(&c, "time_axis", 1);
    op_case_set_int(&c, "batch_axis", 0);
    op_case_input(&c, TN_DTYPE_F32, six, OP_SHAPE(2, 3));
    list_input(&c, INTS(2, 3), 2);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 6, 0);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(slice_backwards_reaches_the_first_element),
        T(slice_with_extreme_steps_gives_one_element),
        T(slice_refuses_a_step_of_zero),
        T(slice_opset_1_takes_attributes),
        T(slice_is_a_view_only_when_it_is_one_run),
        T(slice_of_unknown_bounds_leaves_other_axes_known),
        T(gather_takes_negative_indices),
        T(gather_of_scalar_index_drops_the_axis),
        T(gather_outside_names_the_index),
        T(gather_reads_unaligned_weights),
        T(gather_elements_picks_along_the_axis),
        T(gather_nd_with_batch_picks_slices),
        T(scatter_elements_adds_duplicates),
        T(scatter_max_keeps_nan),
        T(scatter_nd_writes_slices),
        T(scatter_outside_is_an_error),
        T(tensor_scatter_wraps_around),
        T(nonzero_ignores_negative_zero_and_finds_nan),
        T(nonzero_of_a_scalar_has_no_rows),
        T(compress_takes_a_short_condition),
        T(reverse_sequence_turns_only_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
