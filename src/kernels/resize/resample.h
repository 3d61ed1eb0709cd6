/* One axis of a resize: which input positions make each output position, with which weights. */
#ifndef TN_KERNELS_RESIZE_RESAMPLE_H
#define TN_KERNELS_RESIZE_RESAMPLE_H

#include "plan/op_def.h"

typedef enum tn_resample_mode {
    TN_RESAMPLE_NEAREST,
    TN_RESAMPLE_LINEAR,
    TN_RESAMPLE_CUBIC
} tn_resample_mode;

typedef enum tn_resample_coordinate {
    TN_COORDINATE_HALF_PIXEL,
    TN_COORDINATE_HALF_PIXEL_SYMMETRIC,
    TN_COORDINATE_PYTORCH_HALF_PIXEL,
    TN_COORDINATE_ALIGN_CORNERS,
    TN_COORDINATE_ASYMMETRIC,
    TN_COORDINATE_TF_HALF_PIXEL,
    TN_COORDINATE_TF_CROP
} tn_resample_coordinate;

typedef enum tn_resample_nearest {
    TN_NEAREST_ROUND_PREFER_FLOOR,
    TN_NEAREST_ROUND_PREFER_CEIL,
    TN_NEAREST_FLOOR,
    TN_NEAREST_CEIL,
    TN_NEAREST_OUTWARD /* opset 10: down when enlarging, up when shrinking */
} tn_resample_nearest;

typedef struct tn_resample {
    tn_resample_mode mode;
    tn_resample_coordinate coordinate;
    tn_resample_nearest nearest;
    float cubic_a;
    bool exclude_outside;
    bool antialias;
} tn_resample;

/* An axis of `in_dim` elements that becomes `out_dim` by `scale`; the region matters for
 * TN_COORDINATE_TF_CROP only. */
typedef struct tn_resample_axis {
    int64_t in_dim, out_dim;
    double scale;
    double region_start, region_end;
} tn_resample_axis;

/* Input elements that make one output element. */
uint32_t tn_resample_tap_count(const tn_resample *resample, double scale);

/* Writes taps of all output positions.
 * Shapes: indices [out_dim, taps] in [0, in_dim); weights [out_dim, taps] that sum up to one, the
 *         first is NaN for a position that lies outside the region; in_dim is at least 1. */
void tn_resample_fill(const tn_resample *resample, const tn_resample_axis *axis, int32_t *indices,
                      double *weights);

#endif
