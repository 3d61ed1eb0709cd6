#include "op_case.h"

/* Sizes that leave part tiles everywhere and need more than one chunk of steps. */
enum { STEPS = 7, BATCH = 35, INPUT = 11, HIDDEN = 9, GATES = 4, WIDTH = GATES * HIDDEN };

typedef struct lstm_data {
    float x[STEPS * BATCH * INPUT];
    float w[2 * WIDTH * INPUT];
    float r[2 * WIDTH * HIDDEN];
    float b[2 * 2 * WIDTH];
    float h0[2 * BATCH * HIDDEN];
    float c0[2 * BATCH * HIDDEN];
    int32_t lengths[BATCH];
    float y[STEPS * 2 * BATCH * HIDDEN];
    float y_h[2 * BATCH * HIDDEN];
    float y_c[2 * BATCH * HIDDEN];
} lstm_data;

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* One gate before its activation. */
static double gate(const lstm_data *d, size_t direction, size_t row, const float *x,
                   const float *h) {
    const size_t at = direction * WIDTH + row;
    double sum = (double)d->b[direction * 2 * WIDTH + row] +
                 (double)d->b[direction * 2 * WIDTH + WIDTH + row];
    for (size_t i = 0; i < INPUT; i++) sum += (double)x[i] * (double)d->w[at * INPUT + i];
    for (size_t i = 0; i < HIDDEN; i++) sum += (double)h[i] * (double)d->r[at * HIDDEN + i];
    return sum;
}

/* The definition, one entry of the batch at a time. */
static void reference_entry(lstm_data *d, size_t direction, size_t entry) {
    float *h = d->y_h + (direction * BATCH + entry) * HIDDEN;
    float *c = d->y_c + (direction * BATCH + entry) * HIDDEN;
    memcpy(h, d->h0 + (direction * BATCH + entry) * HIDDEN, HIDDEN * sizeof *h);
    memcpy(c, d->c0 + (direction * BATCH + entry) * HIDDEN, HIDDEN * sizeof *c);
    const size_t length = (size_t)d->lengths[entry];
    for (size_t step = 0; step < length; step++) {
        const size_t time = direction == 1 ? length - 1 - step : step;
        const float *x = d->x + (time * BATCH + entry) * INPUT;
        float next[HIDDEN];
        for (size_t j = 0; j < HIDDEN; j++) {
            const double in = sigmoid(gate(d, direction, j, x, h));
            const double out = sigmoid(gate(d, direction, HIDDEN + j, x, h));
            const double forget = sigmoid(gate(d, direction, 2 * HIDDEN + j, x, h));
            const double fresh = tanh(gate(d, direction, 3 * HIDDEN + j, x, h));
            c[j] = (float)(forget * (double)c[j] + in * fresh);
            next[j] = (float)(out * tanh((double)c[j]));
        }
        memcpy(h, next, sizeof next);
        memcpy(d->y + ((time * 2 + direction) * BATCH + entry) * HIDDEN, h, sizeof next);
    }
}

static lstm_data *make_data(bool has_lengths) {
    lstm_data *d = calloc(1, sizeof *d);
    assert_non_null(d);
    fill_floats(d->x, TN_COUNTOF(d->x), 1);
    fill_floats(d->w, TN_COUNTOF(d->w), 2);
    fill_floats(d->r, TN_COUNTOF(d->r), 3);
    fill_floats(d->b, TN_COUNTOF(d->b), 4);
    fill_floats(d->h0, TN_COUNTOF(d->h0), 5);
    fill_floats(d->c0, TN_COUNTOF(d->c0), 6);
    for (size_t i = 0; i < BATCH; i++) {
        d->lengths[i] = has_lengths ? (int32_t)(i % (STEPS + 1)) : STEPS;
    }
    for (size_t direction = 0; direction < 2; direction++) {
        for (size_t entry = 0; entry < BATCH; entry++) reference_entry(d, direction, entry);
    }
    return d;
}

static void begin_lstm(op_case *c, const lstm_data *d, bool has_lengths) {
    op_case_begin(c, "LSTM", 14);
    op_case_set_int(c, "hidden_size", HIDDEN);
    op_case_set_text(c, "direction", "bidirectional");
    op_case_input(c, TN_DTYPE_F32, d->x, OP_SHAPE(STEPS, BATCH, INPUT));
    op_case_weight(c, TN_DTYPE_F32, d->w, OP_SHAPE(2, WIDTH, INPUT));
    op_case_weight(c, TN_DTYPE_F32, d->r, OP_SHAPE(2, WIDTH, HIDDEN));
    op_case_weight(c, TN_DTYPE_F32, d->b, OP_SHAPE(2, 2 * WIDTH));
    if (has_lengths) {
        op_case_input(c, TN_DTYPE_I32, d->lengths, OP_SHAPE(BATCH));
    } else {
        op_case_skip_input(c);
    }
    op_case_input(c, TN_DTYPE_F32, d->h0, OP_SHAPE(2, BATCH, HIDDEN));
    op_case_input(c, TN_DTYPE_F32, d->c0, OP_SHAPE(2, BATCH, HIDDEN));
    op_case_set_outputs(c, 3);
}

static void check_lstm(bool has_lengths) {
    lstm_data *d = make_data(has_lengths);
    op_case c;
    begin_lstm(&c, d, has_lengths);
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 2));

        assert_shape(&c, 0, OP_SHAPE(STEPS, 2, BATCH, HIDDEN));
        assert_floats(op_case_output(&c, 0), d->y, TN_COUNTOF(d->y), 1e-4);
        assert_floats(op_case_output(&c, 1), d->y_h, TN_COUNTOF(d->y_h), 1e-4);
        assert_floats(op_case_output(&c, 2), d->y_c, TN_COUNTOF(d->y_c), 1e-4);
    }
    op_case_end(&c);
    free(d);
}

static void lstm_in_both_directions_matches_its_definition(void **state) {
    (void)state;
    check_lstm(false);
}

static void lstm_with_lengths_stops_each_entry_and_clears_the_rest(void **state) {
    (void)state;
    check_lstm(true);
}

static void lstm_with_only_the_last_state_wanted_gives_it(void **state) {
    (void)state;
    lstm_data *d = make_data(false);
    op_case c;
    begin_lstm(&c, d, false);
    c.output_count = 2;
    c.output_present[0] = false;

    ASSERT_OK(op_case_run(&c, -1, 1));

    assert_floats(op_case_output(&c, 1), d->y_h, TN_COUNTOF(d->y_h), 1e-4);
    op_case_end(&c);
    free(d);
}

static void lstm_with_weights_of_another_shape_is_refused(void **state) {
    (void)state;
    lstm_data *d = make_data(false);
    op_case c;
    begin_lstm(&c, d, false);
    c.inputs[1].shape.dims[2] = INPUT - 1;

    ASSERT_STATUS(TN_INVALID_ARGUMENT, op_case_run(&c, -1, 1));

    assert_non_null(strstr(c.err.message, "input 1"));
    op_case_end(&c);
    free(d);
}

static void rnn_adds_the_state_of_the_step_before(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3}; /* [3, 1, 1] */
    static const float w[] = {1};
    static const float r[] = {0.5F};
    static const float expected[] = {1, 2.5F, 4.25F};
    static const tn_text relu = {"Relu", 4};
    op_case c;
    op_case_begin(&c, "RNN", 7);
    op_case_attribute(&c, "activations", TN_ATTRIBUTE_STRINGS)->strings = &relu;
    op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(3, 1, 1));
    op_case_input(&c, TN_DTYPE_F32, w, OP_SHAPE(1, 1, 1));
    op_case_input(&c, TN_DTYPE_F32, r, OP_SHAPE(1, 1, 1));
    const uint32_t count = op_case_variant_count(&c);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_OK(op_case_run(&c, (int32_t)i, 1));

        assert_floats(op_case_output(&c, 0), expected, 3, 1e-6);
    }
    op_case_end(&c);
}

/* One step with everything 0 but the recurrence bias of the hidden gate: 0.5 * tanh(0.5 * 2) where
 * the reset gate scales that bias, 0.5 * tanh(2) where it does not. */
static void gru_scales_the_recurrence_bias_only_after_a_linear_reset(void **state) {
    (void)state;
    static const float x[] = {0};
    static const float zeros[3] = {0};
    static const float b[] = {0, 0, 0, 0, 0, 2};
    for (int64_t resets_after = 0; resets_after < 2; resets_after++) {
        const float expected[] = {0.5F * tanhf(resets_after == 1 ? 1.0F : 2.0F)};
        op_case c;
        op_case_begin(&c, "GRU", 22);
        op_case_set_int(&c, "linear_before_reset", resets_after);
        op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, 1));
        op_case_input(&c, TN_DTYPE_F32, zeros, OP_SHAPE(1, 3, 1));
        op_case_input(&c, TN_DTYPE_F32, zeros, OP_SHAPE(1, 3, 1));
        op_case_input(&c, TN_DTYPE_F32, b, OP_SHAPE(1, 6));

        ASSERT_OK(op_case_run(&c, -1, 1));

        assert_floats(op_case_output(&c, 0), expected, 1, 1e-6);
        op_case_end(&c);
    }
}

static void recurrent_with_an_unknown_activation_is_refused(void **state) {
    (void)state;
    static const tn_text name = {"Sine", 4};
    static const float x[1] = {0};
    op_case c;
    op_case_begin(&c, "RNN", 7);
    op_case_attribute(&c, "activations", TN_ATTRIBUTE_STRINGS)->strings = &name;
    for (size_t i = 0; i < 3; i++) op_case_input(&c, TN_DTYPE_F32, x, OP_SHAPE(1, 1, 1));

    ASSERT_STATUS(TN_INVALID_MODEL, op_case_run(&c, -1, 1));

    assert_non_null(strstr(c.err.message, "Sine"));
    op_case_end(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        T(lstm_in_both_directions_matches_its_definition),
        T(lstm_with_lengths_stops_each_entry_and_clears_the_rest),
        T(lstm_with_only_the_last_state_wanted_gives_it),
        T(lstm_with_weights_of_another_shape_is_refused),
        T(rnn_adds_the_state_of_the_step_before),
        T(gru_scales_the_recurrence_bias_only_after_a_linear_reset),
        T(recurrent_with_an_unknown_activation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
