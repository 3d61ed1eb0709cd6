/* Functions of one number: a row per operator and span of opsets, all on the shared elementwise
 * functions. What they compute is in kernels/elementwise. */
#include "kernels/elementwise/elementwise.h"

static const uint32_t types_old_floats[] = {TN_TYPES_OLD_FLOATS};
static const uint32_t types_floats[] = {TN_TYPES_FLOATS};
static const uint32_t types_numbers[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};
static const uint32_t types_numbers_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_SIGNED |
                                              TN_TYPES_UNSIGNED};
static const uint32_t types_signed[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED};
static const uint32_t types_signed_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_SIGNED};
static const uint32_t types_float_double[] = {TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64)};
static const uint32_t types_floats8[] = {TN_TYPES_FLOATS | TN_TYPES_FLOAT8};

/* Which infinities count. */
static tn_status check_is_inf(const tn_check_context *ctx, void *params) {
    tn_elementwise_params *own = params;
    int64_t negative = 1;
    int64_t positive = 1;
    TN_TRY(tn_check_int(ctx, "detect_negative", 1, &negative));
    TN_TRY(tn_check_int(ctx, "detect_positive", 1, &positive));
    own->values[0] = negative != 0 ? 1.0F : 0.0F;
    own->values[1] = positive != 0 ? 1.0F : 0.0F;
    return TN_OK;
}

#define ROW(text, since, until, body_, types, more)                                    \
    {                                                                                  \
        .name = text, .since_version = since, .until_version = until, .min_inputs = 1, \
        .max_inputs = 1, .flags = TN_OP_FOLDABLE | (more), .in_place_mask = 1,         \
        .input_types = types, .input_types_count = 1, .body = TN_BODY_##body_,         \
        .infer = tn_elementwise_infer, TN_ELEMENTWISE_ROW                              \
    }
#define FLOAT_ROW(text, since, until, body_, types) \
    ROW(text, since, until, body_, types, TN_OP_ANY_LAYOUT)
/* Versions 1 and 6 differ by an attribute that was never used; 13 widened types. */
#define ROWS_1_6_13(text, body_)                         \
    FLOAT_ROW(text, 1, 5, body_, types_old_floats),      \
        FLOAT_ROW(text, 6, 12, body_, types_old_floats), \
        FLOAT_ROW(text, 13, 0, body_, types_floats)
#define ROWS_7_22(text, body_) \
    FLOAT_ROW(text, 7, 21, body_, types_old_floats), FLOAT_ROW(text, 22, 0, body_, types_floats)
#define ROWS_9_22(text, body_) \
    FLOAT_ROW(text, 9, 21, body_, types_old_floats), FLOAT_ROW(text, 22, 0, body_, types_floats)

static const tn_op_def rows[] = {
    FLOAT_ROW("Neg", 1, 5, NEG, types_old_floats),
    FLOAT_ROW("Neg", 6, 12, NEG, types_signed),
    FLOAT_ROW("Neg", 13, 0, NEG, types_signed_bf16),
    FLOAT_ROW("Abs", 1, 5, ABS, types_old_floats),
    FLOAT_ROW("Abs", 6, 12, ABS, types_numbers),
    FLOAT_ROW("Abs", 13, 0, ABS, types_numbers_bf16),
    FLOAT_ROW("Sign", 9, 12, SIGN, types_numbers),
    FLOAT_ROW("Sign", 13, 0, SIGN, types_numbers_bf16),
    FLOAT_ROW("Erf", 9, 12, ERF, types_old_floats),
    FLOAT_ROW("Erf", 13, 0, ERF, types_floats),
    FLOAT_ROW("Round", 11, 21, ROUND, types_old_floats),
    FLOAT_ROW("Round", 22, 0, ROUND, types_floats),
    ROWS_1_6_13("Log", LOG),
    ROWS_1_6_13("Exp", EXP),
    ROWS_1_6_13("Sqrt", SQRT),
    ROWS_1_6_13("Floor", FLOOR),
    ROWS_1_6_13("Ceil", CEIL),
    ROWS_1_6_13("Reciprocal", RECIPROCAL),
    ROWS_1_6_13("Tanh", TANH),
    ROWS_7_22("Sin", SIN),
    ROWS_7_22("Cos", COS),
    ROWS_7_22("Tan", TAN),
    ROWS_7_22("Asin", ASIN),
    ROWS_7_22("Acos", ACOS),
    ROWS_7_22("Atan", ATAN),
    ROWS_9_22("Sinh", SINH),
    ROWS_9_22("Cosh", COSH),
    ROWS_9_22("Asinh", ASINH),
    ROWS_9_22("Acosh", ACOSH),
    ROWS_9_22("Atanh", ATANH),
#define TEST_ROW(text, since, until, body_, types, check_)                                  \
    {                                                                                       \
        .name = text, .since_version = since, .until_version = until, .min_inputs = 1,      \
        .max_inputs = 1, .flags = TN_OP_FOLDABLE, .in_place_mask = 1, .input_types = types, \
        .input_types_count = 1, .body = TN_BODY_##body_, .check = check_,                   \
        .infer = tn_elementwise_infer_bool, TN_ELEMENTWISE_ROW                              \
    }
    TEST_ROW("IsNaN", 9, 12, IS_NAN, types_old_floats, NULL),
    TEST_ROW("IsNaN", 13, 19, IS_NAN, types_floats, NULL),
    TEST_ROW("IsNaN", 20, 0, IS_NAN, types_floats8, NULL),
    TEST_ROW("IsInf", 10, 19, IS_INF, types_float_double, check_is_inf),
    TEST_ROW("IsInf", 20, 0, IS_INF, types_floats8, check_is_inf),
};

const tn_op_table tn_unary_math_table = {rows, TN_COUNTOF(rows)};
