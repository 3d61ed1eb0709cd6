/* Loops over element types other than f32, and f32 loops of bodies that end in bool.
 *
 * Each body is one expression, instantiated over a list of types; the compiler vectorises. Integer
 * sums and products wrap around; division by zero gives 0 and the most negative number divided by
 * -1 gives itself, so no data can trap. 16-bit floats go through f32 in small tiles. */
#include <math.h>
#include <string.h>

#include "kernels/common/half.h"
#include "kernels/common/small_float.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_isa.h"

/* X(DTYPE, type, unsigned type of the same width or wider, min, max) */
#define SIGNED_TYPES(X)                             \
    X(I8, int8_t, uint32_t, INT8_MIN, INT8_MAX)     \
    X(I16, int16_t, uint32_t, INT16_MIN, INT16_MAX) \
    X(I32, int32_t, uint32_t, INT32_MIN, INT32_MAX) \
    X(I64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
#define UNSIGNED_TYPES(X)                     \
    X(U8, uint8_t, uint32_t, 0, UINT8_MAX)    \
    X(U16, uint16_t, uint32_t, 0, UINT16_MAX) \
    X(U32, uint32_t, uint32_t, 0, UINT32_MAX) \
    X(U64, uint64_t, uint64_t, 0, UINT64_MAX)
#define INTEGER_TYPES(X) SIGNED_TYPES(X) UNSIGNED_TYPES(X)
#define FLOAT_TYPES(X)                        \
    X(F32, float, float, -INFINITY, INFINITY) \
    X(F64, double, double, -(double)INFINITY, (double)INFINITY)

/* Loops for one expression in x (and p), or in a and b. */
#define UNARY_LOOP(loop, type, result, expression) \
    static void loop(const tn_loop_args *args) {   \
        const type *in = args->in[0];              \
        result *out = args->out;                   \
        const float *p = args->params;             \
        (void)p;                                   \
        for (size_t i = 0; i < args->len; i++) {   \
            const type x = in[i * args->step[0]];  \
            out[i] = (result)(expression);         \
        }                                          \
    }

#define BINARY_LOOP(loop, type, result, expression)     \
    static void loop(const tn_loop_args *args) {        \
        const type *in_a = args->in[0];                 \
        const type *in_b = args->in[1];                 \
        result *out = args->out;                        \
        const size_t len = args->len;                   \
        if (args->step[0] != 0 && args->step[1] != 0) { \
            for (size_t i = 0; i < len; i++) {          \
                const type a = in_a[i];                 \
                const type b = in_b[i];                 \
                out[i] = (result)(expression);          \
            }                                           \
        } else if (args->step[0] != 0) {                \
            const type b = in_b[0];                     \
            for (size_t i = 0; i < len; i++) {          \
                const type a = in_a[i];                 \
                out[i] = (result)(expression);          \
            }                                           \
        } else {                                        \
            const type a = in_a[0];                     \
            for (size_t i = 0; i < len; i++) {          \
                const type b = in_b[i * args->step[1]]; \
                out[i] = (result)(expression);          \
            }                                           \
        }                                               \
    }

/* ---- integers ---- */

#define SIGNED_HELPERS(dtype, type, wide, min, max)                    \
    static inline type divide_##dtype(type a, type b) {                \
        if (b == 0) return 0;                                          \
        if (b == -1) return (type)(0 - (wide)a);                       \
        return (type)(a / b);                                          \
    }                                                                  \
    static inline type remainder_##dtype(type a, type b) {             \
        return (type)(b == 0 || b == -1 ? 0 : a % b);                  \
    }                                                                  \
    static inline type modulo_##dtype(type a, type b) {                \
        const type r = remainder_##dtype(a, b);                        \
        return (type)(r != 0 && (r < 0) != (b < 0) ? r + b : r);       \
    }                                                                  \
    UNARY_LOOP(NEG_##dtype, type, type, 0 - (wide)x)                   \
    UNARY_LOOP(ABS_##dtype, type, type, x < 0 ? 0 - (wide)x : (wide)x) \
    UNARY_LOOP(SIGN_##dtype, type, type, (x > 0) - (x < 0))            \
    UNARY_LOOP(RELU_##dtype, type, type, x > 0 ? x : 0)                \
    BINARY_LOOP(PRELU_##dtype, type, type, a < 0 ? (wide)a * (wide)b : (wide)a)
SIGNED_TYPES(SIGNED_HELPERS)

#define UNSIGNED_HELPERS(dtype, type, wide, min, max)                                             \
    static inline type divide_##dtype(type a, type b) {                                           \
        return (type)(b == 0 ? 0 : a / b);                                                        \
    }                                                                                             \
    static inline type remainder_##dtype(type a, type b) {                                        \
        return (type)(b == 0 ? 0 : a % b);                                                        \
    }                                                                                             \
    static inline type modulo_##dtype(type a, type b) {                                           \
        return remainder_##dtype(a, b);                                                           \
    }                                                                                             \
    UNARY_LOOP(ABS_##dtype, type, type, x)                                                        \
    UNARY_LOOP(SIGN_##dtype, type, type, x > 0)                                                   \
    UNARY_LOOP(RELU_##dtype, type, type, x)                                                       \
    BINARY_LOOP(PRELU_##dtype, type, type, ((void)b, a))                                          \
    BINARY_LOOP(SHIFT_LEFT_##dtype, type, type, b >= 8 * sizeof(type) ? 0 : (type)((wide)a << b)) \
    BINARY_LOOP(SHIFT_RIGHT_##dtype, type, type, b >= 8 * sizeof(type) ? 0 : a >> b)
UNSIGNED_TYPES(UNSIGNED_HELPERS)

/* Sums and products are made in an unsigned type that does not promote to int. */
#define INTEGER_LOOPS(dtype, type, wide, min, max)                                      \
    BINARY_LOOP(ADD_##dtype, type, type, (wide)a + (wide)b)                             \
    BINARY_LOOP(SUB_##dtype, type, type, (wide)a - (wide)b)                             \
    BINARY_LOOP(MUL_##dtype, type, type, (wide)a *(wide)b)                              \
    BINARY_LOOP(DIV_##dtype, type, type, divide_##dtype(a, b))                          \
    BINARY_LOOP(FMOD_##dtype, type, type, remainder_##dtype(a, b))                      \
    BINARY_LOOP(MODULO_##dtype, type, type, modulo_##dtype(a, b))                       \
    BINARY_LOOP(MAX_##dtype, type, type, a > b ? a : b)                                 \
    BINARY_LOOP(MIN_##dtype, type, type, a < b ? a : b)                                 \
    BINARY_LOOP(BITWISE_AND_##dtype, type, type, a &b)                                  \
    BINARY_LOOP(BITWISE_OR_##dtype, type, type, a | b)                                  \
    BINARY_LOOP(BITWISE_XOR_##dtype, type, type, a ^ b)                                 \
    UNARY_LOOP(BITWISE_NOT_##dtype, type, type, ~x)                                     \
    static void CLIP_##dtype(const tn_loop_args *args) {                                \
        const type *in = args->in[0];                                                   \
        type *out = args->out;                                                          \
        const type low = args->in[1] == NULL ? (type)min : *(const type *)args->in[1];  \
        const type high = args->in[2] == NULL ? (type)max : *(const type *)args->in[2]; \
        for (size_t i = 0; i < args->len; i++) {                                        \
            const type x = in[i] < low ? low : in[i];                                   \
            out[i] = x > high ? high : x;                                               \
        }                                                                               \
    }
INTEGER_TYPES(INTEGER_LOOPS)

/* ---- doubles ---- */

static inline double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static inline double softplus(double x) {
    return (x > 0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

static inline double clamp(double x, double low, double high) {
    const double y = x < low ? low : x;
    return y > high ? high : y;
}

static inline double shrink(double x, double limit, double bias) {
    if (x > limit) return x - bias;
    if (x < -limit) return x + bias;
    return x == x ? 0.0 : x;
}

/* Into range first: the conversion of what does not fit is not defined. */
static inline int64_t int_from_double(double value) {
    if (!(value > -0x1p63)) return value == value ? INT64_MIN : 0;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static inline double modulo(double a, double b) {
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* X(BODY, expression in x and p): every unary program body. */
#define DOUBLE_UNARY_LIST(X)                                                               \
    X(NEG, -x)                                                                             \
    X(ABS, fabs(x))                                                                        \
    X(SQRT, sqrt(x))                                                                       \
    X(RECIPROCAL, 1.0 / x)                                                                 \
    X(FLOOR, floor(x))                                                                     \
    X(CEIL, ceil(x))                                                                       \
    X(ROUND, nearbyint(x))                                                                 \
    X(SIGN, x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x)                                 \
    X(EXP, exp(x))                                                                         \
    X(LOG, log(x))                                                                         \
    X(ERF, erf(x))                                                                         \
    X(SIN, sin(x))                                                                         \
    X(COS, cos(x))                                                                         \
    X(TAN, tan(x))                                                                         \
    X(ASIN, asin(x))                                                                       \
    X(ACOS, acos(x))                                                                       \
    X(ATAN, atan(x))                                                                       \
    X(SINH, sinh(x))                                                                       \
    X(COSH, cosh(x))                                                                       \
    X(TANH, tanh(x))                                                                       \
    X(ASINH, asinh(x))                                                                     \
    X(ACOSH, acosh(x))                                                                     \
    X(ATANH, atanh(x))                                                                     \
    X(RELU, x < 0 ? 0.0 : x)                                                               \
    X(SIGMOID, sigmoid(x))                                                                 \
    X(SOFTPLUS, softplus(x))                                                               \
    X(SOFTSIGN, x / (1.0 + fabs(x)))                                                       \
    X(HARD_SWISH, x *clamp(x / 6.0 + 0.5, 0.0, 1.0))                                       \
    X(MISH, x *tanh(softplus(x)))                                                          \
    X(GELU, 0.5 * x * (1.0 + erf(x * 0.70710678118654752)))                                \
    X(GELU_TANH, 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)))) \
    X(LEAKY_RELU, x < 0 ? x * (double)p[0] : x)                                            \
    X(ELU, x < 0 ? (double)p[0] * expm1(x) : x)                                            \
    X(SELU, (double)p[1] * (x > 0 ? x : (double)p[0] * expm1(x)))                          \
    X(HARD_SIGMOID, clamp(x *(double)p[0] + (double)p[1], 0.0, 1.0))                       \
    X(THRESHOLDED_RELU, x <= (double)p[0] ? 0.0 : x)                                       \
    X(CELU, x < 0 ? (double)p[0] * expm1(x / (double)p[0]) : x)                            \
    X(SWISH, x *sigmoid(x *(double)p[0]))                                                  \
    X(SHRINK, shrink(x, (double)p[0], (double)p[1]))

#define DOUBLE_BINARY_LIST(X)       \
    X(ADD, a + b)                   \
    X(SUB, a - b)                   \
    X(MUL, a *b)                    \
    X(DIV, a / b)                   \
    X(MAX, a != a || a > b ? a : b) \
    X(MIN, a != a || a < b ? a : b) \
    X(FMOD, fmod(a, b))             \
    X(MODULO, modulo(a, b))         \
    X(PRELU, a < 0 ? a * b : a)

#define DOUBLE_UNARY_LOOP(name, expression) UNARY_LOOP(name##_F64, double, double, expression)
#define DOUBLE_BINARY_LOOP(name, expression) BINARY_LOOP(name##_F64, double, double, expression)
DOUBLE_UNARY_LIST(DOUBLE_UNARY_LOOP)
DOUBLE_BINARY_LIST(DOUBLE_BINARY_LOOP)
BINARY_LOOP(MODULO_F32, float, float, modulo((double)a, (double)b))

static void CLIP_F64(const tn_loop_args *args) {
    const double *in = args->in[0];
    double *out = args->out;
    const double low = args->in[1] == NULL ? (double)args->params[0] : *(const double *)args->in[1];
    const double high =
        args->in[2] == NULL ? (double)args->params[1] : *(const double *)args->in[2];
    for (size_t i = 0; i < args->len; i++) out[i] = clamp(in[i], low, high);
}

/* Integers shrink as doubles do, and are cut off after it. */
#define SHRINK_LOOP(dtype, type, wide, min, max) \
    UNARY_LOOP(SHRINK_##dtype, type, type,       \
               int_from_double(shrink((double)x, (double)p[0], (double)p[1])))
INTEGER_TYPES(SHRINK_LOOP)

/* ---- powers of mixed types ---- */

/* By squaring, around the width; 1 / base^n is a fraction unless base is 1 or -1. */
static int64_t power_int(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 1) return 1;
        if (base == -1) return (exponent & 1) != 0 ? -1 : 1;
        return 0;
    }
    uint64_t result = 1;
    uint64_t square = (uint64_t)base;
    for (uint64_t n = (uint64_t)exponent; n > 0; n >>= 1) {
        if ((n & 1) != 0) result *= square;
        square *= square;
    }
    return (int64_t)result;
}

/* Exponents too large for int64 wrap a base of magnitude above 1 to 0 or are odd and even alike. */
#define READ_NUMBER(dtype, type, wide, min, max)                                 \
    case TN_DTYPE_##dtype: {                                                     \
        type value;                                                              \
        memcpy(&value, (const char *)data + index * sizeof value, sizeof value); \
        *out_int = (int64_t)value;                                               \
        return (double)value;                                                    \
    }
#define READ_FLOAT(dtype, type, wide, min, max)                                  \
    case TN_DTYPE_##dtype: {                                                     \
        type value;                                                              \
        memcpy(&value, (const char *)data + index * sizeof value, sizeof value); \
        *out_int = 0;                                                            \
        return (double)value;                                                    \
    }

static double read_number(const void *data, tn_dtype dtype, size_t index, int64_t *out_int) {
    switch (dtype) {
        INTEGER_TYPES(READ_NUMBER)
        FLOAT_TYPES(READ_FLOAT)
        default: {
            uint16_t bits;
            memcpy(&bits, (const char *)data + index * sizeof bits, sizeof bits);
            *out_int = 0;
            const float value =
                dtype == TN_DTYPE_F16 ? tn_f32_from_f16(bits) : tn_f32_from_bf16(bits);
            return (double)value;
        }
    }
}

static bool is_integer(tn_dtype dtype) {
    const uint32_t integers = TN_TYPES_SIGNED | TN_TYPES_UNSIGNED;
    return ((integers >> dtype) & 1u) != 0;
}

#define POWER_LOOP(dtype, type, wide, min, max)                                               \
    static void POW_##dtype(const tn_loop_args *args) {                                       \
        const type *in = args->in[0];                                                         \
        type *out = args->out;                                                                \
        const bool by_int = is_integer(args->types[1]);                                       \
        for (size_t i = 0; i < args->len; i++) {                                              \
            int64_t n;                                                                        \
            const type base = in[i * args->step[0]];                                          \
            const double e = read_number(args->in[1], args->types[1], i * args->step[1], &n); \
            out[i] = by_int ? (type)power_int((int64_t)base, n)                               \
                            : (type)int_from_double(pow((double)base, e));                    \
        }                                                                                     \
    }
INTEGER_TYPES(POWER_LOOP)

#define POWER_LOOP_FLOAT(dtype, type, wide, min, max)                                         \
    static void POW_##dtype(const tn_loop_args *args) {                                       \
        const type *in = args->in[0];                                                         \
        type *out = args->out;                                                                \
        for (size_t i = 0; i < args->len; i++) {                                              \
            int64_t n;                                                                        \
            const double base = (double)in[i * args->step[0]];                                \
            const double e = read_number(args->in[1], args->types[1], i * args->step[1], &n); \
            out[i] = (type)pow(base, e);                                                      \
        }                                                                                     \
    }
FLOAT_TYPES(POWER_LOOP_FLOAT)

#define POWER_LOOP_HALF(dtype, from, to)                                                      \
    static void POW_##dtype(const tn_loop_args *args) {                                       \
        const uint16_t *in = args->in[0];                                                     \
        uint16_t *out = args->out;                                                            \
        for (size_t i = 0; i < args->len; i++) {                                              \
            int64_t n;                                                                        \
            const double base = (double)from(in[i * args->step[0]]);                          \
            const double e = read_number(args->in[1], args->types[1], i * args->step[1], &n); \
            out[i] = to((float)pow(base, e));                                                 \
        }                                                                                     \
    }
POWER_LOOP_HALF(F16, tn_f32_from_f16, tn_f16_from_f32)
POWER_LOOP_HALF(BF16, tn_f32_from_bf16, tn_bf16_from_f32)

/* ---- to bool, on bool ---- */

#define COMPARE_LOOPS(dtype, type, wide, min, max)            \
    BINARY_LOOP(EQUAL_##dtype, type, uint8_t, a == b)         \
    BINARY_LOOP(LESS_##dtype, type, uint8_t, a < b)           \
    BINARY_LOOP(LESS_OR_EQUAL_##dtype, type, uint8_t, a <= b) \
    BINARY_LOOP(GREATER_##dtype, type, uint8_t, a > b)        \
    BINARY_LOOP(GREATER_OR_EQUAL_##dtype, type, uint8_t, a >= b)
INTEGER_TYPES(COMPARE_LOOPS)
FLOAT_TYPES(COMPARE_LOOPS)

#define FLOAT_TEST_LOOPS(dtype, type, wide, min, max) \
    UNARY_LOOP(IS_NAN_##dtype, type, uint8_t, x != x) \
    UNARY_LOOP(IS_INF_##dtype, type, uint8_t,         \
               (p[0] != 0 && x == (type)min) || (p[1] != 0 && x == (type)max))
FLOAT_TYPES(FLOAT_TEST_LOOPS)

UNARY_LOOP(NOT_BOOL, uint8_t, uint8_t, x == 0)
BINARY_LOOP(AND_BOOL, uint8_t, uint8_t, a != 0 && b != 0)
BINARY_LOOP(OR_BOOL, uint8_t, uint8_t, a != 0 || b != 0)
BINARY_LOOP(XOR_BOOL, uint8_t, uint8_t, (a != 0) != (b != 0))
BINARY_LOOP(EQUAL_BOOL, uint8_t, uint8_t, (a != 0) == (b != 0))

static inline bool strings_equal(tn_string a, tn_string b) {
    return a.size_bytes == b.size_bytes &&
           (a.size_bytes == 0 || memcmp(a.data, b.data, a.size_bytes) == 0);
}
BINARY_LOOP(EQUAL_STRING, tn_string, uint8_t, strings_equal(a, b))

/* ---- selection, by element size ---- */

#define WHERE_LOOP(bits, type)                                                                   \
    static void where_##bits(const tn_loop_args *args) {                                         \
        const uint8_t *condition = args->in[0];                                                  \
        const type *a = args->in[1];                                                             \
        const type *b = args->in[2];                                                             \
        type *out = args->out;                                                                   \
        for (size_t i = 0; i < args->len; i++) {                                                 \
            out[i] =                                                                             \
                condition[i * args->step[0]] != 0 ? a[i * args->step[1]] : b[i * args->step[2]]; \
        }                                                                                        \
    }
WHERE_LOOP(8, uint8_t)
WHERE_LOOP(16, uint16_t)
WHERE_LOOP(32, uint32_t)
WHERE_LOOP(64, uint64_t)
WHERE_LOOP(128, tn_string)

/* ---- 16- and 8-bit floats, through f32 ---- */

#define HALF_TILE 256

/* Inputs 0 and 1 as f32 in `tiles`, from element `first` on; `part` reads them. */
static void widen(const tn_loop_args *args, size_t first, float (*tiles)[HALF_TILE],
                  tn_loop_args *part) {
    for (uint32_t k = 0; k < 2; k++) {
        if (args->in[k] == NULL) continue;
        const tn_dtype dtype = args->types[k];
        const size_t size_bytes = tn_dtype_bits(dtype) / 8;
        const char *from = (const char *)args->in[k] + first * args->step[k] * size_bytes;
        tn_small_float_widen(dtype, from, tiles[k], args->step[k] == 0 ? 1 : part->len);
        part->in[k] = tiles[k];
    }
}

static void small_to_small(const tn_loop_args *args) {
    float tiles[2][HALF_TILE];
    float out[HALF_TILE];
    tn_loop_args part = *args;
    const size_t size_bytes = tn_dtype_bits(args->types[0]) / 8;
    part.out = out;
    for (size_t i = 0; i < args->len; i += part.len) {
        part.len = args->len - i < HALF_TILE ? args->len - i : HALF_TILE;
        widen(args, i, tiles, &part);
        args->inner(&part);
        tn_small_float_narrow(args->types[0], out, (char *)args->out + i * size_bytes, part.len);
    }
}

static void small_to_bool(const tn_loop_args *args) {
    float tiles[2][HALF_TILE];
    tn_loop_args part = *args;
    for (size_t i = 0; i < args->len; i += part.len) {
        part.len = args->len - i < HALF_TILE ? args->len - i : HALF_TILE;
        part.out = (char *)args->out + i;
        widen(args, i, tiles, &part);
        args->inner(&part);
    }
}

/* ---- the table ---- */

#define ENTRY(body, dtype) [TN_BODY_##body][TN_DTYPE_##dtype] = body##_##dtype,
#define SIGNED_ENTRIES(dtype, type, wide, min, max) ENTRY(NEG, dtype)
#define UNSIGNED_ENTRIES(dtype, type, wide, min, max) \
    ENTRY(SHIFT_LEFT, dtype) ENTRY(SHIFT_RIGHT, dtype)
/* The formatter indents lists of macros anew each time. */
/* clang-format off */
#define COMPARE_ENTRIES(dtype, type, wide, min, max)                                    \
    ENTRY(EQUAL, dtype) ENTRY(LESS, dtype) ENTRY(LESS_OR_EQUAL, dtype)                  \
    ENTRY(GREATER, dtype) ENTRY(GREATER_OR_EQUAL, dtype) ENTRY(POW, dtype)
#define INTEGER_ENTRIES(dtype, type, wide, min, max)                                    \
    ENTRY(ABS, dtype) ENTRY(SIGN, dtype) ENTRY(RELU, dtype)                             \
    ENTRY(PRELU, dtype) ENTRY(ADD, dtype) ENTRY(SUB, dtype)                             \
    ENTRY(MUL, dtype) ENTRY(DIV, dtype) ENTRY(FMOD, dtype)                              \
    ENTRY(MODULO, dtype) ENTRY(MAX, dtype) ENTRY(MIN, dtype)                            \
    ENTRY(BITWISE_AND, dtype) ENTRY(BITWISE_OR, dtype) ENTRY(BITWISE_XOR, dtype)        \
    ENTRY(BITWISE_NOT, dtype) ENTRY(CLIP, dtype) ENTRY(SHRINK, dtype)
#define FLOAT_TEST_ENTRIES(dtype, type, wide, min, max) ENTRY(IS_NAN, dtype) ENTRY(IS_INF, dtype)
#define DOUBLE_ENTRY(body, expression) ENTRY(body, F64)

static const tn_loop_fn loops[TN_BODY_COUNT][TN_DTYPE_COUNT] = {
    SIGNED_TYPES(SIGNED_ENTRIES) UNSIGNED_TYPES(UNSIGNED_ENTRIES) INTEGER_TYPES(INTEGER_ENTRIES)
    INTEGER_TYPES(COMPARE_ENTRIES) FLOAT_TYPES(COMPARE_ENTRIES) FLOAT_TYPES(FLOAT_TEST_ENTRIES)
    DOUBLE_UNARY_LIST(DOUBLE_ENTRY) DOUBLE_BINARY_LIST(DOUBLE_ENTRY) ENTRY(CLIP, F64)
    ENTRY(MODULO, F32) ENTRY(POW, F16) ENTRY(POW, BF16) ENTRY(NOT, BOOL) ENTRY(AND, BOOL)
    ENTRY(OR, BOOL) ENTRY(XOR, BOOL) ENTRY(EQUAL, BOOL) ENTRY(EQUAL, STRING)
};
/* clang-format on */

static tn_loop_fn where_loop(tn_dtype dtype) {
    switch (tn_dtype_bits(dtype)) {
        case 8:
            return where_8;
        case 16:
            return where_16;
        case 32:
            return where_32;
        case 64:
            return where_64;
        case 128:
            return where_128;
        default:
            return NULL;
    }
}

tn_loop_fn tn_elementwise_loop(uint32_t body, tn_dtype dtype, const tn_program_isa *isa,
                               tn_loop_fn *out_inner) {
    *out_inner = NULL;
    if (body == TN_BODY_WHERE) return where_loop(dtype);
    const bool is_program_body = body < TN_BODY_PROGRAM_END;
    const tn_loop_fn single = is_program_body ? isa->loops[body] : loops[body][TN_DTYPE_F32];
    if (dtype == TN_DTYPE_F32) return single;
    const tn_loop_fn own = loops[body][dtype];
    if (own != NULL || !tn_dtype_is_small_float(dtype)) return own;
    *out_inner = single;
    if (single == NULL) return NULL;
    return is_program_body || body == TN_BODY_MODULO ? small_to_small : small_to_bool;
}

tn_loop_fn tn_elementwise_power_loop(tn_dtype base) {
    return loops[TN_BODY_POW][base];
}
