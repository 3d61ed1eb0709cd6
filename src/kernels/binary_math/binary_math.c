/* Arithmetic of two or more numbers: rows, opset by opset. */
#include "kernels/elementwise/elementwise.h"

static const uint32_t types_old_floats[] = {TN_TYPES_OLD_FLOATS};
static const uint32_t types_floats[] = {TN_TYPES_FLOATS};
static const uint32_t types_wide[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_WIDE_INTS};
static const uint32_t types_wide_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_WIDE_INTS};
static const uint32_t types_numbers[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};
static const uint32_t types_numbers_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_SIGNED |
                                              TN_TYPES_UNSIGNED};
static const uint32_t types_unsigned[] = {TN_TYPES_UNSIGNED};
static const uint32_t types_pow_12[] = {TN_TYPES_OLD_FLOATS | TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64),
                                        TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};
static const uint32_t types_pow_13[] = {TN_TYPES_FLOATS | TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64),
                                        TN_TYPES_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};

static tn_status check_mean(const tn_check_context *ctx, void *params) {
    (void)ctx;
    ((tn_elementwise_params *)params)->is_mean = true;
    return TN_OK;
}

static tn_status check_mod(const tn_check_context *ctx, void *params) {
    int64_t fmod = 0;
    TN_TRY(tn_check_int(ctx, "fmod", 0, &fmod));
    ((tn_elementwise_params *)params)->body = fmod != 0 ? TN_BODY_FMOD : TN_BODY_MODULO;
    return TN_OK;
}

static tn_status check_bit_shift(const tn_check_context *ctx, void *params) {
    tn_text direction;
    TN_TRY(tn_check_text(ctx, "direction", "", &direction));
    const bool is_left = tn_text_equals_literal(direction, "LEFT");
    TN_REQUIRE(is_left || tn_text_equals_literal(direction, "RIGHT"), ctx->err, TN_INVALID_MODEL,
               "direction is \"%.*s\", expected LEFT or RIGHT", tn_text_width(direction),
               direction.data);
    ((tn_elementwise_params *)params)->body = is_left ? TN_BODY_SHIFT_LEFT : TN_BODY_SHIFT_RIGHT;
    return TN_OK;
}

#define ROW(text, since, until, inputs, body_, types, same, in_place, check_)       \
    {                                                                               \
        .name = text, .since_version = since, .until_version = until,               \
        .min_inputs = (inputs) == TN_VARIADIC ? 1 : (inputs), .max_inputs = inputs, \
        .flags = TN_OP_FOLDABLE | TN_OP_ANY_LAYOUT, .in_place_mask = in_place,      \
        .input_types = types, .input_types_count = (uint8_t)TN_COUNTOF(types),      \
        .same_type_mask = same, .body = TN_BODY_##body_, .check = check_,           \
        .infer = tn_elementwise_infer, TN_ELEMENTWISE_ROW                           \
    }
#define BINARY_ROW(text, since, until, body_, types, check_) \
    ROW(text, since, until, 2, body_, types, 3, 3, check_)
/* A chain writes its running result over the first two inputs only. */
#define CHAIN_ROW(text, since, until, body_, types, check_) \
    ROW(text, since, until, TN_VARIADIC, body_, types, UINT32_MAX, 3, check_)

/* Before 7 input 1 goes into input 0 by attributes; since 7 both ways. */
#define ARITHMETIC_ROWS(text, body_)                                              \
    BINARY_ROW(text, 1, 5, body_, types_old_floats, tn_elementwise_check_legacy), \
        BINARY_ROW(text, 6, 6, body_, types_wide, tn_elementwise_check_legacy),   \
        BINARY_ROW(text, 7, 12, body_, types_wide, NULL),                         \
        BINARY_ROW(text, 13, 13, body_, types_wide_bf16, NULL),                   \
        BINARY_ROW(text, 14, 0, body_, types_numbers_bf16, NULL)
/* Equal shapes are a case of broadcasting: 1 and 6 need no rule of their own. */
#define MEAN_ROWS(text, body_, check_)                           \
    CHAIN_ROW(text, 1, 5, body_, types_old_floats, check_),      \
        CHAIN_ROW(text, 6, 7, body_, types_old_floats, check_),  \
        CHAIN_ROW(text, 8, 12, body_, types_old_floats, check_), \
        CHAIN_ROW(text, 13, 0, body_, types_floats, check_)
#define EXTREME_ROWS(text, body_)                              \
    CHAIN_ROW(text, 1, 5, body_, types_old_floats, NULL),      \
        CHAIN_ROW(text, 6, 7, body_, types_old_floats, NULL),  \
        CHAIN_ROW(text, 8, 11, body_, types_old_floats, NULL), \
        CHAIN_ROW(text, 12, 12, body_, types_numbers, NULL),   \
        CHAIN_ROW(text, 13, 0, body_, types_numbers_bf16, NULL)

static const tn_op_def rows[] = {
    ARITHMETIC_ROWS("Add", ADD),
    ARITHMETIC_ROWS("Sub", SUB),
    ARITHMETIC_ROWS("Mul", MUL),
    ARITHMETIC_ROWS("Div", DIV),
    EXTREME_ROWS("Max", MAX),
    EXTREME_ROWS("Min", MIN),
    MEAN_ROWS("Sum", ADD, NULL),
    MEAN_ROWS("Mean", ADD, check_mean),
    ROW("Pow", 1, 6, 2, POW, types_old_floats, 3, 3, tn_elementwise_check_legacy),
    ROW("Pow", 7, 11, 2, POW, types_old_floats, 3, 3, NULL),
    ROW("Pow", 12, 12, 2, POW, types_pow_12, 0, 1, NULL),
    ROW("Pow", 13, 14, 2, POW, types_pow_13, 0, 1, NULL),
    ROW("Pow", 15, 0, 2, POW, types_pow_13, 0, 1, NULL),
    BINARY_ROW("Mod", 10, 12, FMOD, types_numbers, check_mod),
    BINARY_ROW("Mod", 13, 0, FMOD, types_numbers_bf16, check_mod),
    BINARY_ROW("BitShift", 11, 0, SHIFT_LEFT, types_unsigned, check_bit_shift),
};

const tn_op_table tn_binary_math_table = {rows, TN_COUNTOF(rows)};
