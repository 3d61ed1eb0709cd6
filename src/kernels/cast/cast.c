/* Cast and CastLike: which types, by opset; the conversion itself is in convert.c. A cast to its
 * own type is a view. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/cast/convert.h"
#include "kernels/elementwise/elementwise.h"

#define TILE_ELEMS ((size_t)16384)

typedef struct cast_params {
    tn_dtype to; /* NONE: the type of input 1 */
    bool saturate;
    tn_round_mode round_mode;
} cast_params;

typedef struct cast_record {
    tn_convert_options options;
    size_t len;
} cast_record;

#define TYPES_1 (TN_TYPES_OLD_FLOATS | TN_TYPES_SIGNED | TN_TYPES_UNSIGNED | TN_TYPE_BIT(BOOL))
#define TYPES_9 (TYPES_1 | TN_TYPE_BIT(STRING))
#define TYPES_13 (TYPES_9 | TN_TYPE_BIT(BF16))
#define TYPES_19 (TYPES_13 | TN_TYPES_FLOAT8)
#define TYPES_21 (TYPES_19 | TN_TYPE_BIT(U4) | TN_TYPE_BIT(I4))
#define TYPES_23 (TYPES_21 | TN_TYPE_BIT(F4E2M1))
#define TYPES_24 (TYPES_23 | TN_TYPE_BIT(F8E8M0))
#define TYPES_25 (TYPES_24 | TN_TYPE_BIT(U2) | TN_TYPE_BIT(I2))
static const uint32_t types_1[] = {TYPES_1};
static const uint32_t types_9[] = {TYPES_9};
static const uint32_t types_13[] = {TYPES_13};
static const uint32_t types_19[] = {TYPES_19};
static const uint32_t types_21[] = {TYPES_21};
static const uint32_t types_23[] = {TYPES_23};
static const uint32_t types_24[] = {TYPES_24};
static const uint32_t types_25[] = {TYPES_25};

static bool is_known_target(int64_t number) {
    return number > 0 && number < TN_DTYPE_COUNT &&
           (number == TN_DTYPE_STRING || ((TYPES_25 >> number) & 1u) != 0);
}

/* Version 1 names the type: "FLOAT". */
static tn_status check_named(const tn_check_context *ctx, void *params) {
    static const struct {
        const char *name;
        tn_dtype dtype;
    } names[] = {{"FLOAT", TN_DTYPE_F32},  {"UINT8", TN_DTYPE_U8},   {"INT8", TN_DTYPE_I8},
                 {"UINT16", TN_DTYPE_U16}, {"INT16", TN_DTYPE_I16},  {"INT32", TN_DTYPE_I32},
                 {"INT64", TN_DTYPE_I64},  {"BOOL", TN_DTYPE_BOOL},  {"FLOAT16", TN_DTYPE_F16},
                 {"DOUBLE", TN_DTYPE_F64}, {"UINT32", TN_DTYPE_U32}, {"UINT64", TN_DTYPE_U64}};
    cast_params *own = params;
    tn_text text;
    TN_TRY(tn_check_text(ctx, "to", "", &text));
    own->saturate = true;
    for (size_t i = 0; i < TN_COUNTOF(names); i++) {
        if (!tn_text_equals_literal(text, names[i].name)) continue;
        own->to = names[i].dtype;
        return TN_OK;
    }
    return tn_error_set(ctx->err, TN_INVALID_MODEL, "to is \"%.*s\", which names no element type",
                        tn_text_width(text), text.data);
}

static tn_status check_like(const tn_check_context *ctx, void *params) {
    cast_params *own = params;
    int64_t saturate = 1;
    tn_text mode;
    TN_TRY(tn_check_int(ctx, "saturate", 1, &saturate));
    TN_TRY(tn_check_text(ctx, "round_mode", "up", &mode));
    own->saturate = saturate != 0;
    if (tn_text_equals_literal(mode, "down")) {
        own->round_mode = TN_ROUND_DOWN;
    } else if (tn_text_equals_literal(mode, "nearest")) {
        own->round_mode = TN_ROUND_NEAREST;
    } else {
        TN_REQUIRE(tn_text_equals_literal(mode, "up"), ctx->err, TN_INVALID_MODEL,
                   "round_mode is \"%.*s\", expected up, down or nearest", tn_text_width(mode),
                   mode.data);
        own->round_mode = TN_ROUND_UP;
    }
    return TN_OK;
}

static tn_status check_cast(const tn_check_context *ctx, void *params) {
    cast_params *own = params;
    int64_t to = 0;
    TN_TRY(tn_check_int(ctx, "to", 0, &to));
    TN_REQUIRE(is_known_target(to), ctx->err, TN_INVALID_MODEL,
               "to is %lld, which is no element type that Cast makes", (long long)to);
    TN_REQUIRE(to != TN_DTYPE_STRING, ctx->err, TN_UNSUPPORTED, "Cast to string is not supported");
    TN_TRY(check_like(ctx, params));
    own->to = (tn_dtype)to;
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const cast_params *params = node->params;
    tn_fact *output = tn_node_output(node, 0);
    TN_TRY(tn_infer_same_as_input0(node, err));
    if (output == NULL) return TN_OK;
    const tn_fact *like = tn_node_input(node, 1);
    output->kind = TN_KIND_TENSOR;
    output->dtype = params->to;
    if (params->to == TN_DTYPE_NONE && like != NULL) output->dtype = like->dtype;
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const cast_record *own = record;
    const size_t first = tile0 * TILE_ELEMS;
    const size_t end = tn_size_min(tile1 * TILE_ELEMS, own->len);
    if (first >= end) return TN_OK;
    return tn_convert(&own->options, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), first,
                      end - first, tn_kernel_error(ctx, worker));
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    const tn_fact *input = tn_node_input(query->node, 0);
    const tn_fact *output = tn_node_output(query->node, 0);
    *out_count = 0;
    if (input == NULL || output == NULL) return TN_OK;
    if (input->dtype != TN_DTYPE_NONE && output->dtype != TN_DTYPE_NONE) {
        TN_REQUIRE(tn_convert_is_supported(input->dtype, output->dtype), err, TN_UNSUPPORTED,
                   "%s to %s is not supported", tn_dtype_name(input->dtype),
                   tn_dtype_name(output->dtype));
    }
    const size_t len = tn_fact_is_sized(input) ? tn_fact_len_elems(input) : 0;
    out[0].name = "portable";
    out[0].run = run;
    out[0].tile_counts[0] = (uint32_t)((len + TILE_ELEMS - 1) / TILE_ELEMS);
    out[0].cost_ns = 20.0 + (double)len;
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const cast_params *params = ctx->node->params;
    cast_record *own = record;
    own->options = (tn_convert_options){.from = ctx->node->inputs[0]->dtype,
                                        .to = ctx->node->outputs[0]->dtype,
                                        .saturate = params->saturate,
                                        .round_mode = params->round_mode};
    own->len = tn_fact_len_elems(ctx->node->inputs[0]);
    return TN_OK;
}

static bool view_offset(const tn_node_facts *node, uint32_t slot, size_t *out_offset_bytes) {
    const tn_fact *input = tn_node_input(node, 0);
    const tn_fact *output = tn_node_output(node, slot);
    *out_offset_bytes = 0;
    return input != NULL && output != NULL && input->dtype == output->dtype;
}

#define ROW(text, since, until, inputs, types, check_)                                             \
    {                                                                                              \
        .name = text, .since_version = since, .until_version = until, .min_inputs = inputs,        \
        .max_inputs = inputs, .min_outputs = 1, .flags = TN_OP_FOLDABLE | TN_OP_VIEW_LEADING,      \
        .in_place_mask = 1, .input_types = types, .input_types_count = 1,                          \
        .params_bytes = sizeof(cast_params), .record_bytes = sizeof(cast_record), .check = check_, \
        .infer = infer, .variants = variants, .bind = bind, .view_offset = view_offset,            \
        .notes = "not to string"                                                                   \
    }

static const tn_op_def rows[] = {
    ROW("Cast", 1, 5, 1, types_1, check_named),
    ROW("Cast", 6, 8, 1, types_1, check_cast),
    ROW("Cast", 9, 12, 1, types_9, check_cast),
    ROW("Cast", 13, 18, 1, types_13, check_cast),
    ROW("Cast", 19, 20, 1, types_19, check_cast),
    ROW("Cast", 21, 22, 1, types_21, check_cast),
    ROW("Cast", 23, 23, 1, types_23, check_cast),
    ROW("Cast", 24, 24, 1, types_24, check_cast),
    ROW("Cast", 25, 0, 1, types_25, check_cast),
    ROW("CastLike", 15, 18, 2, types_13, check_like),
    ROW("CastLike", 19, 20, 2, types_19, check_like),
    ROW("CastLike", 21, 22, 2, types_21, check_like),
    ROW("CastLike", 23, 23, 2, types_23, check_like),
    ROW("CastLike", 24, 24, 2, types_24, check_like),
    ROW("CastLike", 25, 0, 2, types_25, check_like),
};

const tn_op_table tn_cast_table = {rows, TN_COUNTOF(rows)};
