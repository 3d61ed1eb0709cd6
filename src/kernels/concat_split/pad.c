/* Pad and CenterCropPad. Every axis is first cropped, then padded; trailing axes that stay as they
 * are make one run of bytes. A row is the innermost padded axis: what lies before, the middle in
 * one copy, what lies after. All other axes find their source index once per row, from the mode
 * alone, so the record holds no tables. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/move.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

typedef struct pad_params {
    pad_mode mode;
    float value;      /* until opset 10 */
    tn_int_list pads; /* until opset 10; CenterCropPad: axes */
} pad_params;

/* Elements added on each side of each axis; negative ones are taken away. */
typedef struct pad_sides {
    int64_t before[TN_MAX_RANK];
    int64_t after[TN_MAX_RANK];
} pad_sides;

typedef struct pad_axis {
    int64_t out_dim;
    int64_t kept;    /* of the input after cropping */
    int64_t cropped; /* before the kept part */
    int64_t added;   /* before the kept part */
    int64_t stride_bytes;
} pad_axis;

typedef struct pad_record {
    pad_mode mode;
    int32_t rank; /* of axes; the last one is the row */
    uint32_t elem_bytes;
    uint32_t tile_count;
    size_t row_count;
    size_t unit_bytes;    /* of one step along the row */
    bool has_value_input; /* input `value_slot` is the constant */
    uint32_t value_slot;
    char value[16];
    int64_t walk_dims[TN_MAX_RANK]; /* [rank - 1] */
    pad_axis axes[TN_MAX_RANK];     /* [rank] */
} pad_record;

/* Source index in [0, kept) of position `at` relative to the kept part, -1 for the constant. */
static int64_t source_index(pad_mode mode, int64_t at, int64_t kept) {
    if (at >= 0 && at < kept) return at;
    if (mode == PAD_CONSTANT) return -1;
    if (mode == PAD_EDGE) return at < 0 ? 0 : kept - 1;
    const int64_t period = mode == PAD_WRAP ? kept : tn_i64_max(1, 2 * (kept - 1));
    int64_t folded = at % period;
    if (folded < 0) folded += period;
    return folded < kept ? folded : period - folded;
}

/* Units [first, first + count) of a row, which lie outside the kept part. */
static void pad_side(const pad_record *r, const char *row, const void *value, char *to,
                     int64_t first, int64_t count) {
    const pad_axis *axis = &r->axes[r->rank - 1];
    if (r->mode == PAD_CONSTANT && r->unit_bytes == r->elem_bytes && count < 4) {
        for (int64_t i = 0; i < count; i++, to += r->elem_bytes) {
            tn_copy_small(to, value, r->elem_bytes);
        }
        return;
    }
    if (r->mode == PAD_CONSTANT) {
        tn_fill(to, value, r->elem_bytes, (size_t)count * (r->unit_bytes / r->elem_bytes));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = source_index(r->mode, first + i - axis->added, axis->kept);
        memcpy(to + (size_t)i * r->unit_bytes, row + (size_t)from * r->unit_bytes, r->unit_bytes);
    }
}

static void pad_row(const pad_record *r, const char *row, const void *value, char *to) {
    const pad_axis *axis = &r->axes[r->rank - 1];
    const int64_t middle = axis->kept;
    const int64_t after = axis->out_dim - axis->added - middle;
    if (row == NULL) {
        tn_fill(to, value, r->elem_bytes, (size_t)axis->out_dim * (r->unit_bytes / r->elem_bytes));
        return;
    }
    pad_side(r, row, value, to, 0, axis->added);
    to += (size_t)axis->added * r->unit_bytes;
    memcpy(to, row, (size_t)middle * r->unit_bytes);
    to += (size_t)middle * r->unit_bytes;
    pad_side(r, row, value, to, axis->added + middle, after);
}

/* First kept byte of the source row for the walk's position; NULL when it is all constant. */
static const char *source_row(const pad_record *r, const char *in, const int64_t *index) {
    const pad_axis *last = &r->axes[r->rank - 1];
    int64_t offset = last->cropped * last->stride_bytes;
    if (last->kept == 0) return NULL;
    for (int32_t i = 0; i + 1 < r->rank; i++) {
        const pad_axis *axis = &r->axes[i];
        const int64_t from = source_index(r->mode, index[i] - axis->added, axis->kept);
        if (from < 0) return NULL;
        offset += (axis->cropped + from) * axis->stride_bytes;
    }
    return in + offset;
}

static tn_status pad_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    (void)worker;
    const pad_record *r = record;
    size_t row = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->row_count, r->tile_count, tile0, &row, &ignored);
    tn_tile_range(r->row_count, r->tile_count, tile1 - 1, &ignored, &end);
    if (row >= end) return TN_OK;
    const char *in = tn_kernel_in(ctx, 0);
    const void *value = r->has_value_input ? tn_kernel_in(ctx, r->value_slot) : r->value;
    const size_t row_bytes = (size_t)r->axes[r->rank - 1].out_dim * r->unit_bytes;
    char *to = (char *)tn_kernel_out(ctx, 0) + row * row_bytes;
    tn_walk walk;
    walk.rank = r->rank - 1;
    walk.dims = r->walk_dims;
    walk.strides_a = r->walk_dims;
    walk.strides_b = r->walk_dims;
    tn_walk_seek(&walk, row);
    for (; row < end; row++, to += row_bytes) {
        pad_row(r, source_row(r, in, walk.index), value, to);
        tn_walk_next(&walk);
    }
    return TN_OK;
}

/* ---- what the sides are ---- */

static tn_status parse_mode(const tn_check_context *ctx, pad_mode *out) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    tn_text mode;
    TN_TRY(tn_check_text(ctx, "mode", "constant", &mode));
    for (size_t i = 0; i < TN_COUNTOF(names); i++) {
        if (!tn_text_equals_literal(mode, names[i])) continue;
        *out = (pad_mode)i;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "mode %.*s", tn_text_width(mode), mode.data);
}

static tn_status pad_attributes(const tn_check_context *ctx, const char *pads, pad_params *p) {
    TN_TRY(parse_mode(ctx, &p->mode));
    TN_TRY(tn_check_float(ctx, "value", 0.0F, &p->value));
    TN_TRY(tn_check_int_list(ctx, pads, &p->pads));
    TN_REQUIRE(p->pads.is_present, ctx->err, TN_INVALID_MODEL, "attribute %s is missing", pads);
    return TN_OK;
}

static tn_status pad1_check(const tn_check_context *ctx, void *params) {
    return pad_attributes(ctx, "paddings", params);
}

static tn_status pad2_check(const tn_check_context *ctx, void *params) {
    return pad_attributes(ctx, "pads", params);
}

static tn_status pad_check(const tn_check_context *ctx, void *params) {
    pad_params *p = params;
    return parse_mode(ctx, &p->mode);
}

/* Sides of every axis from a list [befores, afters] over `axes` (absent: all). */
static tn_status sides_from_list(const tn_int_list *pads, const tn_int_list *axes, int32_t rank,
                                 pad_sides *out, tn_error *err) {
    const size_t axis_count = axes->is_present ? axes->count : (size_t)rank;
    TN_REQUIRE(pads->count == 2 * axis_count, err, TN_INVALID_ARGUMENT,
               "%zu pads for %zu axes, two per axis are needed", pads->count, axis_count);
    for (int32_t i = 0; i < rank; i++) out->before[i] = out->after[i] = 0;
    for (size_t i = 0; i < axis_count; i++) {
        int32_t axis = (int32_t)i;
        if (axes->is_present) TN_TRY(tn_infer_axis(axes->values[i], rank, &axis, err));
        out->before[axis] = pads->values[i];
        out->after[axis] = pads->values[i + axis_count];
    }
    return TN_OK;
}

/* Sides of a node; *out_known is false when an input that decides is not known. */
static tn_status pad_sides_of(const tn_node_facts *node, pad_sides *out, bool *out_known,
                              tn_error *err) {
    const pad_params *p = node->params;
    const int32_t rank = node->inputs[0]->shape.rank;
    tn_int_list pads;
    tn_int_list axes;
    *out_known = true;
    if (p->pads.is_present) {
        axes.is_present = false;
        return sides_from_list(&p->pads, &axes, rank, out, err);
    }
    TN_TRY(tn_read_int_list(node, 1, &pads, err));
    TN_TRY(tn_read_int_list(node, 3, &axes, err));
    *out_known = pads.is_known && (!axes.is_present || axes.is_known);
    return *out_known ? sides_from_list(&pads, &axes, rank, out, err) : TN_OK;
}

static tn_status padded_dim(pad_mode mode, int64_t dim, int64_t before, int64_t after, int32_t axis,
                            int64_t *out, tn_error *err) {
    int64_t sum = 0;
    *out = dim;
    if (before == 0 && after == 0) return TN_OK;
    *out = TN_DIM_UNKNOWN;
    if (dim < 0) return TN_OK;
    TN_REQUIRE(tn_i64_add(dim, before, &sum) && tn_i64_add(sum, after, &sum), err, TN_OVERFLOW,
               "axis %d: %lld elements, pads %lld and %lld", (int)axis, (long long)dim,
               (long long)before, (long long)after);
    const int64_t floor_before = tn_i64_min(before, 0);
    const int64_t floor_after = tn_i64_min(after, 0);
    TN_REQUIRE(sum >= 0 && floor_before >= -dim && floor_after >= -(dim + floor_before), err,
               TN_INVALID_ARGUMENT, "axis %d: %lld elements, pads %lld and %lld", (int)axis,
               (long long)dim, (long long)before, (long long)after);
    TN_REQUIRE(mode == PAD_CONSTANT || sum == 0 || dim + floor_before + floor_after > 0, err,
               TN_INVALID_ARGUMENT, "axis %d has no elements to pad from", (int)axis);
    *out = sum;
    return TN_OK;
}

static tn_status pad_infer(const tn_node_facts *node, tn_error *err) {
    const pad_params *p = node->params;
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    const tn_shape *from = &node->inputs[0]->shape;
    pad_sides sides;
    bool is_known = false;
    TN_TRY(pad_sides_of(node, &sides, &is_known, err));
    tn_shape to = tn_unknown_dims(from->rank);
    for (int32_t i = 0; is_known && i < to.rank; i++) {
        TN_TRY(padded_dim(p->mode, from->dims[i], sides.before[i], sides.after[i], i, &to.dims[i],
                          err));
    }
    return tn_put_output(node, 0, node->inputs[0]->dtype, &to, err);
}

/* ---- the record ---- */

static void set_axis(const tn_shape *from, const pad_sides *sides, int32_t i, int64_t stride,
                     const tn_shape *to, pad_axis *axis) {
    const int64_t cut_before = -tn_i64_min(sides->before[i], 0);
    const int64_t cut_after = -tn_i64_min(sides->after[i], 0);
    *axis = (pad_axis){.out_dim = to->dims[i],
                       .kept = from->dims[i] - cut_before - cut_after,
                       .cropped = cut_before,
                       .added = tn_i64_max(sides->before[i], 0),
                       .stride_bytes = stride};
}

/* Axes of the record: the untouched trailing ones are inside a unit, the others stay. */
static void bind_axes(const tn_node_facts *node, const pad_sides *sides, pad_record *r) {
    const tn_shape *from = &node->inputs[0]->shape;
    const tn_shape *to = &node->outputs[0]->shape;
    int64_t strides[TN_MAX_RANK];
    tn_row_strides(from, (int64_t)r->elem_bytes, strides);
    int32_t last = from->rank - 1;
    while (last > 0 && sides->before[last] == 0 && sides->after[last] == 0) last--;
    r->rank = last < 0 ? 1 : last + 1;
    r->row_count = 1;
    if (from->rank == 0) {
        r->axes[0] = (pad_axis){.out_dim = 1, .kept = 1, .stride_bytes = r->elem_bytes};
        r->unit_bytes = r->elem_bytes;
        return;
    }
    r->unit_bytes = (size_t)strides[last];
    for (int32_t i = 0; i <= last; i++) {
        set_axis(from, sides, i, strides[i], to, &r->axes[i]);
        r->walk_dims[i] = to->dims[i];
        if (i < last) r->row_count *= (size_t)to->dims[i];
    }
}

static tn_status bind_sides(const tn_bind_context *ctx, const pad_sides *sides, pad_record *r) {
    const tn_fact *output = ctx->node->outputs[0];
    r->elem_bytes = (uint32_t)tn_elem_bytes(output->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
    if (tn_fact_len_elems(output) == 0) return TN_OK; /* no rows */
    bind_axes(ctx->node, sides, r);
    return TN_OK;
}

static tn_status pad_bind(const tn_bind_context *ctx, void *record) {
    pad_record *r = record;
    const tn_node_facts *node = ctx->node;
    const pad_params *p = node->params;
    pad_sides sides;
    bool is_known = false;
    TN_TRY(pad_sides_of(node, &sides, &is_known, ctx->err));
    TN_REQUIRE(is_known, ctx->err, TN_INVALID_ARGUMENT, "pads are not known");
    r->mode = p->mode;
    r->value_slot = 2;
    r->has_value_input = tn_node_input(node, 2) != NULL;
    if (r->has_value_input) {
        TN_REQUIRE(tn_fact_len_elems(node->inputs[2]) == 1, ctx->err, TN_INVALID_ARGUMENT,
                   "constant_value has %zu elements, not one", tn_fact_len_elems(node->inputs[2]));
    } else {
        tn_number_write(r->value, node->inputs[0]->dtype, 0, (double)p->value);
    }
    return bind_sides(ctx, &sides, r);
}

static tn_status pad_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    (void)err;
    const tn_fact *output = query->node->outputs[0];
    out[0] = (tn_variant){.name = "pad", .run = pad_run, .rewrite_class = TN_REWRITE_EXACT};
    if (tn_node_is_sized(query->node)) {
        const size_t bytes = tn_fact_len_elems(output) * tn_elem_bytes(output->dtype);
        out[0].tile_counts[0] = tn_tiles_for_bytes(bytes, SIZE_MAX);
        out[0].cost_ns = 50.0 + (double)bytes * 0.15;
    }
    *out_count = 1;
    return TN_OK;
}

/* ---- CenterCropPad ---- */

static tn_status center_check(const tn_check_context *ctx, void *params) {
    pad_params *p = params;
    return tn_check_int_list(ctx, "axes", &p->pads);
}

/* Wanted dims by axis: negative where the axis stays. */
static tn_status center_targets(const tn_node_facts *node, int64_t *wanted, bool *out_known,
                                tn_error *err) {
    const pad_params *p = node->params;
    const int32_t rank = node->inputs[0]->shape.rank;
    tn_int_list shape;
    TN_TRY(tn_read_int_list(node, 1, &shape, err));
    *out_known = shape.is_known;
    for (int32_t i = 0; i < rank; i++) wanted[i] = -1;
    if (!shape.is_known) return TN_OK;
    const size_t axis_count = p->pads.is_present ? p->pads.count : (size_t)rank;
    TN_REQUIRE(shape.count == axis_count, err, TN_INVALID_ARGUMENT, "%zu dims for %zu axes",
               shape.count, axis_count);
    for (size_t i = 0; i < axis_count; i++) {
        int32_t axis = (int32_t)i;
        if (p->pads.is_present) TN_TRY(tn_infer_axis(p->pads.values[i], rank, &axis, err));
        TN_REQUIRE(shape.values[i] >= 0, err, TN_INVALID_ARGUMENT, "dim %zu is %lld", i,
                   (long long)shape.values[i]);
        wanted[axis] = shape.values[i];
    }
    return TN_OK;
}

static tn_status center_infer(const tn_node_facts *node, tn_error *err) {
    tn_set_output(node, 0, tn_input_dtype(node, 0), NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    int64_t wanted[TN_MAX_RANK];
    bool is_known = false;
    TN_TRY(center_targets(node, wanted, &is_known, err));
    tn_shape to = node->inputs[0]->shape;
    for (int32_t i = 0; i < to.rank; i++) {
        if (!is_known) to.dims[i] = TN_DIM_UNKNOWN;
        if (wanted[i] >= 0) to.dims[i] = wanted[i];
    }
    return tn_put_output(node, 0, node->inputs[0]->dtype, &to, err);
}

/* Half of the difference on each side, rounded down before. */
static tn_status center_bind(const tn_bind_context *ctx, void *record) {
    const tn_node_facts *node = ctx->node;
    pad_sides sides;
    for (int32_t i = 0; i < node->inputs[0]->shape.rank; i++) {
        const int64_t difference = node->outputs[0]->shape.dims[i] - node->inputs[0]->shape.dims[i];
        sides.before[i] = difference / 2; /* toward zero on both signs */
        sides.after[i] = difference - sides.before[i];
    }
    return bind_sides(ctx, &sides, record);
}

static const uint32_t pad_types[] = {TN_TYPES_WHOLE, TN_TYPES_INDEX, TN_TYPES_WHOLE,
                                     TN_TYPES_INDEX};
static const uint32_t float_types[] = {TN_TYPES_FLOAT};

#define PAD_ROW                                                                    \
    .min_outputs = 1, .flags = TN_OP_FOLDABLE, .params_bytes = sizeof(pad_params), \
    .record_bytes = sizeof(pad_record), .variants = pad_variants

static const tn_op_def rows[] = {
    {.name = "Pad",
     .since_version = 1,
     .until_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .input_types = float_types,
     .input_types_count = 1,
     .check = pad1_check,
     .infer = pad_infer,
     .bind = pad_bind,
     PAD_ROW},
    {.name = "Pad",
     .since_version = 2,
     .until_version = 10,
     .min_inputs = 1,
     .max_inputs = 1,
     .input_types = float_types,
     .input_types_count = 1,
     .check = pad2_check,
     .infer = pad_infer,
     .bind = pad_bind,
     PAD_ROW},
    {.name = "Pad",
     .since_version = 11,
     .until_version = 17,
     .min_inputs = 2,
     .max_inputs = 3,
     .input_types = pad_types,
     .input_types_count = 4,
     .same_type_mask = 5,
     .check = pad_check,
     .infer = pad_infer,
     .bind = pad_bind,
     PAD_ROW},
    {.name = "Pad",
     .since_version = 18,
     .min_inputs = 2,
     .max_inputs = 4,
     .input_types = pad_types,
     .input_types_count = 4,
     .same_type_mask = 5,
     .check = pad_check,
     .infer = pad_infer,
     .bind = pad_bind,
     PAD_ROW},
    {.name = "CenterCropPad",
     .since_version = 18,
     .min_inputs = 2,
     .max_inputs = 2,
     .input_types = pad_types,
     .input_types_count = 4,
     .check = center_check,
     .infer = center_infer,
     .bind = center_bind,
     PAD_ROW},
};
const tn_op_table tn_pad_table = {rows, TN_COUNTOF(rows)};
