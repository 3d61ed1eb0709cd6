/* One description per 8-bit format and one rounding routine for all of them.
 *
 * A value is sign * 2^(exponent - bias) * 1.mantissa, subnormals below. The formats differ in bias,
 * in mantissa bits, and in which codes are infinity and NaN: fn has no infinity and NaN only with
 * all bits set; fnuz has in addition no negative zero, whose code is its one NaN. */
#include "kernels/common/small_float.h"

#include <math.h>

#include "kernels/common/half.h"

typedef struct float8_format {
    int mantissa_bits;
    int bias;
    uint8_t largest;  /* code of the largest finite value */
    uint8_t nan;      /* without sign, except fnuz */
    uint8_t infinity; /* 0: none */
    bool is_fnuz;
} float8_format;

static const float8_format formats[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F8E4M3FN] = {3, 7, 0x7e, 0x7f, 0, false},
    [TN_DTYPE_F8E4M3FNUZ] = {3, 8, 0x7f, 0x80, 0, true},
    [TN_DTYPE_F8E5M2] = {2, 15, 0x7b, 0x7e, 0x7c, false},
    [TN_DTYPE_F8E5M2FNUZ] = {2, 16, 0x7f, 0x80, 0, true},
};

bool tn_dtype_is_small_float(tn_dtype dtype) {
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 ||
           (dtype < TN_DTYPE_COUNT && formats[dtype].bias != 0);
}

double tn_float8_to_double(tn_dtype dtype, uint8_t bits) {
    const float8_format *format = &formats[dtype];
    const uint8_t code = bits & 0x7f;
    if (format->is_fnuz ? bits == format->nan : code > format->largest) {
        if (format->infinity != 0 && code == format->infinity) {
            return bits == code ? (double)INFINITY : -(double)INFINITY;
        }
        return (double)NAN;
    }
    const int exponent = code >> format->mantissa_bits;
    const int mantissa = code & ((1 << format->mantissa_bits) - 1);
    const int hidden = exponent == 0 ? 0 : 1 << format->mantissa_bits;
    const int shift = (exponent == 0 ? 1 : exponent) - format->bias - format->mantissa_bits;
    const double size = ldexp((double)(hidden + mantissa), shift);
    return bits == code ? size : -size;
}

uint8_t tn_float8_from_double(tn_dtype dtype, double value, bool saturate) {
    const float8_format *format = &formats[dtype];
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const uint8_t nan = format->is_fnuz ? format->nan : (uint8_t)(sign | format->nan);
    if (value != value) return nan;
    const double size = fabs(value);
    const uint8_t overflow =
        saturate ? (uint8_t)(sign | format->largest)
                 : (format->infinity != 0 ? (uint8_t)(sign | format->infinity) : nan);
    if (isinf(size)) return overflow;
    int exponent = 0;
    (void)frexp(size, &exponent);
    exponent = exponent - 1 + format->bias; /* biased; below 1 the value is subnormal */
    if (size == 0 || exponent < 1) exponent = 1;
    const int shift = exponent - format->bias - format->mantissa_bits;
    /* a mantissa that rounds up to the next power of two carries into the exponent by itself */
    const double mantissa = nearbyint(ldexp(size, -shift));
    const double code = mantissa + (double)((exponent - 1) << format->mantissa_bits);
    if (code > (double)format->largest) return overflow;
    if (code == 0 && format->is_fnuz) return 0;
    return (uint8_t)(sign | (uint8_t)code);
}

void tn_small_float_widen(tn_dtype dtype, const void *from, float *to, size_t len) {
    const uint16_t *halves = from;
    const uint8_t *bytes = from;
    if (dtype == TN_DTYPE_F16) {
        for (size_t i = 0; i < len; i++) to[i] = tn_f32_from_f16(halves[i]);
    } else if (dtype == TN_DTYPE_BF16) {
        for (size_t i = 0; i < len; i++) to[i] = tn_f32_from_bf16(halves[i]);
    } else {
        const bool is_known = tn_dtype_is_small_float(dtype);
        for (size_t i = 0; i < len; i++) {
            to[i] = is_known ? (float)tn_float8_to_double(dtype, bytes[i]) : 0.0F;
        }
    }
}

void tn_small_float_narrow(tn_dtype dtype, const float *from, void *to, size_t len) {
    uint16_t *halves = to;
    uint8_t *bytes = to;
    if (dtype == TN_DTYPE_F16) {
        for (size_t i = 0; i < len; i++) halves[i] = tn_f16_from_f32(from[i]);
    } else if (dtype == TN_DTYPE_BF16) {
        for (size_t i = 0; i < len; i++) halves[i] = tn_bf16_from_f32(from[i]);
    } else if (tn_dtype_is_small_float(dtype)) {
        for (size_t i = 0; i < len; i++) {
            bytes[i] = tn_float8_from_double(dtype, (double)from[i], true);
        }
    }
}

/* Rounded to odd: what is cut off stays visible in the last bit, so that rounding again to fewer
 * bits is right. */
static float odd_from_double(double value) {
    const float near = (float)value;
    const double back = (double)near;
    if (back == value || value != value || isinf(near)) return near;
    const uint32_t bits = tn_f32_to_bits(near);
    if ((bits & 1u) != 0) return near;
    /* the bits of a float grow with its size, whatever its sign */
    const bool is_too_large = fabs(back) > fabs(value);
    return tn_f32_from_bits(is_too_large ? bits - 1 : bits + 1);
}

void tn_small_float_narrow_double(tn_dtype dtype, const double *from, void *to, size_t len,
                                  bool saturate) {
    uint16_t *halves = to;
    uint8_t *bytes = to;
    if (dtype == TN_DTYPE_F16) {
        for (size_t i = 0; i < len; i++) halves[i] = tn_f16_from_f32(odd_from_double(from[i]));
    } else if (dtype == TN_DTYPE_BF16) {
        for (size_t i = 0; i < len; i++) halves[i] = tn_bf16_from_f32(odd_from_double(from[i]));
    } else if (tn_dtype_is_small_float(dtype)) {
        for (size_t i = 0; i < len; i++) {
            bytes[i] = tn_float8_from_double(dtype, from[i], saturate);
        }
    }
}
