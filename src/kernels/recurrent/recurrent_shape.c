/* Attributes, shapes and sizes of the recurrent operators. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/recurrent/recurrent.h"

/* Rows of input products made at once, and batch entries of a tile. */
enum { CHUNK_ROWS = 96, BATCH_BLOCK = 32, PACK_PAYS_ROWS = 12 };

typedef struct activation_name {
    const char *name;
    float alpha, beta;
} activation_name;

static const activation_name activation_names[TN_RECURRENT_FUNCTION_COUNT] = {
#define ACTIVATION_NAME(id, text, alpha, beta) {text, alpha, beta},
    TN_RECURRENT_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
};

/* Whether the function of `activation` reads alpha or beta: only those consume the lists. */
static bool reads_alpha(tn_recurrent_function function) {
    return activation_names[function].alpha != 0.0F;
}

static bool reads_beta(tn_recurrent_function function) {
    return function == TN_RECURRENT_AFFINE || activation_names[function].beta != 0.0F;
}

static bool equals_ignoring_case(tn_text text, const char *name) {
    if (text.size_bytes != strlen(name)) return false;
    for (size_t i = 0; i < text.size_bytes; i++) {
        const char a =
            text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 32) : text.data[i];
        const char b = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
        if (a != b) return false;
    }
    return true;
}

static tn_status find_function(tn_text text, tn_recurrent_activation *out, tn_error *err) {
    for (size_t i = 0; i < TN_RECURRENT_FUNCTION_COUNT; i++) {
        if (!equals_ignoring_case(text, activation_names[i].name)) continue;
        *out = (tn_recurrent_activation){(tn_recurrent_function)i, activation_names[i].alpha,
                                         activation_names[i].beta};
        return TN_OK;
    }
    return tn_error_set(err, TN_INVALID_MODEL, "activation %.*s is not known", tn_text_width(text),
                        text.data);
}

static const tn_graph_attribute *attribute_of(const tn_check_context *ctx, const char *name) {
    return ctx->node == NULL ? NULL : tn_graph_node_attribute(ctx->node, name);
}

/* Reads the `count` functions of all directions with the alphas and betas that they consume. */
static tn_status read_activations(const tn_check_context *ctx, size_t per_direction,
                                  tn_recurrent_params *p) {
    const size_t directions = p->direction == TN_RECURRENT_BOTH ? 2 : 1;
    const size_t count = per_direction * directions;
    const tn_graph_attribute *names = attribute_of(ctx, "activations");
    const tn_graph_attribute *alphas = attribute_of(ctx, "activation_alpha");
    const tn_graph_attribute *betas = attribute_of(ctx, "activation_beta");
    const bool has_names = names != NULL && names->type == TN_ATTRIBUTE_STRINGS && names->count > 0;
    TN_REQUIRE(!has_names || names->count >= count, ctx->err, TN_INVALID_MODEL,
               "%zu activations are named, %zu are needed", has_names ? names->count : 0, count);
    size_t alpha_at = 0;
    size_t beta_at = 0;
    for (size_t i = 0; i < count; i++) {
        tn_recurrent_activation *to = &p->activations[i / per_direction][i % per_direction];
        if (has_names) TN_TRY(find_function(names->strings[i], to, ctx->err));
        if (alphas != NULL && alphas->type == TN_ATTRIBUTE_FLOATS && reads_alpha(to->function)) {
            if (alpha_at < alphas->count) to->alpha = alphas->floats[alpha_at++];
        }
        if (betas != NULL && betas->type == TN_ATTRIBUTE_FLOATS && reads_beta(to->function)) {
            if (beta_at < betas->count) to->beta = betas->floats[beta_at++];
        }
    }
    return TN_OK;
}

static tn_status check_common(const tn_check_context *ctx, size_t per_direction,
                              tn_recurrent_params *p) {
    tn_text direction;
    int64_t layout;
    TN_TRY(tn_check_text(ctx, "direction", "forward", &direction));
    TN_TRY(tn_check_int(ctx, "hidden_size", 0, &p->hidden_size));
    TN_TRY(tn_check_float(ctx, "clip", 0.0F, &p->clip));
    TN_TRY(tn_check_int(ctx, "layout", 0, &layout));
    TN_REQUIRE(layout == 0 || layout == 1, ctx->err, TN_INVALID_MODEL, "layout is %lld",
               (long long)layout);
    p->is_batch_first = layout == 1;
    if (tn_text_equals_literal(direction, "reverse")) {
        p->direction = TN_RECURRENT_REVERSE;
    } else if (tn_text_equals_literal(direction, "bidirectional")) {
        p->direction = TN_RECURRENT_BOTH;
    } else {
        TN_REQUIRE(tn_text_equals_literal(direction, "forward"), ctx->err, TN_INVALID_MODEL,
                   "direction %.*s is not known", tn_text_width(direction), direction.data);
        p->direction = TN_RECURRENT_FORWARD;
    }
    return read_activations(ctx, per_direction, p);
}

static void set_defaults(tn_recurrent_params *p, tn_recurrent_function first,
                         tn_recurrent_function others) {
    for (size_t d = 0; d < 2; d++) {
        p->activations[d][0].function = first;
        p->activations[d][1].function = others;
        p->activations[d][2].function = others;
    }
}

tn_status tn_recurrent_check_rnn(const tn_check_context *ctx, void *params) {
    tn_recurrent_params *p = params;
    p->kind = TN_RECURRENT_RNN;
    set_defaults(p, TN_RECURRENT_TANH, TN_RECURRENT_TANH);
    return check_common(ctx, 1, p);
}

tn_status tn_recurrent_check_gru(const tn_check_context *ctx, void *params) {
    tn_recurrent_params *p = params;
    int64_t resets_after;
    p->kind = TN_RECURRENT_GRU;
    set_defaults(p, TN_RECURRENT_SIGMOID, TN_RECURRENT_TANH);
    TN_TRY(tn_check_int(ctx, "linear_before_reset", 0, &resets_after));
    p->resets_after = resets_after != 0;
    return check_common(ctx, 2, p);
}

tn_status tn_recurrent_check_lstm(const tn_check_context *ctx, void *params) {
    tn_recurrent_params *p = params;
    int64_t couples_gates;
    p->kind = TN_RECURRENT_LSTM;
    set_defaults(p, TN_RECURRENT_SIGMOID, TN_RECURRENT_TANH);
    TN_TRY(tn_check_int(ctx, "input_forget", 0, &couples_gates));
    p->couples_gates = couples_gates != 0;
    return check_common(ctx, 3, p);
}

static size_t gates_of(const tn_recurrent_params *p) {
    if (p->kind == TN_RECURRENT_LSTM) return 4;
    return p->kind == TN_RECURRENT_GRU ? 3 : 1;
}

static size_t directions_of(const tn_recurrent_params *p) {
    return p->direction == TN_RECURRENT_BOTH ? 2 : 1;
}

/* Hidden size: R is [directions, gates * hidden, hidden]; unknown when neither says. */
static int64_t hidden_of(const tn_node_facts *node) {
    const tn_recurrent_params *p = node->params;
    const tn_fact *r = tn_node_input(node, TN_RECURRENT_R);
    if (r != NULL && r->shape.rank == 3 && r->shape.dims[2] >= 0) return r->shape.dims[2];
    return p->hidden_size > 0 ? p->hidden_size : TN_DIM_UNKNOWN;
}

/* Input `slot`, when its shape is known, must have exactly these dims (unknown ones pass). */
static tn_status require_dims(const tn_node_facts *node, uint32_t slot, const tn_shape *wanted,
                              tn_error *err) {
    const tn_fact *input = tn_node_input(node, slot);
    if (input == NULL || input->shape.rank < 0) return TN_OK;
    bool fits = input->shape.rank == wanted->rank;
    for (int32_t i = 0; fits && i < wanted->rank; i++) {
        const int64_t dim = input->shape.dims[i];
        fits = dim < 0 || wanted->dims[i] < 0 || dim == wanted->dims[i];
    }
    if (fits) return TN_OK;
    char text_has[160];
    char text_wants[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "input %u has shape %s, expected %s", slot,
                        tn_shape_text(&input->shape, text_has, sizeof text_has),
                        tn_shape_text(wanted, text_wants, sizeof text_wants));
}

/* Multiplies where both are known. */
static int64_t times(size_t factor, int64_t dim) {
    int64_t product = TN_DIM_UNKNOWN;
    if (dim < 0 || !tn_i64_mul((int64_t)factor, dim, &product)) return TN_DIM_UNKNOWN;
    return product;
}

static tn_status require_shapes(const tn_node_facts *node, int64_t batch, int64_t hidden,
                                tn_error *err) {
    const tn_recurrent_params *p = node->params;
    const tn_fact *x = tn_node_input(node, TN_RECURRENT_X);
    const int64_t directions = (int64_t)directions_of(p);
    const int64_t width = times(gates_of(p), hidden);
    const int64_t input = x->shape.rank == 3 ? x->shape.dims[2] : TN_DIM_UNKNOWN;
    const tn_shape x_shape = {.rank = 3, .dims = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    const tn_shape w = {.rank = 3, .dims = {directions, width, input}};
    const tn_shape r = {.rank = 3, .dims = {directions, width, hidden}};
    const tn_shape b = {.rank = 2, .dims = {directions, times(2, width)}};
    const tn_shape lengths = {.rank = 1, .dims = {batch}};
    const tn_shape state = p->is_batch_first
                               ? (tn_shape){.rank = 3, .dims = {batch, directions, hidden}}
                               : (tn_shape){.rank = 3, .dims = {directions, batch, hidden}};
    const tn_shape peepholes = {.rank = 2, .dims = {directions, times(3, hidden)}};
    TN_TRY(require_dims(node, TN_RECURRENT_X, &x_shape, err));
    TN_TRY(require_dims(node, TN_RECURRENT_W, &w, err));
    TN_TRY(require_dims(node, TN_RECURRENT_R, &r, err));
    TN_TRY(require_dims(node, TN_RECURRENT_B, &b, err));
    TN_TRY(require_dims(node, TN_RECURRENT_LENGTHS, &lengths, err));
    TN_TRY(require_dims(node, TN_RECURRENT_INITIAL_H, &state, err));
    TN_TRY(require_dims(node, TN_RECURRENT_INITIAL_C, &state, err));
    return require_dims(node, TN_RECURRENT_PEEPHOLES, &peepholes, err);
}

tn_status tn_recurrent_infer(const tn_node_facts *node, tn_error *err) {
    const tn_recurrent_params *p = node->params;
    const tn_fact *x = tn_node_input(node, TN_RECURRENT_X);
    if (x == NULL) return TN_OK;
    const int64_t directions = (int64_t)directions_of(p);
    const int64_t hidden = hidden_of(node);
    const bool has_rank = x->shape.rank == 3;
    const int64_t first = has_rank ? x->shape.dims[0] : TN_DIM_UNKNOWN;
    const int64_t second = has_rank ? x->shape.dims[1] : TN_DIM_UNKNOWN;
    const int64_t batch = p->is_batch_first ? first : second;
    TN_TRY(require_shapes(node, batch, hidden, err));
    for (uint32_t i = 0; i < TN_RECURRENT_OUTPUTS; i++) {
        tn_fact *output = tn_node_output(node, i);
        if (output == NULL) continue;
        output->kind = TN_KIND_TENSOR;
        output->dtype = x->dtype;
        if (i == TN_RECURRENT_Y) {
            output->shape =
                p->is_batch_first
                    ? (tn_shape){.rank = 4, .dims = {first, second, directions, hidden}}
                    : (tn_shape){.rank = 4, .dims = {first, directions, second, hidden}};
        } else {
            output->shape = p->is_batch_first
                                ? (tn_shape){.rank = 3, .dims = {batch, directions, hidden}}
                                : (tn_shape){.rank = 3, .dims = {directions, batch, hidden}};
        }
    }
    return TN_OK;
}

static size_t known(int64_t dim) {
    return dim < 0 ? 1 : (size_t)dim;
}

static bool is_function(const tn_recurrent_activation *activation, tn_recurrent_function function) {
    return activation->function == function;
}

void tn_recurrent_describe(const tn_node_facts *node, tn_recurrent_record *out) {
    const tn_recurrent_params *p = node->params;
    const tn_shape *x = &tn_node_input(node, TN_RECURRENT_X)->shape;
    *out = (tn_recurrent_record){.params = *p};
    tn_recurrent_geometry *g = &out->geometry;
    const size_t first = x->rank == 3 ? known(x->dims[0]) : 1;
    const size_t second = x->rank == 3 ? known(x->dims[1]) : 1;
    g->steps = p->is_batch_first ? second : first;
    g->batch = p->is_batch_first ? first : second;
    g->input = x->rank == 3 ? known(x->dims[2]) : 1;
    g->hidden = known(hidden_of(node));
    g->directions = directions_of(p);
    g->gates = gates_of(p);
    g->gate_width = g->gates * g->hidden;
    g->r_parts = p->kind == TN_RECURRENT_GRU ? 2 : 1;
    g->part_cols[0] = p->kind == TN_RECURRENT_GRU ? 2 * g->hidden : g->gate_width;
    g->part_cols[1] = p->kind == TN_RECURRENT_GRU ? g->hidden : 0;
    for (uint32_t i = 0; i < TN_RECURRENT_INPUTS; i++) {
        out->has_input[i] = tn_node_input(node, i) != NULL;
    }
    for (uint32_t i = 0; i < TN_RECURRENT_OUTPUTS; i++) {
        out->has_output[i] = tn_node_output(node, i) != NULL;
    }
    /* entries of different lengths run one by one: each has its own order of time */
    const size_t block = out->has_input[TN_RECURRENT_LENGTHS] ? 1 : BATCH_BLOCK;
    g->batch_block = tn_size_max(tn_size_min(g->batch, block), 1);
    g->blocks = (g->batch + g->batch_block - 1) / g->batch_block;
    g->chunk_steps = tn_size_max(tn_size_min(CHUNK_ROWS / g->batch_block, g->steps), 1);
    out->packs_w = g->steps * g->batch_block > PACK_PAYS_ROWS;
    const tn_recurrent_activation *f = p->activations[0];
    const tn_recurrent_activation *b = p->activations[p->direction == TN_RECURRENT_BOTH ? 1 : 0];
    out->is_plain_lstm =
        p->kind == TN_RECURRENT_LSTM && p->clip == 0.0F && !p->couples_gates &&
        !out->has_input[TN_RECURRENT_PEEPHOLES] && is_function(&f[0], TN_RECURRENT_SIGMOID) &&
        is_function(&f[1], TN_RECURRENT_TANH) && is_function(&f[2], TN_RECURRENT_TANH) &&
        is_function(&b[0], TN_RECURRENT_SIGMOID) && is_function(&b[1], TN_RECURRENT_TANH) &&
        is_function(&b[2], TN_RECURRENT_TANH);
}

bool tn_recurrent_packed_r(const tn_recurrent_geometry *geometry, const tn_gemm_isa *isa,
                           size_t *out_floats) {
    size_t total = 0;
    for (size_t part = 0; part < geometry->r_parts; part++) {
        size_t size_bytes;
        if (!tn_gemm_packed_bytes(isa, geometry->part_cols[part], geometry->hidden, &size_bytes) ||
            !tn_size_add(total, size_bytes, &total)) {
            return false;
        }
    }
    *out_floats = total / sizeof(float);
    return true;
}

void tn_recurrent_pack_r(const tn_recurrent_geometry *geometry, const tn_gemm_isa *isa,
                         const void *r, float *packed) {
    const char *from = r;
    for (size_t part = 0; part < geometry->r_parts; part++) {
        const size_t cols = geometry->part_cols[part];
        size_t size_bytes = 0;
        tn_gemm_pack(isa, from, 1, geometry->hidden, cols, geometry->hidden, packed);
        (void)tn_gemm_packed_bytes(isa, cols, geometry->hidden, &size_bytes);
        packed += size_bytes / sizeof(float);
        from += cols * geometry->hidden * sizeof(float);
    }
}

/* Reserves `rows` x `cols` floats, aligned to a cache line. */
static bool reserve(size_t *total, size_t rows, size_t cols, size_t *out_at) {
    size_t floats;
    *out_at = *total;
    return tn_size_mul(rows, cols, &floats) && tn_size_align(floats, 16, &floats) &&
           tn_size_add(*total, floats, total);
}

bool tn_recurrent_lay_out(tn_recurrent_record *record) {
    const tn_recurrent_geometry *g = &record->geometry;
    tn_recurrent_scratch *s = &record->scratch;
    size_t total = 0;
    size_t w_bytes = 0;
    size_t r_floats = 0;
    if (!tn_gemm_packed_bytes(record->isa, g->gate_width, g->input, &w_bytes) ||
        !tn_recurrent_packed_r(g, record->isa, &r_floats)) {
        return false;
    }
    record->packed_r_floats = r_floats;
    const size_t rows = g->chunk_steps * g->batch_block;
    const size_t gemm_bytes = tn_gemm_scratch_bytes(record->isa, rows, g->gate_width,
                                                    tn_size_max(g->input, g->hidden), true, true);
    const bool fits =
        reserve(&total, 1, g->gate_width + g->hidden, &s->bias) &&
        reserve(&total, 1, record->packs_w ? w_bytes / sizeof(float) : 0, &s->packed_w) &&
        reserve(&total, 1, record->r_is_packed ? 0 : r_floats, &s->packed_r) &&
        reserve(&total, rows, g->gate_width, &s->gates) &&
        reserve(&total, g->batch_block, g->hidden, &s->h) &&
        reserve(&total, g->batch_block, g->hidden, &s->c) &&
        reserve(&total, g->batch_block, g->hidden, &s->extra) &&
        reserve(&total, 1, gemm_bytes / sizeof(float), &s->gemm);
    s->total = total;
    return fits && total <= SIZE_MAX / sizeof(float);
}
