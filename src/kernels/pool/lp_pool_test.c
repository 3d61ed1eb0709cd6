#include "op_case.h"

enum { ROWS = 3, COLS = 4 };

/* -5 .. 6 */
static void fill_steps(float *x) {
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)(i - 5);
}

static void begin_window(op_case *c, int64_t opset, const float *x) {
    static const int64_t kernel[] = {2, 2};
    static const int64_t strides[] = {2, 2};
    static const int64_t pads[] = {1, 1, 0, 0};
    op_case_begin(c, "LpPool", opset);
    op_case_set_ints(c, "kernel_shape", kernel, 2);
    op_case_set_ints(c, "strides", strides, 2);
    op_case_set_ints(c, "pads", pads, 4);
    op_case_set_int(c, "ceil_mode", 1);
    op_case_input(c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, ROWS, COLS));
}

/* Expected: onnxruntime. */
static void lp_pool_each_power_counts_padding_as_nothing(void **state) {
    static const float expected[3][6] = {
        {5, 7, 2, 4, 10, 8},
        {5, 5, 2, 3.1622777F, 6.4807407F, 6.3245554F},
        {5, 4.4979415F, 2, 3.0365891F, 5.7488976F, 6.0731783F},
    };
    float x[ROWS * COLS];
    fill_steps(x);
    (void)state;
    for (int64_t p = 1; p <= 3; p++) {
        op_case c;
        begin_window(&c, 18, x);
        op_case_set_int(&c, "p", p);

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_shape(&c, 0, OP_SHAPE(1, 1, 2, 3));
        assert_floats(op_case_output(&c, 0), expected[p - 1], 6, 1e-6);
        op_case_end(&c);
    }
}

static void lp_pool_dilated_reads_every_second(void **state) {
    static const int64_t twos[] = {2, 2};
    static const float expected[] = {8.2462111F, 8.4852810F};
    float x[ROWS * COLS];
    op_case c;
    fill_steps(x);
    (void)state;
    op_case_begin(&c, "LpPool", 22);
    op_case_set_ints(&c, "kernel_shape", twos, 2);
    op_case_set_ints(&c, "dilations", twos, 2);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, ROWS, COLS));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 1, 1, 2));
    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

/* The first version has a float power; one of 1.5 shows that it is read as such. */
static void lp_pool_first_version_takes_a_fraction(void **state) {
    static const int64_t kernel[] = {2};
    static const float x[] = {1, -4, 9};
    static const float expected[] = {4.3267487F, 10.6998749F};
    op_case c;
    (void)state;
    op_case_begin(&c, "LpPool", 1);
    op_case_set_ints(&c, "kernel_shape", kernel, 1);
    op_case_set_float(&c, "p", 1.5F);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

/* Rows longer than a strip, many planes dealt to two workers, three spatial axes. */
static void lp_pool_long_rows_agree_with_a_plain_loop(void **state) {
    enum { PLANES = 40, DEPTH = 3, HEIGHT = 4, WIDTH = 150, OUT = WIDTH - 1 };
    static const int64_t kernel[] = {3, 4, 2};
    float *x = malloc(sizeof(float) * PLANES * DEPTH * HEIGHT * WIDTH);
    float *expected = malloc(sizeof(float) * PLANES * OUT);
    op_case c;
    (void)state;
    assert_true(x != NULL && expected != NULL);
    fill_floats(x, (size_t)PLANES * DEPTH * HEIGHT * WIDTH, 3);
    for (int n = 0; n < PLANES; n++) {
        for (int i = 0; i < OUT; i++) {
            double sum = 0;
            for (int row = 0; row < DEPTH * HEIGHT; row++) {
                const float *at = x + (n * DEPTH * HEIGHT + row) * WIDTH + i;
                sum += (double)at[0] * (double)at[0] + (double)at[1] * (double)at[1];
            }
            expected[n * OUT + i] = (float)sqrt(sum);
        }
    }
    op_case_begin(&c, "LpPool", 18);
    op_case_set_ints(&c, "kernel_shape", kernel, 3);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, PLANES / 2, DEPTH, HEIGHT, WIDTH));

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(2, PLANES / 2, 1, 1, OUT));
    assert_floats(op_case_output(&c, 0), expected, (size_t)PLANES * OUT, 1e-5);
    op_case_end(&c);
    free(x);
    free(expected);
}

static void global_lp_pool_takes_the_norm_of_each_channel(void **state) {
    static const float expected[] = {6.0822025F, 7.6116629F};
    float x[ROWS * COLS];
    op_case c;
    fill_steps(x);
    (void)state;
    op_case_begin(&c, "GlobalLpPool", 2);
    op_case_set_int(&c, "p", 3);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2, 6));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 2, 1));
    assert_floats(op_case_output(&c, 0), expected, 2, 1e-6);
    op_case_end(&c);
}

static void global_lp_pool_other_types_agree(void **state) {
    static const double x64[] = {3, -4};
    static const uint16_t x16[] = {0x4200, 0xc400}; /* 3, -4 */
    static const uint16_t xbf[] = {0x4040, 0xc080};
    const struct {
        tn_dtype dtype;
        const void *x;
    } types[] = {{TN_DTYPE_F64, x64}, {TN_DTYPE_F16, x16}, {TN_DTYPE_BF16, xbf}};
    (void)state;
    for (size_t i = 0; i < TN_COUNTOF(types); i++) {
        op_case c;
        op_case_begin(&c, "GlobalLpPool", 22);
        op_case_input(&c, types[i].dtype, types[i].x, OP_SHAPE(1, 1, 2));

        ASSERT_OK(op_case_run(&c, -1, 1));

        if (types[i].dtype == TN_DTYPE_F64) {
            assert_true(*(const double *)op_case_output(&c, 0) == 5.0);
        } else {
            const uint16_t five = types[i].dtype == TN_DTYPE_F16 ? 0x4500 : 0x40a0;
            assert_int_equal(*(const uint16_t *)op_case_output(&c, 0), five);
        }
        op_case_end(&c);
    }
}

static void lp_pool_nan_stays_and_no_batch_gives_none(void **state) {
    static const int64_t kernel[] = {1};
    static const float x[] = {NAN, -2};
    static const float expected[] = {NAN, 2};
    (void)state;
    for (int64_t batch = 0; batch <= 1; batch++) {
        op_case c;
        op_case_begin(&c, "LpPool", 18);
        op_case_set_ints(&c, "kernel_shape", kernel, 1);
        op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(batch, 1, 2));

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_shape(&c, 0, OP_SHAPE(batch, 1, 2));
        assert_floats(op_case_output(&c, 0), expected, batch == 0 ? 0 : 2, 0);
        op_case_end(&c);
    }
}

static void lp_pool_unknown_dims_stay_unknown(void **state) {
    float x[ROWS * COLS];
    op_case c;
    fill_steps(x);
    (void)state;
    begin_window(&c, 18, x);
    c.inputs[0].shape.dims[2] = TN_DIM_UNKNOWN;
    ASSERT_OK(op_case_infer(&c, true));
    assert_shape(&c, 0, OP_SHAPE(1, 1, TN_DIM_UNKNOWN, 3));

    c.inputs[0].shape.rank = TN_RANK_UNKNOWN;
    ASSERT_OK(op_case_infer(&c, true));
    assert_int_equal(c.outputs[0].shape.rank, TN_RANK_UNKNOWN);
    op_case_end(&c);
}

static void lp_pool_bad_power_is_refused(void **state) {
    static const int64_t powers[] = {0, -1, INT64_MIN};
    float x[ROWS * COLS];
    fill_steps(x);
    (void)state;
    for (size_t i = 0; i < TN_COUNTOF(powers); i++) {
        op_case c;
        begin_window(&c, 18, x);
        op_case_set_int(&c, "p", powers[i]);
        ASSERT_STATUS(TN_INVALID_MODEL, op_case_infer(&c, false));
        assert_non_null(strstr(c.err.message, "attribute p"));
        op_case_end(&c);
    }
}

static void lp_pool_rank_two_and_no_kernel_are_refused(void **state) {
    static const float x[4] = {0};
    op_case c;
    (void)state;
    op_case_begin(&c, "LpPool", 18);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2));
    ASSERT_STATUS(TN_INVALID_MODEL, op_case_infer(&c, false));
    op_case_end(&c);

    op_case_begin(&c, "GlobalLpPool", 2);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2));
    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_infer(&c, false));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lp_pool_each_power_counts_padding_as_nothing),
        cmocka_unit_test(lp_pool_dilated_reads_every_second),
        cmocka_unit_test(lp_pool_first_version_takes_a_fraction),
        cmocka_unit_test(lp_pool_long_rows_agree_with_a_plain_loop),
        cmocka_unit_test(global_lp_pool_takes_the_norm_of_each_channel),
        cmocka_unit_test(global_lp_pool_other_types_agree),
        cmocka_unit_test(lp_pool_nan_stays_and_no_batch_gives_none),
        cmocka_unit_test(lp_pool_unknown_dims_stay_unknown),
        cmocka_unit_test(lp_pool_bad_power_is_refused),
        cmocka_unit_test(lp_pool_rank_two_and_no_kernel_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
