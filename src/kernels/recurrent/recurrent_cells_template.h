/* Activations and the LSTM cell, included once per instruction set as the table RECURRENT_CELLS. */
#ifndef TN_KERNELS_RECURRENT_CELLS_TEMPLATE_H
#define TN_KERNELS_RECURRENT_CELLS_TEMPLATE_H

#include <math.h>

#include "kernels/common/exp_lane.h"
#include "kernels/recurrent/recurrent_cells.h"

#define FORM_RELU(x) ((x) > 0.0F || (x) != (x) ? (x) : 0.0F)
#define FORM_TANH(x) tn_tanh_lane(x)
#define FORM_SIGMOID(x) tn_sigmoid_lane(x)
#define FORM_AFFINE(x) (alpha * (x) + beta)
#define FORM_LEAKY_RELU(x) ((x) < 0.0F ? alpha * (x) : (x))
#define FORM_THRESHOLDED(x) ((x) >= alpha || (x) != (x) ? (x) : 0.0F)
#define FORM_SCALED_TANH(x) (alpha * tn_tanh_lane(beta * (x)))
#define FORM_HARD_SIGMOID(x) fminf(fmaxf(alpha *(x) + beta, 0.0F), 1.0F)
#define FORM_ELU(x) ((x) < 0.0F ? alpha * expm1f(x) : (x))
#define FORM_SOFTSIGN(x) ((x) / (1.0F + fabsf(x)))
#define FORM_SOFTPLUS(x) ((x) > 0.0F ? (x) + log1pf(expf(-(x))) : log1pf(expf(x)))

#define DEFINE_ACTIVATION(name, ...)                                                           \
    static void activate_##name(float *x, size_t count, const float alpha, const float beta) { \
        (void)alpha;                                                                           \
        (void)beta;                                                                            \
        for (size_t i = 0; i < count; i++) x[i] = FORM_##name(x[i]);                           \
    }
TN_RECURRENT_ACTIVATION_LIST(DEFINE_ACTIVATION)
#undef DEFINE_ACTIVATION

typedef void (*activation_fn)(float *x, size_t count, float alpha, float beta);

static const activation_fn activations[TN_RECURRENT_FUNCTION_COUNT] = {
#define ACTIVATION_ENTRY(name, ...) activate_##name,
    TN_RECURRENT_ACTIVATION_LIST(ACTIVATION_ENTRY)
#undef ACTIVATION_ENTRY
};

static void activate(const tn_recurrent_activation *activation, float *x, size_t count) {
    activations[activation->function](x, count, activation->alpha, activation->beta);
}

static void lstm_row(const tn_lstm_row *row) {
    const size_t hidden = row->hidden;
    const float *in = row->gates;
    const float *out = in + hidden;
    const float *forget = out + hidden;
    const float *cell = forget + hidden;
    float *restrict c = row->c;
    float *restrict h = row->h;
    for (size_t j = 0; j < hidden; j++) {
        const float fresh = tn_sigmoid_lane(in[j]) * tn_tanh_lane(cell[j]);
        const float state = tn_sigmoid_lane(forget[j]) * c[j] + fresh;
        c[j] = state;
        h[j] = tn_sigmoid_lane(out[j]) * tn_tanh_lane(state);
    }
}

const tn_recurrent_cells RECURRENT_CELLS = {activate, lstm_row};

#endif
