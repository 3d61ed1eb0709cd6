#include <stdlib.h>
#include <string.h>

#include "op_case.h"
#include "session_fixture.h"

/* One convolution of two images. */
typedef struct wide_case {
    int64_t channels, height, width;
    int64_t out_channels, group;
    int64_t kernel[2], strides[2], dilations[2], pads[4];
    bool has_bias;
} wide_case;

static size_t input_elems(const wide_case *w) {
    return (size_t)(2 * w->channels * w->height * w->width);
}

static void build(onnx_model *m, const wide_case *w) {
    const int64_t in = w->channels / w->group;
    const int64_t weight_dims[] = {w->out_channels, in, w->kernel[0], w->kernel[1]};
    const size_t count = (size_t)(w->out_channels * in * w->kernel[0] * w->kernel[1]);
    float *weights = malloc(count * sizeof *weights);
    onnx_bytes node;
    assert_non_null(weights);
    fill_floats(weights, count, 5);
    onnx_begin(m, 17);
    onnx_input(m, "x", 1, 4, (const int64_t[]){2, w->channels, w->height, w->width});
    onnx_initializer(m, "w", 1, 4, weight_dims, weights, count * sizeof *weights);
    onnx_initializer(m, "b", 1, 1, &w->out_channels, weights,
                     (size_t)w->out_channels * sizeof *weights);
    onnx_node_begin(&node, "Conv", w->has_bias ? "x w b" : "x w", "y");
    onnx_attribute_ints(&node, "strides", w->strides, 2);
    onnx_attribute_ints(&node, "dilations", w->dilations, 2);
    onnx_attribute_ints(&node, "pads", w->pads, 4);
    onnx_attribute_int(&node, "group", w->group);
    onnx_node_end(&m->graph, &node);
    onnx_output(m, "y", 1, -1, NULL);
    free(weights);
}

/* Blocked, as the layout pass has it, against plain. */
static void check(const wide_case *w) {
    float *x = malloc(input_elems(w) * sizeof *x);
    session_fixture fixtures[2];
    tn_value *y[2] = {NULL, NULL};
    assert_non_null(x);
    fill_floats(x, input_elems(w), 9);
    for (int plain = 0; plain < 2; plain++) {
        onnx_model m;
        const tn_session_options options = {.struct_size = sizeof options,
                                            .disable_fusion = plain != 0};
        build(&m, w);
        fixture_open(&fixtures[plain], &m, &options);
        tn_value *input = fixture_tensor(&fixtures[plain], TN_DTYPE_F32, 4,
                                         (const int64_t[]){2, w->channels, w->height, w->width}, x);
        fixture_run(&fixtures[plain], input, 1, &y[plain]);
        tn_tensor_release(input);
    }
    const size_t size_bytes = tn_tensor_size_bytes(y[1]);
    assert_int_equal(tn_tensor_size_bytes(y[0]), size_bytes);
    assert_floats(floats_of(y[0]), floats_of(y[1]), size_bytes / sizeof(float), 1e-4);
    for (int plain = 0; plain < 2; plain++) {
        tn_tensor_release(y[plain]);
        fixture_close(&fixtures[plain]);
    }
    free(x);
}

/* A padded row of one input block is larger than what is copied at once. */
static void conv_blocked_long_row_agrees_with_plain(void **state) {
    const wide_case w = {.channels = 20,
                         .height = 1,
                         .width = 20001,
                         .out_channels = 17,
                         .group = 1,
                         .kernel = {1, 5},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {0, 2, 0, 2},
                         .has_bias = true};
    (void)state;
    check(&w);
}

/* So little work a pixel that a task would take more rows than are copied at once. */
static void conv_blocked_large_image_of_few_channels_agrees_with_plain(void **state) {
    const wide_case w = {.channels = 5,
                         .height = 220,
                         .width = 230,
                         .out_channels = 8,
                         .group = 1,
                         .kernel = {1, 1},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {1, 2, 0, 1}};
    (void)state;
    check(&w);
}

static void conv_blocked_far_reaching_window_agrees_with_plain(void **state) {
    const wide_case w = {.channels = 32,
                         .height = 7,
                         .width = 9,
                         .out_channels = 32,
                         .group = 2,
                         .kernel = {3, 2},
                         .strides = {2, 3},
                         .dilations = {300, 400},
                         .pads = {300, 399, 303, 4}};
    (void)state;
    check(&w);
}

/* Few plain channels: pixels are interleaved on the way. */
static void conv_stem_long_rows_agree_with_plain(void **state) {
    const wide_case w = {.channels = 3,
                         .height = 5,
                         .width = 30000,
                         .out_channels = 20,
                         .group = 1,
                         .kernel = {3, 3},
                         .strides = {2, 2},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .has_bias = true};
    (void)state;
    check(&w);
}

/* The window reaches 2^31 elements in both directions and meets the image in its last element
 * alone: scratch for everything in between would not fit in any memory. */
static void check_two_gig(int64_t channels, int64_t group) {
    enum { MOST = 16 };
    const int64_t reach = INT32_MAX;
    const int64_t in_channels = channels / group;
    const wide_case w = {.channels = channels,
                         .height = 1,
                         .width = 1,
                         .out_channels = channels,
                         .group = group,
                         .kernel = {2, 2},
                         .strides = {1, 1},
                         .dilations = {reach, reach},
                         .pads = {reach, reach, 0, 0}};
    const tn_session_options options = {.struct_size = sizeof options,
                                        .memory_limit_bytes = 2u << 20};
    const size_t weight_count = (size_t)(channels * in_channels * 4);
    const size_t count = (size_t)(2 * channels);
    float weights[MOST * MOST * 4];
    float x[2 * MOST];
    float expected[2 * MOST] = {0};
    onnx_model m;
    session_fixture f;
    tn_value *y = NULL;
    assert_true(channels <= MOST);
    fill_floats(weights, weight_count, 5);
    fill_floats(x, count, 9);
    for (int64_t i = 0; i < 2 * channels * in_channels; i++) {
        const int64_t row = i / in_channels; /* image and output channel */
        const int64_t out = row % channels;
        const int64_t in = out / in_channels * in_channels + i % in_channels;
        expected[row] += weights[(out * in_channels + i % in_channels) * 4 + 3] *
                         x[row / channels * channels + in];
    }
    build(&m, &w);
    fixture_open(&f, &m, &options);
    tn_value *input = fixture_tensor(&f, TN_DTYPE_F32, 4, (const int64_t[]){2, channels, 1, 1}, x);

    fixture_run(&f, input, 1, &y);

    assert_int_equal(tn_tensor_size_bytes(y), count * sizeof *expected);
    assert_floats(floats_of(y), expected, count, 1e-5);
    tn_tensor_release(y);
    tn_tensor_release(input);
    fixture_close(&f);
}

static void conv_window_of_two_gig_needs_little_memory(void **state) {
    (void)state;
    check_two_gig(16, 1); /* blocked */
    check_two_gig(2, 1);  /* plain: too few output channels for a block */
}

static void depthwise_window_of_two_gig_needs_little_memory(void **state) {
    (void)state;
    check_two_gig(16, 16); /* blocked */
    check_two_gig(3, 3);   /* plain */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_blocked_long_row_agrees_with_plain),
        cmocka_unit_test(conv_blocked_large_image_of_few_channels_agrees_with_plain),
        cmocka_unit_test(conv_blocked_far_reaching_window_agrees_with_plain),
        cmocka_unit_test(conv_stem_long_rows_agree_with_plain),
        cmocka_unit_test(conv_window_of_two_gig_needs_little_memory),
        cmocka_unit_test(depthwise_window_of_two_gig_needs_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
