/* Resize, Upsample, GridSample, AffineGrid: expectations from the formulas of the standard. */
#include "op_case.h"

#define INTS(...) ((const int64_t[]){__VA_ARGS__})

static void begin_resize(op_case *c, const float *data, tn_shape shape, const char *mode,
                         const char *coordinate) {
    op_case_begin(c, "Resize", 19);
    op_case_set_text(c, "mode", mode);
    op_case_set_text(c, "coordinate_transformation_mode", coordinate);
    op_case_input(c, TN_DTYPE_F32, data, shape);
    op_case_skip_input(c);
}

static void scales_input(op_case *c, const float *scales, int64_t count) {
    op_case_input(c, TN_DTYPE_F32, scales, OP_SHAPE(count));
}

static void nearest_doubles_every_element(void **state) {
    (void)state;
    op_case c;
    static const float data[4] = {1, 2, 3, 4};
    static const float scales[2] = {2, 2};
    static const float expected[16] = {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
    begin_resize(&c, data, OP_SHAPE(2, 2), "nearest", "half_pixel");
    scales_input(&c, scales, 2);

    ASSERT_OK(op_case_run(&c, -1, 2));

    assert_shape(&c, 0, OP_SHAPE(4, 4));
    assert_floats(op_case_output(&c, 0), expected, 16, 0);
    op_case_end(&c);
}

static void linear_half_pixel_clamps_at_the_edges(void **state) {
    (void)state;
    op_case c;
    static const float data[2] = {0, 4};
    static const float scales[1] = {2};
    static const float expected[4] = {0, 1, 3, 4};
    begin_resize(&c, data, OP_SHAPE(2), "linear", "half_pixel");
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 4, 1e-6);
    op_case_end(&c);
}

static void linear_in_two_axes_is_the_product_of_both(void **state) {
    (void)state;
    op_case c;
    static const float data[4] = {0, 4, 8, 12};
    static const float scales[2] = {2, 2};
    static const float expected[16] = {0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12};
    begin_resize(&c, data, OP_SHAPE(2, 2), "linear", "half_pixel");
    scales_input(&c, scales, 2);

    ASSERT_OK(op_case_run(&c, -1, 3));

    assert_floats(op_case_output(&c, 0), expected, 16, 1e-6);
    op_case_end(&c);
}

static void antialias_averages_when_shrinking(void **state) {
    (void)state;
    op_case c;
    static const float data[4] = {1, 1, 3, 3};
    static const float scales[1] = {0.5F};
    begin_resize(&c, data, OP_SHAPE(4), "linear", "half_pixel");
    op_case_set_int(&c, "antialias", 1);
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    /* weights 1/8, 3/8, 3/8, 1/8, beyond the edge the edge */
    assert_floats(op_case_output(&c, 0), (const float[]){1.25F, 2.75F}, 2, 1e-6);
    op_case_end(&c);
}

static void cubic_keeps_a_constant(void **state) {
    (void)state;
    op_case c;
    static const float data[5] = {7, 7, 7, 7, 7};
    static const float scales[1] = {1.7F};
    begin_resize(&c, data, OP_SHAPE(5), "cubic", "half_pixel");
    op_case_set_int(&c, "exclude_outside", 1);
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), (const float[]){7, 7, 7, 7, 7, 7, 7, 7}, 8, 1e-6);
    op_case_end(&c);
}

static void crop_outside_the_region_extrapolates(void **state) {
    (void)state;
    op_case c;
    static const float data[3] = {1, 2, 3};
    static const float region[2] = {0, 2};
    op_case_begin(&c, "Resize", 13);
    op_case_set_text(&c, "mode", "linear");
    op_case_set_text(&c, "coordinate_transformation_mode", "tf_crop_and_resize");
    op_case_set_float(&c, "extrapolation_value", 9);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(3));
    op_case_input(&c, TN_DTYPE_F32, region, OP_SHAPE(2));
    op_case_skip_input(&c);
    op_case_input(&c, TN_DTYPE_I64, INTS(3), OP_SHAPE(1));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), (const float[]){1, 3, 9}, 3, 1e-6);
    op_case_end(&c);
}

static void sizes_with_policy_keep_one_scale(void **state) {
    (void)state;
    op_case c;
    static const float data[8];
    begin_resize(&c, data, OP_SHAPE(2, 4), "nearest", "half_pixel");
    op_case_set_text(&c, "keep_aspect_ratio_policy", "not_larger");
    op_case_skip_input(&c);
    op_case_input(&c, TN_DTYPE_I64, INTS(7, 8), OP_SHAPE(2));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_shape(&c, 0, OP_SHAPE(4, 8));
    op_case_end(&c);
}

static void integers_round_to_even(void **state) {
    (void)state;
    op_case c;
    static const uint8_t data[2] = {0, 10};
    static const float scales[1] = {2};
    op_case_begin(&c, "Resize", 13);
    op_case_set_text(&c, "mode", "linear");
    op_case_input(&c, TN_DTYPE_U8, data, OP_SHAPE(2));
    op_case_skip_input(&c);
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_memory_equal(op_case_output(&c, 0), ((const uint8_t[]){0, 2, 8, 10}), 4);
    op_case_end(&c);
}

static void upsample_reads_scales_of_its_opset(void **state) {
    (void)state;
    static const float data[2] = {1, 2};
    static const float scales[4] = {1, 1, 1, 2};
    static const float expected[4] = {1, 1, 2, 2};
    op_case c;
    op_case_begin(&c, "Upsample", 7);
    op_case_attribute(&c, "scales", TN_ATTRIBUTE_FLOATS)->floats = scales;
    c.attributes[0].count = 4;
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1, 1, 2));
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), expected, 4, 0);
    op_case_end(&c);

    op_case_begin(&c, "Upsample", 9);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1, 1, 2));
    scales_input(&c, scales, 4);
    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), expected, 4, 0);
    op_case_end(&c);
}

static void nearest_of_opset_10_rounds_up_when_shrinking(void **state) {
    (void)state;
    op_case c;
    static const float data[4] = {1, 2, 3, 4};
    static const float scales[1] = {0.6F};
    op_case_begin(&c, "Resize", 10);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(4));
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    /* onnxruntime: 1 / 0.6 is 1.67, which reads element 2 */
    assert_floats(op_case_output(&c, 0), (const float[]){1, 3}, 2, 0);
    op_case_end(&c);
}

static void nearest_ties_are_decided_in_f32(void **state) {
    (void)state;
    op_case c;
    static const float scales[1] = {2.3F};
    float data[11];
    for (int32_t i = 0; i < 11; i++) data[i] = (float)i;
    begin_resize(&c, data, OP_SHAPE(11), "nearest", "half_pixel");
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_run(&c, -1, 1));

    /* onnxruntime: (11 + 0.5) / 2.3 - 0.5 is 4.5, a tie that goes down */
    assert_true(((const float *)op_case_output(&c, 0))[11] == 4.0F);
    op_case_end(&c);
}

static void hostile_scales_and_sizes_are_errors(void **state) {
    (void)state;
    static const float data[4];
    const float bad[] = {0, -1, NAN, INFINITY, 1e11F};
    for (size_t i = 0; i < TN_COUNTOF(bad); i++) {
        op_case c;
        begin_resize(&c, data, OP_SHAPE(4), "linear", "half_pixel");
        scales_input(&c, &bad[i], 1);
        const tn_status status = op_case_infer(&c, false);
        assert_true(status == TN_INVALID_ARGUMENT || status == TN_OVERFLOW);
        op_case_end(&c);
    }
}

static void unknown_scales_leave_dims_unknown(void **state) {
    (void)state;
    op_case c;
    static const float data[4];
    static const float scales[1] = {2};
    begin_resize(&c, data, OP_SHAPE(4), "linear", "half_pixel");
    scales_input(&c, scales, 1);

    ASSERT_OK(op_case_infer(&c, true));

    assert_shape(&c, 0, OP_SHAPE(TN_DIM_UNKNOWN));
    op_case_end(&c);
}

/* Samples [1, 2; 3, 4] at one point. */
static float sample_at(const char *mode, const char *padding, float x, float y) {
    op_case c;
    static const float data[4] = {1, 2, 3, 4};
    const float grid[2] = {x, y};
    op_case_begin(&c, "GridSample", 20);
    op_case_set_text(&c, "mode", mode);
    op_case_set_text(&c, "padding_mode", padding);
    op_case_set_int(&c, "align_corners", 1);
    op_case_input(&c, TN_DTYPE_F32, data, OP_SHAPE(1, 1, 2, 2));
    op_case_input(&c, TN_DTYPE_F32, grid, OP_SHAPE(1, 1, 1, 2));
    assert_int_equal(op_case_run(&c, -1, 1), TN_OK);
    const float value = *(const float *)op_case_output(&c, 0);
    op_case_end(&c);
    return value;
}

static void grid_sample_pads_as_asked(void **state) {
    (void)state;
    assert_true(sample_at("linear", "zeros", 0, 0) == 2.5F);
    assert_true(sample_at("nearest", "zeros", -1, 1) == 3.0F);
    assert_true(sample_at("linear", "zeros", 9, 9) == 0.0F);
    assert_true(sample_at("linear", "border", 9, 9) == 4.0F);
    assert_true(sample_at("linear", "reflection", 3, -1) == 1.0F);
}

static void grid_sample_survives_coordinates_that_are_no_numbers(void **state) {
    (void)state;
    assert_true(sample_at("linear", "zeros", NAN, 0) == 0.0F);
    assert_true(sample_at("nearest", "border", INFINITY, -INFINITY) == 2.0F);
    assert_true(isfinite(sample_at("cubic", "reflection", -1e30F, 1e30F)));
}

static void affine_identity_spans_the_corners(void **state) {
    (void)state;
    op_case c;
    static const float theta[6] = {1, 0, 0, 0, 1, 0};
    static const float expected[8] = {-1, -1, 1, -1, -1, 1, 1, 1};
    op_case_begin(&c, "AffineGrid", 20);
    op_case_set_int(&c, "align_corners", 1);
    op_case_input(&c, TN_DTYPE_F32, theta, OP_SHAPE(1, 2, 3));
    op_case_input(&c, TN_DTYPE_I64, INTS(1, 1, 2, 2), OP_SHAPE(4));

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 0), expected, 8, 1e-6);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(nearest_doubles_every_element),
        T(linear_half_pixel_clamps_at_the_edges),
        T(linear_in_two_axes_is_the_product_of_both),
        T(antialias_averages_when_shrinking),
        T(cubic_keeps_a_constant),
        T(crop_outside_the_region_extrapolates),
        T(sizes_with_policy_keep_one_scale),
        T(integers_round_to_even),
        T(upsample_reads_scales_of_its_opset),
        T(nearest_of_opset_10_rounds_up_when_shrinking),
        T(nearest_ties_are_decided_in_f32),
        T(hostile_scales_and_sizes_are_errors),
        T(unknown_scales_leave_dims_unknown),
        T(grid_sample_pads_as_asked),
        T(grid_sample_survives_coordinates_that_are_no_numbers),
        T(affine_identity_spans_the_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
