/* What LSTM, GRU and RNN share: parameters, geometry, scratch. */
#ifndef TN_KERNELS_RECURRENT_H
#define TN_KERNELS_RECURRENT_H

#include "kernels/common/gemm.h"
#include "kernels/recurrent/recurrent_cells.h"
#include "plan/op_def.h"

/* Inputs and outputs by slot; RNN and GRU have no INITIAL_C, PEEPHOLES and Y_C. */
enum {
    TN_RECURRENT_X,
    TN_RECURRENT_W,
    TN_RECURRENT_R,
    TN_RECURRENT_B,
    TN_RECURRENT_LENGTHS,
    TN_RECURRENT_INITIAL_H,
    TN_RECURRENT_INITIAL_C,
    TN_RECURRENT_PEEPHOLES,
    TN_RECURRENT_INPUTS
};
enum { TN_RECURRENT_Y, TN_RECURRENT_Y_H, TN_RECURRENT_Y_C, TN_RECURRENT_OUTPUTS };

typedef enum tn_recurrent_kind {
    TN_RECURRENT_RNN,
    TN_RECURRENT_GRU,
    TN_RECURRENT_LSTM
} tn_recurrent_kind;

typedef enum tn_recurrent_direction {
    TN_RECURRENT_FORWARD,
    TN_RECURRENT_REVERSE,
    TN_RECURRENT_BOTH
} tn_recurrent_direction;

typedef struct tn_recurrent_params {
    tn_recurrent_kind kind;
    tn_recurrent_direction direction;
    int64_t hidden_size; /* 0: from R */
    tn_recurrent_activation activations[2][3];
    float clip; /* 0: none */
    bool is_batch_first;
    bool couples_gates; /* LSTM input_forget */
    bool resets_after;  /* GRU linear_before_reset */
} tn_recurrent_params;

/* Sizes of one node. */
typedef struct tn_recurrent_geometry {
    size_t steps, batch, input, hidden;
    size_t directions;
    size_t gates;      /* 1, 3, 4 */
    size_t gate_width; /* gates * hidden */
    size_t r_parts;    /* column groups of R that are multiplied apart: GRU 2, else 1 */
    size_t part_cols[2];
    size_t batch_block; /* batch entries of one tile */
    size_t blocks;
    size_t chunk_steps; /* steps whose input products are made at once */
} tn_recurrent_geometry;

/* Where the parts of a worker's scratch begin, in floats. */
typedef struct tn_recurrent_scratch {
    size_t bias;        /* [gate_width] and [hidden]: sums, and GRU's part that the reset scales */
    size_t packed_w;    /* whole W of a direction when many rows meet it */
    size_t packed_r;    /* R of a direction when it is not packed by the plan */
    size_t gates;       /* [chunk_steps, batch_block, gate_width] */
    size_t h, c, extra; /* [batch_block, hidden] each; extra: GRU */
    size_t gemm;
    size_t total;
} tn_recurrent_scratch;

typedef struct tn_recurrent_record {
    tn_recurrent_params params;
    tn_recurrent_geometry geometry;
    tn_recurrent_scratch scratch;
    const tn_gemm_isa *isa;
    const tn_recurrent_cells *cells;
    size_t packed_r_floats; /* of one direction */
    bool has_input[TN_RECURRENT_INPUTS];
    bool has_output[TN_RECURRENT_OUTPUTS];
    bool packs_w;       /* in scratch */
    bool r_is_packed;   /* by the plan */
    bool is_plain_lstm; /* the fused cell fits */
} tn_recurrent_record;

/* check, infer, ... of the rows. */
tn_status tn_recurrent_check_rnn(const tn_check_context *ctx, void *params);
tn_status tn_recurrent_check_gru(const tn_check_context *ctx, void *params);
tn_status tn_recurrent_check_lstm(const tn_check_context *ctx, void *params);
tn_status tn_recurrent_infer(const tn_node_facts *node, tn_error *err);

/* Fills everything but isa, cells and packing from the facts; unknown dims count as 1. */
void tn_recurrent_describe(const tn_node_facts *node, tn_recurrent_record *out);

/* Lays the scratch out; needs isa, packs_w, r_is_packed. False on overflow. */
bool tn_recurrent_lay_out(tn_recurrent_record *record);

/* Floats of one packed direction of R. */
bool tn_recurrent_packed_r(const tn_recurrent_geometry *geometry, const tn_gemm_isa *isa,
                           size_t *out_floats);
void tn_recurrent_pack_r(const tn_recurrent_geometry *geometry, const tn_gemm_isa *isa,
                         const void *r, float *packed);

/* One tile: a direction and a block of the batch. */
void tn_recurrent_run_tile(const tn_recurrent_record *record, tn_kernel_context *ctx, uint32_t tile,
                           uint32_t worker);

#endif
