/* Resize and Upsample. All tables of taps are made by bind and lie in the record, so a run only
 * reads them. A row is the last axis that is resized together with what lies behind it: nearest
 * copies elements of one source row, interpolation first adds up source rows by the weights of the
 * other axes in scratch and then walks along the row. */
#include "kernels/resize/resample.h"

#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/half.h"
#include "kernels/common/index_walk.h"
#include "kernels/common/move.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef enum aspect_policy { ASPECT_STRETCH, ASPECT_NOT_LARGER, ASPECT_NOT_SMALLER } aspect_policy;

typedef struct resize_params {
    tn_resample resample;
    aspect_policy policy;
    float extrapolation_value;
    uint32_t region_slot, scales_slot, sizes_slot; /* TN_NO_VALUE: no such input */
    tn_int_list axes;
    uint32_t scale_count; /* attributes of Upsample; 0: an input gives them */
    double scales[TN_MAX_RANK];
} resize_params;

/* What a sized node is to do, by axis of the input. */
typedef struct resize_spec {
    int32_t rank;
    tn_resample_axis axes[TN_MAX_RANK];
    bool is_resized[TN_MAX_RANK];
} resize_spec;

typedef struct record_axis {
    int64_t out_dim, in_dim;
    int64_t stride;       /* elements of the input */
    uint32_t tap_count;   /* 0: stays as it is */
    bool crops;           /* positions may lie outside the region: NaN as first weight */
    size_t index_offset;  /* bytes from the record's start */
    size_t weight_offset; /* float or double by is_double */
} record_axis;

typedef struct resize_record {
    int32_t rank; /* of axes; the last one is the row */
    uint32_t elem_bytes;
    uint32_t tile_count;
    tn_dtype dtype;
    bool is_double;
    size_t row_count;
    size_t inner_len; /* elements behind each step of the row */
    char outside[16]; /* value outside the region */
    int64_t walk_dims[TN_MAX_RANK];
    record_axis axes[TN_MAX_RANK];
} resize_record;

/* ---- attributes ---- */

static tn_status choose_text(const tn_check_context *ctx, const char *name, const char *fallback,
                             const char *const *names, size_t count, uint32_t *out) {
    tn_text text;
    TN_TRY(tn_check_text(ctx, name, fallback, &text));
    for (size_t i = 0; i < count; i++) {
        if (!tn_text_equals_literal(text, names[i])) continue;
        *out = (uint32_t)i;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "%s %.*s", name, tn_text_width(text),
                        text.data);
}

static tn_status check_mode(const tn_check_context *ctx, resize_params *p) {
    static const char *const names[] = {"nearest", "linear", "cubic", "bilinear"};
    uint32_t mode = 0;
    TN_TRY(choose_text(ctx, "mode", "nearest", names, TN_COUNTOF(names), &mode));
    p->resample.mode = mode == 3 ? TN_RESAMPLE_LINEAR : (tn_resample_mode)mode;
    return TN_OK;
}

/* Upsample, and Resize of opset 10: no other choices, scales by input 1. */
static tn_status upsample_check(const tn_check_context *ctx, void *params) {
    resize_params *p = params;
    p->resample.coordinate = TN_COORDINATE_ASYMMETRIC;
    p->resample.nearest = TN_NEAREST_OUTWARD;
    p->region_slot = TN_NO_VALUE;
    p->sizes_slot = TN_NO_VALUE;
    p->scales_slot = 1;
    return check_mode(ctx, p);
}

static tn_status upsample1_check(const tn_check_context *ctx, void *params) {
    resize_params *p = params;
    float height = 0.0F;
    float width = 0.0F;
    TN_TRY(upsample_check(ctx, params));
    TN_TRY(tn_check_float(ctx, "height_scale", 0.0F, &height));
    TN_TRY(tn_check_float(ctx, "width_scale", 0.0F, &width));
    p->scales_slot = TN_NO_VALUE;
    p->scale_count = 4;
    p->scales[0] = p->scales[1] = 1.0;
    p->scales[2] = (double)height;
    p->scales[3] = (double)width;
    return TN_OK;
}

static tn_status upsample7_check(const tn_check_context *ctx, void *params) {
    resize_params *p = params;
    TN_TRY(upsample_check(ctx, params));
    const tn_graph_attribute *scales =
        ctx->node == NULL ? NULL : tn_graph_node_attribute(ctx->node, "scales");
    TN_REQUIRE(scales != NULL && scales->type == TN_ATTRIBUTE_FLOATS && scales->count > 0 &&
                   scales->count <= TN_MAX_RANK,
               ctx->err, TN_INVALID_MODEL, "attribute scales is missing or is no list of floats");
    p->scales_slot = TN_NO_VALUE;
    p->scale_count = (uint32_t)scales->count;
    for (size_t i = 0; i < scales->count; i++) p->scales[i] = (double)scales->floats[i];
    return TN_OK;
}

static tn_status check_flags(const tn_check_context *ctx, resize_params *p) {
    int64_t exclude = 0;
    int64_t antialias = 0;
    TN_TRY(tn_check_int(ctx, "exclude_outside", 0, &exclude));
    TN_TRY(tn_check_int(ctx, "antialias", 0, &antialias));
    TN_TRY(tn_check_float(ctx, "cubic_coeff_a", -0.75F, &p->resample.cubic_a));
    TN_TRY(tn_check_float(ctx, "extrapolation_value", 0.0F, &p->extrapolation_value));
    TN_TRY(tn_check_int_list(ctx, "axes", &p->axes));
    p->resample.exclude_outside = exclude != 0;
    p->resample.antialias = antialias != 0;
    return TN_OK;
}

static tn_status resize_check(const tn_check_context *ctx, void *params) {
    static const char *const coordinates[] = {
        [TN_COORDINATE_HALF_PIXEL] = "half_pixel",
        [TN_COORDINATE_HALF_PIXEL_SYMMETRIC] = "half_pixel_symmetric",
        [TN_COORDINATE_PYTORCH_HALF_PIXEL] = "pytorch_half_pixel",
        [TN_COORDINATE_ALIGN_CORNERS] = "align_corners",
        [TN_COORDINATE_ASYMMETRIC] = "asymmetric",
        [TN_COORDINATE_TF_HALF_PIXEL] = "tf_half_pixel_for_nn",
        [TN_COORDINATE_TF_CROP] = "tf_crop_and_resize"};
    static const char *const nearest[] = {[TN_NEAREST_ROUND_PREFER_FLOOR] = "round_prefer_floor",
                                          [TN_NEAREST_ROUND_PREFER_CEIL] = "round_prefer_ceil",
                                          [TN_NEAREST_FLOOR] = "floor",
                                          [TN_NEAREST_CEIL] = "ceil"};
    static const char *const policies[] = {[ASPECT_STRETCH] = "stretch",
                                           [ASPECT_NOT_LARGER] = "not_larger",
                                           [ASPECT_NOT_SMALLER] = "not_smaller"};
    resize_params *p = params;
    uint32_t chosen = 0;
    TN_TRY(check_mode(ctx, p));
    TN_TRY(choose_text(ctx, "coordinate_transformation_mode", "half_pixel", coordinates,
                       TN_COUNTOF(coordinates), &chosen));
    p->resample.coordinate = (tn_resample_coordinate)chosen;
    TN_TRY(choose_text(ctx, "nearest_mode", "round_prefer_floor", nearest, TN_COUNTOF(nearest),
                       &chosen));
    p->resample.nearest = (tn_resample_nearest)chosen;
    TN_TRY(choose_text(ctx, "keep_aspect_ratio_policy", "stretch", policies, TN_COUNTOF(policies),
                       &chosen));
    p->policy = (aspect_policy)chosen;
    p->region_slot = 1;
    p->scales_slot = 2;
    p->sizes_slot = 3;
    return check_flags(ctx, p);
}

/* ---- what to do, from facts ---- */

/* Numbers of an optional input; *out_count 0 when it is left out or empty, -1 when not known. */
static tn_status read_numbers(const tn_node_facts *node, uint32_t slot, double *values,
                              int32_t *out_count, tn_error *err) {
    const tn_fact *fact = slot == TN_NO_VALUE ? NULL : tn_node_input(node, slot);
    *out_count = 0;
    if (fact == NULL || tn_list_length(fact) == 0) return TN_OK;
    *out_count = -1;
    if (fact->data == NULL || !tn_fact_is_sized(fact)) return TN_OK;
    const size_t count = tn_fact_len_elems(fact);
    TN_REQUIRE(count <= TN_MAX_LIST, err, TN_INVALID_ARGUMENT, "input %u has %zu numbers", slot,
               count);
    for (size_t i = 0; i < count; i++) values[i] = tn_number_read(fact->data, fact->dtype, i);
    *out_count = (int32_t)count;
    return TN_OK;
}

/* Axis of the input that entry `i` of scales, sizes or region is about. */
static tn_status named_axis(const resize_params *p, int32_t rank, int32_t i, int32_t *out,
                            tn_error *err) {
    *out = i;
    if (!p->axes.is_present) return TN_OK;
    return tn_infer_axis(p->axes.values[i], rank, out, err);
}

static tn_status require_count(const resize_params *p, int32_t rank, int32_t count, int32_t each,
                               const char *what, tn_error *err) {
    const int32_t axis_count = p->axes.is_present ? (int32_t)p->axes.count : rank;
    TN_REQUIRE(count == axis_count * each, err, TN_INVALID_ARGUMENT, "%d %s for %d axes",
               (int)count, what, (int)axis_count);
    return TN_OK;
}

static tn_status apply_scales(const resize_params *p, const double *scales, int32_t count,
                              resize_spec *spec, tn_error *err) {
    TN_TRY(require_count(p, spec->rank, count, 1, "scales", err));
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        TN_REQUIRE(scales[i] > 0.0 && scales[i] < 1.0e12, err, TN_INVALID_ARGUMENT,
                   "scale %d is %g", (int)i, scales[i]);
        spec->axes[axis].scale = scales[i];
        if (spec->axes[axis].in_dim < 0) {
            if (scales[i] != 1.0) spec->axes[axis].out_dim = TN_DIM_UNKNOWN;
            continue;
        }
        /* in f32, as shape inference of the standard does: 10 * 0.7f is 7 */
        const float scaled = floorf((float)spec->axes[axis].in_dim * (float)scales[i]);
        TN_REQUIRE(scaled < 2147483648.0F, err, TN_OVERFLOW, "axis %d becomes %g elements",
                   (int)axis, (double)scaled);
        spec->axes[axis].out_dim = (int64_t)scaled;
    }
    return TN_OK;
}

/* One scale for all axes: the smallest or the largest of those asked for. */
static tn_status keep_aspect(const resize_params *p, int32_t count, resize_spec *spec,
                             tn_error *err) {
    double common = 0.0;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        const double scale = spec->axes[axis].scale;
        const bool wins = p->policy == ASPECT_NOT_LARGER ? scale < common : scale > common;
        if (i == 0 || wins) common = scale;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        spec->axes[axis].scale = common;
        if (spec->axes[axis].in_dim < 0) {
            spec->axes[axis].out_dim = TN_DIM_UNKNOWN;
        } else {
            const double scaled = floor(common * (double)spec->axes[axis].in_dim + 0.5);
            TN_REQUIRE(scaled < 2147483648.0, err, TN_OVERFLOW, "axis %d becomes %g elements",
                       (int)axis, scaled);
            spec->axes[axis].out_dim = (int64_t)scaled;
        }
    }
    return TN_OK;
}

static tn_status apply_sizes(const resize_params *p, const double *sizes, int32_t count,
                             resize_spec *spec, tn_error *err) {
    bool has_unknown = false;
    TN_TRY(require_count(p, spec->rank, count, 1, "sizes", err));
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        TN_REQUIRE(sizes[i] >= 0.0 && sizes[i] < 2147483648.0, err, TN_INVALID_ARGUMENT,
                   "size %d is %g", (int)i, sizes[i]);
        tn_resample_axis *a = &spec->axes[axis];
        a->out_dim = (int64_t)sizes[i];
        a->scale = a->in_dim > 0 ? sizes[i] / (double)a->in_dim : 1.0;
        has_unknown = has_unknown || a->in_dim < 0;
    }
    if (p->policy == ASPECT_STRETCH) return TN_OK;
    if (!has_unknown) return keep_aspect(p, count, spec, err);
    for (int32_t i = 0; i < count; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        spec->axes[axis].out_dim = TN_DIM_UNKNOWN;
    }
    return TN_OK;
}

/* The region to crop; *out_known is false when it is needed and not known yet. */
static tn_status apply_region(const tn_node_facts *node, resize_spec *spec, bool *out_known,
                              tn_error *err) {
    const resize_params *p = node->params;
    double region[TN_MAX_LIST];
    int32_t count = 0;
    *out_known = true;
    if (p->resample.coordinate != TN_COORDINATE_TF_CROP) return TN_OK;
    TN_TRY(read_numbers(node, p->region_slot, region, &count, err));
    *out_known = count >= 0;
    if (count < 0) return TN_OK;
    TN_TRY(require_count(p, spec->rank, count, 2, "numbers of the region", err));
    for (int32_t i = 0; i < count / 2; i++) {
        int32_t axis = 0;
        TN_TRY(named_axis(p, spec->rank, i, &axis, err));
        spec->axes[axis].region_start = region[i];
        spec->axes[axis].region_end = region[count / 2 + i];
    }
    return TN_OK;
}

static void find_resized(resize_spec *spec) {
    for (int32_t i = 0; i < spec->rank; i++) {
        const tn_resample_axis *a = &spec->axes[i];
        const bool is_whole =
            fabs(a->region_start) <= 1.0e-9 && fabs(a->region_end - 1.0) <= 1.0e-9;
        spec->is_resized[i] =
            !(fabs(a->scale - 1.0) <= 1.0e-9 && a->in_dim == a->out_dim && is_whole);
    }
}

/* The whole of it; *out_known is false when an input that decides is not known. */
static tn_status resize_describe(const tn_node_facts *node, resize_spec *spec, bool *out_known,
                                 tn_error *err) {
    const resize_params *p = node->params;
    const tn_shape *from = &node->inputs[0]->shape;
    double numbers[TN_MAX_LIST];
    int32_t count = 0;
    spec->rank = from->rank;
    for (int32_t i = 0; i < from->rank; i++) {
        spec->axes[i] = (tn_resample_axis){from->dims[i], from->dims[i], 1.0, 0.0, 1.0};
    }
    *out_known = false;
    TN_TRY(read_numbers(node, p->sizes_slot, numbers, &count, err));
    if (count < 0) return TN_OK;
    if (count > 0) {
        TN_TRY(apply_sizes(p, numbers, count, spec, err));
    } else if (p->scale_count > 0) {
        TN_TRY(apply_scales(p, p->scales, (int32_t)p->scale_count, spec, err));
    } else {
        TN_TRY(read_numbers(node, p->scales_slot, numbers, &count, err));
        if (count < 0) return TN_OK;
        TN_REQUIRE(count > 0 || spec->rank == 0, err, TN_INVALID_ARGUMENT,
                   "neither scales nor sizes are given");
        TN_TRY(apply_scales(p, numbers, count, spec, err));
    }
    TN_TRY(apply_region(node, spec, out_known, err));
    find_resized(spec);
    return TN_OK;
}

static tn_status resize_infer(const tn_node_facts *node, tn_error *err) {
    const resize_params *p = node->params;
    const tn_dtype dtype = tn_input_dtype(node, 0);
    TN_REQUIRE(p->resample.mode == TN_RESAMPLE_NEAREST || dtype == TN_DTYPE_NONE ||
                   (1u << dtype & TN_TYPES_NUMBER) != 0,
               err, TN_UNSUPPORTED, "%s is not interpolated", tn_dtype_name(dtype));
    tn_set_output(node, 0, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    resize_spec spec;
    bool is_known = false;
    TN_TRY(resize_describe(node, &spec, &is_known, err));
    tn_shape to = tn_unknown_dims(spec.rank);
    for (int32_t i = 0; is_known && i < spec.rank; i++) {
        to.dims[i] = spec.axes[i].out_dim;
        TN_REQUIRE(to.dims[i] <= 0 || spec.axes[i].in_dim != 0, err, TN_INVALID_ARGUMENT,
                   "axis %d has no elements to make %lld from", (int)i, (long long)to.dims[i]);
        TN_REQUIRE(spec.axes[i].in_dim <= INT32_MAX, err, TN_UNSUPPORTED,
                   "axis %d has %lld elements", (int)i, (long long)spec.axes[i].in_dim);
    }
    return tn_put_output(node, 0, dtype, &to, err);
}

/* ---- the record ---- */

/* Axis of the input that is the row: the last resized one, else the last. */
static int32_t row_axis(const resize_spec *spec) {
    for (int32_t i = spec->rank - 1; i > 0; i--) {
        if (spec->is_resized[i]) return i;
    }
    return spec->rank > 0 && spec->is_resized[0] ? 0 : spec->rank - 1;
}

static size_t weight_bytes(bool is_double) {
    return is_double ? sizeof(double) : sizeof(float);
}

/* Types whose sums need more than f32 holds. */
static bool needs_double(tn_dtype dtype) {
    const uint32_t wide = TN_TYPE_BIT(F64) | TN_TYPE_BIT(I32) | TN_TYPE_BIT(U32) |
                          TN_TYPE_BIT(I64) | TN_TYPE_BIT(U64);
    return (1u << dtype & wide) != 0;
}

/* Lays out axes and tables; returns the record's bytes. `r` may be the record or a header alone. */
static size_t lay_out(const tn_node_facts *node, const resize_spec *spec, resize_record *r) {
    const resize_params *p = node->params;
    const int32_t last = row_axis(spec);
    int64_t strides[TN_MAX_RANK];
    size_t used = tn_align_up(sizeof *r, 64);
    tn_row_strides(&node->inputs[0]->shape, 1, strides);
    r->is_double = needs_double(node->inputs[0]->dtype);
    r->rank = 0;
    r->row_count = 1;
    r->inner_len = (size_t)tn_dims_product(&node->inputs[0]->shape, last + 1, spec->rank);
    for (int32_t i = 0; i <= last; i++) {
        const tn_resample_axis *from = &spec->axes[i];
        record_axis *before = r->rank > 0 ? &r->axes[r->rank - 1] : NULL;
        if (i < last && !spec->is_resized[i] && before != NULL && before->tap_count == 0) {
            before->out_dim *= from->out_dim; /* whole axes lie together */
            before->in_dim *= from->in_dim;
            before->stride = strides[i];
            continue;
        }
        record_axis *axis = &r->axes[r->rank++];
        *axis =
            (record_axis){.out_dim = from->out_dim, .in_dim = from->in_dim, .stride = strides[i]};
        if (!spec->is_resized[i]) continue;
        axis->tap_count = tn_resample_tap_count(&p->resample, from->scale);
        axis->crops = p->resample.coordinate == TN_COORDINATE_TF_CROP;
        const size_t taps = (size_t)from->out_dim * axis->tap_count;
        axis->index_offset = used;
        used = tn_align_up(used + taps * sizeof(int32_t), 64);
        axis->weight_offset = used;
        /* doubles first, which floats then replace in place */
        used = tn_align_up(used + taps * sizeof(double), 64);
    }
    for (int32_t i = 0; i + 1 < r->rank; i++) {
        r->walk_dims[i] = r->axes[i].out_dim;
        r->row_count *= (size_t)r->axes[i].out_dim;
    }
    return used;
}

static void narrow_weights(void *weights, size_t count) {
    char *bytes = weights;
    for (size_t i = 0; i < count; i++) {
        double wide;
        memcpy(&wide, bytes + i * sizeof wide, sizeof wide);
        const float narrow = (float)wide;
        memcpy(bytes + i * sizeof narrow, &narrow, sizeof narrow);
    }
}

static void fill_tables(const resize_params *p, const resize_spec *spec, resize_record *r) {
    int32_t at = 0;
    for (int32_t i = 0; i < spec->rank; i++) {
        if (!spec->is_resized[i]) continue;
        while (r->axes[at].tap_count == 0) at++;
        record_axis *axis = &r->axes[at++];
        void *indices = (char *)r + axis->index_offset;
        void *weights = (char *)r + axis->weight_offset;
        tn_resample_fill(&p->resample, &spec->axes[i], indices, weights);
        if (!r->is_double) {
            narrow_weights(weights, (size_t)axis->out_dim * axis->tap_count);
        }
    }
}

static size_t resize_record_size(const tn_bind_context *ctx) {
    resize_spec spec;
    resize_record header;
    bool is_known = false;
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return sizeof header;
    if (resize_describe(ctx->node, &spec, &is_known, NULL) != TN_OK) return sizeof header;
    return lay_out(ctx->node, &spec, &header);
}

static tn_status resize_bind(const tn_bind_context *ctx, void *record) {
    resize_record *r = record;
    const resize_params *p = ctx->node->params;
    resize_spec spec;
    bool is_known = false;
    TN_TRY(resize_describe(ctx->node, &spec, &is_known, ctx->err));
    TN_REQUIRE(is_known, ctx->err, TN_INVALID_ARGUMENT, "scales, sizes or region are not known");
    r->dtype = ctx->node->inputs[0]->dtype;
    r->elem_bytes = (uint32_t)tn_elem_bytes(r->dtype);
    r->tile_count = ctx->variant->tile_counts[0];
    tn_number_write(r->outside, r->dtype, 0, (double)p->extrapolation_value);
    if (tn_fact_len_elems(ctx->node->outputs[0]) == 0) return TN_OK; /* no rows */
    (void)lay_out(ctx->node, &spec, r);
    fill_tables(p, &spec, r);
    return TN_OK;
}

/* ---- running ---- */

static const int32_t *axis_indices(const resize_record *r, const record_axis *axis) {
    return (const int32_t *)(const void *)((const char *)r + axis->index_offset);
}

static double axis_weight(const resize_record *r, const record_axis *axis, size_t at) {
    const char *weights = (const char *)r + axis->weight_offset;
    if (r->is_double) {
        double wide;
        memcpy(&wide, weights + at * sizeof wide, sizeof wide);
        return wide;
    }
    float narrow;
    memcpy(&narrow, weights + at * sizeof narrow, sizeof narrow);
    return (double)narrow;
}

static bool is_outside(const resize_record *r, const record_axis *axis, int64_t position) {
    if (!axis->crops) return false;
    return isnan(axis_weight(r, axis, (size_t)position * axis->tap_count));
}

/* Writes the extrapolation value over the positions of a row that lie outside the region. */
static void cover_outside(const resize_record *r, const record_axis *axis, char *to) {
    const size_t unit_bytes = r->inner_len * r->elem_bytes;
    for (int64_t x = 0; axis->crops && x < axis->out_dim; x++) {
        if (!is_outside(r, axis, x)) continue;
        tn_fill(to + (size_t)x * unit_bytes, r->outside, r->elem_bytes, r->inner_len);
    }
}

/* Picks units of constant size, so that each is one move. */
static inline void pick_units(const int32_t *indices, int64_t count, size_t unit_bytes,
                              const char *row, char *to) {
    for (int64_t x = 0; x < count; x++) {
        memcpy(to + (size_t)x * unit_bytes, row + (size_t)indices[x] * unit_bytes, unit_bytes);
    }
}

static void nearest_row(const resize_record *r, const char *row, char *to) {
    const record_axis *axis = &r->axes[r->rank - 1];
    const size_t unit_bytes = r->inner_len * r->elem_bytes;
    if (axis->tap_count == 0) {
        memcpy(to, row, (size_t)axis->out_dim * unit_bytes);
        return;
    }
    const int32_t *indices = axis_indices(r, axis);
    switch (unit_bytes) {
        case 1:
            pick_units(indices, axis->out_dim, 1, row, to);
            break;
        case 2:
            pick_units(indices, axis->out_dim, 2, row, to);
            break;
        case 4:
            pick_units(indices, axis->out_dim, 4, row, to);
            break;
        case 8:
            pick_units(indices, axis->out_dim, 8, row, to);
            break;
        default:
            pick_units(indices, axis->out_dim, unit_bytes, row, to);
            break;
    }
    cover_outside(r, axis, to);
}

/* Element offset of the source row of the walk's position; -1 when it lies outside the region. */
static int64_t nearest_source(const resize_record *r, const int64_t *position) {
    int64_t offset = 0;
    for (int32_t i = 0; i + 1 < r->rank; i++) {
        const record_axis *axis = &r->axes[i];
        const int64_t index =
            axis->tap_count == 0 ? position[i] : axis_indices(r, axis)[position[i]];
        if (is_outside(r, axis, position[i])) return -1;
        offset += index * axis->stride;
    }
    return offset;
}

static void start_rows(const resize_record *r, uint32_t tile0, uint32_t tile1, tn_walk *walk,
                       size_t *out_row, size_t *out_end) {
    size_t ignored = 0;
    tn_tile_range(r->row_count, r->tile_count, tile0, out_row, &ignored);
    tn_tile_range(r->row_count, r->tile_count, tile1 - 1, &ignored, out_end);
    walk->rank = r->rank > 0 ? r->rank - 1 : 0;
    walk->dims = r->walk_dims;
    walk->strides_a = r->walk_dims;
    walk->strides_b = r->walk_dims;
    if (*out_row < *out_end) tn_walk_seek(walk, *out_row);
}

static tn_status nearest_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)worker;
    const resize_record *r = record;
    tn_walk walk;
    size_t row = 0;
    size_t end = 0;
    start_rows(r, tile0, tile1, &walk, &row, &end);
    if (row >= end) return TN_OK;
    const char *in = tn_kernel_in(ctx, 0);
    const size_t row_bytes = (size_t)r->axes[r->rank - 1].out_dim * r->inner_len * r->elem_bytes;
    char *to = (char *)tn_kernel_out(ctx, 0) + row * row_bytes;
    int64_t before = -2; /* no row yet */
    for (; row < end; row++, to += row_bytes) {
        const int64_t source = nearest_source(r, walk.index);
        if (source < 0) {
            tn_fill(to, r->outside, r->elem_bytes, row_bytes / r->elem_bytes);
        } else if (source == before) {
            memcpy(to, to - row_bytes, row_bytes);
        } else {
            nearest_row(r, in + (size_t)source * r->elem_bytes, to);
        }
        before = source;
        tn_walk_next(&walk);
    }
    return TN_OK;
}

/* X(dtype, type, sum, load, store): interpolated types with the type their sums are made in */
#define INTERPOLATED_LIST(X)                                                                       \
    X(F32, float, float, value, sum)                                                               \
    X(F64, double, double, value, sum)                                                             \
    X(F16, uint16_t, float, tn_f32_from_f16(value), tn_f16_from_f32(sum))                          \
    X(BF16, uint16_t, float, tn_f32_from_bf16(value), tn_bf16_from_f32(sum))                       \
    X(U8, uint8_t, float, (float)value, (uint8_t)clamped_f32(sum, 0.0F, 255.0F))                   \
    X(I8, int8_t, float, (float)value, (int8_t)clamped_f32(sum, -128.0F, 127.0F))                  \
    X(U16, uint16_t, float, (float)value, (uint16_t)clamped_f32(sum, 0.0F, 65535.0F))              \
    X(I16, int16_t, float, (float)value, (int16_t)clamped_f32(sum, -32768.0F, 32767.0F))           \
    X(I32, int32_t, double, (double)value, (int32_t)clamped_f64(sum, -2147483648.0, 2147483647.0)) \
    X(U32, uint32_t, double, (double)value, (uint32_t)clamped_f64(sum, 0.0, 4294967295.0))         \
    X(I64, int64_t, double, (double)value,                                                         \
      (int64_t)clamped_f64(sum, -9223372036854775808.0, 9223372036854774784.0))                    \
    X(U64, uint64_t, double, (double)value, (uint64_t)clamped_f64(sum, 0.0, 18446744073709549568.0))

/* Rounded to nearest even and kept in range; NaN becomes the lowest value. */
static inline float clamped_f32(float value, float low, float high) {
    value = rintf(value);
    return value > high ? high : value >= low ? value : low;
}

static inline double clamped_f64(double value, double low, double high) {
    value = rint(value);
    return value > high ? high : value >= low ? value : low;
}

/* The last pass over a row: what stays the same for all rows. */
typedef struct row_end {
    const int32_t *indices; /* [out_dim, tap_count] in the axis */
    const void *weights;    /* [out_dim, tap_count] */
    uint32_t tap_count;
    int64_t out_dim;
    size_t inner_len;
} row_end;

#define DEFINE_INTERPOLATED(dtype, type, sum_type, load, store)                                 \
    static void add_row_##dtype(const void *row, double weight, bool is_first, size_t len,      \
                                void *sums) {                                                   \
        const char *from = row;                                                                 \
        sum_type *restrict acc = sums;                                                          \
        const sum_type w = (sum_type)weight;                                                    \
        for (size_t i = 0; i < len; i++) {                                                      \
            type value;                                                                         \
            memcpy(&value, from + i * sizeof value, sizeof value);                              \
            acc[i] = is_first ? w * (load) : acc[i] + w * (load);                               \
        }                                                                                       \
    }                                                                                           \
    static inline void finish_taps_##dtype(const row_end *row, const sum_type *acc,             \
                                           const sum_type *w, uint32_t tap_count, size_t inner, \
                                           char *out) {                                         \
        const int32_t *indices = row->indices;                                                  \
        for (int64_t x = 0; x < row->out_dim; x++, indices += tap_count, w += tap_count) {      \
            for (size_t k = 0; k < inner; k++) {                                                \
                sum_type sum = w[0] * acc[(size_t)indices[0] * inner + k];                      \
                for (uint32_t t = 1; t < tap_count; t++) {                                      \
                    sum += w[t] * acc[(size_t)indices[t] * inner + k];                          \
                }                                                                               \
                const type value = store;                                                       \
                memcpy(out + ((size_t)x * inner + k) * sizeof value, &value, sizeof value);     \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    static void finish_row_##dtype(const row_end *row, const void *sums, char *out) {           \
        const size_t inner = row->inner_len;                                                    \
        if (row->tap_count == 2 && inner == 1) {                                                \
            finish_taps_##dtype(row, sums, row->weights, 2, 1, out);                            \
        } else if (row->tap_count == 2) {                                                       \
            finish_taps_##dtype(row, sums, row->weights, 2, inner, out);                        \
        } else if (row->tap_count == 4 && inner == 1) {                                         \
            finish_taps_##dtype(row, sums, row->weights, 4, 1, out);                            \
        } else {                                                                                \
            finish_taps_##dtype(row, sums, row->weights, row->tap_count, inner, out);           \
        }                                                                                       \
    }
INTERPOLATED_LIST(DEFINE_INTERPOLATED)

typedef struct interpolated_type {
    void (*add_row)(const void *row, double weight, bool is_first, size_t len, void *sums);
    void (*finish_row)(const row_end *row, const void *sums, char *out);
} interpolated_type;

#define INTERPOLATED_ENTRY(dtype, type, sum_type, load, store) \
    [TN_DTYPE_##dtype] = {add_row_##dtype, finish_row_##dtype},
static const interpolated_type interpolated_types[TN_DTYPE_COUNT] = {
    INTERPOLATED_LIST(INTERPOLATED_ENTRY)};

/* One choice of a tap on every axis before the row: its element offset and weight; false when the
 * position lies outside the region. */
static bool tap_source(const resize_record *r, const int64_t *position, const uint32_t *taps,
                       int64_t *out_offset, double *out_weight) {
    *out_offset = 0;
    *out_weight = 1.0;
    for (int32_t i = 0; i + 1 < r->rank; i++) {
        const record_axis *axis = &r->axes[i];
        int64_t index = position[i];
        if (axis->tap_count != 0) {
            const int32_t *indices = axis_indices(r, axis);
            const size_t first = (size_t)position[i] * axis->tap_count;
            if (is_outside(r, axis, position[i])) return false;
            index = indices[first + taps[i]];
            *out_weight *= axis_weight(r, axis, first + taps[i]);
        }
        *out_offset += index * axis->stride;
    }
    return true;
}

/* Next choice of taps; false after the last. */
static bool next_taps(const resize_record *r, uint32_t *taps) {
    for (int32_t i = r->rank - 2; i >= 0; i--) {
        if (r->axes[i].tap_count == 0) continue;
        if (++taps[i] < r->axes[i].tap_count) return true;
        taps[i] = 0;
    }
    return false;
}

/* Adds the source rows up; false when the position lies outside the region. */
static bool sum_rows(const resize_record *r, const char *in, const int64_t *position, void *sums) {
    const interpolated_type *type = &interpolated_types[r->dtype];
    const size_t len = (size_t)r->axes[r->rank - 1].in_dim * r->inner_len;
    uint32_t taps[TN_MAX_RANK] = {0};
    bool is_first = true;
    do {
        int64_t offset = 0;
        double weight = 1.0;
        if (!tap_source(r, position, taps, &offset, &weight)) return false;
        if (weight == 0.0 && !is_first) continue;
        type->add_row(in + (size_t)offset * r->elem_bytes, weight, is_first, len, sums);
        is_first = false;
    } while (next_taps(r, taps));
    return true;
}

static tn_status interpolate_run(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                                 uint32_t tile1, uint32_t worker) {
    const resize_record *r = record;
    tn_walk walk;
    size_t row = 0;
    size_t end = 0;
    start_rows(r, tile0, tile1, &walk, &row, &end);
    if (row >= end) return TN_OK;
    const record_axis *axis = &r->axes[r->rank - 1];
    const char *in = tn_kernel_in(ctx, 0);
    const row_end end_of_row = {.indices = axis_indices(r, axis),
                                .weights = (const char *)r + axis->weight_offset,
                                .tap_count = axis->tap_count,
                                .out_dim = axis->out_dim,
                                .inner_len = r->inner_len};
    void *sums = tn_kernel_scratch(ctx, worker);
    const size_t row_len = (size_t)axis->out_dim * r->inner_len;
    char *to = (char *)tn_kernel_out(ctx, 0) + row * row_len * r->elem_bytes;
    for (; row < end; row++, to += row_len * r->elem_bytes) {
        if (!sum_rows(r, in, walk.index, sums)) {
            tn_fill(to, r->outside, r->elem_bytes, row_len);
        } else {
            interpolated_types[r->dtype].finish_row(&end_of_row, sums, to);
            cover_outside(r, axis, to);
        }
        tn_walk_next(&walk);
    }
    return TN_OK;
}

/* Bytes of the row of sums that a worker needs. */
static tn_status interpolate_scratch(const tn_node_facts *node, const resize_spec *spec,
                                     size_t *out_bytes, tn_error *err) {
    const int32_t last = row_axis(spec);
    const size_t len = (size_t)tn_dims_product(&node->inputs[0]->shape, last, spec->rank);
    TN_REQUIRE(tn_size_mul(len, weight_bytes(needs_double(node->inputs[0]->dtype)), out_bytes), err,
               TN_OVERFLOW, "a row of %zu elements", len);
    return TN_OK;
}

static tn_status resize_variants(const tn_variant_query *query, tn_variant *out,
                                 uint32_t *out_count, tn_error *err) {
    const tn_node_facts *node = query->node;
    const resize_params *p = node->params;
    bool interpolates = p->resample.mode != TN_RESAMPLE_NEAREST;
    size_t bytes = 0;
    size_t scratch_bytes = 0;
    if (tn_node_is_sized(node) && tn_fact_len_elems(node->outputs[0]) != 0) {
        resize_spec spec;
        bool is_known = false;
        bool is_resized = false;
        TN_TRY(resize_describe(node, &spec, &is_known, err));
        for (int32_t i = 0; i < spec.rank; i++) is_resized = is_resized || spec.is_resized[i];
        interpolates = interpolates && is_resized;
        bytes = tn_fact_len_elems(node->outputs[0]) * tn_elem_bytes(node->outputs[0]->dtype);
        if (interpolates) TN_TRY(interpolate_scratch(node, &spec, &scratch_bytes, err));
    }
    const uint32_t tiles = tn_tiles_for_bytes(interpolates ? 4 * bytes : bytes, SIZE_MAX);
    out[0] = (tn_variant){.name = interpolates ? "interpolated" : "nearest",
                          .run = interpolates ? interpolate_run : nearest_run,
                          .rewrite_class = TN_REWRITE_EXACT,
                          .tile_counts = {tiles},
                          .worker_scratch_bytes = scratch_bytes,
                          .cost_ns = 50.0 + (double)bytes * (interpolates ? 1.0 : 0.25)};
    *out_count = 1;
    return TN_OK;
}

static const uint32_t resize_types[] = {TN_TYPES_WHOLE, TN_TYPES_FLOAT, TN_TYPES_FLOAT,
                                        TN_TYPES_INDEX};
static const uint32_t scaled_types[] = {TN_TYPES_WHOLE, TN_TYPES_FLOAT};

#define RESIZE_ROW                                                                             \
    .min_inputs = 1, .min_outputs = 1, .flags = TN_OP_FOLDABLE,                                \
    .params_bytes = sizeof(resize_params), .infer = resize_infer, .variants = resize_variants, \
    .bind = resize_bind, .record_size = resize_record_size

static const tn_op_def rows[] = {
    {.name = "Upsample",
     .since_version = 1,
     .until_version = 6,
     .max_inputs = 1,
     .input_types = scaled_types,
     .input_types_count = 2,
     .check = upsample1_check,
     RESIZE_ROW},
    {.name = "Upsample",
     .since_version = 7,
     .until_version = 8,
     .max_inputs = 1,
     .input_types = scaled_types,
     .input_types_count = 2,
     .check = upsample7_check,
     RESIZE_ROW},
    {.name = "Upsample",
     .since_version = 9,
     .max_inputs = 2,
     .input_types = scaled_types,
     .input_types_count = 2,
     .check = upsample_check,
     RESIZE_ROW},
    {.name = "Resize",
     .since_version = 10,
     .until_version = 10,
     .max_inputs = 2,
     .input_types = scaled_types,
     .input_types_count = 2,
     .check = upsample_check,
     RESIZE_ROW},
    {.name = "Resize",
     .since_version = 11,
     .max_inputs = 4,
     .input_types = resize_types,
     .input_types_count = 4,
     .check = resize_check,
     RESIZE_ROW},
};
const tn_op_table tn_resize_table = {rows, TN_COUNTOF(rows)};
