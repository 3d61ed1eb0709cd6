/* Two ways: direct loops for the pairs that models use, and for all others a small tile of doubles
 * or 64-bit integers between the two types. Neither rounds twice: 64 bits hold every other type. */
#include "kernels/cast/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernels/common/half.h"
#include "kernels/common/small_float.h"

#define TILE_ELEMS 256
#define TEXT_BYTES 128

typedef enum number_class { CLASS_NONE, CLASS_FLOAT, CLASS_SIGNED, CLASS_UNSIGNED } number_class;

typedef struct tile {
    number_class kind;
    union {
        double floats[TILE_ELEMS];
        int64_t integers[TILE_ELEMS];
        uint64_t naturals[TILE_ELEMS];
    } as;
} tile;

static const uint8_t classes[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = CLASS_FLOAT,      [TN_DTYPE_F64] = CLASS_FLOAT,
    [TN_DTYPE_F16] = CLASS_FLOAT,      [TN_DTYPE_BF16] = CLASS_FLOAT,
    [TN_DTYPE_F8E4M3FN] = CLASS_FLOAT, [TN_DTYPE_F8E4M3FNUZ] = CLASS_FLOAT,
    [TN_DTYPE_F8E5M2] = CLASS_FLOAT,   [TN_DTYPE_F8E5M2FNUZ] = CLASS_FLOAT,
    [TN_DTYPE_F4E2M1] = CLASS_FLOAT,   [TN_DTYPE_F8E8M0] = CLASS_FLOAT,
    [TN_DTYPE_I8] = CLASS_SIGNED,      [TN_DTYPE_I16] = CLASS_SIGNED,
    [TN_DTYPE_I32] = CLASS_SIGNED,     [TN_DTYPE_I64] = CLASS_SIGNED,
    [TN_DTYPE_I4] = CLASS_SIGNED,      [TN_DTYPE_I2] = CLASS_SIGNED,
    [TN_DTYPE_BOOL] = CLASS_UNSIGNED,  [TN_DTYPE_U8] = CLASS_UNSIGNED,
    [TN_DTYPE_U16] = CLASS_UNSIGNED,   [TN_DTYPE_U32] = CLASS_UNSIGNED,
    [TN_DTYPE_U64] = CLASS_UNSIGNED,   [TN_DTYPE_U4] = CLASS_UNSIGNED,
    [TN_DTYPE_U2] = CLASS_UNSIGNED,
};

bool tn_convert_is_supported(tn_dtype from, tn_dtype to) {
    if (from == to && tn_dtype_bits(from) >= 8) return true;
    const bool is_readable = classes[from] != CLASS_NONE || from == TN_DTYPE_STRING;
    return is_readable && classes[to] != CLASS_NONE;
}

/* ---- single numbers ---- */

static inline int64_t i64_from_f64(double value) {
    if (!(value > -0x1p63)) return value == value ? INT64_MIN : 0;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static inline uint64_t u64_from_f64(double value) {
    if (value < 0x1p63) return (uint64_t)i64_from_f64(value);
    return value < 0x1p64 ? (uint64_t)value : value == value ? UINT64_MAX : 0;
}

static inline int32_t i32_from_f64(double value) {
    const double low = value > -0x1p31 ? value : value == value ? -0x1p31 : 0.0;
    return low < 0x1p31 ? (int32_t)low : INT32_MAX;
}

static inline int32_t i32_from_f32(float value) {
    const float low = value > -0x1p31F ? value : value == value ? -0x1p31F : 0.0F;
    return low < 0x1p31F ? (int32_t)low : INT32_MAX;
}

static const float float4_values[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};

/* To nearest even, saturating; there is no NaN, which becomes minus zero as in ml_dtypes. */
static uint8_t float4_from_double(double value) {
    /* halfway points between neighbours; the even code takes them */
    static const double limits[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
    if (value != value) return 8;
    const double size = fabs(value);
    uint8_t code = 0;
    while (code < 7 && (size > limits[code] || (size == limits[code] && (code & 1) != 0))) code++;
    return (uint8_t)(signbit(value) ? code | 8 : code);
}

/* A power of two from the exponent of the nearest float; NaN and infinity are 255. */
static uint8_t float8e8m0_from_double(double value, const tn_convert_options *options) {
    const uint32_t bits = tn_f32_to_bits((float)value);
    const uint32_t exponent = (bits >> 23) & 0xffu;
    const uint32_t fraction = bits & 0x7fffffu;
    if (exponent == 0xff) return 0xff;
    bool goes_up = options->round_mode == TN_ROUND_UP && fraction != 0;
    if (options->round_mode == TN_ROUND_NEAREST) {
        goes_up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
    }
    if (exponent == 0xfe && options->saturate) goes_up = false;
    return (uint8_t)(goes_up ? exponent + 1 : exponent);
}

static double double_from_float8e8m0(uint8_t bits) {
    return bits == 0xff ? (double)NAN : ldexp(1.0, (int)bits - 127);
}

/* Element `index` of packed elements of `bits` bits. */
static unsigned get_packed(const uint8_t *bytes, unsigned bits, size_t index) {
    const size_t per_byte = 8 / bits;
    const unsigned shift = (unsigned)(index % per_byte) * bits;
    return ((unsigned)bytes[index / per_byte] >> shift) & ((1u << bits) - 1);
}

/* Packs `count` codes; the last byte's free bits are zero. */
static void put_packed(uint8_t *bytes, unsigned bits, size_t first, size_t count,
                       const uint8_t *codes) {
    const size_t per_byte = 8 / bits;
    for (size_t i = 0; i < count; i += per_byte) {
        unsigned byte = 0;
        for (size_t j = 0; j < per_byte && i + j < count; j++) {
            byte |= ((unsigned)codes[i + j] & ((1u << bits) - 1)) << (j * bits);
        }
        bytes[(first + i) / per_byte] = (uint8_t)byte;
    }
}

/* ---- into tiles ---- */

#define NATIVE_FLOATS(X) X(F32, float) X(F64, double)
#define NATIVE_SIGNED(X) X(I8, int8_t) X(I16, int16_t) X(I32, int32_t) X(I64, int64_t)
#define NATIVE_UNSIGNED(X) X(U8, uint8_t) X(U16, uint16_t) X(U32, uint32_t) X(U64, uint64_t)

#define READ_AS(dtype, type, member, wide)                         \
    case TN_DTYPE_##dtype:                                         \
        for (size_t i = 0; i < count; i++) {                       \
            t->as.member[i] = (wide)((const type *)in)[first + i]; \
        }                                                          \
        break;
#define READ_FLOATS(dtype, type) READ_AS(dtype, type, floats, double)
#define READ_SIGNED(dtype, type) READ_AS(dtype, type, integers, int64_t)
#define READ_UNSIGNED(dtype, type) READ_AS(dtype, type, naturals, uint64_t)

static void read_packed(tn_dtype from, const void *in, size_t first, size_t count, tile *t) {
    const unsigned bits = tn_dtype_bits(from);
    for (size_t i = 0; i < count; i++) {
        const unsigned code = get_packed(in, bits, first + i);
        const int sign = (int)(code >> (bits - 1));
        if (from == TN_DTYPE_F4E2M1) {
            const double size = (double)float4_values[code & 7];
            t->as.floats[i] = sign != 0 ? -size : size;
        } else if (t->kind == CLASS_SIGNED) {
            t->as.integers[i] = (int64_t)code - (sign << bits);
        } else {
            t->as.naturals[i] = code;
        }
    }
}

static void read_small(tn_dtype from, const void *in, size_t first, size_t count, tile *t) {
    float floats[TILE_ELEMS];
    const size_t size_bytes = tn_dtype_bits(from) / 8;
    tn_small_float_widen(from, (const char *)in + first * size_bytes, floats, count);
    for (size_t i = 0; i < count; i++) t->as.floats[i] = (double)floats[i];
}

static void read_tile(tn_dtype from, const void *in, size_t first, size_t count, tile *t) {
    t->kind = classes[from];
    switch (from) {
        NATIVE_FLOATS(READ_FLOATS)
        NATIVE_SIGNED(READ_SIGNED)
        NATIVE_UNSIGNED(READ_UNSIGNED)
        case TN_DTYPE_BOOL:
            for (size_t i = 0; i < count; i++) {
                t->as.naturals[i] = ((const uint8_t *)in)[first + i] != 0;
            }
            break;
        case TN_DTYPE_F8E8M0:
            for (size_t i = 0; i < count; i++) {
                t->as.floats[i] = double_from_float8e8m0(((const uint8_t *)in)[first + i]);
            }
            break;
        default:
            if (tn_dtype_bits(from) < 8) {
                read_packed(from, in, first, count, t);
            } else {
                read_small(from, in, first, count, t);
            }
    }
}

/* A decimal number (or inf, nan) with nothing behind it. */
static tn_status read_string(tn_string string, number_class kind, tile *t, size_t i,
                             tn_error *err) {
    char text[TEXT_BYTES];
    char *end = text;
    if (string.size_bytes > 0 && string.size_bytes < sizeof text) {
        memcpy(text, string.data, string.size_bytes);
        text[string.size_bytes] = '\0';
        if (kind == CLASS_FLOAT) {
            t->as.floats[i] = strtod(text, &end);
        } else if (kind == CLASS_SIGNED) {
            t->as.integers[i] = strtoll(text, &end, 10);
        } else {
            t->as.naturals[i] = strtoull(text, &end, 10);
        }
    }
    const int width = string.size_bytes < 60 ? (int)string.size_bytes : 60;
    TN_REQUIRE(end != text && *end == '\0', err, TN_INVALID_ARGUMENT, "string \"%.*s\" is no %s",
               width, string.data == NULL ? "" : string.data,
               kind == CLASS_FLOAT ? "number" : "integer");
    return TN_OK;
}

static tn_status read_strings(tn_dtype to, const void *in, size_t first, size_t count, tile *t,
                              tn_error *err) {
    const tn_string *strings = in;
    t->kind = to == TN_DTYPE_BOOL ? CLASS_FLOAT : classes[to];
    for (size_t i = 0; i < count; i++) {
        TN_TRY(read_string(strings[first + i], t->kind, t, i, err));
    }
    return TN_OK;
}

/* ---- out of tiles ---- */

static void make_floats(tile *t, size_t count) {
    if (t->kind == CLASS_SIGNED) {
        for (size_t i = 0; i < count; i++) t->as.floats[i] = (double)t->as.integers[i];
    } else if (t->kind == CLASS_UNSIGNED) {
        for (size_t i = 0; i < count; i++) t->as.floats[i] = (double)t->as.naturals[i];
    }
    t->kind = CLASS_FLOAT;
}

/* Integers of any class, as low bits. */
static void make_naturals(tile *t, size_t count) {
    if (t->kind == CLASS_FLOAT) {
        for (size_t i = 0; i < count; i++) t->as.naturals[i] = u64_from_f64(t->as.floats[i]);
    }
    t->kind = CLASS_UNSIGNED;
}

static void write_packed(tn_dtype to, const tile *t, void *out, size_t first, size_t count) {
    uint8_t codes[TILE_ELEMS];
    for (size_t i = 0; i < count; i++) {
        codes[i] = t->kind == CLASS_FLOAT ? float4_from_double(t->as.floats[i])
                                          : (uint8_t)(t->as.naturals[i] & 0xff);
    }
    put_packed(out, tn_dtype_bits(to), first, count, codes);
}

static void write_bools(const tile *t, uint8_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = t->kind == CLASS_FLOAT ? t->as.floats[i] != 0 : t->as.naturals[i] != 0;
    }
}

/* Straight from integers, so that 64 bits are rounded once. */
static void write_f32(const tile *t, float *out, size_t count) {
    if (t->kind == CLASS_FLOAT) {
        for (size_t i = 0; i < count; i++) out[i] = (float)t->as.floats[i];
    } else if (t->kind == CLASS_SIGNED) {
        for (size_t i = 0; i < count; i++) out[i] = (float)t->as.integers[i];
    } else {
        for (size_t i = 0; i < count; i++) out[i] = (float)t->as.naturals[i];
    }
}

static void write_i32(const tile *t, int32_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = t->kind == CLASS_FLOAT ? i32_from_f64(t->as.floats[i])
                                        : (int32_t)(uint32_t)(t->as.naturals[i] & UINT32_MAX);
    }
}

#define WRITE_LOW_BITS(bits, type)                              \
    case bits:                                                  \
        for (size_t i = 0; i < count; i++) {                    \
            ((type *)out)[first + i] = (type)t->as.naturals[i]; \
        }                                                       \
        break;

static void write_integers(tn_dtype to, tile *t, void *out, size_t first, size_t count) {
    make_naturals(t, count);
    switch (tn_dtype_bits(to)) {
        WRITE_LOW_BITS(8, uint8_t)
        WRITE_LOW_BITS(16, uint16_t)
        WRITE_LOW_BITS(32, uint32_t)
        WRITE_LOW_BITS(64, uint64_t)
        default:
            write_packed(to, t, out, first, count);
    }
}

static void write_floats(const tn_convert_options *options, tile *t, void *out, size_t first,
                         size_t count) {
    const size_t size_bytes = tn_dtype_bits(options->to) / 8;
    char *target = (char *)out + first * size_bytes;
    make_floats(t, count);
    if (options->to == TN_DTYPE_F64) {
        memcpy(target, t->as.floats, count * sizeof(double));
    } else if (options->to == TN_DTYPE_F4E2M1) {
        write_packed(options->to, t, out, first, count);
    } else if (options->to == TN_DTYPE_F8E8M0) {
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)target)[i] = float8e8m0_from_double(t->as.floats[i], options);
        }
    } else {
        tn_small_float_narrow_double(options->to, t->as.floats, target, count, options->saturate);
    }
}

static void write_tile(const tn_convert_options *options, tile *t, void *out, size_t first,
                       size_t count) {
    if (options->to == TN_DTYPE_BOOL) {
        write_bools(t, (uint8_t *)out + first, count);
    } else if (options->to == TN_DTYPE_F32) {
        write_f32(t, (float *)out + first, count);
    } else if (options->to == TN_DTYPE_I32) {
        write_i32(t, (int32_t *)out + first, count);
    } else if (classes[options->to] == CLASS_FLOAT) {
        write_floats(options, t, out, first, count);
    } else {
        write_integers(options->to, t, out, first, count);
    }
}

/* ---- direct loops ---- */

typedef void (*direct_fn)(const void *in, void *out, size_t count);

#define DIRECT(from, from_type, to, to_type, expression)                  \
    static void from##_to_##to(const void *in, void *out, size_t count) { \
        const from_type *source = in;                                     \
        to_type *target = out;                                            \
        for (size_t i = 0; i < count; i++) {                              \
            const from_type x = source[i];                                \
            target[i] = (to_type)(expression);                            \
        }                                                                 \
    }
/* X(from, type, to, type, expression in x) */
#define DIRECT_LIST(X)                                   \
    X(F32, float, F64, double, x)                        \
    X(F32, float, I32, int32_t, i32_from_f32(x))         \
    X(F32, float, I64, int64_t, i64_from_f64((double)x)) \
    X(F32, float, U8, uint8_t, i32_from_f32(x))          \
    X(F32, float, I8, int8_t, i32_from_f32(x))           \
    X(F32, float, BOOL, uint8_t, x != 0)                 \
    X(F64, double, F32, float, x)                        \
    X(I32, int32_t, F32, float, x)                       \
    X(I32, int32_t, I64, int64_t, x)                     \
    X(I32, int32_t, BOOL, uint8_t, x != 0)               \
    X(I64, int64_t, F32, float, x)                       \
    X(I64, int64_t, I32, int32_t, x)                     \
    X(I64, int64_t, BOOL, uint8_t, x != 0)               \
    X(U8, uint8_t, F32, float, x)                        \
    X(I8, int8_t, F32, float, x)                         \
    X(BOOL, uint8_t, F32, float, x != 0)                 \
    X(BOOL, uint8_t, I32, int32_t, x != 0)               \
    X(BOOL, uint8_t, I64, int64_t, x != 0)               \
    X(F16, uint16_t, F32, float, tn_f32_from_f16(x))     \
    X(F32, float, F16, uint16_t, tn_f16_from_f32(x))     \
    X(BF16, uint16_t, F32, float, tn_f32_from_bf16(x))   \
    X(F32, float, BF16, uint16_t, tn_bf16_from_f32(x))
DIRECT_LIST(DIRECT)

#define DIRECT_ENTRY(from, from_type, to, to_type, expression) \
    [TN_DTYPE_##from][TN_DTYPE_##to] = from##_to_##to,
static const direct_fn directs[TN_DTYPE_COUNT][TN_DTYPE_COUNT] = {DIRECT_LIST(DIRECT_ENTRY)};

static void copy_same(const tn_convert_options *options, const void *in, void *out, size_t first,
                      size_t count) {
    const size_t bits = tn_dtype_bits(options->from);
    const size_t offset = first * bits / 8;
    const size_t size_bytes = (count * bits + 7) / 8;
    if (in != out) memcpy((char *)out + offset, (const char *)in + offset, size_bytes);
}

tn_status tn_convert(const tn_convert_options *options, const void *in, void *out, size_t first,
                     size_t count, tn_error *err) {
    if (options->from == options->to) {
        copy_same(options, in, out, first, count);
        return TN_OK;
    }
    const direct_fn direct = directs[options->from][options->to];
    if (direct != NULL) {
        direct((const char *)in + first * (tn_dtype_bits(options->from) / 8),
               (char *)out + first * (tn_dtype_bits(options->to) / 8), count);
        return TN_OK;
    }
    tile t;
    for (size_t i = 0; i < count; i += TILE_ELEMS) {
        const size_t part = count - i < TILE_ELEMS ? count - i : TILE_ELEMS;
        if (options->from == TN_DTYPE_STRING) {
            TN_TRY(read_strings(options->to, in, first + i, part, &t, err));
        } else {
            read_tile(options->from, in, first + i, part, &t);
        }
        write_tile(options, &t, out, first + i, part);
    }
    return TN_OK;
}
