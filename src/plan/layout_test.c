#include "base/cpu_features.h"
#include "session_fixture.h"

enum { CHANNELS = 24, SIDE = 11, IMAGE = 3 * SIDE * SIDE, WIDE = CHANNELS * CHANNELS * 9 };

static void fill(float *values, size_t count, uint32_t seed, float scale) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 8) / 16777216.0F - 0.5F) * scale;
    }
}

static void add_conv(onnx_model *m, const char *inputs, const char *output, int64_t stride) {
    onnx_bytes node;
    onnx_node_begin(&node, "Conv", inputs, output);
    onnx_attribute_ints(&node, "strides", (int64_t[]){stride, stride}, 2);
    onnx_attribute_ints(&node, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    onnx_node_end(&m->graph, &node);
}

/* A strided convolution, a residual block behind an Identity, and a mean: "y" [1, C, 1, 1]; with
 * `gives_inner` also the block's sum "s". Height and width of the input are one symbol. */
static void build(onnx_model *m, bool gives_inner) {
    static float stem[CHANNELS * 27];
    static float wide[WIDE];
    static float scale[CHANNELS];
    fill(stem, CHANNELS * 27, 1, 1.0F);
    fill(wide, WIDE, 2, 0.3F);
    fill(scale, CHANNELS, 3, 2.0F);
    onnx_begin(m, 13);
    onnx_input(m, "x", TN_DTYPE_F32, 4, (const int64_t[]){1, 3, -1, -1});
    onnx_initializer(m, "stem", TN_DTYPE_F32, 4, (const int64_t[]){CHANNELS, 3, 3, 3}, stem,
                     sizeof stem);
    onnx_initializer(m, "wide", TN_DTYPE_F32, 4, (const int64_t[]){CHANNELS, CHANNELS, 3, 3}, wide,
                     sizeof wide);
    onnx_initializer(m, "scale", TN_DTYPE_F32, 3, (const int64_t[]){CHANNELS, 1, 1}, scale,
                     sizeof scale);
    add_conv(m, "x stem", "a", 2);
    onnx_node(m, "Identity", "a", "i");
    onnx_node(m, "Relu", "i", "r");
    add_conv(m, "r wide", "b", 1);
    onnx_node(m, "Mul", "b scale", "c");
    onnx_node(m, "Add", "c r", "s");
    onnx_node(m, "GlobalAveragePool", "s", "y");
    onnx_output(m, "y", TN_DTYPE_F32, 4, (const int64_t[]){1, CHANNELS, 1, 1});
    if (gives_inner) onnx_output(m, "s", TN_DTYPE_F32, -1, NULL);
}

static void run(const tn_session_options *options, bool gives_inner, float *y, float *s) {
    static float x[IMAGE];
    const int64_t dims[] = {1, 3, SIDE, SIDE};
    session_fixture f;
    onnx_model m;
    tn_value *out[2];
    build(&m, gives_inner);
    fixture_open(&f, &m, options);
    fill(x, IMAGE, 4, 2.0F);
    tn_value *input = fixture_tensor(&f, TN_DTYPE_F32, 4, dims, x);
    fixture_run(&f, input, gives_inner ? 2 : 1, out);
    memcpy(y, floats_of(out[0]), CHANNELS * sizeof *y);
    if (gives_inner) {
        memcpy(s, floats_of(out[1]), tn_tensor_size_bytes(out[1]));
        tn_tensor_release(out[1]);
    }
    tn_tensor_release(out[0]);
    tn_tensor_release(input);
    fixture_close(&f);
}

static void assert_close(const float *seen, const float *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double difference = (double)seen[i] - (double)expected[i];
        if (!(difference < 1e-4 && difference > -1e-4)) {
            fail_msg("element %zu is %g, expected %g", i, (double)seen[i], (double)expected[i]);
        }
    }
}

static size_t count_in_plan(const char *word) {
    enum { TEXT_BYTES = 64 * 1024 };
    session_fixture f;
    onnx_model m;
    tn_plan_report *report = NULL;
    tn_error err;
    size_t count = 0;
    const tn_plan_shape shape = {.input_name = "x",
                                 .shape = {.rank = 4, .dims = {1, 3, SIDE, SIDE}}};
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    build(&m, false);
    fixture_open(&f, &m, NULL);
    assert_int_equal(tn_session_plan(f.session, &shape, 1, &report, &err), TN_OK);
    assert_true(tn_plan_report_text(report, text, TEXT_BYTES) < TEXT_BYTES);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
    tn_plan_report_destroy(report);
    fixture_close(&f);
    free(text);
    return count;
}

static void blocked_chain_gives_the_results_of_plain_layout(void **state) {
    (void)state;
    const tn_session_options plain = {.struct_size = sizeof plain, .disable_fusion = true};
    float expected[CHANNELS];
    float seen[CHANNELS];

    run(&plain, false, expected, NULL);
    run(NULL, false, seen, NULL);

    assert_close(seen, expected, CHANNELS);
}

static void output_inside_a_blocked_chain_is_plain(void **state) {
    (void)state;
    enum { INNER = CHANNELS * 36 };
    const tn_session_options plain = {.struct_size = sizeof plain, .disable_fusion = true};
    static float expected[CHANNELS + INNER];
    static float seen[CHANNELS + INNER];

    run(&plain, true, expected, expected + CHANNELS);
    run(NULL, true, seen, seen + CHANNELS);

    assert_close(seen, expected, CHANNELS + INNER);
}

static void chain_of_symbolic_size_needs_no_reorder(void **state) {
    (void)state;
    if ((tn_cpu_features_detect() & TN_CPU_AVX2) == 0) skip();

    assert_int_equal(count_in_plan("Reorder"), 0);
    assert_true(count_in_plan("(blocked by") > 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(blocked_chain_gives_the_results_of_plain_layout),
        T(output_inside_a_blocked_chain_is_plain),
        T(chain_of_symbolic_size_needs_no_reorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
