/* Every element type becomes a double for comparing. That a 64-bit integer is rounded then does not
 * matter: the relative tolerance that cases allow is far wider. */
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double half_to_double(uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) value = fraction != 0 ? (double)NAN : (double)INFINITY;
    return (bits & 0x8000) != 0 ? -value : value;
}

/* Small floats by their parameters. `has_inf`: IEEE-like top exponent; else one NaN pattern. */
static double small_float(unsigned bits, int exponent_bits, int fraction_bits, int bias,
                          bool has_inf, bool is_fnuz) {
    const int sign_at = exponent_bits + fraction_bits;
    const int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = (int)bits & ((1 << fraction_bits) - 1);
    const int top = (1 << exponent_bits) - 1;
    if (is_fnuz && bits == 1u << sign_at) return (double)NAN;
    if (has_inf && exponent == top && fraction != 0) return (double)NAN;
    if (!is_fnuz && !has_inf && exponent_bits == 4 && exponent == top && fraction == 7) {
        return (double)NAN;
    }
    double value = exponent == 0
                       ? ldexp(fraction, 1 - bias - fraction_bits)
                       : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    if (has_inf && exponent == top) value = (double)INFINITY;
    return ((bits >> sign_at) & 1u) != 0 ? -value : value;
}

static unsigned packed_bits(const unsigned char *data, size_t index, unsigned bits) {
    const size_t per_byte = 8 / bits;
    const unsigned shift = (unsigned)(index % per_byte) * bits;
    return (data[index / per_byte] >> shift) & ((1u << bits) - 1);
}

static double sub_byte(const unsigned char *data, size_t index, tn_dtype dtype) {
    const unsigned bits = tn_dtype_bits(dtype);
    const unsigned raw = packed_bits(data, index, bits);
    if (dtype == TN_DTYPE_F4E2M1) {
        static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
        return raw < 8 ? values[raw] : -values[raw - 8];
    }
    if (dtype == TN_DTYPE_U4 || dtype == TN_DTYPE_U2) return raw;
    return raw >= 1u << (bits - 1) ? (double)raw - (double)(1u << bits) : raw;
}

#define READ(type, data, index) (((const type *)(data))[index])

static double small_float_element(const void *data, size_t index, tn_dtype dtype) {
    const unsigned bits = READ(unsigned char, data, index);
    switch (dtype) {
        case TN_DTYPE_F8E4M3FN:
            return small_float(bits, 4, 3, 7, false, false);
        case TN_DTYPE_F8E4M3FNUZ:
            return small_float(bits, 4, 3, 8, false, true);
        case TN_DTYPE_F8E5M2:
            return small_float(bits, 5, 2, 15, true, false);
        case TN_DTYPE_F8E5M2FNUZ:
            return small_float(bits, 5, 2, 16, false, true);
        case TN_DTYPE_F8E8M0:
            return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
        default:
            return (double)NAN;
    }
}

double cli_element(const tn_value *value, size_t index) {
    const void *data = tn_tensor_borrow_data(value);
    const tn_dtype dtype = tn_tensor_dtype(value);
    float as_float = 0;
    uint32_t widened = 0;
    switch (dtype) {
        case TN_DTYPE_F32:
            return (double)READ(float, data, index);
        case TN_DTYPE_F64:
            return READ(double, data, index);
        case TN_DTYPE_F16:
            return half_to_double(READ(uint16_t, data, index));
        case TN_DTYPE_BF16:
            widened = (uint32_t)READ(uint16_t, data, index) << 16;
            memcpy(&as_float, &widened, sizeof as_float);
            return (double)as_float;
        case TN_DTYPE_I8:
            return READ(int8_t, data, index);
        case TN_DTYPE_U8:
        case TN_DTYPE_BOOL:
            return READ(uint8_t, data, index);
        case TN_DTYPE_I16:
            return READ(int16_t, data, index);
        case TN_DTYPE_U16:
            return READ(uint16_t, data, index);
        case TN_DTYPE_I32:
            return READ(int32_t, data, index);
        case TN_DTYPE_U32:
            return READ(uint32_t, data, index);
        case TN_DTYPE_I64:
            return (double)READ(int64_t, data, index);
        case TN_DTYPE_U64:
            return (double)READ(uint64_t, data, index);
        case TN_DTYPE_U4:
        case TN_DTYPE_I4:
        case TN_DTYPE_U2:
        case TN_DTYPE_I2:
        case TN_DTYPE_F4E2M1:
            return sub_byte(data, index, dtype);
        default:
            return small_float_element(data, index, dtype);
    }
}

static bool same_shape(const tn_value *got, const tn_value *want, char *why, size_t why_bytes) {
    const tn_shape *a = tn_tensor_borrow_shape(got);
    const tn_shape *b = tn_tensor_borrow_shape(want);
    bool is_same = a->rank == b->rank;
    for (int32_t d = 0; is_same && d < a->rank; d++) is_same = a->dims[d] == b->dims[d];
    if (is_same) return true;
    size_t used = (size_t)snprintf(why, why_bytes, "shape [");
    for (int32_t d = 0; d < a->rank && used < why_bytes; d++) {
        used += (size_t)snprintf(why + used, why_bytes - used, "%s%lld", d == 0 ? "" : ", ",
                                 (long long)a->dims[d]);
    }
    if (used < why_bytes) used += (size_t)snprintf(why + used, why_bytes - used, "], expected [");
    for (int32_t d = 0; d < b->rank && used < why_bytes; d++) {
        used += (size_t)snprintf(why + used, why_bytes - used, "%s%lld", d == 0 ? "" : ", ",
                                 (long long)b->dims[d]);
    }
    if (used < why_bytes) (void)snprintf(why + used, why_bytes - used, "]");
    return false;
}

static bool same_strings(const tn_value *got, const tn_value *want, size_t count, char *why,
                         size_t why_bytes) {
    const tn_string *a = tn_tensor_borrow_data(got);
    const tn_string *b = tn_tensor_borrow_data(want);
    for (size_t i = 0; i < count; i++) {
        if (a[i].size_bytes == b[i].size_bytes &&
            memcmp(a[i].data, b[i].data, a[i].size_bytes) == 0) {
            continue;
        }
        (void)snprintf(why, why_bytes, "string %zu is '%.*s', expected '%.*s'", i,
                       (int)a[i].size_bytes, a[i].data, (int)b[i].size_bytes, b[i].data);
        return false;
    }
    return true;
}

static bool same_numbers(const tn_value *got, const tn_value *want, size_t count,
                         const double *tolerance, char *why, size_t why_bytes) {
    size_t wrong = 0;
    size_t worst_at = 0;
    double worst = -1;
    for (size_t i = 0; i < count; i++) {
        const double a = cli_element(got, i);
        const double b = cli_element(want, i);
        if (isnan(a) && isnan(b)) continue;
        const double difference = a == b ? 0 : fabs(a - b);
        const double allowed = isinf(b) ? 0 : tolerance[1] + tolerance[0] * fabs(b);
        if (difference <= allowed) continue;
        wrong++;
        if (!(difference <= worst)) {
            worst = difference;
            worst_at = i;
        }
    }
    if (wrong == 0) return true;
    (void)snprintf(why, why_bytes, "%zu of %zu differ, worst element %zu: %.9g, expected %.9g",
                   wrong, count, worst_at, cli_element(got, worst_at), cli_element(want, worst_at));
    return false;
}

bool cli_compare(const tn_value *got, const tn_value *want, double rtol, double atol, char *why,
                 size_t why_bytes) {
    if (tn_tensor_dtype(got) != tn_tensor_dtype(want)) {
        (void)snprintf(why, why_bytes, "type %s, expected %s", tn_dtype_name(tn_tensor_dtype(got)),
                       tn_dtype_name(tn_tensor_dtype(want)));
        return false;
    }
    if (!same_shape(got, want, why, why_bytes)) return false;
    size_t count = 0;
    if (tn_shape_len_elems(tn_tensor_borrow_shape(got), &count, NULL) != TN_OK) return false;
    if (tn_tensor_dtype(got) == TN_DTYPE_STRING) {
        return same_strings(got, want, count, why, why_bytes);
    }
    const double tolerance[2] = {rtol, atol};
    return same_numbers(got, want, count, tolerance, why, why_bytes);
}
