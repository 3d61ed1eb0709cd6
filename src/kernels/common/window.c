/* Attribute values are bounded when they are parsed, so that no later sum can overflow. */
#include "kernels/common/window.h"

#include <string.h>

#include "base/checked_size.h"

#define MAX_WINDOW_VALUE ((int64_t)1 << 31)

static tn_status check_list(const tn_check_context *ctx, const char *name, int64_t least,
                            int64_t *values, size_t capacity, uint8_t *out_count) {
    size_t count = 0;
    bool present = false;
    TN_TRY(tn_check_ints(ctx, name, values, capacity, &count, &present));
    for (size_t i = 0; i < count; i++) {
        TN_REQUIRE(values[i] >= least && values[i] < MAX_WINDOW_VALUE, ctx->err, TN_INVALID_MODEL,
                   "attribute %s has %lld at %zu, expected %lld to %lld", name,
                   (long long)values[i], i, (long long)least, (long long)MAX_WINDOW_VALUE - 1);
    }
    *out_count = (uint8_t)count;
    return TN_OK;
}

static tn_status check_auto_pad(const tn_check_context *ctx, tn_auto_pad *out) {
    static const struct {
        const char *text;
        tn_auto_pad mode;
    } modes[] = {{"NOTSET", TN_PAD_EXPLICIT},
                 {"", TN_PAD_EXPLICIT},
                 {"SAME_UPPER", TN_PAD_SAME_UPPER},
                 {"SAME_LOWER", TN_PAD_SAME_LOWER},
                 {"VALID", TN_PAD_VALID}};
    tn_text text;
    TN_TRY(tn_check_text(ctx, "auto_pad", "NOTSET", &text));
    for (size_t i = 0; i < TN_COUNTOF(modes); i++) {
        if (!tn_text_equals_literal(text, modes[i].text)) continue;
        *out = modes[i].mode;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "attribute auto_pad is '%.*s'",
                        tn_text_width(text), text.data);
}

tn_status tn_window_check(const tn_check_context *ctx, tn_window_params *out) {
    int64_t ceil_mode = 0;
    TN_TRY(check_list(ctx, "kernel_shape", 1, out->kernel, TN_MAX_SPATIAL, &out->kernel_count));
    TN_TRY(check_list(ctx, "strides", 1, out->strides, TN_MAX_SPATIAL, &out->stride_count));
    TN_TRY(check_list(ctx, "dilations", 1, out->dilations, TN_MAX_SPATIAL, &out->dilation_count));
    TN_TRY(check_list(ctx, "pads", 0, out->pads, TN_COUNTOF(out->pads), &out->pad_count));
    TN_TRY(check_auto_pad(ctx, &out->auto_pad));
    TN_TRY(tn_check_int(ctx, "ceil_mode", 0, &ceil_mode));
    out->ceil_mode = ceil_mode != 0;
    return TN_OK;
}

static tn_status check_count(const char *name, uint8_t found, int32_t wanted, tn_error *err) {
    TN_REQUIRE(found == 0 || found == wanted, err, TN_INVALID_MODEL,
               "attribute %s has %d numbers, the input has %d spatial axes", name, (int)found,
               (int)wanted);
    return TN_OK;
}

/* Output size and padding of one axis. */
static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

/* A symbol for what a window makes of symbol `in`: windows with the same output size for every
 * input share one, so that values which must agree are known to agree before any size is. The
 * output is floor((in + offset) / stride) + 1. */
static int64_t derive_symbol(const tn_window_params *params, const tn_window *w, int32_t axis,
                             int64_t extent) {
    const int64_t in = w->in[axis];
    const int64_t stride = w->stride[axis];
    const bool is_same =
        params->auto_pad == TN_PAD_SAME_UPPER || params->auto_pad == TN_PAD_SAME_LOWER;
    const bool rounds_up = params->ceil_mode && stride > 1 && !is_same;
    const int64_t offset = is_same ? -1 : w->pad_begin[axis] + w->pad_end[axis] - extent;
    if (in == TN_DIM_UNKNOWN || (stride == 1 && offset == -1)) return in;
    uint64_t hash = mix(mix(mix(0, (uint64_t)in), (uint64_t)offset), (uint64_t)stride);
    if (rounds_up) hash = mix(hash, (uint64_t)w->pad_begin[axis] + 1);
    /* far below the symbols of the model itself */
    return -(int64_t)(hash >> 2 | UINT64_C(1) << 61);
}

static tn_status resolve_axis(const tn_window_params *params, tn_window *w, int32_t axis,
                              tn_error *err) {
    const int64_t in = w->in[axis];
    const int64_t stride = w->stride[axis];
    const int64_t extent = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    if (in < 0) {
        w->out[axis] = derive_symbol(params, w, axis, extent);
        return TN_OK;
    }
    TN_REQUIRE(in < MAX_WINDOW_VALUE && extent < (int64_t)1 << 40, err, TN_INVALID_ARGUMENT,
               "axis %d: a window of %lld over %lld elements", (int)axis, (long long)extent,
               (long long)in);
    if (params->auto_pad == TN_PAD_SAME_UPPER || params->auto_pad == TN_PAD_SAME_LOWER) {
        w->out[axis] = (in + stride - 1) / stride;
        int64_t total = (w->out[axis] - 1) * stride + extent - in;
        if (total < 0) total = 0;
        const int64_t small = total / 2;
        w->pad_begin[axis] = params->auto_pad == TN_PAD_SAME_UPPER ? small : total - small;
        w->pad_end[axis] = total - w->pad_begin[axis];
        return TN_OK;
    }
    const int64_t room = in + w->pad_begin[axis] + w->pad_end[axis] - extent;
    TN_REQUIRE(room >= 0 || in == 0, err, TN_INVALID_ARGUMENT,
               "axis %d: a window of %lld is larger than the padded input of %lld", (int)axis,
               (long long)extent, (long long)(room + extent));
    if (room < 0) {
        w->out[axis] = 0;
        return TN_OK;
    }
    w->out[axis] = (params->ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
    /* a last window that would start in the padding behind the input is dropped */
    if (params->ceil_mode && (w->out[axis] - 1) * stride >= in + w->pad_begin[axis]) {
        w->out[axis]--;
    }
    return TN_OK;
}

tn_status tn_window_resolve(const tn_window_params *params, const int64_t *in,
                            const int64_t *kernel, int32_t count, tn_window *out, tn_error *err) {
    memset(out, 0, sizeof *out);
    TN_REQUIRE(count >= 1 && count <= TN_MAX_SPATIAL, err, TN_INVALID_ARGUMENT,
               "%d spatial axes, expected 1 to %d", (int)count, TN_MAX_SPATIAL);
    TN_TRY(check_count("kernel_shape", params->kernel_count, count, err));
    TN_TRY(check_count("strides", params->stride_count, count, err));
    TN_TRY(check_count("dilations", params->dilation_count, count, err));
    TN_REQUIRE(params->pad_count == 0 || params->pad_count == 2 * count, err, TN_INVALID_MODEL,
               "attribute pads has %d numbers, the input has %d spatial axes",
               (int)params->pad_count, (int)count);
    out->count = count;
    int64_t window_elems = 1;
    for (int32_t i = 0; i < count; i++) {
        out->in[i] = in[i];
        out->kernel[i] = params->kernel_count > 0 ? params->kernel[i] : kernel[i];
        out->stride[i] = params->stride_count > 0 ? params->strides[i] : 1;
        out->dilation[i] = params->dilation_count > 0 ? params->dilations[i] : 1;
        if (params->pad_count > 0 && params->auto_pad == TN_PAD_EXPLICIT) {
            out->pad_begin[i] = params->pads[i];
            out->pad_end[i] = params->pads[count + i];
        }
        TN_REQUIRE(out->kernel[i] >= 1 && out->kernel[i] < MAX_WINDOW_VALUE, err,
                   TN_INVALID_ARGUMENT, "axis %d: a window of %lld", (int)i,
                   (long long)out->kernel[i]);
        TN_REQUIRE(tn_i64_mul(window_elems, out->kernel[i], &window_elems), err,
                   TN_INVALID_ARGUMENT, "a window of more elements than a number can count");
        TN_TRY(resolve_axis(params, out, i, err));
    }
    return TN_OK;
}

void tn_window_squeeze(tn_window *w) {
    int32_t kept = 0;
    for (int32_t i = 0; i < w->count; i++) {
        const bool is_unit = w->in[i] == 1 && w->out[i] == 1 && w->kernel[i] == 1 &&
                             w->pad_begin[i] == 0 && w->pad_end[i] == 0;
        if (is_unit && (kept > 0 || i + 1 < w->count)) continue;
        w->in[kept] = w->in[i];
        w->out[kept] = w->out[i];
        w->kernel[kept] = w->kernel[i];
        w->stride[kept] = w->stride[i];
        w->dilation[kept] = w->dilation[i];
        w->pad_begin[kept] = w->pad_begin[i];
        w->pad_end[kept] = w->pad_end[i];
        kept++;
    }
    w->count = kept;
}

tn_status tn_window_resolve_whole(const int64_t *in, int32_t count, tn_window *out, tn_error *err) {
    const tn_window_params whole = {.auto_pad = TN_PAD_EXPLICIT};
    int64_t kernel[TN_MAX_SPATIAL] = {0};
    for (int32_t i = 0; i < count && i < TN_MAX_SPATIAL; i++) kernel[i] = in[i] > 0 ? in[i] : 1;
    TN_TRY(tn_window_resolve(&whole, in, kernel, count, out, err));
    for (int32_t i = 0; i < out->count; i++) out->out[i] = 1;
    return TN_OK;
}

static bool multiply(const int64_t *dims, int32_t count, size_t *out) {
    *out = 1;
    for (int32_t i = 0; i < count; i++) {
        if (!tn_size_mul(*out, (size_t)dims[i], out)) return false;
    }
    return true;
}

tn_status tn_window_sizes(const tn_window *window, size_t *out_in, size_t *out_out,
                          size_t *out_kernel, tn_error *err) {
    TN_REQUIRE(multiply(window->in, window->count, out_in) &&
                   multiply(window->out, window->count, out_out) &&
                   multiply(window->kernel, window->count, out_kernel),
               err, TN_OVERFLOW, "a window over %d axes has too many elements", (int)window->count);
    return TN_OK;
}

tn_status tn_window_trim(tn_window *w, tn_error *err) {
    for (int32_t i = 0; i < w->count; i++) {
        const int64_t reach = w->pad_begin[i] - (w->out[i] - 1) * w->stride[i];
        const int64_t first = reach > 0 ? (reach + w->dilation[i] - 1) / w->dilation[i] : 0;
        const int64_t last =
            tn_i64_min((w->in[i] - 1 + w->pad_begin[i]) / w->dilation[i], w->kernel[i] - 1);
        const bool sees_input = w->in[i] > 0 && first <= last;
        w->pad_begin[i] -= sees_input ? first * w->dilation[i] : 0;
        w->kernel[i] = sees_input ? last - first + 1 : 1;
        TN_REQUIRE(w->kernel[i] <= 4 * w->in[i] + 1024, err, TN_UNSUPPORTED,
                   "axis %d: a window of %lld over an input of %lld", (int)i,
                   (long long)w->kernel[i], (long long)w->in[i]);
    }
    return TN_OK;
}

tn_window_line tn_window_line_of(const tn_window *w, size_t row, size_t element) {
    const int32_t last = w->count - 1;
    tn_window_line line = {.stride = w->stride[last]};
    int64_t scale = w->in[last];
    bool is_inside = true;
    const int64_t at = (int64_t)(element % (size_t)w->kernel[last]);
    element /= (size_t)w->kernel[last];
    for (int32_t i = last - 1; i >= 0; i--) {
        const int64_t place = (int64_t)(row % (size_t)w->out[i]);
        const int64_t step = (int64_t)(element % (size_t)w->kernel[i]);
        const int64_t in = place * w->stride[i] - w->pad_begin[i] + step * w->dilation[i];
        row /= (size_t)w->out[i];
        element /= (size_t)w->kernel[i];
        is_inside = is_inside && in >= 0 && in < w->in[i];
        line.base += in * scale;
        scale *= w->in[i];
    }
    line.start = at * w->dilation[last] - w->pad_begin[last];
    if (!is_inside) return line;
    line.low = line.start >= 0 ? 0 : (-line.start + line.stride - 1) / line.stride;
    line.high =
        line.start >= w->in[last] ? 0 : (w->in[last] - line.start + line.stride - 1) / line.stride;
    line.high = tn_i64_min(line.high, w->out[last]);
    return line;
}

size_t tn_window_product(const int64_t *dims, int32_t count) {
    size_t result = 1;
    for (int32_t i = 0; i < count; i++) result *= (size_t)dims[i];
    return result;
}

void tn_window_position(const tn_window *w, size_t element, int64_t *at) {
    for (int32_t i = w->count - 1; i >= 0; i--) {
        at[i] = (int64_t)(element % (size_t)w->kernel[i]);
        element /= (size_t)w->kernel[i];
    }
}
