/* The elementwise half of the recurrent operators: activations over f32 rows and the fused cell of
 * an LSTM, one table per instruction set with the same bits. */
#ifndef TN_KERNELS_RECURRENT_CELLS_H
#define TN_KERNELS_RECURRENT_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_features.h"

/* X(ENUM, name in models, default alpha, default beta) */
#define TN_RECURRENT_ACTIVATION_LIST(X)           \
    X(RELU, "Relu", 0.0F, 0.0F)                   \
    X(TANH, "Tanh", 0.0F, 0.0F)                   \
    X(SIGMOID, "Sigmoid", 0.0F, 0.0F)             \
    X(AFFINE, "Affine", 1.0F, 0.0F)               \
    X(LEAKY_RELU, "LeakyRelu", 0.01F, 0.0F)       \
    X(THRESHOLDED, "ThresholdedRelu", 1.0F, 0.0F) \
    X(SCALED_TANH, "ScaledTanh", 1.0F, 1.0F)      \
    X(HARD_SIGMOID, "HardSigmoid", 0.2F, 0.5F)    \
    X(ELU, "Elu", 1.0F, 0.0F)                     \
    X(SOFTSIGN, "Softsign", 0.0F, 0.0F)           \
    X(SOFTPLUS, "Softplus", 0.0F, 0.0F)

typedef enum tn_recurrent_function {
#define TN_RECURRENT_ENUM(name, text, alpha, beta) TN_RECURRENT_##name,
    TN_RECURRENT_ACTIVATION_LIST(TN_RECURRENT_ENUM)
#undef TN_RECURRENT_ENUM
        TN_RECURRENT_FUNCTION_COUNT
} tn_recurrent_function;

typedef struct tn_recurrent_activation {
    tn_recurrent_function function;
    float alpha;
    float beta;
} tn_recurrent_activation;

/* One row of one step of an LSTM with Sigmoid, Tanh, Tanh and nothing else: gates i, o, f, g, each
 * [hidden], one after another. Reads and writes c; writes h. */
typedef struct tn_lstm_row {
    const float *gates;
    float *c;
    float *h;
    size_t hidden;
} tn_lstm_row;

typedef struct tn_recurrent_cells {
    /* x [count] = f(x). */
    void (*activate)(const tn_recurrent_activation *activation, float *x, size_t count);
    void (*lstm_row)(const tn_lstm_row *row);
} tn_recurrent_cells;

/* Lends the cells of the best instruction set of `cpu`. */
const tn_recurrent_cells *tn_recurrent_cells_get(tn_cpu_features cpu);

extern const tn_recurrent_cells tn_recurrent_cells_portable;
extern const tn_recurrent_cells tn_recurrent_cells_avx2;
extern const tn_recurrent_cells tn_recurrent_cells_avx512;

#endif
