/* Activations: rows with their attributes. What they compute is in kernels/elementwise. */
#include <math.h>

#include "kernels/elementwise/elementwise.h"

static const uint32_t types_old_floats[] = {TN_TYPES_OLD_FLOATS};
static const uint32_t types_floats[] = {TN_TYPES_FLOATS};
static const uint32_t types_float[] = {TN_TYPE_BIT(F32)};
static const uint32_t types_signed_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_SIGNED};
static const uint32_t types_numbers[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED};
static const uint32_t types_numbers_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_SIGNED |
                                              TN_TYPES_UNSIGNED};
static const uint32_t types_prelu[] = {TN_TYPES_OLD_FLOATS | TN_TYPES_WIDE_INTS};
static const uint32_t types_prelu_bf16[] = {TN_TYPES_FLOATS | TN_TYPES_WIDE_INTS};

/* Reads up to two float attributes into the body's params. */
static tn_status read_params(const tn_check_context *ctx, void *params, const char *first,
                             float first_default, const char *second, float second_default) {
    tn_elementwise_params *own = params;
    TN_TRY(tn_check_float(ctx, first, first_default, &own->values[0]));
    if (second == NULL) return TN_OK;
    return tn_check_float(ctx, second, second_default, &own->values[1]);
}

#define CHECK(name, first, first_default, second, second_default)                      \
    static tn_status check_##name(const tn_check_context *ctx, void *params) {         \
        return read_params(ctx, params, first, first_default, second, second_default); \
    }
CHECK(leaky_relu, "alpha", 0.01F, NULL, 0.0F)
CHECK(elu, "alpha", 1.0F, NULL, 0.0F)
CHECK(celu, "alpha", 1.0F, NULL, 0.0F)
CHECK(swish, "alpha", 1.0F, NULL, 0.0F)
CHECK(thresholded_relu, "alpha", 1.0F, NULL, 0.0F)
CHECK(selu_1, "alpha", 1.6732F, "gamma", 1.0507F)
CHECK(selu, "alpha", 1.67326319217681884765625F, "gamma", 1.05070102214813232421875F)
CHECK(hard_sigmoid, "alpha", 0.2F, "beta", 0.5F)
CHECK(shrink, "lambd", 0.5F, "bias", 0.0F)
CHECK(clip_attributes, "min", -INFINITY, "max", INFINITY)

static tn_status check_clip(const tn_check_context *ctx, void *params) {
    (void)ctx;
    tn_elementwise_params *own = params;
    own->values[0] = -INFINITY;
    own->values[1] = INFINITY;
    own->shapes = TN_SHAPES_SCALARS;
    return TN_OK;
}

static tn_status check_gelu(const tn_check_context *ctx, void *params) {
    tn_elementwise_params *own = params;
    tn_text approximate;
    TN_TRY(tn_check_text(ctx, "approximate", "none", &approximate));
    const bool by_tanh = tn_text_equals_literal(approximate, "tanh");
    TN_REQUIRE(by_tanh || tn_text_equals_literal(approximate, "none"), ctx->err, TN_INVALID_MODEL,
               "approximate is \"%.*s\", expected none or tanh", tn_text_width(approximate),
               approximate.data);
    own->body = by_tanh ? TN_BODY_GELU_TANH : TN_BODY_GELU;
    return TN_OK;
}

static tn_status check_prelu_1(const tn_check_context *ctx, void *params) {
    (void)ctx;
    ((tn_elementwise_params *)params)->shapes = TN_SHAPES_CHANNEL;
    return TN_OK;
}

static tn_status check_prelu(const tn_check_context *ctx, void *params) {
    (void)ctx;
    ((tn_elementwise_params *)params)->shapes = TN_SHAPES_ONE_WAY;
    return TN_OK;
}

#define ROW(text, since, until, body_, types, check_)                                           \
    {                                                                                           \
        .name = text, .since_version = since, .until_version = until, .min_inputs = 1,          \
        .max_inputs = 1, .flags = TN_OP_FOLDABLE | TN_OP_ANY_LAYOUT, .in_place_mask = 1,        \
        .input_types = types, .input_types_count = 1, .body = TN_BODY_##body_, .check = check_, \
        .infer = tn_elementwise_infer, TN_ELEMENTWISE_ROW                                       \
    }
#define CLIP_ROW(since, until, types)                                                            \
    {                                                                                            \
        .name = "Clip", .since_version = since, .until_version = until, .min_inputs = 1,         \
        .max_inputs = 3, .flags = TN_OP_FOLDABLE | TN_OP_ANY_LAYOUT, .in_place_mask = 1,         \
        .input_types = types, .input_types_count = 1, .same_type_mask = 7, .body = TN_BODY_CLIP, \
        .check = check_clip, .infer = tn_elementwise_infer, TN_ELEMENTWISE_ROW                   \
    }
#define PRELU_ROW(since, until, types, check_)                                                    \
    {                                                                                             \
        .name = "PRelu", .since_version = since, .until_version = until, .min_inputs = 2,         \
        .max_inputs = 2, .flags = TN_OP_FOLDABLE | TN_OP_ANY_LAYOUT, .in_place_mask = 1,          \
        .input_types = types, .input_types_count = 1, .same_type_mask = 3, .body = TN_BODY_PRELU, \
        .check = check_, .infer = tn_elementwise_infer, TN_ELEMENTWISE_ROW                        \
    }
/* Versions 1 and 6 differ by an attribute that was never used; the next one widened types. */
#define ROWS_1_6(text, next, body_, check_)                      \
    ROW(text, 1, 5, body_, types_old_floats, check_),            \
        ROW(text, 6, (next)-1, body_, types_old_floats, check_), \
        ROW(text, next, 0, body_, types_floats, check_)
#define ROWS_TWO(text, first, next, body_, check_)               \
    ROW(text, first, (next)-1, body_, types_old_floats, check_), \
        ROW(text, next, 0, body_, types_floats, check_)

static const tn_op_def rows[] = {
    ROW("Relu", 1, 5, RELU, types_old_floats, NULL),
    ROW("Relu", 6, 12, RELU, types_old_floats, NULL),
    ROW("Relu", 13, 13, RELU, types_floats, NULL),
    ROW("Relu", 14, 0, RELU, types_signed_bf16, NULL),
    ROWS_1_6("Sigmoid", 13, SIGMOID, NULL),
    ROWS_1_6("LeakyRelu", 16, LEAKY_RELU, check_leaky_relu),
    ROWS_1_6("Elu", 22, ELU, check_elu),
    ROWS_1_6("HardSigmoid", 22, HARD_SIGMOID, check_hard_sigmoid),
    ROW("Selu", 1, 5, SELU, types_old_floats, check_selu_1),
    ROW("Selu", 6, 21, SELU, types_old_floats, check_selu),
    ROW("Selu", 22, 0, SELU, types_floats, check_selu),
    ROWS_TWO("HardSwish", 14, 22, HARD_SWISH, NULL),
    ROWS_TWO("Softplus", 1, 22, SOFTPLUS, NULL),
    ROWS_TWO("Softsign", 1, 22, SOFTSIGN, NULL),
    ROWS_TWO("ThresholdedRelu", 10, 22, THRESHOLDED_RELU, check_thresholded_relu),
    ROWS_TWO("Mish", 18, 22, MISH, NULL),
    ROW("Celu", 12, 27, CELU, types_float, check_celu),
    ROW("Celu", 28, 0, CELU, types_floats, check_celu),
    ROW("Gelu", 20, 0, GELU, types_floats, check_gelu),
    ROW("Swish", 24, 0, SWISH, types_floats, check_swish),
    ROW("Shrink", 9, 0, SHRINK, types_numbers, check_shrink),
    ROW("Clip", 1, 5, CLIP, types_old_floats, check_clip_attributes),
    ROW("Clip", 6, 10, CLIP, types_old_floats, check_clip_attributes),
    CLIP_ROW(11, 11, types_old_floats),
    CLIP_ROW(12, 12, types_numbers),
    CLIP_ROW(13, 0, types_numbers_bf16),
    PRELU_ROW(1, 5, types_old_floats, check_prelu_1),
    PRELU_ROW(6, 6, types_old_floats, check_prelu_1),
    PRELU_ROW(7, 8, types_old_floats, check_prelu),
    PRELU_ROW(9, 15, types_prelu, check_prelu),
    PRELU_ROW(16, 0, types_prelu_bf16, check_prelu),
};

const tn_op_table tn_activation_table = {rows, TN_COUNTOF(rows)};
