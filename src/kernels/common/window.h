/* Sliding windows of convolution and pooling: attributes, padding rules, output sizes.
 * Rules: ONNX operator specification, Conv and MaxPool; every version since 1. */
#ifndef TN_KERNELS_WINDOW_H
#define TN_KERNELS_WINDOW_H

#include "plan/op_def.h"

#define TN_MAX_SPATIAL 6

typedef enum tn_auto_pad {
    TN_PAD_EXPLICIT,
    TN_PAD_SAME_UPPER, /* the odd element goes to the end */
    TN_PAD_SAME_LOWER, /* the odd element goes to the start */
    TN_PAD_VALID
} tn_auto_pad;

/* Attributes as written. Counts are 0 where an attribute is absent. */
typedef struct tn_window_params {
    int64_t kernel[TN_MAX_SPATIAL];
    int64_t strides[TN_MAX_SPATIAL];
    int64_t dilations[TN_MAX_SPATIAL];
    int64_t pads[2 * TN_MAX_SPATIAL]; /* begins, then ends */
    uint8_t kernel_count, stride_count, dilation_count, pad_count;
    tn_auto_pad auto_pad;
    bool ceil_mode;
} tn_window_params;

/* Numbers for one shape. */
typedef struct tn_window {
    int32_t count; /* spatial axes */
    int64_t in[TN_MAX_SPATIAL];
    int64_t out[TN_MAX_SPATIAL]; /* unknown where `in` is, a symbol where `in` is one */
    int64_t kernel[TN_MAX_SPATIAL];
    int64_t stride[TN_MAX_SPATIAL];
    int64_t dilation[TN_MAX_SPATIAL];
    int64_t pad_begin[TN_MAX_SPATIAL];
    int64_t pad_end[TN_MAX_SPATIAL];
} tn_window;

/* Parses kernel_shape, strides, dilations, pads, auto_pad and ceil_mode.
 * Errors: TN_INVALID_MODEL naming the attribute, the number and what it may be. */
tn_status tn_window_check(const tn_check_context *ctx, tn_window_params *out);

/* Sizes for spatial dims `in` [count]; `kernel` [count] replaces an absent kernel_shape.
 * Errors: TN_INVALID_MODEL when attribute lengths disagree with `count`; TN_INVALID_ARGUMENT when
 *         a window is larger than the padded input. */
tn_status tn_window_resolve(const tn_window_params *params, const int64_t *in,
                            const int64_t *kernel, int32_t count, tn_window *out, tn_error *err);

/* Removes axes on which nothing slides: one element in, one out, a window of one, no padding. At
 * least one axis stays. The order of all elements is unchanged, and long axes come to the end,
 * where kernels are fast. */
void tn_window_squeeze(tn_window *window);

/* One window over the whole input: what global pooling slides. Every `out` is 1.
 * Errors: TN_INVALID_ARGUMENT for fewer than one axis or more than TN_MAX_SPATIAL. */
tn_status tn_window_resolve_whole(const int64_t *in, int32_t count, tn_window *out, tn_error *err);

/* Every `out` of `window`, multiplied; the same of `in` and `kernel`. All must be known.
 * Errors: TN_OVERFLOW. */
tn_status tn_window_sizes(const tn_window *window, size_t *out_in, size_t *out_out,
                          size_t *out_kernel, tn_error *err);

/* Drops the window elements at either end that see nothing but padding from every output: maxima
 * and sums stay, and walking the window costs no more than the input it meets.
 * Errors: TN_UNSUPPORTED for a window that is still far longer than its input. */
tn_status tn_window_trim(tn_window *window, tn_error *err);

/* What one window element sees of one output row (last axis): elements base + start + i * stride
 * of the plane for output i in [low, high); empty where an outer axis lies in the padding. */
typedef struct tn_window_line {
    int64_t base, start, stride, low, high;
} tn_window_line;

/* The line of output row `row` (all axes but the last, flattened) and window element `element`
 * (flattened). */
tn_window_line tn_window_line_of(const tn_window *window, size_t row, size_t element);

/* The product of `dims` [count], none of them negative; its size was proved by infer. */
size_t tn_window_product(const int64_t *dims, int32_t count);

/* Coordinates of window element `element`, counted in row-major order, into `at` [count]. */
void tn_window_position(const tn_window *window, size_t element, int64_t *at);

#endif
