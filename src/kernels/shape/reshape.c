/* Operators whose output is their input's bytes under another shape or type: Reshape, Squeeze,
 * Unsqueeze, Flatten, Identity, BitCast. They are views; the copy below runs only where the plan
 * cannot alias. */
#include "kernels/common/move.h"
#include "kernels/common/shape_arith.h"

#include "base/checked_size.h"

static void view_describe(const tn_node_facts *node, tn_move *move) {
    size_t size_bytes = 0;
    /* sized and checked by the plan before */
    if (tn_fact_size_bytes(node->outputs[0], &size_bytes, NULL) != TN_OK) size_bytes = 0;
    tn_move_init_bytes(move, size_bytes);
}

/* Views need their output only: a shape or axes input does not matter any more. */
static bool view_is_sized(const tn_node_facts *node) {
    const tn_fact *output = tn_node_output(node, 0);
    return output != NULL && tn_fact_is_sized(output) && output->dtype != TN_DTYPE_NONE;
}

static tn_status view_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                               tn_error *err) {
    (void)err;
    tn_move move;
    const bool is_sized = view_is_sized(query->node);
    if (is_sized) view_describe(query->node, &move);
    return tn_move_variants(is_sized ? &move : NULL, "copy", out, out_count);
}

static tn_status view_bind(const tn_bind_context *ctx, void *record) {
    view_describe(ctx->node, record);
    return TN_OK;
}

/* ---- Reshape ---- */

typedef struct reshape_params {
    tn_int_list shape; /* opset 1 only */
    bool allow_zero;
} reshape_params;

static tn_status reshape1_check(const tn_check_context *ctx, void *params) {
    reshape_params *p = params;
    TN_TRY(tn_check_int_list(ctx, "shape", &p->shape));
    TN_REQUIRE(p->shape.is_present, ctx->err, TN_INVALID_MODEL, "attribute shape is missing");
    return TN_OK;
}

static tn_status reshape_check(const tn_check_context *ctx, void *params) {
    reshape_params *p = params;
    int64_t allow_zero = 0;
    TN_TRY(tn_check_int(ctx, "allowzero", 0, &allow_zero));
    p->allow_zero = allow_zero != 0;
    return TN_OK;
}

/* Splits the target into dims; *out_inferred is the axis of -1, or -1. Zeros copy unless allowed.
 */
static tn_status reshape_target(const tn_int_list *target, bool allow_zero, const tn_shape *input,
                                tn_shape *out, int32_t *out_inferred, tn_error *err) {
    TN_REQUIRE(target->count <= TN_MAX_RANK, err, TN_UNSUPPORTED, "target rank %zu, at most %d",
               target->count, TN_MAX_RANK);
    bool has_zero = false;
    out->rank = (int32_t)target->count;
    *out_inferred = -1;
    for (int32_t i = 0; i < out->rank; i++) {
        const int64_t dim = target->values[i];
        TN_REQUIRE(dim >= -1, err, TN_INVALID_ARGUMENT, "target dim %d is %lld", (int)i,
                   (long long)dim);
        out->dims[i] = dim;
        if (dim == -1) {
            TN_REQUIRE(*out_inferred < 0, err, TN_INVALID_ARGUMENT,
                       "target dims %d and %d are both -1", (int)*out_inferred, (int)i);
            *out_inferred = i;
        } else if (dim == 0 && !allow_zero) {
            TN_REQUIRE(input->rank < 0 || i < input->rank, err, TN_INVALID_ARGUMENT,
                       "target dim %d copies an input dim, input rank is %d", (int)i,
                       (int)input->rank);
            out->dims[i] = input->rank < 0 ? TN_DIM_UNKNOWN : input->dims[i];
        }
        has_zero = has_zero || (dim == 0 && allow_zero);
    }
    TN_REQUIRE(!(has_zero && *out_inferred >= 0), err, TN_INVALID_ARGUMENT,
               "a target with allowzero holds both 0 and -1");
    return TN_OK;
}

/* Product of the dims that are known numbers, without axis `skip`; *out_unknown counts the others.
 * A dim that is copied from input to output at the same axis cancels: it is left out of both. */
static tn_status known_product(const tn_shape *shape, const bool *cancelled, int32_t skip,
                               int64_t *out_product, int32_t *out_unknown, tn_error *err) {
    bool overflows = false;
    bool has_zero = false;
    int64_t product = 1;
    *out_unknown = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i == skip || cancelled[i]) continue;
        if (shape->dims[i] < 0) {
            (*out_unknown)++;
        } else if (shape->dims[i] == 0) {
            has_zero = true;
        } else if (!tn_i64_mul(product, shape->dims[i], &product)) {
            overflows = true;
        }
    }
    char text[160];
    TN_REQUIRE(has_zero || !overflows, err, TN_OVERFLOW, "shape %s has too many elements",
               tn_shape_text(shape, text, sizeof text));
    *out_product = has_zero ? 0 : product;
    return TN_OK;
}

static tn_status reshape_mismatch(const tn_shape *input, const tn_int_list *target, tn_error *err) {
    char from[160];
    char to[160];
    tn_shape wanted = {.rank = (int32_t)target->count};
    for (int32_t i = 0; i < wanted.rank; i++) wanted.dims[i] = target->values[i];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "cannot reshape %s to %s (? is the inferred dim)",
                        tn_shape_text(input, from, sizeof from),
                        tn_shape_text(&wanted, to, sizeof to));
}

static tn_status reshape_to(const tn_node_facts *node, const tn_int_list *target, bool allow_zero,
                            tn_error *err) {
    const tn_fact *input = tn_node_input(node, 0);
    const tn_shape unknown = {.rank = TN_RANK_UNKNOWN};
    const tn_shape *from = input == NULL ? &unknown : &input->shape;
    tn_shape to;
    int32_t inferred = -1;
    TN_TRY(reshape_target(target, allow_zero, from, &to, &inferred, err));
    if (from->rank >= 0) {
        bool cancelled[TN_MAX_RANK] = {false};
        for (int32_t i = 0; i < to.rank && i < from->rank; i++) {
            cancelled[i] = target->values[i] == 0 && !allow_zero && from->dims[i] != 0;
        }
        int64_t from_product = 0;
        int64_t to_product = 0;
        int32_t from_unknown = 0;
        int32_t to_unknown = 0;
        TN_TRY(known_product(from, cancelled, -1, &from_product, &from_unknown, err));
        TN_TRY(known_product(&to, cancelled, inferred, &to_product, &to_unknown, err));
        if (from_unknown == 0 && to_unknown == 0) {
            if (inferred >= 0) {
                const bool divides =
                    to_product == 0 ? from_product == 0 : from_product % to_product == 0;
                if (!divides) return reshape_mismatch(from, target, err);
                to.dims[inferred] = to_product == 0 ? 0 : from_product / to_product;
            } else if (from_product != to_product) {
                return reshape_mismatch(from, target, err);
            }
        }
    }
    return tn_put_output(node, 0, tn_input_dtype(node, 0), &to, err);
}

static tn_status reshape1_infer(const tn_node_facts *node, tn_error *err) {
    const reshape_params *p = node->params;
    return reshape_to(node, &p->shape, false, err);
}

static tn_status reshape_infer(const tn_node_facts *node, tn_error *err) {
    const reshape_params *p = node->params;
    tn_int_list target;
    TN_TRY(tn_read_int_list(node, 1, &target, err));
    if (target.is_known) return reshape_to(node, &target, p->allow_zero, err);
    const int64_t rank = tn_list_length(tn_node_input(node, 1));
    TN_REQUIRE(rank <= TN_MAX_RANK, err, TN_UNSUPPORTED, "target rank %lld, at most %d",
               (long long)rank, TN_MAX_RANK);
    const tn_shape shape = tn_unknown_dims((int32_t)rank);
    tn_set_output(node, 0, tn_input_dtype(node, 0), rank < 0 ? NULL : &shape);
    return TN_OK;
}

/* ---- Squeeze and Unsqueeze: axes by attribute until opset 12, by input from 13 ---- */

static tn_status axes_check(const tn_check_context *ctx, void *params) {
    return tn_check_int_list(ctx, "axes", params);
}

static tn_status required_axes_check(const tn_check_context *ctx, void *params) {
    tn_int_list *axes = params;
    TN_TRY(tn_check_int_list(ctx, "axes", axes));
    TN_REQUIRE(axes->is_present, ctx->err, TN_INVALID_MODEL, "attribute axes is missing");
    return TN_OK;
}

static tn_status squeeze_axes(const tn_node_facts *node, const tn_int_list *axes, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_set_output(node, 0, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    const tn_shape *from = &node->inputs[0]->shape;
    uint32_t mask = 0;
    if (axes->is_present) {
        TN_TRY(tn_axes_mask(axes, from->rank, &mask, err));
    } else {
        if (!tn_fact_is_sized(node->inputs[0])) return TN_OK; /* even the rank depends on dims */
        for (int32_t i = 0; i < from->rank; i++) mask |= from->dims[i] == 1 ? 1u << i : 0;
    }
    tn_shape to = {.rank = 0};
    for (int32_t i = 0; i < from->rank; i++) {
        if ((mask >> i & 1u) == 0) {
            to.dims[to.rank++] = from->dims[i];
            continue;
        }
        TN_REQUIRE(from->dims[i] == 1 || from->dims[i] < 0, err, TN_INVALID_ARGUMENT,
                   "axis %d to squeeze has %lld elements", (int)i, (long long)from->dims[i]);
    }
    tn_set_output(node, 0, dtype, &to);
    return TN_OK;
}

static tn_status squeeze1_infer(const tn_node_facts *node, tn_error *err) {
    return squeeze_axes(node, node->params, err);
}

static tn_status squeeze_infer(const tn_node_facts *node, tn_error *err) {
    tn_int_list axes;
    TN_TRY(tn_read_int_list(node, 1, &axes, err));
    if (!axes.is_present || axes.is_known) return squeeze_axes(node, &axes, err);
    const int64_t count = tn_list_length(tn_node_input(node, 1));
    const bool has_rank =
        tn_input_has_rank(node, 0) && count >= 0 && count <= node->inputs[0]->shape.rank;
    const tn_shape shape =
        tn_unknown_dims(has_rank ? node->inputs[0]->shape.rank - (int32_t)count : TN_RANK_UNKNOWN);
    tn_set_output(node, 0, tn_input_dtype(node, 0), &shape);
    return TN_OK;
}

static tn_status unsqueeze_axes(const tn_node_facts *node, const tn_int_list *axes, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_set_output(node, 0, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    const tn_shape *from = &node->inputs[0]->shape;
    const size_t rank = (size_t)from->rank + axes->count;
    TN_REQUIRE(rank <= TN_MAX_RANK, err, TN_UNSUPPORTED, "rank %zu after unsqueezing, at most %d",
               rank, TN_MAX_RANK);
    uint32_t mask = 0;
    TN_TRY(tn_axes_mask(axes, (int32_t)rank, &mask, err));
    tn_shape to = {.rank = (int32_t)rank};
    int32_t taken = 0;
    for (int32_t i = 0; i < to.rank; i++) {
        to.dims[i] = (mask >> i & 1u) != 0 ? 1 : from->dims[taken++];
    }
    tn_set_output(node, 0, dtype, &to);
    return TN_OK;
}

static tn_status unsqueeze1_infer(const tn_node_facts *node, tn_error *err) {
    return unsqueeze_axes(node, node->params, err);
}

static tn_status unsqueeze_infer(const tn_node_facts *node, tn_error *err) {
    tn_int_list axes;
    TN_TRY(tn_read_int_list(node, 1, &axes, err));
    if (axes.is_known) return unsqueeze_axes(node, &axes, err);
    const int64_t count = tn_list_length(tn_node_input(node, 1));
    const bool has_rank = tn_input_has_rank(node, 0) && count >= 0 &&
                          count + node->inputs[0]->shape.rank <= TN_MAX_RANK;
    const tn_shape shape =
        tn_unknown_dims(has_rank ? node->inputs[0]->shape.rank + (int32_t)count : TN_RANK_UNKNOWN);
    tn_set_output(node, 0, tn_input_dtype(node, 0), &shape);
    return TN_OK;
}

/* ---- Flatten ---- */

static tn_status flatten_check(const tn_check_context *ctx, void *params) {
    return tn_check_int(ctx, "axis", 1, params);
}

/* One side of a flattened shape; unknown when a dim of it is. */
static tn_status flattened_dim(const tn_shape *from, int32_t first, int32_t last, int64_t *out,
                               tn_error *err) {
    int64_t product = 1;
    bool is_unknown = false;
    for (int32_t i = first; i < last; i++) {
        if (from->dims[i] < 0) {
            is_unknown = true;
        } else {
            char text[160];
            TN_REQUIRE(tn_i64_mul(product, from->dims[i], &product), err, TN_OVERFLOW,
                       "flattening %s overflows", tn_shape_text(from, text, sizeof text));
        }
    }
    *out = last - first == 1 ? from->dims[first] : is_unknown ? TN_DIM_UNKNOWN : product;
    return TN_OK;
}

static tn_status flatten_infer(const tn_node_facts *node, tn_error *err) {
    tn_shape to = tn_unknown_dims(2);
    if (tn_input_has_rank(node, 0)) {
        const tn_shape *from = &node->inputs[0]->shape;
        const int64_t axis = *(const int64_t *)node->params;
        TN_REQUIRE(axis >= -(int64_t)from->rank && axis <= from->rank, err, TN_INVALID_MODEL,
                   "axis %lld is outside rank %d", (long long)axis, (int)from->rank);
        const int32_t cut = (int32_t)(axis < 0 ? axis + from->rank : axis);
        TN_TRY(flattened_dim(from, 0, cut, &to.dims[0], err));
        TN_TRY(flattened_dim(from, cut, from->rank, &to.dims[1], err));
    }
    tn_set_output(node, 0, tn_input_dtype(node, 0), &to);
    return TN_OK;
}

/* ---- BitCast: another type of the same width ---- */

static tn_status bitcast_check(const tn_check_context *ctx, void *params) {
    int64_t *to = params;
    TN_TRY(tn_check_int(ctx, "to", 0, to));
    TN_REQUIRE(*to > 0 && *to < TN_DTYPE_COUNT && *to != TN_DTYPE_STRING, ctx->err,
               TN_INVALID_MODEL, "attribute to is %lld", (long long)*to);
    return TN_OK;
}

static tn_status bitcast_infer(const tn_node_facts *node, tn_error *err) {
    const tn_dtype to = (tn_dtype) * (const int64_t *)node->params;
    const tn_dtype from = tn_input_dtype(node, 0);
    TN_REQUIRE(from == TN_DTYPE_NONE ||
                   (from != TN_DTYPE_STRING && tn_dtype_bits(from) == tn_dtype_bits(to)),
               err, TN_INVALID_ARGUMENT, "%s has not the width of %s", tn_dtype_name(from),
               tn_dtype_name(to));
    const bool has_rank = tn_input_has_rank(node, 0);
    tn_set_output(node, 0, to, has_rank ? &node->inputs[0]->shape : NULL);
    return TN_OK;
}

#define VIEW_ROW                                                                \
    .min_outputs = 1, .flags = TN_OP_FOLDABLE | TN_OP_VIEW, .in_place_mask = 1, \
    .record_bytes = sizeof(tn_move), .variants = view_variants, .bind = view_bind

static const tn_op_def rows[] = {
    {.name = "Reshape",
     .since_version = 1,
     .until_version = 4,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(reshape_params),
     .check = reshape1_check,
     .infer = reshape1_infer,
     VIEW_ROW},
    {.name = "Reshape",
     .since_version = 5,
     .until_version = 13,
     .min_inputs = 2,
     .max_inputs = 2,
     .params_bytes = sizeof(reshape_params),
     .infer = reshape_infer,
     VIEW_ROW},
    {.name = "Reshape",
     .since_version = 14,
     .min_inputs = 2,
     .max_inputs = 2,
     .params_bytes = sizeof(reshape_params),
     .check = reshape_check,
     .infer = reshape_infer,
     VIEW_ROW},
    {.name = "Squeeze",
     .since_version = 1,
     .until_version = 12,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(tn_int_list),
     .check = axes_check,
     .infer = squeeze1_infer,
     VIEW_ROW},
    {.name = "Squeeze",
     .since_version = 13,
     .min_inputs = 1,
     .max_inputs = 2,
     .infer = squeeze_infer,
     VIEW_ROW},
    {.name = "Unsqueeze",
     .since_version = 1,
     .until_version = 12,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(tn_int_list),
     .check = required_axes_check,
     .infer = unsqueeze1_infer,
     VIEW_ROW},
    {.name = "Unsqueeze",
     .since_version = 13,
     .min_inputs = 2,
     .max_inputs = 2,
     .infer = unsqueeze_infer,
     VIEW_ROW},
    {.name = "Flatten",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(int64_t),
     .check = flatten_check,
     .infer = flatten_infer,
     VIEW_ROW},
    {.name = "BitCast",
     .since_version = 26,
     .min_inputs = 1,
     .max_inputs = 1,
     .params_bytes = sizeof(int64_t),
     .check = bitcast_check,
     .infer = bitcast_infer,
     VIEW_ROW},
    {.name = "Identity",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = tn_infer_same_as_input0,
     VIEW_ROW},
};
const tn_op_table tn_reshape_table = {rows, TN_COUNTOF(rows)};
