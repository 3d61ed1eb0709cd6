#include "blocked_case.h"

enum { LARGEST = 96 * 1024 };

typedef struct conv_shape {
    int64_t n, c, h, w, out, taps_h, taps_w, stride_h, stride_w;
    int64_t top, left, bottom, right, dilation_h, dilation_w, group;
} conv_shape;

static const conv_shape shapes[] = {
    /* dense */
    {1, 16, 7, 7, 16, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {2, 24, 9, 5, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 9, 8, 11, 33, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1},
    {1, 40, 6, 6, 72, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 1},
    {1, 32, 14, 14, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 16, 12, 13, 8, 5, 3, 1, 2, 2, 0, 1, 3, 2, 1, 1},
    {1, 64, 33, 35, 80, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 260, 5, 4, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    /* few channels */
    {1, 3, 17, 19, 16, 7, 7, 2, 2, 3, 3, 3, 3, 1, 1, 1},
    {2, 1, 9, 9, 24, 3, 3, 1, 1, 1, 1, 1, 1, 2, 2, 1},
    {1, 4, 6, 5, 12, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    /* depthwise */
    {1, 16, 9, 9, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 16},
    {2, 20, 14, 15, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 20},
    {1, 33, 11, 23, 33, 5, 5, 1, 2, 2, 2, 2, 2, 1, 1, 33},
    {1, 8, 7, 70, 8, 3, 4, 1, 3, 0, 2, 2, 1, 2, 2, 8},
    {1, 12, 2, 2, 12, 5, 5, 1, 1, 4, 4, 4, 4, 1, 1, 12},
    {1, 6, 8, 8, 18, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6},
    /* groups */
    {1, 32, 6, 7, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2},
    {1, 6, 6, 7, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3},
};

typedef struct conv_data {
    float x[LARGEST], w[LARGEST], bias[512], residual[LARGEST], expected[LARGEST];
} conv_data;

/* The definition, in double. */
static void convolve(const conv_shape *s, const float *x, const float *w, const float *bias,
                     int64_t out_h, int64_t out_w, float *y) {
    const int64_t in = s->c / s->group;
    const int64_t out = s->out / s->group;
    for (int64_t plane = 0; plane < s->n * s->out; plane++) {
        const int64_t channel = plane % s->out;
        const float *image = x + (plane / s->out * s->c + channel / out * in) * s->h * s->w;
        for (int64_t position = 0; position < out_h * out_w; position++) {
            double sum = bias == NULL ? 0.0 : (double)bias[channel];
            for (int64_t k = 0; k < in * s->taps_h * s->taps_w; k++) {
                const int64_t row = position / out_w * s->stride_h - s->top +
                                    k / s->taps_w % s->taps_h * s->dilation_h;
                const int64_t col =
                    position % out_w * s->stride_w - s->left + k % s->taps_w * s->dilation_w;
                if (row < 0 || row >= s->h || col < 0 || col >= s->w) continue;
                const int64_t c = k / (s->taps_h * s->taps_w);
                sum += (double)image[(c * s->h + row) * s->w + col] *
                       (double)w[channel * in * s->taps_h * s->taps_w + k];
            }
            *y++ = (float)sum;
        }
    }
}

static int64_t out_size(int64_t in, int64_t pads, int64_t taps, int64_t dilation, int64_t stride) {
    return (in + pads - (taps - 1) * dilation - 1) / stride + 1;
}

/* Holds the attributes that the case borrows. */
typedef struct conv_case {
    op_case op;
    int64_t strides[2], pads[4], dilations[2];
    int64_t out_h, out_w;
    size_t out_elems;
} conv_case;

static void begin(conv_case *c, const conv_shape *s, conv_data *d, bool has_bias) {
    const int64_t in = s->c / s->group;
    op_case_begin(&c->op, "Conv", 11);
    memcpy(c->strides, (int64_t[]){s->stride_h, s->stride_w}, sizeof c->strides);
    memcpy(c->pads, (int64_t[]){s->top, s->left, s->bottom, s->right}, sizeof c->pads);
    memcpy(c->dilations, (int64_t[]){s->dilation_h, s->dilation_w}, sizeof c->dilations);
    op_case_set_ints(&c->op, "strides", c->strides, 2);
    op_case_set_ints(&c->op, "pads", c->pads, 4);
    op_case_set_ints(&c->op, "dilations", c->dilations, 2);
    op_case_set_int(&c->op, "group", s->group);
    fill_floats(d->x, LARGEST, 1);
    fill_floats(d->w, LARGEST, 2);
    fill_floats(d->bias, 512, 3);
    fill_floats(d->residual, LARGEST, 4);
    op_case_input(&c->op, TN_DTYPE_F32, d->x, OP_SHAPE(s->n, s->c, s->h, s->w));
    op_case_weight(&c->op, TN_DTYPE_F32, d->w, OP_SHAPE(s->out, in, s->taps_h, s->taps_w));
    if (has_bias) {
        op_case_weight(&c->op, TN_DTYPE_F32, d->bias, OP_SHAPE(s->out));
    } else {
        op_case_skip_input(&c->op);
    }
    c->out_h = out_size(s->h, s->top + s->bottom, s->taps_h, s->dilation_h, s->stride_h);
    c->out_w = out_size(s->w, s->left + s->right, s->taps_w, s->dilation_w, s->stride_w);
    c->out_elems = (size_t)(s->n * s->out * c->out_h * c->out_w);
    assert_true(c->out_elems <= LARGEST && s->n * s->c * s->h * s->w <= LARGEST);
    assert_true(s->out * in * s->taps_h * s->taps_w <= LARGEST);
    convolve(s, d->x, d->w, has_bias ? d->bias : NULL, c->out_h, c->out_w, d->expected);
}

static conv_data *make_data(void) {
    conv_data *d = malloc(sizeof *d);
    assert_non_null(d);
    return d;
}

static uint32_t plain_variants(op_case *c) {
    tn_variant variants[TN_MAX_VARIANTS];
    uint32_t count = 0;
    memset(variants, 0, sizeof variants);
    const tn_node_facts facts = op_case_facts(c);
    assert_int_equal(op_case_check(c), TN_OK);
    assert_int_equal(c->op->infer(&facts, &c->err), TN_OK);
    const tn_variant_query query = {.node = &facts,
                                    .cpu = tn_cpu_features_detect(),
                                    .worker_count = 1,
                                    .scratch_limit_bytes = SIZE_MAX};
    assert_int_equal(c->op->variants(&query, variants, &count, &c->err), TN_OK);
    return count;
}

static void conv_of_every_shape_agrees_with_its_definition_in_plain_layout(void **state) {
    (void)state;
    conv_data *d = make_data();
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        const conv_shape *s = &shapes[i];
        conv_case c;
        begin(&c, s, d, i % 2 == 0);
        const uint32_t count = plain_variants(&c.op);
        assert_true(count > 0);
        for (uint32_t v = 0; v < count; v++) {
            ASSERT_OK(op_case_run(&c.op, (int32_t)v, 2));

            assert_shape(&c.op, 0, OP_SHAPE(s->n, s->out, c.out_h, c.out_w));
            assert_floats(op_case_output(&c.op, 0), d->expected, c.out_elems, 2e-5);
        }
        op_case_end(&c.op);
    }
    free(d);
}

static void conv_of_every_shape_agrees_with_its_definition_in_blocks(void **state) {
    (void)state;
    static const uint16_t blocks[] = {8, 16};
    conv_data *d = make_data();
    size_t run_count = 0;
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        for (size_t b = 0; b < TN_COUNTOF(blocks); b++) {
            conv_case c;
            begin(&c, &shapes[i], d, i % 2 == 0);
            if (blocked_run(&c.op, &(blocked_query){.block = blocks[b]})) {
                run_count++;

                assert_floats(op_case_output(&c.op, 0), d->expected, c.out_elems, 2e-5);
            }
            op_case_end(&c.op);
        }
    }
    const bool has_vectors = (tn_cpu_features_detect() & TN_CPU_AVX2) != 0;
    assert_true(run_count >= (has_vectors ? TN_COUNTOF(shapes) - 2 : 0));
    free(d);
}

/* y = relu(conv + residual), the residual being of full size. */
static void conv_in_blocks_applies_its_epilogue_and_leaves_padding_zero(void **state) {
    (void)state;
    static const uint16_t blocks[] = {8, 16};
    const tn_program program = {
        .step_count = 3,
        .operand_count = 1,
        .steps = {{.body = TN_BODY_ADD, .source = TN_SOURCE_INPUT, .index = 0},
                  {.body = TN_BODY_RELU},
                  {.body = TN_BODY_ADD, .source = TN_SOURCE_IMMEDIATE, .params = {0.5F}}}};
    conv_data *d = make_data();
    for (size_t i = 0; i < TN_COUNTOF(shapes); i++) {
        for (size_t b = 0; b < TN_COUNTOF(blocks); b++) {
            const conv_shape *s = &shapes[i];
            conv_case c;
            begin(&c, s, d, true);
            op_case_input(&c.op, TN_DTYPE_F32, d->residual,
                          OP_SHAPE(s->n, s->out, c.out_h, c.out_w));
            for (size_t k = 0; k < c.out_elems; k++) {
                d->expected[k] = fmaxf(d->expected[k] + d->residual[k], 0) + 0.5F;
            }
            const blocked_query query = {
                .block = blocks[b], .epilogue = &program, .first_epilogue_input = 3};
            if (blocked_run(&c.op, &query)) {
                assert_floats(op_case_output(&c.op, 0), d->expected, c.out_elems, 2e-5);
            }
            op_case_end(&c.op);
        }
    }
    free(d);
}

static void conv_with_an_empty_batch_gives_an_empty_result(void **state) {
    (void)state;
    static const float nothing[1] = {0};
    static float w[16 * 16 * 9];
    op_case c;
    op_case_begin(&c, "Conv", 11);
    op_case_input(&c, TN_DTYPE_F32, nothing, OP_SHAPE(0, 16, 8, 8));
    op_case_weight(&c, TN_DTYPE_F32, w, OP_SHAPE(16, 16, 3, 3));

    ASSERT_OK(op_case_run(&c, -1, 1));
    assert_shape(&c, 0, OP_SHAPE(0, 16, 6, 6));
    (void)blocked_run(&c, &(blocked_query){.block = 16});
    assert_shape(&c, 0, OP_SHAPE(0, 16, 6, 6));

    op_case_end(&c);
}

static void conv_with_a_wrong_channel_count_is_an_error(void **state) {
    (void)state;
    static float x[3 * 16];
    static float w[8 * 4];
    op_case c;
    op_case_begin(&c, "Conv", 11);
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 3, 4, 4));
    op_case_weight(&c, TN_DTYPE_F32, w, OP_SHAPE(8, 4, 1, 1));

    assert_int_equal(op_case_infer(&c, true), TN_INVALID_ARGUMENT);

    assert_non_null(strstr(c.err.message, "3 channels"));
    op_case_end(&c);
}

static void windows_of_equal_effect_give_equal_symbols(void **state) {
    (void)state;
    static const int64_t two[] = {2, 2};
    static const int64_t ones[] = {1, 1, 1, 1};
    op_case wide;
    op_case narrow;
    op_case_begin(&wide, "Conv", 11);
    op_case_set_ints(&wide, "strides", two, 2);
    op_case_set_ints(&wide, "pads", ones, 4);
    op_case_input(&wide, TN_DTYPE_F32, NULL, OP_SHAPE(1, 16, -3, TN_DIM_UNKNOWN));
    op_case_weight(&wide, TN_DTYPE_F32, NULL, OP_SHAPE(8, 16, 3, 3));
    op_case_begin(&narrow, "Conv", 11);
    op_case_set_ints(&narrow, "strides", two, 2);
    op_case_input(&narrow, TN_DTYPE_F32, NULL, OP_SHAPE(1, 16, -3, -4));
    op_case_weight(&narrow, TN_DTYPE_F32, NULL, OP_SHAPE(8, 16, 1, 1));

    ASSERT_OK(op_case_infer(&wide, true));
    ASSERT_OK(op_case_infer(&narrow, true));

    assert_true(wide.outputs[0].shape.dims[2] < TN_DIM_UNKNOWN);
    assert_true(wide.outputs[0].shape.dims[2] != -3);
    assert_true(wide.outputs[0].shape.dims[2] == narrow.outputs[0].shape.dims[2]);
    assert_true(wide.outputs[0].shape.dims[3] == TN_DIM_UNKNOWN);
    assert_true(narrow.outputs[0].shape.dims[2] != narrow.outputs[0].shape.dims[3]);
    op_case_end(&wide);
    op_case_end(&narrow);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(conv_of_every_shape_agrees_with_its_definition_in_plain_layout),
        T(conv_of_every_shape_agrees_with_its_definition_in_blocks),
        T(conv_in_blocks_applies_its_epilogue_and_leaves_padding_zero),
        T(conv_with_an_empty_batch_gives_an_empty_result),
        T(conv_with_a_wrong_channel_count_is_an_error),
        T(windows_of_equal_effect_give_equal_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
