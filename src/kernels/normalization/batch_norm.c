/* BatchNormalization over [N, C, S]: with given statistics channel plane by channel plane, or in
 * training mode with those of the batch, one channel per unit of work. Before opset 9 statistics
 * may be per activation (spatial = 0): then every activation is a channel of its own. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/normalization/norm_kernels.h"
#include "plan/op_def.h"

enum { TILE_ELEMS = 64 * 1024 };

/* Inputs and outputs by slot. */
enum { IN_X, IN_SCALE, IN_BIAS, IN_MEAN, IN_VAR, INPUTS };
enum { OUT_Y, OUT_MEAN, OUT_VAR, OUT_SAVED_MEAN, OUT_SAVED_VAR, OUTPUTS };

typedef struct batch_norm_params {
    float epsilon;
    float momentum;
    bool is_training;
    bool is_per_activation;
} batch_norm_params;

typedef struct batch_norm_record {
    const tn_norm_kernel *kernel;
    tn_dtype types[INPUTS];
    tn_dtype out_types[OUTPUTS];
    size_t element_bytes;
    size_t batches, channels, plane;
    size_t tile_units;
    double epsilon;
    double momentum;
    bool is_training;
} batch_norm_record;

static const char portable_name[] = "batch norm portable";

static tn_status check_common(const tn_check_context *ctx, batch_norm_params *p) {
    TN_TRY(tn_check_float(ctx, "epsilon", 1e-5F, &p->epsilon));
    return tn_check_float(ctx, "momentum", 0.9F, &p->momentum);
}

static bool wants_statistics(const tn_check_context *ctx) {
    for (uint32_t i = 1; i < ctx->output_count; i++) {
        if (ctx->output_present[i]) return true;
    }
    return false;
}

/* Opsets 1 to 8: trains when statistics are wanted, unless is_test (gone in 7) says no. */
static tn_status check_1(const tn_check_context *ctx, void *params) {
    batch_norm_params *p = params;
    int64_t is_test;
    int64_t spatial;
    TN_TRY(tn_check_int(ctx, "is_test", 0, &is_test));
    TN_TRY(tn_check_int(ctx, "spatial", 1, &spatial));
    p->is_per_activation = spatial == 0;
    p->is_training = is_test == 0 && wants_statistics(ctx);
    return check_common(ctx, p);
}

static tn_status check_9(const tn_check_context *ctx, void *params) {
    batch_norm_params *p = params;
    p->is_training = wants_statistics(ctx);
    return check_common(ctx, p);
}

static tn_status check_14(const tn_check_context *ctx, void *params) {
    batch_norm_params *p = params;
    int64_t training_mode;
    TN_TRY(tn_check_int(ctx, "training_mode", 0, &training_mode));
    p->is_training = training_mode != 0;
    TN_REQUIRE(p->is_training || !wants_statistics(ctx), ctx->err, TN_INVALID_MODEL,
               "training_mode 0 has one output, %u are named", ctx->output_count);
    return check_common(ctx, p);
}

/* Channels of x, or TN_DIM_UNKNOWN. */
static int64_t channels_of(const tn_node_facts *node) {
    const batch_norm_params *p = node->params;
    const tn_shape *x = &tn_node_input(node, IN_X)->shape;
    if (x->rank < 0) return TN_DIM_UNKNOWN;
    if (x->rank < 2) return 1;
    int64_t channels = x->dims[1];
    for (int32_t i = 2; p->is_per_activation && i < x->rank; i++) {
        if (channels < 0 || x->dims[i] < 0) return TN_DIM_UNKNOWN;
        channels *= x->dims[i];
    }
    return channels;
}

/* Each of scale, bias, mean, var must hold one value per channel. */
static tn_status check_lengths(const tn_node_facts *node, int64_t channels, tn_error *err) {
    for (uint32_t i = IN_SCALE; i < INPUTS; i++) {
        const tn_fact *input = tn_node_input(node, i);
        if (channels < 0 || input == NULL || !tn_fact_is_sized(input)) continue;
        TN_REQUIRE(tn_fact_len_elems(input) == (size_t)channels, err, TN_INVALID_ARGUMENT,
                   "input %u has %zu elements, the channels are %lld", i, tn_fact_len_elems(input),
                   (long long)channels);
    }
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    if (tn_node_input(node, IN_X) == NULL) return TN_OK;
    TN_TRY(tn_infer_same_as_input0(node, err));
    const int64_t channels = channels_of(node);
    TN_TRY(check_lengths(node, channels, err));
    for (uint32_t i = OUT_MEAN; i < OUTPUTS; i++) {
        tn_fact *output = tn_node_output(node, i);
        if (output == NULL) continue;
        const tn_fact *like = tn_node_input(node, IN_MEAN);
        output->kind = TN_KIND_TENSOR;
        output->dtype = like == NULL ? tn_node_input(node, IN_X)->dtype : like->dtype;
        output->shape = (tn_shape){.rank = 1, .dims = {channels}};
        if (like != NULL && tn_fact_is_sized(like)) output->shape = like->shape;
    }
    return TN_OK;
}

static tn_status describe(const tn_node_facts *node, tn_cpu_features cpu, batch_norm_record *r,
                          tn_error *err) {
    const batch_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, IN_X);
    *r = (batch_norm_record){.kernel = tn_norm_get(x->dtype, cpu),
                             .element_bytes = tn_dtype_bits(x->dtype) / 8,
                             .batches = 1,
                             .plane = 1,
                             .epsilon = (double)p->epsilon,
                             .momentum = (double)p->momentum,
                             .is_training = p->is_training};
    TN_REQUIRE(r->kernel != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    for (uint32_t i = 0; i < INPUTS; i++) {
        const tn_fact *input = tn_node_input(node, i);
        if (input != NULL) r->types[i] = input->dtype;
    }
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        const tn_fact *output = tn_node_output(node, i);
        if (output != NULL) r->out_types[i] = output->dtype;
    }
    const int64_t channels = channels_of(node);
    r->channels = channels < 0 ? 1 : (size_t)channels;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        const size_t dim = x->shape.dims[i] < 0 ? 1 : (size_t)x->shape.dims[i];
        if (i == 0) r->batches = dim;
        if (i >= 2 && !p->is_per_activation) r->plane *= dim;
    }
    const size_t unit_elems = tn_size_max(r->plane * (r->is_training ? r->batches : 1), 1);
    r->tile_units = tn_size_max(TILE_ELEMS / unit_elems, 1);
    return TN_OK;
}

static size_t unit_count(const batch_norm_record *r) {
    return r->is_training ? r->channels : r->batches * r->channels;
}

static double load(const batch_norm_record *r, const tn_kernel_context *ctx, uint32_t slot,
                   size_t channel) {
    return tn_norm_load(r->types[slot], tn_kernel_in(ctx, slot), channel);
}

static void apply(const batch_norm_record *r, const tn_kernel_context *ctx, size_t unit,
                  double mean, double var) {
    if (r->out_types[OUT_Y] == TN_DTYPE_NONE) return;
    const size_t channel = unit % r->channels;
    const size_t at = unit * r->plane * r->element_bytes;
    const tn_norm_row row = {.x = (const char *)tn_kernel_in(ctx, IN_X) + at,
                             .y = (char *)tn_kernel_out(ctx, OUT_Y) + at,
                             .count = r->plane,
                             .mean = mean,
                             .factor = 1.0 / sqrt(var + r->epsilon)};
    r->kernel->apply_one(&row, load(r, ctx, IN_SCALE, channel), load(r, ctx, IN_BIAS, channel));
}

static void write_statistic(const batch_norm_record *r, const tn_kernel_context *ctx, uint32_t slot,
                            size_t channel, double value) {
    if (r->out_types[slot] == TN_DTYPE_NONE) return;
    tn_norm_store(r->out_types[slot], tn_kernel_out(ctx, slot), channel, value);
}

/* One channel over the whole batch. */
static void train(const batch_norm_record *r, const tn_kernel_context *ctx, size_t channel) {
    const char *x = tn_kernel_in(ctx, IN_X);
    const double count = (double)r->batches * (double)r->plane;
    double mean = 0;
    double var = 0;
    for (size_t n = 0; n < r->batches; n++) {
        const size_t at = (n * r->channels + channel) * r->plane * r->element_bytes;
        mean += r->kernel->sum(x + at, r->plane);
    }
    mean /= count;
    for (size_t n = 0; n < r->batches; n++) {
        const size_t at = (n * r->channels + channel) * r->plane * r->element_bytes;
        var += r->kernel->deviation(x + at, r->plane, mean);
    }
    var /= count;
    for (size_t n = 0; n < r->batches; n++) apply(r, ctx, n * r->channels + channel, mean, var);
    const double keep = r->momentum;
    write_statistic(r, ctx, OUT_MEAN, channel,
                    load(r, ctx, IN_MEAN, channel) * keep + mean * (1 - keep));
    write_statistic(r, ctx, OUT_VAR, channel,
                    load(r, ctx, IN_VAR, channel) * keep + var * (1 - keep));
    write_statistic(r, ctx, OUT_SAVED_MEAN, channel, mean);
    write_statistic(r, ctx, OUT_SAVED_VAR, channel, var);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const batch_norm_record *r = record;
    const size_t end = tn_size_min((size_t)tile1 * r->tile_units, unit_count(r));
    for (size_t unit = (size_t)tile0 * r->tile_units; unit < end; unit++) {
        if (r->is_training) {
            train(r, ctx, unit);
        } else {
            const size_t channel = unit % r->channels;
            apply(r, ctx, unit, load(r, ctx, IN_MEAN, channel), load(r, ctx, IN_VAR, channel));
        }
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    batch_norm_record r;
    TN_TRY(describe(query->node, TN_CPU_PORTABLE, &r, err));
    const double elems = (double)r.batches * (double)r.channels * (double)r.plane;
    out[0] = (tn_variant){.name = portable_name, .run = run, .cost_ns = 50.0 + elems * 0.5};
    out[0].tile_counts[0] =
        (uint32_t)tn_size_max((unit_count(&r) + r.tile_units - 1) / r.tile_units, 1);
    *out_count = 1;
    if (tn_node_input(query->node, IN_X)->dtype != TN_DTYPE_F32 ||
        tn_norm_f32_fastest(query->cpu) == NULL) {
        return TN_OK;
    }
    out[1] = out[0];
    out[1].name = "batch norm vector";
    out[1].cost_ns = 50.0 + elems * 0.2;
    *out_count = 2;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const bool is_portable = strcmp(ctx->variant->name, portable_name) == 0;
    return describe(ctx->node, is_portable ? TN_CPU_PORTABLE : ctx->cpu, record, ctx->err);
}

/* Inference with constant f32 statistics is a scale and a shift per channel. */
static bool as_affine(const tn_node_facts *node, size_t channels, float *scale, float *shift) {
    const batch_norm_params *p = node->params;
    if (p->is_training || p->is_per_activation) return false;
    for (uint32_t i = IN_X + 1; i < INPUTS; i++) {
        const tn_fact *fact = node->inputs[i];
        if (fact->dtype != TN_DTYPE_F32 || fact->data == NULL || !tn_fact_is_sized(fact) ||
            tn_fact_len_elems(fact) != channels) {
            return false;
        }
    }
    for (size_t c = 0; c < channels; c++) {
        float values[INPUTS];
        for (uint32_t i = IN_X + 1; i < INPUTS; i++) {
            memcpy(&values[i], (const char *)node->inputs[i]->data + c * sizeof(float),
                   sizeof(float));
        }
        const double factor =
            (double)values[IN_SCALE] / sqrt((double)values[IN_VAR] + (double)p->epsilon);
        scale[c] = (float)factor;
        shift[c] = (float)((double)values[IN_BIAS] - (double)values[IN_MEAN] * factor);
    }
    return true;
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))

static const uint32_t types_1[] = {FLOATS};
static const uint32_t types_14[] = {FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(since, until, outputs, types, same_types, check_fn)                                    \
    {                                                                                              \
        .name = "BatchNormalization", .since_version = since, .until_version = until,              \
        .min_inputs = INPUTS, .max_inputs = INPUTS, .min_outputs = 1, .max_outputs = outputs,      \
        .flags = TN_OP_FOLDABLE, .in_place_mask = 1, .input_types = types, .input_types_count = 1, \
        .same_type_mask = same_types, .params_bytes = sizeof(batch_norm_params),                   \
        .record_bytes = sizeof(batch_norm_record), .check = check_fn, .infer = infer,              \
        .variants = variants, .bind = bind, .as_affine = as_affine                                 \
    }

static const tn_op_def rows[] = {
    ROW(1, 5, 5, types_1, 0x1f, check_1),     ROW(6, 6, 5, types_1, 0x1f, check_1),
    ROW(7, 8, 5, types_1, 0x1f, check_1),     ROW(9, 13, 5, types_1, 0x1f, check_9),
    ROW(14, 14, 3, types_14, 0x07, check_14), ROW(15, 0, 3, types_14, 0, check_14),
};

const tn_op_table tn_batch_norm_table = {rows, TN_COUNTOF(rows)};
