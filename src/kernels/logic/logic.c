/* Comparison, logic, bits and selection: rows, opset by opset. */
#include "kernels/elementwise/elementwise.h"

#define TYPES_NUMBERS (TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED)
/* Everything whose elements fill bytes. */
#define TYPES_WHOLE_BYTES                                                          \
    (TYPES_NUMBERS | TN_TYPE_BIT(BF16) | TN_TYPE_BIT(BOOL) | TN_TYPE_BIT(STRING) | \
     TN_TYPE_BIT(C64) | TN_TYPE_BIT(C128))

static const uint32_t types_bool[] = {TN_TYPE_BIT(BOOL)};
static const uint32_t types_integers[] = {TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};
static const uint32_t types_old_floats[] = {TN_TYPES_OLD_FLOATS};
static const uint32_t types_numbers[] = {TYPES_NUMBERS};
static const uint32_t types_numbers_bf16[] = {TYPES_NUMBERS | TN_TYPE_BIT(BF16)};
static const uint32_t types_equal_1[] = {TN_TYPE_BIT(BOOL) | TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64)};
static const uint32_t types_equal_11[] = {TN_TYPE_BIT(BOOL) | TYPES_NUMBERS};
static const uint32_t types_equal_13[] = {TN_TYPE_BIT(BOOL) | TYPES_NUMBERS | TN_TYPE_BIT(BF16)};
static const uint32_t types_equal_19[] = {TN_TYPE_BIT(BOOL) | TYPES_NUMBERS | TN_TYPE_BIT(BF16) |
                                          TN_TYPE_BIT(STRING)};
static const uint32_t types_where[] = {TN_TYPE_BIT(BOOL), TYPES_WHOLE_BYTES & ~TN_TYPE_BIT(BF16)};
static const uint32_t types_where_16[] = {TN_TYPE_BIT(BOOL), TYPES_WHOLE_BYTES};

#define ROW(text, since, until, inputs, body_, types, same, in_place, check_, infer_)       \
    {                                                                                       \
        .name = text, .since_version = since, .until_version = until, .min_inputs = inputs, \
        .max_inputs = inputs, .flags = TN_OP_FOLDABLE, .in_place_mask = in_place,           \
        .input_types = types, .input_types_count = (uint8_t)TN_COUNTOF(types),              \
        .same_type_mask = same, .body = TN_BODY_##body_, .check = check_, .infer = infer_,  \
        TN_ELEMENTWISE_ROW                                                                  \
    }
#define COMPARE_ROW(text, since, until, body_, types, check_) \
    ROW(text, since, until, 2, body_, types, 3, 3, check_, tn_elementwise_infer_bool)
#define LOGIC_ROWS(text, body_)                                              \
    COMPARE_ROW(text, 1, 6, body_, types_bool, tn_elementwise_check_legacy), \
        COMPARE_ROW(text, 7, 0, body_, types_bool, NULL)
#define ORDER_ROWS(text, body_)                                                    \
    COMPARE_ROW(text, 1, 6, body_, types_old_floats, tn_elementwise_check_legacy), \
        COMPARE_ROW(text, 7, 8, body_, types_old_floats, NULL),                    \
        COMPARE_ROW(text, 9, 12, body_, types_numbers, NULL),                      \
        COMPARE_ROW(text, 13, 0, body_, types_numbers_bf16, NULL)
#define ORDER_EQUAL_ROWS(text, body_)                      \
    COMPARE_ROW(text, 12, 15, body_, types_numbers, NULL), \
        COMPARE_ROW(text, 16, 0, body_, types_numbers_bf16, NULL)
#define BITWISE_ROW(text, body_) \
    ROW(text, 18, 0, 2, body_, types_integers, 3, 3, NULL, tn_elementwise_infer)

static const tn_op_def rows[] = {
    ROW("Not", 1, 0, 1, NOT, types_bool, 1, 1, NULL, tn_elementwise_infer),
    LOGIC_ROWS("And", AND),
    LOGIC_ROWS("Or", OR),
    LOGIC_ROWS("Xor", XOR),
    COMPARE_ROW("Equal", 1, 6, EQUAL, types_equal_1, tn_elementwise_check_legacy),
    COMPARE_ROW("Equal", 7, 10, EQUAL, types_equal_1, NULL),
    COMPARE_ROW("Equal", 11, 12, EQUAL, types_equal_11, NULL),
    COMPARE_ROW("Equal", 13, 18, EQUAL, types_equal_13, NULL),
    COMPARE_ROW("Equal", 19, 0, EQUAL, types_equal_19, NULL),
    ORDER_ROWS("Less", LESS),
    ORDER_ROWS("Greater", GREATER),
    ORDER_EQUAL_ROWS("LessOrEqual", LESS_OR_EQUAL),
    ORDER_EQUAL_ROWS("GreaterOrEqual", GREATER_OR_EQUAL),
    BITWISE_ROW("BitwiseAnd", BITWISE_AND),
    BITWISE_ROW("BitwiseOr", BITWISE_OR),
    BITWISE_ROW("BitwiseXor", BITWISE_XOR),
    ROW("BitwiseNot", 18, 0, 1, BITWISE_NOT, types_integers, 1, 1, NULL, tn_elementwise_infer),
    ROW("Where", 9, 15, 3, WHERE, types_where, 6, 7, NULL, tn_elementwise_infer),
    ROW("Where", 16, 0, 3, WHERE, types_where_16, 6, 7, NULL, tn_elementwise_infer),
};

const tn_op_table tn_logic_table = {rows, TN_COUNTOF(rows)};
