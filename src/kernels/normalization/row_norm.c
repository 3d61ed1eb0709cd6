/* Normalisations whose statistics belong to contiguous rows: LayerNormalization and
 * RMSNormalization (rows from an axis to the end), InstanceNormalization (one channel plane),
 * GroupNormalization (several channel planes). A row is cut into pieces that share one scale, or
 * has a scale for each of its elements. */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/normalization/norm_kernels.h"
#include "plan/op_def.h"

enum { TILE_ELEMS = 32 * 1024 };
enum { IN_X, IN_SCALE, IN_BIAS };

typedef enum row_norm_kind { KIND_LAYER, KIND_RMS, KIND_INSTANCE, KIND_GROUP } row_norm_kind;

typedef struct row_norm_params {
    int64_t axis;
    int64_t group_count;
    tn_dtype stash_type; /* of Mean and InvStdDev */
    float epsilon;
    row_norm_kind kind;
    bool scales_groups; /* GroupNormalization 18: one scale per group, not per channel */
    uint8_t mean_slot;  /* 0: no such output */
    uint8_t inverse_slot;
} row_norm_params;

typedef struct row_norm_record {
    const tn_norm_kernel *kernel;
    tn_dtype x_type, scale_type, bias_type, y_type;
    tn_dtype stash_type;
    size_t rows, length;
    size_t tile_rows;
    double epsilon;
    bool subtracts_mean;
    bool scales_each; /* scale [length] of the type of x, else pieces */
    bool is_general;  /* scale or bias of another type or broadcast along the row */
    size_t pieces, piece_length;
    size_t scale_cycle; /* pieces * this many rows until scales repeat */
    uint8_t mean_slot, inverse_slot;
    /* is_general: shape of x and steps of scale and bias along it */
    int32_t rank;
    size_t dims[TN_MAX_RANK];
    size_t scale_steps[TN_MAX_RANK];
    size_t bias_steps[TN_MAX_RANK];
    bool scales_groups;
} row_norm_record;

static const char portable_name[] = "row norm portable";

static tn_status check_stash(const tn_check_context *ctx, row_norm_params *p) {
    int64_t stash_type;
    TN_TRY(tn_check_int(ctx, "stash_type", 1, &stash_type));
    const bool is_float = stash_type == TN_DTYPE_F32 || stash_type == TN_DTYPE_F64 ||
                          stash_type == TN_DTYPE_F16 || stash_type == TN_DTYPE_BF16;
    TN_REQUIRE(is_float, ctx->err, TN_INVALID_MODEL, "stash_type %lld is no float type",
               (long long)stash_type);
    p->stash_type = (tn_dtype)stash_type;
    return TN_OK;
}

static tn_status check_row(const tn_check_context *ctx, row_norm_params *p) {
    TN_TRY(tn_check_int(ctx, "axis", -1, &p->axis));
    TN_TRY(tn_check_float(ctx, "epsilon", 1e-5F, &p->epsilon));
    return check_stash(ctx, p);
}

static tn_status check_layer(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->kind = KIND_LAYER;
    p->mean_slot = 1;
    p->inverse_slot = 2;
    return check_row(ctx, p);
}

static tn_status check_rms(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->kind = KIND_RMS;
    return check_row(ctx, p);
}

/* As other tools write it: the second output is the inverse deviation. */
static tn_status check_simplified(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->kind = KIND_RMS;
    p->inverse_slot = 1;
    return check_row(ctx, p);
}

static tn_status check_instance(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->kind = KIND_INSTANCE;
    return tn_check_float(ctx, "epsilon", 1e-5F, &p->epsilon);
}

static tn_status check_group(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->kind = KIND_GROUP;
    TN_TRY(tn_check_float(ctx, "epsilon", 1e-5F, &p->epsilon));
    TN_TRY(tn_check_int(ctx, "num_groups", 0, &p->group_count));
    TN_REQUIRE(p->group_count > 0, ctx->err, TN_INVALID_MODEL, "num_groups is %lld",
               (long long)p->group_count);
    return TN_OK;
}

static tn_status check_group_18(const tn_check_context *ctx, void *params) {
    row_norm_params *p = params;
    p->scales_groups = true;
    return check_group(ctx, p);
}

static bool is_by_axis(const row_norm_params *p) {
    return p->kind == KIND_LAYER || p->kind == KIND_RMS;
}

/* Scale or bias must broadcast to x, one way. */
static tn_status check_broadcast(const tn_shape *x, const tn_shape *part, const char *what,
                                 tn_error *err) {
    if (part->rank < 0) return TN_OK;
    bool fits = part->rank <= x->rank;
    for (int32_t i = 0; fits && i < part->rank; i++) {
        const int64_t dim = part->dims[i];
        const int64_t wanted = x->dims[i + x->rank - part->rank];
        fits = dim == 1 || dim < 0 || wanted < 0 || dim == wanted;
    }
    if (fits) return TN_OK;
    char text_part[160];
    char text_x[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s of shape %s does not broadcast to %s", what,
                        tn_shape_text(part, text_part, sizeof text_part),
                        tn_shape_text(x, text_x, sizeof text_x));
}

static tn_status infer_by_axis(const tn_node_facts *node, tn_error *err) {
    const row_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, IN_X);
    const tn_fact *scale = tn_node_input(node, IN_SCALE);
    const tn_fact *bias = tn_node_input(node, IN_BIAS);
    tn_fact *y = tn_node_output(node, 0);
    if (y != NULL) {
        y->kind = TN_KIND_TENSOR;
        y->dtype = p->kind == KIND_RMS && scale != NULL ? scale->dtype : x->dtype;
        y->shape = x->shape;
    }
    tn_shape statistics = {.rank = TN_RANK_UNKNOWN};
    if (x->shape.rank >= 0) {
        int32_t axis = 0;
        TN_TRY(tn_infer_axis(p->axis, x->shape.rank, &axis, err));
        statistics = x->shape;
        for (int32_t i = axis; i < x->shape.rank; i++) statistics.dims[i] = 1;
        if (scale != NULL) TN_TRY(check_broadcast(&x->shape, &scale->shape, "scale", err));
        if (bias != NULL) TN_TRY(check_broadcast(&x->shape, &bias->shape, "bias", err));
    }
    const uint8_t slots[] = {p->mean_slot, p->inverse_slot};
    for (size_t i = 0; i < TN_COUNTOF(slots); i++) {
        tn_fact *output = slots[i] == 0 ? NULL : tn_node_output(node, slots[i]);
        if (output == NULL) continue;
        output->kind = TN_KIND_TENSOR;
        output->dtype = p->stash_type;
        output->shape = statistics;
    }
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const row_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, IN_X);
    if (x == NULL) return TN_OK;
    if (is_by_axis(p)) return infer_by_axis(node, err);
    TN_TRY(tn_infer_same_as_input0(node, err));
    if (x->shape.rank < 0) return TN_OK;
    TN_REQUIRE(x->shape.rank >= 2, err, TN_INVALID_ARGUMENT, "%s needs rank 2 or more, has %d",
               node->op->name, (int)x->shape.rank);
    const int64_t channels = x->shape.dims[1];
    if (channels < 0) return TN_OK;
    TN_REQUIRE(p->kind != KIND_GROUP || channels % p->group_count == 0, err, TN_INVALID_ARGUMENT,
               "%lld channels do not make %lld groups", (long long)channels,
               (long long)p->group_count);
    const int64_t wanted = p->scales_groups ? p->group_count : channels;
    for (uint32_t i = IN_SCALE; i <= IN_BIAS; i++) {
        const tn_fact *part = tn_node_input(node, i);
        if (part == NULL || !tn_fact_is_sized(part)) continue;
        TN_REQUIRE(tn_fact_len_elems(part) == (size_t)wanted, err, TN_INVALID_ARGUMENT,
                   "input %u has %zu elements, expected %lld", i, tn_fact_len_elems(part),
                   (long long)wanted);
    }
    return TN_OK;
}

static size_t known(int64_t dim) {
    return dim < 0 ? 1 : (size_t)dim;
}

static void broadcast_steps(const tn_shape *part, int32_t rank, size_t *steps) {
    size_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t axis = i - (rank - part->rank);
        const size_t dim = axis < 0 ? 1 : known(part->dims[axis]);
        steps[i] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

/* Whether `part` is one value per element of the row: the normalised axes in full. */
static bool is_per_element(const tn_shape *part, const tn_shape *x, int32_t axis) {
    for (int32_t i = 0; i < x->rank; i++) {
        const int32_t at = i - (x->rank - part->rank);
        const int64_t dim = at < 0 ? 1 : part->dims[at];
        if (i < axis ? dim != 1 : dim != x->dims[i]) return false;
    }
    return true;
}

static tn_status describe_by_axis(const tn_node_facts *node, row_norm_record *r, tn_error *err) {
    const row_norm_params *p = node->params;
    const tn_shape *x = &tn_node_input(node, IN_X)->shape;
    const tn_fact *scale = tn_node_input(node, IN_SCALE);
    const tn_fact *bias = tn_node_input(node, IN_BIAS);
    int32_t axis = 0;
    if (x->rank >= 0) TN_TRY(tn_infer_axis(p->axis, x->rank, &axis, err));
    for (int32_t i = 0; i < x->rank; i++) {
        *(i < axis ? &r->rows : &r->length) *= known(x->dims[i]);
        r->dims[i] = known(x->dims[i]);
    }
    r->scales_each = true;
    r->rank = x->rank < 0 ? 0 : x->rank;
    r->is_general = r->scale_type != r->x_type || !is_per_element(&scale->shape, x, axis);
    if (scale->shape.rank >= 0) broadcast_steps(&scale->shape, r->rank, r->scale_steps);
    if (bias == NULL) return TN_OK;
    if (bias->shape.rank >= 0) broadcast_steps(&bias->shape, r->rank, r->bias_steps);
    r->is_general =
        r->is_general || r->bias_type != r->x_type || !is_per_element(&bias->shape, x, axis);
    return TN_OK;
}

static void describe_by_channel(const tn_node_facts *node, row_norm_record *r) {
    const row_norm_params *p = node->params;
    const tn_shape *x = &tn_node_input(node, IN_X)->shape;
    const size_t batches = x->rank < 1 ? 1 : known(x->dims[0]);
    const size_t channels = x->rank < 2 ? 1 : known(x->dims[1]);
    const size_t groups = p->kind == KIND_GROUP ? (size_t)p->group_count : channels;
    r->piece_length = 1;
    for (int32_t i = 2; i < x->rank; i++) r->piece_length *= known(x->dims[i]);
    r->scale_cycle = groups;
    r->pieces = groups == 0 ? 0 : channels / groups;
    r->rows = batches * groups;
    r->length = r->pieces * r->piece_length;
    r->scales_groups = p->scales_groups;
}

static tn_status describe(const tn_node_facts *node, tn_cpu_features cpu, row_norm_record *r,
                          tn_error *err) {
    const row_norm_params *p = node->params;
    const tn_fact *x = tn_node_input(node, IN_X);
    const tn_fact *scale = tn_node_input(node, IN_SCALE);
    const tn_fact *bias = tn_node_input(node, IN_BIAS);
    *r = (row_norm_record){.kernel = tn_norm_get(x->dtype, cpu),
                           .x_type = x->dtype,
                           .scale_type = scale->dtype,
                           .bias_type = bias == NULL ? TN_DTYPE_NONE : bias->dtype,
                           .y_type = p->kind == KIND_RMS ? scale->dtype : x->dtype,
                           .stash_type = p->stash_type,
                           .rows = 1,
                           .length = 1,
                           .epsilon = (double)p->epsilon,
                           .subtracts_mean = p->kind != KIND_RMS,
                           .mean_slot = p->mean_slot,
                           .inverse_slot = p->inverse_slot};
    TN_REQUIRE(r->kernel != NULL, err, TN_UNSUPPORTED, "%s of %s", node->op->name,
               tn_dtype_name(x->dtype));
    if (tn_node_output(node, p->mean_slot) == NULL) r->mean_slot = 0;
    if (tn_node_output(node, p->inverse_slot) == NULL) r->inverse_slot = 0;
    if (is_by_axis(p)) {
        TN_TRY(describe_by_axis(node, r, err));
    } else {
        describe_by_channel(node, r);
    }
    r->tile_rows = tn_size_max(TILE_ELEMS / tn_size_max(r->length, 1), 1);
    return TN_OK;
}

static size_t broadcast_at(const row_norm_record *r, const size_t *steps, size_t index) {
    size_t at = 0;
    for (int32_t i = r->rank - 1; i >= 0; i--) {
        at += index % r->dims[i] * steps[i];
        index /= r->dims[i];
    }
    return at;
}

/* Scales of another type, or that repeat along the row. */
static void apply_general(const row_norm_record *r, const tn_kernel_context *ctx, size_t row_index,
                          double mean, double factor) {
    const void *x = tn_kernel_in(ctx, IN_X);
    const void *bias = r->bias_type == TN_DTYPE_NONE ? NULL : tn_kernel_in(ctx, IN_BIAS);
    for (size_t i = row_index * r->length; i < (row_index + 1) * r->length; i++) {
        double value = (tn_norm_load(r->x_type, x, i) - mean) * factor;
        value *= tn_norm_load(r->scale_type, tn_kernel_in(ctx, IN_SCALE),
                              broadcast_at(r, r->scale_steps, i));
        if (bias != NULL) {
            value += tn_norm_load(r->bias_type, bias, broadcast_at(r, r->bias_steps, i));
        }
        tn_norm_store(r->y_type, tn_kernel_out(ctx, 0), i, value);
    }
}

static void apply_pieces(const row_norm_record *r, const tn_kernel_context *ctx, size_t row_index,
                         tn_norm_row *row) {
    const size_t element_bytes = tn_dtype_bits(r->x_type) / 8;
    const size_t group = row_index % r->scale_cycle;
    for (size_t piece = 0; piece < r->pieces; piece++) {
        const size_t at = r->scales_groups ? group : group * r->pieces + piece;
        const double scale = tn_norm_load(r->scale_type, tn_kernel_in(ctx, IN_SCALE), at);
        const double bias = tn_norm_load(r->bias_type, tn_kernel_in(ctx, IN_BIAS), at);
        row->count = r->piece_length;
        r->kernel->apply_one(row, scale, bias);
        row->x = (const char *)row->x + r->piece_length * element_bytes;
        row->y = (char *)row->y + r->piece_length * element_bytes;
    }
}

static void normalize_row(const row_norm_record *r, const tn_kernel_context *ctx, size_t index) {
    const size_t at = index * r->length * (tn_dtype_bits(r->x_type) / 8);
    const char *x = (const char *)tn_kernel_in(ctx, IN_X) + at;
    const double count = (double)r->length;
    const double mean = r->subtracts_mean ? r->kernel->sum(x, r->length) / count : 0.0;
    const double var = r->kernel->deviation(x, r->length, mean) / count;
    const double factor = 1.0 / sqrt(var + r->epsilon);
    if (r->mean_slot != 0) {
        tn_norm_store(r->stash_type, tn_kernel_out(ctx, r->mean_slot), index, mean);
    }
    if (r->inverse_slot != 0) {
        tn_norm_store(r->stash_type, tn_kernel_out(ctx, r->inverse_slot), index, factor);
    }
    char *y = tn_kernel_out(ctx, 0);
    if (y == NULL) return;
    tn_norm_row row = {.x = x, .count = r->length, .mean = mean, .factor = factor};
    if (r->is_general) {
        apply_general(r, ctx, index, mean, factor);
    } else if (r->scales_each) {
        row.y = y + at;
        row.scale = tn_kernel_in(ctx, IN_SCALE);
        row.bias = r->bias_type == TN_DTYPE_NONE ? NULL : tn_kernel_in(ctx, IN_BIAS);
        r->kernel->apply_each(&row);
    } else {
        row.y = y + at;
        apply_pieces(r, ctx, index, &row);
    }
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const row_norm_record *r = record;
    const size_t end = tn_size_min((size_t)tile1 * r->tile_rows, r->rows);
    for (size_t row = (size_t)tile0 * r->tile_rows; row < end; row++) normalize_row(r, ctx, row);
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    row_norm_record r;
    TN_TRY(describe(query->node, TN_CPU_PORTABLE, &r, err));
    const double elems = (double)r.rows * (double)r.length;
    out[0] = (tn_variant){.name = portable_name, .run = run, .cost_ns = 50.0 + elems};
    out[0].tile_counts[0] = (uint32_t)tn_size_max((r.rows + r.tile_rows - 1) / r.tile_rows, 1);
    *out_count = 1;
    if (r.x_type != TN_DTYPE_F32 || tn_norm_f32_fastest(query->cpu) == NULL) return TN_OK;
    out[1] = out[0];
    out[1].name = "row norm vector";
    out[1].cost_ns = 50.0 + elems * 0.4;
    *out_count = 2;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const bool is_portable = strcmp(ctx->variant->name, portable_name) == 0;
    return describe(ctx->node, is_portable ? TN_CPU_PORTABLE : ctx->cpu, record, ctx->err);
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))

static const uint32_t types_old[] = {FLOATS};
static const uint32_t types_all[] = {FLOATS | TN_TYPE_BIT(BF16)};

#define ROW(op_name, since, until, least, most, outputs, types, same_types, check_fn)          \
    {                                                                                          \
        .name = op_name, .since_version = since, .until_version = until, .min_inputs = least,  \
        .max_inputs = most, .min_outputs = 1, .max_outputs = outputs, .flags = TN_OP_FOLDABLE, \
        .in_place_mask = 1, .input_types = types, .input_types_count = 1,                      \
        .same_type_mask = same_types, .params_bytes = sizeof(row_norm_params),                 \
        .record_bytes = sizeof(row_norm_record), .check = check_fn, .infer = infer,            \
        .variants = variants, .bind = bind                                                     \
    }

static const tn_op_def rows[] = {
    ROW("LayerNormalization", 17, 0, 2, 3, 3, types_all, 7, check_layer),
    ROW("RMSNormalization", 23, 0, 2, 2, 1, types_all, 0, check_rms),
    ROW("SimplifiedLayerNormalization", 1, 0, 2, 2, 2, types_all, 0, check_simplified),
    ROW("InstanceNormalization", 1, 5, 3, 3, 1, types_old, 7, check_instance),
    ROW("InstanceNormalization", 6, 21, 3, 3, 1, types_old, 7, check_instance),
    ROW("InstanceNormalization", 22, 0, 3, 3, 1, types_all, 7, check_instance),
    ROW("GroupNormalization", 18, 20, 3, 3, 1, types_all, 7, check_group_18),
    ROW("GroupNormalization", 21, 0, 3, 3, 1, types_all, 7, check_group),
};

const tn_op_table tn_row_norm_table = {rows, TN_COUNTOF(rows)};
