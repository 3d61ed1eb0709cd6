#include "blocked_case.h"

enum { LARGEST = 16 * 1024 };

typedef struct pool_shape {
    int64_t n, c, h, w, taps_h, taps_w, stride_h, stride_w, top, left, bottom, right;
} pool_shape;

static const pool_shape shapes[] = {
    {1, 16, 8, 8, 2, 2, 2, 2, 0, 0, 0, 0}, {1, 24, 9, 30, 3, 3, 2, 2, 1, 1, 1, 1},
    {2, 13, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1}, {1, 33, 6, 5, 5, 5, 1, 1, 2, 2, 2, 2},
    {1, 8, 40, 3, 1, 3, 1, 2, 0, 1, 0, 2}, {1, 4, 5, 21, 4, 2, 3, 1, 3, 0, 1, 1},
};

typedef struct pool_data {
    float x[LARGEST], expected[LARGEST];
} pool_data;

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_WITH_PADDING } pool_kind;

static float pool_at(const pool_shape *s, const float *plane, int64_t top, int64_t left,
                     pool_kind kind) {
    double sum = 0;
    double most = -INFINITY;
    int64_t count = 0;
    for (int64_t k = 0; k < s->taps_h * s->taps_w; k++) {
        const int64_t row = top + k / s->taps_w;
        const int64_t col = left + k % s->taps_w;
        const bool is_inside = row >= 0 && row < s->h && col >= 0 && col < s->w;
        const bool is_padding = row < s->h + s->bottom && col < s->w + s->right;
        count += is_inside || (kind == POOL_AVERAGE_WITH_PADDING && is_padding);
        if (!is_inside) continue;
        const double value = (double)plane[row * s->w + col];
        sum += value;
        if (value > most || isnan(value)) most = value;
    }
    return (float)(kind == POOL_MAX ? most : sum / (double)count);
}

static size_t pool(const pool_shape *s, const float *x, int64_t out_h, int64_t out_w,
                   pool_kind kind, float *y) {
    size_t done = 0;
    for (int64_t plane = 0; plane < s->n * s->c; plane++) {
        for (int64_t position = 0; position < out_h * out_w; position++) {
            y[done++] = pool_at(s, x + plane * s->h * s->w, position / out_w * s->stride_h - s->top,
                                position % out_w * s->stride_w - s->left, kind);
        }
    }
    return done;
}

static void check_kind(const char *name, pool_kind kind) {
    static const uint16_t blocks[] = {8, 16};
    pool_data *d = malloc(sizeof *d);
    assert_non_null(d);
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        const pool_shape *s = &shapes[i];
        op_case c;
        fill_floats(d->x, LARGEST, (uint32_t)i);
        op_case_begin(&c, name, 11);
        op_case_set_ints(&c, "kernel_shape", &s->taps_h, 2);
        op_case_set_ints(&c, "strides", &s->stride_h, 2);
        op_case_set_ints(&c, "pads", &s->top, 4);
        if (kind == POOL_AVERAGE_WITH_PADDING) op_case_set_int(&c, "count_include_pad", 1);
        op_case_input(&c, TN_DTYPE_F32, d->x, OP_SHAPE(s->n, s->c, s->h, s->w));
        const int64_t out_h = (s->h + s->top + s->bottom - s->taps_h) / s->stride_h + 1;
        const int64_t out_w = (s->w + s->left + s->right - s->taps_w) / s->stride_w + 1;
        const size_t count = pool(s, d->x, out_h, out_w, kind, d->expected);

        ASSERT_OK(op_case_run(&c, -1, 2));
        assert_shape(&c, 0, OP_SHAPE(s->n, s->c, out_h, out_w));
        assert_floats(op_case_output(&c, 0), d->expected, count, 1e-6);
        for (size_t b = 0; b < TN_COUNTOF(blocks); b++) {
            if (!blocked_run(&c, &(blocked_query){.block = blocks[b]})) continue;
            assert_floats(op_case_output(&c, 0), d->expected, count, 1e-6);
        }
        op_case_end(&c);
    }
    free(d);
}

static void max_pool_agrees_with_its_definition_in_both_layouts(void **state) {
    (void)state;
    check_kind("MaxPool", POOL_MAX);
}

static void average_pool_agrees_with_its_definition_in_both_layouts(void **state) {
    (void)state;
    check_kind("AveragePool", POOL_AVERAGE);
}

static void average_pool_counts_padding_when_asked_in_both_layouts(void **state) {
    (void)state;
    check_kind("AveragePool", POOL_AVERAGE_WITH_PADDING);
}

static void max_pool_hands_nan_on_in_both_layouts(void **state) {
    (void)state;
    static const int64_t two[] = {1, 2};
    static float x[8 * 4];
    float expected[8 * 2];
    op_case c;
    for (size_t i = 0; i < TN_COUNTOF(x); i++) x[i] = (float)i;
    x[0] = NAN; /* first of its window */
    x[7] = NAN; /* last of its window */
    for (size_t i = 0; i < TN_COUNTOF(expected); i++) expected[i] = (float)(2 * i + 1);
    expected[0] = expected[3] = NAN;
    op_case_begin(&c, "MaxPool", 11);
    op_case_set_ints(&c, "kernel_shape", two, 2);
    op_case_set_ints(&c, "strides", two, 2);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 8, 1, 4));

    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), expected, TN_COUNTOF(expected), 0);
    if (blocked_run(&c, &(blocked_query){.block = 8})) {
        assert_floats(op_case_output(&c, 0), expected, TN_COUNTOF(expected), 0);
    }
    op_case_end(&c);
}

static void global_average_pool_of_blocks_gives_plain_means(void **state) {
    (void)state;
    enum { N = 2, C = 21, H = 5, W = 3 };
    static const uint16_t blocks[] = {8, 16};
    static float x[N * C * H * W];
    float expected[N * C];
    op_case c;
    fill_floats(x, TN_COUNTOF(x), 9);
    for (size_t plane = 0; plane < TN_COUNTOF(expected); plane++) {
        double sum = 0;
        for (size_t i = 0; i < H * W; i++) sum += (double)x[plane * H * W + i];
        expected[plane] = (float)(sum / (H * W));
    }
    op_case_begin(&c, "GlobalAveragePool", 11);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(N, C, H, W));

    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_floats(op_case_output(&c, 0), expected, TN_COUNTOF(expected), 1e-6);
    for (size_t b = 0; b < TN_COUNTOF(blocks); b++) {
        if (!blocked_run(&c, &(blocked_query){.block = blocks[b]})) continue;
        assert_floats(op_case_output(&c, 0), expected, TN_COUNTOF(expected), 1e-6);
    }
    op_case_end(&c);
}

/* All but one of 2^62 window elements see padding. */
static void pool_of_a_huge_window_reads_its_input_only(void **state) {
    static const int64_t kernel[] = {INT32_MAX, INT32_MAX};
    static const int64_t pads[] = {INT32_MAX - 1, INT32_MAX - 1, 0, 0};
    static const float x[] = {-1.5F, 2.5F};
    static const char *const names[] = {"MaxPool", "AveragePool"};
    (void)state;
    for (size_t i = 0; i < TN_COUNTOF(names); i++) {
        op_case c;
        op_case_begin(&c, names[i], 12);
        op_case_set_ints(&c, "kernel_shape", kernel, 2);
        op_case_set_ints(&c, "pads", pads, 4);
        op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 2, 1, 1));

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_floats(op_case_output(&c, 0), x, 2, 0);
        op_case_end(&c);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(max_pool_agrees_with_its_definition_in_both_layouts),
        T(average_pool_agrees_with_its_definition_in_both_layouts),
        T(average_pool_counts_padding_when_asked_in_both_layouts),
        T(max_pool_hands_nan_on_in_both_layouts),
        T(global_average_pool_of_blocks_gives_plain_means),
        T(pool_of_a_huge_window_reads_its_input_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
