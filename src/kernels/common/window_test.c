/* Windows cut to what they meet, and the lines that pooling walks. */
#include "kernels/common/window.h"

#include <string.h>

#include "harness.h"

/* One axis. */
static tn_window axis(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pad_begin, int64_t pad_end) {
    const tn_window_params params = {.kernel = {kernel},
                                     .strides = {stride},
                                     .dilations = {dilation},
                                     .pads = {pad_begin, pad_end},
                                     .kernel_count = 1,
                                     .stride_count = 1,
                                     .dilation_count = 1,
                                     .pad_count = 2};
    tn_window window;
    ASSERT_OK(tn_window_resolve(&params, &in, &kernel, 1, &window, NULL));
    return window;
}

/* Input elements that the window at output `place` sees, as a bit set. */
static uint64_t seen(const tn_window *w, int64_t place) {
    uint64_t bits = 0;
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        const int64_t in = place * w->stride[0] - w->pad_begin[0] + k * w->dilation[0];
        if (in >= 0 && in < w->in[0]) bits |= (uint64_t)1 << in;
    }
    return bits;
}

static void trim_keeps_what_every_output_sees(void **state) {
    size_t shorter = 0;
    (void)state;
    for (int64_t in = 1; in <= 5; in++) {
        for (int64_t kernel = 1; kernel <= 5; kernel++) {
            for (int64_t mix = 0; mix < 3 * 3 * 6; mix++) {
                const int64_t stride = mix % 3 + 1;
                const int64_t dilation = mix / 3 % 3 + 1;
                const int64_t pad = mix / 9;
                if (in + 2 * pad < (kernel - 1) * dilation + 1) continue;
                const tn_window whole = axis(in, kernel, stride, dilation, pad, pad);
                tn_window cut = whole;

                ASSERT_OK(tn_window_trim(&cut, NULL));

                shorter += cut.kernel[0] < kernel;
                for (int64_t place = 0; place < whole.out[0]; place++) {
                    assert_true(seen(&cut, place) == seen(&whole, place));
                }
            }
        }
    }
    assert_true(shorter > 0);
}

static void trim_of_a_huge_window_leaves_its_input(void **state) {
    (void)state;
    tn_window window = axis(3, INT32_MAX, 1, 1, INT32_MAX - 1, 0);

    ASSERT_OK(tn_window_trim(&window, NULL));

    assert_true(window.kernel[0] <= 2 * window.in[0] + window.out[0]);
    assert_true(seen(&window, 0) == 1);
    assert_true(seen(&window, 2) == 7);
}

/* Two outputs far apart see one element each time: nothing can be cut between them. */
static void trim_of_a_window_with_a_huge_stride_is_refused(void **state) {
    tn_error err = {.code = TN_OK};
    (void)state;
    tn_window window = axis(1, INT32_MAX, 1 << 30, 1, INT32_MAX - 1, 1 << 30);

    ASSERT_STATUS(TN_UNSUPPORTED, tn_window_trim(&window, &err));
    assert_non_null(strstr(err.message, "over an input of 1"));
}

static void trim_of_no_input_leaves_one_element(void **state) {
    (void)state;
    tn_window window = axis(0, 1000000, 1, 1, 500000, 500000);

    ASSERT_OK(tn_window_trim(&window, NULL));

    assert_int_equal(window.kernel[0], 1);
}

static void line_lies_where_the_window_meets_the_row(void **state) {
    (void)state;
    const tn_window window = axis(7, 3, 2, 2, 2, 1); /* out: 3 */
    for (size_t element = 0; element < 3; element++) {
        const tn_window_line line = tn_window_line_of(&window, 0, element);
        for (int64_t i = 0; i < window.out[0]; i++) {
            const int64_t in = i * 2 - 2 + (int64_t)element * 2;
            const bool is_inside = in >= 0 && in < 7;
            assert_true((i >= line.low && i < line.high) == is_inside);
            if (is_inside) assert_int_equal(line.base + line.start + i * line.stride, in);
        }
    }
}

static void sizes_that_overflow_are_an_error(void **state) {
    tn_window window = {.count = 3};
    size_t in = 0;
    size_t out = 0;
    size_t kernel = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        window.in[i] = window.out[i] = 2;
        window.kernel[i] = INT32_MAX;
    }
    ASSERT_STATUS(TN_OVERFLOW, tn_window_sizes(&window, &in, &out, &kernel, NULL));

    window.kernel[0] = 3;
    ASSERT_OK(tn_window_sizes(&window, &in, &out, &kernel, NULL));
    assert_int_equal(in, 8);
    assert_true(kernel == (size_t)INT32_MAX * INT32_MAX * 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trim_keeps_what_every_output_sees),
        cmocka_unit_test(trim_of_a_huge_window_leaves_its_input),
        cmocka_unit_test(trim_of_a_window_with_a_huge_stride_is_refused),
        cmocka_unit_test(trim_of_no_input_leaves_one_element),
        cmocka_unit_test(line_lies_where_the_window_meets_the_row),
        cmocka_unit_test(sizes_that_overflow_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
