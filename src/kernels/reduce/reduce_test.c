#include "op_case.h"

static void reduce_sum_folds_the_axes_of_its_input(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* [2, 3, 2] */
    static const int64_t axes[] = {0, -1};
    static const float expected[] = {18, 26, 34};
    op_case c;
    op_case_begin(&c, "ReduceSum", 13);
    op_case_set_int(&c, "keepdims", 0);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 3, 2));
    op_case_input(&c, TN_DTYPE_I64, axes, OP_SHAPE(2));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_shape(&c, 0, OP_SHAPE(3));
        assert_floats(op_case_output(&c, 0), expected, 3, 0.0);
    }
    op_case_end(&c);
}

static void reduce_mean_of_opset_1_takes_axes_as_an_attribute(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4};
    static const int64_t axes[] = {0};
    static const float expected[] = {2, 3};
    op_case c;
    op_case_begin(&c, "ReduceMean", 1);
    op_case_set_ints(&c, "axes", axes, 1);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2, 2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(1, 2));
    assert_floats(op_case_output(&c, 0), expected, 2, 0.0);
    op_case_end(&c);
}

static void reduce_without_axes_and_with_noop_still_maps(void **state) {
    (void)state;
    static const float x[] = {-1, 2, -3};
    static const float expected[] = {1, 4, 9};
    op_case c;
    op_case_begin(&c, "ReduceSumSquare", 18);
    op_case_set_int(&c, "noop_with_empty_axes", 1);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(3));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(3));
    assert_floats(op_case_output(&c, 0), expected, 3, 0.0);
    op_case_end(&c);
}

typedef struct empty_case {
    const char *name;
    float expected;
} empty_case;

static void reduce_of_nothing_gives_the_identity(void **state) {
    (void)state;
    static const empty_case cases[] = {{"ReduceSum", 0.0F},         {"ReduceProd", 1.0F},
                                       {"ReduceMax", -INFINITY},    {"ReduceMin", INFINITY},
                                       {"ReduceLogSum", -INFINITY}, {"ReduceLogSumExp", -INFINITY},
                                       {"ReduceL2", 0.0F}};
    static const int64_t axes[] = {1};
    static const float nothing[1] = {0};
    for (size_t i = 0; i < TN_COUNTOF(cases); i++) {
        const float expected[] = {cases[i].expected, cases[i].expected};
        op_case c;
        op_case_begin(&c, cases[i].name, 20);
        op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(2, 0));
        op_case_input(&c, TN_DTYPE_I64, axes, OP_SHAPE(1));

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_shape(&c, 0, OP_SHAPE(2, 1));
        assert_floats(op_case_output(&c, 0), expected, 2, 0.0);
        op_case_end(&c);
    }
}

static void reduce_max_passes_nan_on(void **state) {
    (void)state;
    float x[100];
    fill_floats(x, 100, 3);
    x[61] = NAN;
    op_case c;
    op_case_begin(&c, "ReduceMax", 20);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(100));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_true(isnan(*(const float *)op_case_output(&c, 0)));
    }
    op_case_end(&c);
}

static void reduce_max_of_bool_is_or(void **state) {
    (void)state;
    static const uint8_t x[] = {0, 1, 0, 0};
    static const int64_t axes[] = {1};
    op_case c;
    op_case_begin(&c, "ReduceMax", 20);
    op_case_input(&c, TN_DTYPE_BOOL, x, OP_SHAPE(2, 2));
    op_case_input(&c, TN_DTYPE_I64, axes, OP_SHAPE(1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    static const uint8_t expected[] = {1, 0};
    assert_memory_equal(op_case_output(&c, 0), expected, 2);
    op_case_end(&c);
}

/* Long enough that the sum is cut into chunks and runs in two phases. */
static void reduce_of_a_long_tensor_gives_equal_bits_for_any_workers_and_variant(void **state) {
    (void)state;
    enum { COUNT = 700001 };
    float *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    fill_floats(x, COUNT, 4);
    double sum = 0;
    for (size_t i = 0; i < COUNT; i++) sum += (double)x[i];
    op_case c;
    op_case_begin(&c, "ReduceSum", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(COUNT));
    ASSERT_OK(op_case_run(&c, 0, 1));
    const float first = *(const float *)op_case_output(&c, 0);
    assert_true(fabs((double)first - sum) < 0.05);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 3));

        assert_true(*(const float *)op_case_output(&c, 0) == first);
    }
    op_case_end(&c);
    free(x);
}

static void reduce_with_an_axis_outside_the_rank_is_refused(void **state) {
    (void)state;
    static const float x[2] = {0};
    static const int64_t axes[] = {99};
    op_case c;
    op_case_begin(&c, "ReduceSum", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_I64, axes, OP_SHAPE(1));

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));

    assert_non_null(strstr(c.err.message, "99"));
    op_case_end(&c);
}

static void reduce_with_more_axes_than_any_rank_is_refused(void **state) {
    (void)state;
    static const float x[2] = {0};
    static const int64_t axes[TN_MAX_RANK + 1] = {0};
    op_case c;
    op_case_begin(&c, "ReduceSum", 13);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(2));
    op_case_input(&c, TN_DTYPE_I64, axes, OP_SHAPE(TN_MAX_RANK + 1));

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));
    op_case_end(&c);
}

static void reduce_with_unknown_axes_infers_unknown_dims(void **state) {
    (void)state;
    op_case c;
    op_case_begin(&c, "ReduceMean", 18);
    op_case_input(&c, TN_DTYPE_F32, NULL, OP_SHAPE(4, 5));
    op_case_input(&c, TN_DTYPE_I64, NULL, OP_SHAPE(1));

    ASSERT_OK(op_case_infer(&c, true));
    assert_shape(&c, 0, OP_SHAPE(TN_DIM_UNKNOWN, TN_DIM_UNKNOWN));

    op_case_set_int(&c, "keepdims", 0);
    ASSERT_OK(op_case_infer(&c, true));
    assert_int_equal(c.outputs[0].shape.rank, TN_RANK_UNKNOWN);
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(reduce_sum_folds_the_axes_of_its_input),
        T(reduce_mean_of_opset_1_takes_axes_as_an_attribute),
        T(reduce_without_axes_and_with_noop_still_maps),
        T(reduce_of_nothing_gives_the_identity),
        T(reduce_max_passes_nan_on),
        T(reduce_max_of_bool_is_or),
        T(reduce_of_a_long_tensor_gives_equal_bits_for_any_workers_and_variant),
        T(reduce_with_an_axis_outside_the_rank_is_refused),
        T(reduce_with_more_axes_than_any_rank_is_refused),
        T(reduce_with_unknown_axes_infers_unknown_dims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
