/* Dropout. In inference output 0 is input 0, a view when the mask is not wanted. In training mode
 * elements are dropped by the 32-bit Mersenne Twister (Matsumoto and Nishimura, 1998) seeded with
 * the attribute, as NumPy's legacy generator does it, so that results can be compared; seed 0 when
 * there is none. One tile: the generator's state goes through all elements in order. */
#include <string.h>

#include "kernels/cast/convert.h"
#include "kernels/elementwise/elementwise.h"

#define STATE_WORDS 624
#define STATE_SHIFT 397

typedef struct dropout_params {
    uint32_t seed; /* since 12, where ratio and training_mode are inputs 1 and 2 */
} dropout_params;

typedef struct dropout_record {
    dropout_params params;
    tn_dtype dtype;
    tn_dtype ratio_dtype; /* NONE: no such input */
    tn_dtype mask_dtype;  /* NONE: nobody wants it */
    uint32_t input_count;
    size_t len;
} dropout_record;

typedef struct twister {
    uint32_t words[STATE_WORDS];
    uint32_t next;
} twister;

static void twister_seed(twister *t, uint32_t seed) {
    t->words[0] = seed;
    for (uint32_t i = 1; i < STATE_WORDS; i++) {
        const uint32_t last = t->words[i - 1];
        t->words[i] = 1812433253u * (last ^ (last >> 30)) + i;
    }
    t->next = STATE_WORDS;
}

static void twister_refill(twister *t) {
    for (uint32_t i = 0; i < STATE_WORDS; i++) {
        const uint32_t mixed =
            (t->words[i] & 0x80000000u) | (t->words[(i + 1) % STATE_WORDS] & 0x7fffffffu);
        const uint32_t twist = (mixed & 1u) != 0 ? 0x9908b0dfu : 0;
        t->words[i] = t->words[(i + STATE_SHIFT) % STATE_WORDS] ^ (mixed >> 1) ^ twist;
    }
    t->next = 0;
}

static uint32_t twister_word(twister *t) {
    if (t->next == STATE_WORDS) twister_refill(t);
    uint32_t word = t->words[t->next++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ (word >> 18);
}

/* Uniform in [0, 1) with 53 bits. */
static double twister_double(twister *t) {
    const double high = (double)(twister_word(t) >> 5);
    const double low = (double)(twister_word(t) >> 6);
    return (high * 0x1p26 + low) / 0x1p53;
}

static tn_status check_seed(const tn_check_context *ctx, void *params) {
    dropout_params *own = params;
    int64_t seed = 0;
    TN_TRY(tn_check_int(ctx, "seed", 0, &seed));
    own->seed = (uint32_t)((uint64_t)seed & UINT32_MAX);
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    tn_fact *mask = tn_node_output(node, 1);
    TN_TRY(tn_infer_same_as_input0(node, err));
    for (uint32_t i = 1; i < node->input_count; i++) {
        const tn_fact *input = node->inputs[i];
        if (input == NULL || !tn_fact_is_sized(input)) continue;
        TN_REQUIRE(tn_fact_len_elems(input) == 1, err, TN_INVALID_ARGUMENT,
                   "input %u has %zu elements, expected one", i, tn_fact_len_elems(input));
    }
    if (mask == NULL || node->inputs[0] == NULL) return TN_OK;
    mask->kind = TN_KIND_TENSOR;
    mask->shape = node->inputs[0]->shape;
    /* before 10 the mask has the data's type */
    mask->dtype = node->op->since_version >= 10 ? TN_DTYPE_BOOL : node->inputs[0]->dtype;
    return TN_OK;
}

/* A view unless elements may be dropped. */
static bool view_offset(const tn_node_facts *node, uint32_t slot, size_t *out_offset_bytes) {
    const tn_fact *training = tn_node_input(node, 2);
    *out_offset_bytes = 0;
    if (slot != 0) return false;
    if (training == NULL) return true;
    return training->data != NULL && *(const uint8_t *)training->data == 0;
}

static tn_status read_ratio(const dropout_record *record, const tn_kernel_context *ctx, double *out,
                            tn_error *err) {
    *out = 0.5;
    if (record->ratio_dtype == TN_DTYPE_NONE) return TN_OK;
    const tn_convert_options options = {.from = record->ratio_dtype, .to = TN_DTYPE_F64};
    TN_TRY(tn_convert(&options, tn_kernel_in(ctx, 1), out, 0, 1, err));
    TN_REQUIRE(*out >= 0 && *out < 1, err, TN_INVALID_ARGUMENT, "ratio %g is outside [0, 1)", *out);
    return TN_OK;
}

/* Element by element through double: keep or drop, scaled so that the mean stays. */
static tn_status drop(const dropout_record *record, tn_kernel_context *ctx, double ratio,
                      tn_error *err) {
    const tn_convert_options widen = {.from = record->dtype, .to = TN_DTYPE_F64};
    const tn_convert_options narrow = {.from = TN_DTYPE_F64, .to = record->dtype};
    const size_t size_bytes = tn_dtype_bits(record->dtype) / 8;
    const char *in = tn_kernel_in(ctx, 0);
    char *out = tn_kernel_out(ctx, 0);
    uint8_t *mask = record->mask_dtype == TN_DTYPE_NONE ? NULL : tn_kernel_out(ctx, 1);
    const double scale = 1.0 / (1.0 - ratio);
    twister t;
    twister_seed(&t, record->params.seed);
    for (size_t i = 0; i < record->len; i++) {
        double value;
        const bool keeps = twister_double(&t) >= ratio;
        TN_TRY(tn_convert(&widen, in + i * size_bytes, &value, 0, 1, err));
        value = keeps ? value * scale : value * 0.0;
        TN_TRY(tn_convert(&narrow, &value, out + i * size_bytes, 0, 1, err));
        if (mask != NULL) mask[i] = keeps;
    }
    return TN_OK;
}

static tn_status keep_all(const dropout_record *record, tn_kernel_context *ctx, tn_error *err) {
    static const uint8_t one = 1;
    const size_t size_bytes = tn_dtype_bits(record->dtype) / 8;
    const void *in = tn_kernel_in(ctx, 0);
    void *out = tn_kernel_out(ctx, 0);
    char *mask = record->mask_dtype == TN_DTYPE_NONE ? NULL : tn_kernel_out(ctx, 1);
    if (in != out) memcpy(out, in, record->len * size_bytes);
    if (mask == NULL) return TN_OK;
    const size_t mask_bytes = tn_dtype_bits(record->mask_dtype) / 8;
    const tn_convert_options options = {.from = TN_DTYPE_BOOL, .to = record->mask_dtype};
    for (size_t i = 0; i < record->len; i++) {
        TN_TRY(tn_convert(&options, &one, mask + i * mask_bytes, 0, 1, err));
    }
    return TN_OK;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)tile0;
    (void)tile1;
    const dropout_record *own = record;
    tn_error *err = tn_kernel_error(ctx, worker);
    const uint8_t *training = own->input_count > 2 ? tn_kernel_in(ctx, 2) : NULL;
    double ratio = 0.0;
    if (training == NULL || *training == 0) return keep_all(own, ctx, err);
    TN_TRY(read_ratio(own, ctx, &ratio, err));
    return ratio == 0 ? keep_all(own, ctx, err) : drop(own, ctx, ratio, err);
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    (void)err;
    const tn_fact *input = tn_node_input(query->node, 0);
    const size_t len = input != NULL && tn_fact_is_sized(input) ? tn_fact_len_elems(input) : 0;
    out[0].name = "portable";
    out[0].run = run;
    out[0].cost_ns = 20.0 + (double)len;
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const tn_node_facts *node = ctx->node;
    const tn_fact *ratio = tn_node_input(node, 1);
    const tn_fact *mask = tn_node_output(node, 1);
    dropout_record *own = record;
    own->params = *(const dropout_params *)node->params;
    own->dtype = node->inputs[0]->dtype;
    own->ratio_dtype = ratio == NULL ? TN_DTYPE_NONE : ratio->dtype;
    own->mask_dtype = mask == NULL ? TN_DTYPE_NONE : mask->dtype;
    own->input_count = node->input_count;
    own->len = tn_fact_len_elems(node->inputs[0]);
    return TN_OK;
}

#define TYPES_DATA(floats) \
    { floats, floats, TN_TYPE_BIT(BOOL) }
static const uint32_t types_old[] = TYPES_DATA(TN_TYPES_OLD_FLOATS);
static const uint32_t types_bf16[] = TYPES_DATA(TN_TYPES_FLOATS);
static const uint32_t types_22[] = TYPES_DATA(TN_TYPES_FLOATS | TN_TYPES_FLOAT8);

#define ROW(since, until, inputs, types, check_)                                                \
    {                                                                                           \
        .name = "Dropout", .since_version = since, .until_version = until, .min_inputs = 1,     \
        .max_inputs = inputs, .min_outputs = 1, .max_outputs = 2,                               \
        .flags = TN_OP_FOLDABLE | TN_OP_VIEW_LEADING, .in_place_mask = 1, .input_types = types, \
        .input_types_count = 3, .params_bytes = sizeof(dropout_params),                         \
        .record_bytes = sizeof(dropout_record), .check = check_, .infer = infer,                \
        .variants = variants, .bind = bind, .view_offset = view_offset,                         \
        .notes = "training mode drops as NumPy's legacy generator does; without a seed, seed 0" \
    }

static const tn_op_def rows[] = {
    ROW(1, 5, 1, types_old, NULL),         ROW(6, 6, 1, types_old, NULL),
    ROW(7, 9, 1, types_old, NULL),         ROW(10, 11, 1, types_old, NULL),
    ROW(12, 12, 3, types_old, check_seed), ROW(13, 21, 3, types_bf16, check_seed),
    ROW(22, 0, 3, types_22, check_seed),
};

const tn_op_table tn_dropout_table = {rows, TN_COUNTOF(rows)};
