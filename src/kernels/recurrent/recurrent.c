/* Rows of LSTM, GRU and RNN. f32 only: everything else about them lies in recurrent_shape.c and
 * recurrent_run.c. A constant R is packed once; W is packed in scratch when many rows meet it. */
#include "kernels/recurrent/recurrent.h"

#include <string.h>

#include "base/checked_size.h"

/* Packing formats of this family: base + instruction set. */
enum { PACK_FORMAT_BASE = 0x1100 };

static const char *const variant_names[TN_GEMM_ISA_COUNT] = {"recurrent portable", "recurrent avx2",
                                                             "recurrent avx512"};

static const tn_gemm_isa *isa_of(const tn_variant *variant, tn_cpu_features cpu) {
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, cpu);
        if (isa != NULL && strcmp(variant->name, variant_names[id]) == 0) return isa;
    }
    return &tn_gemm_portable;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const tn_recurrent_record *r = record;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        tn_recurrent_run_tile(r, ctx, tile, worker);
    }
    return TN_OK;
}

static bool packs_weight(const tn_node_facts *node) {
    const tn_fact *r = tn_node_input(node, TN_RECURRENT_R);
    return r != NULL && r->is_constant && r->data != NULL && tn_fact_is_sized(r);
}

static tn_status describe(const tn_node_facts *node, const tn_gemm_isa *isa, bool is_packed,
                          tn_recurrent_record *out, tn_error *err) {
    tn_recurrent_describe(node, out);
    out->isa = isa;
    out->r_is_packed = is_packed;
    TN_REQUIRE(tn_recurrent_lay_out(out), err, TN_OVERFLOW,
               "a hidden size of %zu and %zu inputs need more scratch than there is memory",
               out->geometry.hidden, out->geometry.input);
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    const tn_node_facts *node = query->node;
    const bool is_packed = packs_weight(node);
    *out_count = 0;
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, query->cpu);
        if (isa == NULL) continue;
        tn_recurrent_record r;
        TN_TRY(describe(node, isa, is_packed, &r, err));
        const tn_recurrent_geometry *g = &r.geometry;
        tn_variant *variant = &out[(*out_count)++];
        *variant = (tn_variant){.name = variant_names[id],
                                .run = run,
                                .pack_input = TN_RECURRENT_R,
                                .worker_scratch_bytes = r.scratch.total * sizeof(float)};
        if (is_packed) variant->pack_format = (uint16_t)(PACK_FORMAT_BASE + id);
        variant->tile_counts[0] = (uint32_t)(g->directions * g->blocks);
        const double macs = (double)g->steps * (double)g->batch * (double)g->directions *
                            (double)g->gate_width * (double)(g->input + g->hidden);
        variant->cost_ns = 200.0 + 4.0 * macs / isa->macs_per_ns;
    }
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    static const tn_cpu_features features[TN_GEMM_ISA_COUNT] = {TN_CPU_PORTABLE, TN_CPU_AVX2,
                                                                TN_CPU_AVX512};
    tn_recurrent_record *r = record;
    const tn_gemm_isa *isa = isa_of(ctx->variant, ctx->cpu);
    TN_TRY(describe(ctx->node, isa, ctx->variant->pack_format != 0, r, ctx->err));
    r->cells = tn_recurrent_cells_get(features[isa->id] & ctx->cpu);
    return TN_OK;
}

static tn_status pack_size(const tn_pack_context *ctx, size_t *out_bytes) {
    tn_recurrent_record r;
    tn_recurrent_describe(ctx->node, &r);
    size_t floats = 0;
    TN_REQUIRE(tn_recurrent_packed_r(&r.geometry, isa_of(ctx->variant, ctx->cpu), &floats) &&
                   tn_size_mul(floats, r.geometry.directions * sizeof(float), out_bytes),
               ctx->err, TN_OVERFLOW, "a packed R of hidden size %zu is too large",
               r.geometry.hidden);
    return TN_OK;
}

static tn_status pack(const tn_pack_context *ctx, void *packed) {
    tn_recurrent_record r;
    tn_recurrent_describe(ctx->node, &r);
    const tn_gemm_isa *isa = isa_of(ctx->variant, ctx->cpu);
    const char *from = tn_node_input(ctx->node, TN_RECURRENT_R)->data;
    const size_t matrix_bytes = r.geometry.gate_width * r.geometry.hidden * sizeof(float);
    size_t floats = 0;
    (void)tn_recurrent_packed_r(&r.geometry, isa, &floats);
    for (size_t d = 0; d < r.geometry.directions; d++) {
        tn_recurrent_pack_r(&r.geometry, isa, from + d * matrix_bytes,
                            (float *)packed + d * floats);
    }
    return TN_OK;
}

#define REAL TN_TYPE_BIT(F32)

static const uint32_t types[] = {REAL, REAL, REAL, REAL, TN_TYPE_BIT(I32), REAL, REAL, REAL};

#define ROW(op_name, since, until, most, outputs, check_fn)                                       \
    {                                                                                             \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = 3,         \
        .max_inputs = most, .min_outputs = 0, .max_outputs = outputs, .flags = TN_OP_FOLDABLE,    \
        .input_types = types, .input_types_count = TN_COUNTOF(types),                             \
        .params_bytes = sizeof(tn_recurrent_params), .record_bytes = sizeof(tn_recurrent_record), \
        .check = check_fn, .infer = tn_recurrent_infer, .variants = variants, .bind = bind,       \
        .pack_size = pack_size, .pack = pack                                                      \
    }

static const tn_op_def rows[] = {
    ROW("LSTM", 1, 6, 8, 3, tn_recurrent_check_lstm),
    ROW("LSTM", 7, 13, 8, 3, tn_recurrent_check_lstm),
    ROW("LSTM", 14, 21, 8, 3, tn_recurrent_check_lstm),
    ROW("LSTM", 22, 0, 8, 3, tn_recurrent_check_lstm),
    ROW("GRU", 1, 2, 6, 2, tn_recurrent_check_gru),
    ROW("GRU", 3, 6, 6, 2, tn_recurrent_check_gru),
    ROW("GRU", 7, 13, 6, 2, tn_recurrent_check_gru),
    ROW("GRU", 14, 21, 6, 2, tn_recurrent_check_gru),
    ROW("GRU", 22, 0, 6, 2, tn_recurrent_check_gru),
    ROW("RNN", 1, 6, 6, 2, tn_recurrent_check_rnn),
    ROW("RNN", 7, 13, 6, 2, tn_recurrent_check_rnn),
    ROW("RNN", 14, 21, 6, 2, tn_recurrent_check_rnn),
    ROW("RNN", 22, 0, 6, 2, tn_recurrent_check_rnn),
};

const tn_op_table tn_recurrent_table = {rows, TN_COUNTOF(rows)};
