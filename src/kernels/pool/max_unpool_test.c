#include "op_case.h"

/* Two pooled rows of a [1, 1, 4, 4] image. */
static const float pooled[] = {5, -6, 7, 8};
static const int64_t places[] = {5, 7, 13, 15};

static void begin(op_case *c, const int64_t *indices) {
    static const int64_t twos[] = {2, 2};
    op_case_begin(c, "MaxUnpool", 11);
    op_case_set_ints(c, "kernel_shape", twos, 2);
    op_case_set_ints(c, "strides", twos, 2);
    op_case_input(c, TN_DTYPE_F32, pooled, OP_SHAPE(1, 1, 2, 2));
    op_case_input(c, TN_DTYPE_I64, indices, OP_SHAPE(1, 1, 2, 2));
}

static void max_unpool_puts_elements_where_indices_say(void **state) {
    float expected[16] = {[5] = 5, [7] = -6, [13] = 7, [15] = 8};
    op_case c;
    (void)state;
    begin(&c, places);

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(1, 1, 4, 4));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

/* Indices count the 4 x 4 shape; it lies in the first corner of the wanted one. */
static void max_unpool_larger_output_shape_keeps_the_corner(void **state) {
    static const int64_t shape[] = {1, 1, 5, 6};
    float expected[30] = {[7] = 5, [9] = -6, [19] = 7, [21] = 8};
    op_case c;
    (void)state;
    begin(&c, places);
    op_case_input(&c, TN_DTYPE_I64, shape, OP_SHAPE(4));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 1, 5, 6));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void max_unpool_undoes_max_pool(void **state) {
    enum { IN = 2 * 3 * 9, OUT = 2 * 3 * 3 };
    static const int64_t kernel[] = {3};
    float x[IN];
    float expected[IN] = {0};
    op_case pool;
    op_case c;
    (void)state;
    fill_floats(x, IN, 11);
    op_case_begin(&pool, "MaxPool", 12);
    op_case_set_ints(&pool, "kernel_shape", kernel, 1);
    op_case_set_ints(&pool, "strides", kernel, 1);
    op_case_set_outputs(&pool, 2);
    op_case_input(&pool, TN_DTYPE_F32, x, OP_SHAPE(2, 3, 9));
    ASSERT_OK(op_case_run(&pool, -1, 1));
    for (int i = 0; i < OUT; i++) {
        int best = 3 * i;
        for (int k = 1; k < 3; k++) best = x[3 * i + k] > x[best] ? 3 * i + k : best;
        expected[best] = x[best];
    }
    op_case_begin(&c, "MaxUnpool", 22);
    op_case_set_ints(&c, "kernel_shape", kernel, 1);
    op_case_set_ints(&c, "strides", kernel, 1);
    op_case_input(&c, TN_DTYPE_F32, op_case_output(&pool, 0), OP_SHAPE(2, 3, 3));
    op_case_input(&c, TN_DTYPE_I64, op_case_output(&pool, 1), OP_SHAPE(2, 3, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
    op_case_end(&pool);
}

static void max_unpool_moves_two_and_eight_byte_elements(void **state) {
    static const int64_t one[] = {1};
    static const int64_t swap[] = {1, 0};
    static const double x64[] = {1.5, 2.5};
    static const uint16_t x16[] = {0x3c00, 0x4000};
    op_case c;
    (void)state;
    op_case_begin(&c, "MaxUnpool", 9);
    op_case_set_ints(&c, "kernel_shape", one, 1);
    op_case_input(&c, TN_DTYPE_F64, x64, OP_SHAPE(1, 1, 2));
    op_case_input(&c, TN_DTYPE_I64, swap, OP_SHAPE(1, 1, 2));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_true(((const double *)op_case_output(&c, 0))[0] == 2.5);
    assert_true(((const double *)op_case_output(&c, 0))[1] == 1.5);

    c.inputs[0].dtype = TN_DTYPE_F16;
    c.inputs[0].data = x16;
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_int_equal(((const uint16_t *)op_case_output(&c, 0))[0], 0x4000);
    assert_int_equal(((const uint16_t *)op_case_output(&c, 0))[1], 0x3c00);
    op_case_end(&c);
}

static void max_unpool_no_elements_give_zeros(void **state) {
    static const int64_t three[] = {3};
    float expected[2] = {0};
    op_case c;
    (void)state;
    op_case_begin(&c, "MaxUnpool", 11);
    op_case_set_ints(&c, "kernel_shape", three, 1);
    op_case_input(&c, TN_DTYPE_F32, pooled, OP_SHAPE(1, 1, 0));
    op_case_input(&c, TN_DTYPE_I64, places, OP_SHAPE(1, 1, 0));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 1, 2));
    assert_memory_equal(op_case_output(&c, 0), expected, sizeof expected);
    op_case_end(&c);
}

static void max_unpool_index_outside_is_an_error(void **state) {
    static const int64_t bad[][4] = {{0, 1, 2, 16}, {-1, 1, 2, 3}, {0, 1, INT64_MAX, 3}};
    (void)state;
    for (size_t i = 0; i < TN_COUNTOF(bad); i++) {
        op_case c;
        begin(&c, bad[i]);
        ASSERT_STATUS(TN_OUT_OF_RANGE, op_case_run(&c, -1, 1));
        op_case_end(&c);
    }
}

static void max_unpool_wrong_output_shapes_are_refused(void **state) {
    static const int64_t shapes[][4] = {
        {1, 1, 3, 4}, {1, 2, 4, 4}, {1, 1, -4, 4}, {2, 1, 4, 4}, {1, 1, 4, INT64_MIN}};
    (void)state;
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        op_case c;
        begin(&c, places);
        op_case_input(&c, TN_DTYPE_I64, shapes[i], OP_SHAPE(4));
        ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
        assert_non_null(strstr(c.err.message, "output_shape"));

        c.inputs[2].shape = OP_SHAPE(3);
        ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
        op_case_end(&c);
    }
}

static void max_unpool_unknown_output_shape_leaves_dims_unknown(void **state) {
    static const int64_t shape[] = {1, 1, 5, 6};
    op_case c;
    (void)state;
    begin(&c, places);
    op_case_input(&c, TN_DTYPE_I64, shape, OP_SHAPE(4));

    ASSERT_OK(op_case_infer(&c, true));

    assert_shape(&c, 0, OP_SHAPE(1, 1, TN_DIM_UNKNOWN, TN_DIM_UNKNOWN));
    op_case_end(&c);
}

static void max_unpool_shapes_that_disagree_are_refused(void **state) {
    static const int64_t kernel[] = {2};
    static const int64_t pads[] = {INT32_MAX, INT32_MAX};
    op_case c;
    (void)state;
    begin(&c, places);
    c.inputs[1].shape = OP_SHAPE(1, 1, 4, 1);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    c.inputs[1].shape = c.inputs[0].shape = OP_SHAPE(1, 4);
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);

    op_case_begin(&c, "MaxUnpool", 11);
    op_case_set_ints(&c, "kernel_shape", kernel, 1);
    op_case_set_ints(&c, "pads", pads, 2);
    op_case_input(&c, TN_DTYPE_F32, pooled, OP_SHAPE(1, 1, 4));
    op_case_input(&c, TN_DTYPE_I64, places, OP_SHAPE(1, 1, 4));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_unpool_puts_elements_where_indices_say),
        cmocka_unit_test(max_unpool_larger_output_shape_keeps_the_corner),
        cmocka_unit_test(max_unpool_undoes_max_pool),
        cmocka_unit_test(max_unpool_moves_two_and_eight_byte_elements),
        cmocka_unit_test(max_unpool_no_elements_give_zeros),
        cmocka_unit_test(max_unpool_index_outside_is_an_error),
        cmocka_unit_test(max_unpool_wrong_output_shapes_are_refused),
        cmocka_unit_test(max_unpool_unknown_output_shape_leaves_dims_unknown),
        cmocka_unit_test(max_unpool_shapes_that_disagree_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
