/* Taps of a resized axis. Interpolation is separable, so an axis is all there is. Every filter is a
 * window of an even number of taps around the source coordinate; positions beyond the edge read
 * the edge element, or count for nothing when they are to be excluded. */
#include "kernels/resize/resample.h"

#include <math.h>

#include "base/checked_size.h"

/* Source coordinate of output position `at`. The output length of the definition is the scaled one,
 * before it is cut to an integer. */
static double source_coordinate(const tn_resample *r, const tn_resample_axis *axis, int64_t at) {
    const double x = (double)at;
    const double in_len = (double)axis->in_dim;
    const double out_len = axis->scale * in_len;
    const double half_pixel = (x + 0.5) / axis->scale - 0.5;
    switch (r->coordinate) {
        case TN_COORDINATE_HALF_PIXEL_SYMMETRIC:
            return in_len / 2.0 * (1.0 - (double)axis->out_dim / out_len) + half_pixel;
        case TN_COORDINATE_PYTORCH_HALF_PIXEL:
            return out_len == 1.0 ? -0.5 : half_pixel;
        case TN_COORDINATE_ALIGN_CORNERS:
            return out_len == 1.0 ? 0.0 : x * (in_len - 1.0) / (out_len - 1.0);
        case TN_COORDINATE_ASYMMETRIC:
            return x / axis->scale;
        case TN_COORDINATE_TF_HALF_PIXEL:
            return (x + 0.5) / axis->scale;
        case TN_COORDINATE_TF_CROP: {
            const double span = (axis->region_end - axis->region_start) * (in_len - 1.0);
            const double start = axis->region_start * (in_len - 1.0);
            return start + (out_len == 1.0 ? span / 2.0 : x * span / (out_len - 1.0));
        }
        default:
            return half_pixel;
    }
}

/* The same in f32 where an f32 scale decides between two neighbours: 11.5 / 2.3f is 5 there, as
 * whoever wrote 2.3 meant it. */
static double rounded_coordinate(const tn_resample *r, const tn_resample_axis *axis, int64_t at,
                                 double x) {
    const float scale = (float)axis->scale;
    const float half_pixel = ((float)at + 0.5F) / scale - 0.5F;
    switch (r->coordinate) {
        case TN_COORDINATE_HALF_PIXEL:
            return (double)half_pixel;
        case TN_COORDINATE_PYTORCH_HALF_PIXEL:
            return x == -0.5 ? x : (double)half_pixel;
        case TN_COORDINATE_ASYMMETRIC:
            return (double)((float)at / scale);
        default:
            return x;
    }
}

static double nearest_coordinate(tn_resample_nearest nearest, double scale, double x) {
    switch (nearest) {
        case TN_NEAREST_OUTWARD:
            return scale < 1.0 ? ceil(x) : floor(x);
        case TN_NEAREST_ROUND_PREFER_CEIL:
            return floor(x + 0.5);
        case TN_NEAREST_FLOOR:
            return floor(x);
        case TN_NEAREST_CEIL:
            return ceil(x);
        default:
            return ceil(x - 0.5);
    }
}

static double linear_weight(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic_weight(double x, double a) {
    x = fabs(x);
    if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

/* How far the filter is stretched: shrinking with antialias widens it. */
static double filter_scale(const tn_resample *r, double scale) {
    return r->antialias && scale < 1.0 ? scale : 1.0;
}

uint32_t tn_resample_tap_count(const tn_resample *r, double scale) {
    if (r->mode == TN_RESAMPLE_NEAREST) return 1;
    const double radius = r->mode == TN_RESAMPLE_LINEAR ? 1.0 : 2.0;
    const double half = ceil(radius / filter_scale(r, scale));
    return half < 1.0e6 ? 2u * (uint32_t)half : 2000000u;
}

/* The nearest element in the axis; a coordinate that is no number reads the first. */
static int32_t clamped_index(double index, int64_t dim) {
    if (!(index > 0.0)) return 0;
    return index >= (double)dim ? (int32_t)(dim - 1) : (int32_t)index;
}

static void fill_window(const tn_resample *r, const tn_resample_axis *axis, double x,
                        uint32_t tap_count, int32_t *indices, double *weights) {
    const double stretch = filter_scale(r, axis->scale);
    const double base = floor(x);
    const double first = base - (double)(tap_count / 2) + 1.0;
    double sum = 0.0;
    for (uint32_t t = 0; t < tap_count; t++) {
        const double index = first + (double)t;
        const double distance = (index - x) * stretch;
        const bool is_outside = index < 0.0 || index > (double)(axis->in_dim - 1);
        weights[t] = r->mode == TN_RESAMPLE_LINEAR ? linear_weight(distance)
                                                   : cubic_weight(distance, (double)r->cubic_a);
        if (is_outside && r->exclude_outside) weights[t] = 0.0;
        indices[t] = clamped_index(index, axis->in_dim);
        sum += weights[t];
    }
    const bool needs_norm = r->exclude_outside || stretch < 1.0;
    for (uint32_t t = 0; needs_norm && sum != 0.0 && t < tap_count; t++) weights[t] /= sum;
}

void tn_resample_fill(const tn_resample *r, const tn_resample_axis *axis, int32_t *indices,
                      double *weights) {
    const uint32_t tap_count = tn_resample_tap_count(r, axis->scale);
    for (int64_t i = 0; i < axis->out_dim; i++) {
        int32_t *position_indices = indices + i * (int64_t)tap_count;
        double *position_weights = weights + i * (int64_t)tap_count;
        double x = source_coordinate(r, axis, i);
        if (r->mode == TN_RESAMPLE_NEAREST) {
            x = rounded_coordinate(r, axis, i, x);
            position_indices[0] =
                clamped_index(nearest_coordinate(r->nearest, axis->scale, x), axis->in_dim);
            position_weights[0] = 1.0;
        } else {
            fill_window(r, axis, x, tap_count, position_indices, position_weights);
        }
        const bool is_outside = x < 0.0 || x > (double)(axis->in_dim - 1);
        if (r->coordinate == TN_COORDINATE_TF_CROP && is_outside) position_weights[0] = (double)NAN;
    }
}
