/* Attention: softmax(scale * Q * K^T + bias) * V, head by head and block by block of queries.
 * Scores of one block live in scratch; a key-value cache is read in two pieces and never
 * concatenated but for the outputs that ask for it. 16-bit floats are converted to f32 in scratch.
 */
#include <math.h>
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/gemm.h"
#include "kernels/common/half.h"
#include "kernels/common/number.h"
#include "kernels/softmax/softmax_kernels.h"
#include "plan/op_def.h"

enum { QUERY_BLOCK = 64 };

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_K, IN_PAST_V, IN_LENGTHS, INPUTS };
enum { OUT_Y, OUT_K, OUT_V, OUT_SCORES, OUTPUTS };

/* What output OUT_SCORES shows. */
typedef enum score_mode {
    SCORES_SCALED,
    SCORES_CAPPED,
    SCORES_BIASED,
    SCORES_SOFTMAX,
    SCORE_MODES
} score_mode;

typedef struct attention_params {
    int64_t q_heads, kv_heads; /* 0: from the shapes */
    int64_t score_mode;
    float scale; /* 0: 1 / sqrt(head size) */
    float softcap;
    bool is_causal;
} attention_params;

/* Sizes of one node; all dims known. */
typedef struct attention_sizes {
    size_t batch, q_heads, kv_heads;
    size_t queries, keys, past, total; /* total = past + keys */
    size_t head, value_head;
    bool is_packed; /* rank 3: heads lie side by side in the last axis */
} attention_sizes;

/* Where the parts of a worker's scratch begin, in floats. */
typedef struct attention_scratch {
    size_t scores, q, k, v, y, gemm, total;
} attention_scratch;

typedef struct attention_record {
    attention_sizes sizes;
    attention_scratch scratch;
    const tn_gemm_isa *isa;
    tn_softmax_fn softmax;
    tn_dtype q_type, v_type, mask_type; /* mask NONE: no mask */
    size_t mask_strides[3];             /* elements per batch, head, query */
    size_t mask_cols;                   /* keys beyond are masked out */
    size_t query_blocks;
    float scale, softcap;
    score_mode mode;
    bool is_causal;
    bool has_lengths;
    bool has_output[OUTPUTS];
} attention_record;

static tn_status check(const tn_check_context *ctx, void *params) {
    attention_params *p = params;
    int64_t is_causal;
    TN_TRY(tn_check_int(ctx, "q_num_heads", 0, &p->q_heads));
    TN_TRY(tn_check_int(ctx, "kv_num_heads", 0, &p->kv_heads));
    TN_TRY(tn_check_int(ctx, "is_causal", 0, &is_causal));
    TN_TRY(tn_check_int(ctx, "qk_matmul_output_mode", 0, &p->score_mode));
    TN_TRY(tn_check_float(ctx, "scale", 0.0F, &p->scale));
    TN_TRY(tn_check_float(ctx, "softcap", 0.0F, &p->softcap));
    p->is_causal = is_causal != 0;
    TN_REQUIRE(p->q_heads >= 0 && p->kv_heads >= 0, ctx->err, TN_INVALID_MODEL,
               "q_num_heads is %lld, kv_num_heads is %lld", (long long)p->q_heads,
               (long long)p->kv_heads);
    TN_REQUIRE(p->score_mode >= 0 && p->score_mode < SCORE_MODES, ctx->err, TN_INVALID_MODEL,
               "qk_matmul_output_mode is %lld", (long long)p->score_mode);
    return TN_OK;
}

/* The heads view [batch, heads, length, size] of an input of rank 3 or 4; unknown stays unknown. */
static tn_status heads_view(const tn_fact *fact, int64_t heads, tn_shape *out, tn_error *err) {
    *out = (tn_shape){.rank = 4,
                      .dims = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN, TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    if (fact == NULL || fact->shape.rank < 0) return TN_OK;
    if (fact->shape.rank == 4) {
        *out = fact->shape;
        return TN_OK;
    }
    TN_REQUIRE(fact->shape.rank == 3, err, TN_INVALID_ARGUMENT,
               "Attention takes rank 3 or 4, got %d", (int)fact->shape.rank);
    TN_REQUIRE(heads > 0, err, TN_INVALID_MODEL, "rank 3 needs q_num_heads and kv_num_heads");
    const int64_t width = fact->shape.dims[2];
    TN_REQUIRE(width < 0 || width % heads == 0, err, TN_INVALID_ARGUMENT,
               "%lld columns do not make %lld heads", (long long)width, (long long)heads);
    out->dims[0] = fact->shape.dims[0];
    out->dims[1] = heads;
    out->dims[2] = fact->shape.dims[1];
    out->dims[3] = width < 0 ? TN_DIM_UNKNOWN : width / heads;
    return TN_OK;
}

static bool agree(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

static int64_t either(int64_t a, int64_t b) {
    return a >= 0 ? a : b;
}

typedef struct attention_shapes {
    tn_shape q, k, v, past_k, past_v;
    int64_t past, total;
} attention_shapes;

static tn_status refuse(const attention_shapes *s, tn_error *err) {
    char q[160], k[160], v[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Q %s, K %s and V %s do not fit together",
                        tn_shape_text(&s->q, q, sizeof q), tn_shape_text(&s->k, k, sizeof k),
                        tn_shape_text(&s->v, v, sizeof v));
}

static tn_status check_past(const tn_node_facts *node, attention_shapes *s, tn_error *err) {
    const tn_fact *past_k = tn_node_input(node, IN_PAST_K);
    const tn_fact *past_v = tn_node_input(node, IN_PAST_V);
    TN_REQUIRE((past_k == NULL) == (past_v == NULL), err, TN_INVALID_MODEL,
               "past_key and past_value come together");
    s->past = 0;
    s->total = s->k.dims[2];
    if (past_k == NULL) return TN_OK;
    TN_TRY(heads_view(past_k, 0, &s->past_k, err));
    TN_TRY(heads_view(past_v, 0, &s->past_v, err));
    const bool fits =
        agree(s->past_k.dims[0], s->q.dims[0]) && agree(s->past_k.dims[1], s->k.dims[1]) &&
        agree(s->past_k.dims[3], s->k.dims[3]) && agree(s->past_v.dims[0], s->q.dims[0]) &&
        agree(s->past_v.dims[1], s->k.dims[1]) && agree(s->past_v.dims[3], s->v.dims[3]) &&
        agree(s->past_k.dims[2], s->past_v.dims[2]);
    char text_k[160], text_v[160];
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "past_key %s and past_value %s do not fit K and V",
               tn_shape_text(&s->past_k, text_k, sizeof text_k),
               tn_shape_text(&s->past_v, text_v, sizeof text_v));
    s->past = either(s->past_k.dims[2], s->past_v.dims[2]);
    const bool is_known = s->past >= 0 && s->k.dims[2] >= 0;
    if (!is_known || !tn_i64_add(s->past, s->k.dims[2], &s->total)) s->total = TN_DIM_UNKNOWN;
    return TN_OK;
}

/* The mask must broadcast to the scores; its last axis may be shorter. */
static tn_status check_mask(const tn_node_facts *node, const attention_shapes *s, tn_error *err) {
    const tn_fact *mask = tn_node_input(node, IN_MASK);
    if (mask == NULL || mask->shape.rank < 0) return TN_OK;
    const int64_t wanted[] = {s->q.dims[0], s->q.dims[1], s->q.dims[2], s->total};
    const int32_t rank = mask->shape.rank;
    bool fits = rank >= 1 && rank <= 4;
    for (int32_t i = 0; fits && i < rank; i++) {
        const int64_t dim = mask->shape.dims[i];
        const int64_t want = wanted[4 - rank + i];
        const bool is_last = i == rank - 1;
        fits = agree(dim, want) || dim == 1 || (is_last && dim >= 0 && dim < want);
    }
    char text[160];
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT,
               "attn_mask %s does not broadcast to [%lld, %lld, %lld, %lld]",
               tn_shape_text(&mask->shape, text, sizeof text), (long long)wanted[0],
               (long long)wanted[1], (long long)wanted[2], (long long)wanted[3]);
    return TN_OK;
}

static tn_status read_shapes(const tn_node_facts *node, attention_shapes *s, tn_error *err) {
    const attention_params *p = node->params;
    TN_TRY(heads_view(tn_node_input(node, IN_Q), p->q_heads, &s->q, err));
    TN_TRY(heads_view(tn_node_input(node, IN_K), p->kv_heads, &s->k, err));
    TN_TRY(heads_view(tn_node_input(node, IN_V), p->kv_heads, &s->v, err));
    const int64_t q_heads = s->q.dims[1];
    const int64_t kv_heads = s->k.dims[1];
    const bool has_groups =
        q_heads < 0 || kv_heads < 0 || (kv_heads > 0 && q_heads % kv_heads == 0);
    if (!agree(s->q.dims[0], s->k.dims[0]) || !agree(s->q.dims[0], s->v.dims[0]) ||
        !agree(kv_heads, s->v.dims[1]) || !agree(s->k.dims[2], s->v.dims[2]) ||
        !agree(s->q.dims[3], s->k.dims[3]) || !has_groups) {
        return refuse(s, err);
    }
    TN_TRY(check_past(node, s, err));
    const tn_fact *lengths = tn_node_input(node, IN_LENGTHS);
    if (lengths != NULL && lengths->shape.rank >= 0) {
        TN_REQUIRE(lengths->shape.rank == 1 && agree(lengths->shape.dims[0], s->q.dims[0]), err,
                   TN_INVALID_ARGUMENT, "nonpad_kv_seqlen needs one number per batch entry");
    }
    return check_mask(node, s, err);
}

static void set_output(const tn_node_facts *node, uint32_t slot, uint32_t like,
                       const tn_shape *shape) {
    tn_fact *output = tn_node_output(node, slot);
    if (output == NULL) return;
    output->kind = TN_KIND_TENSOR;
    output->dtype = tn_node_input(node, like)->dtype;
    output->shape = *shape;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *q = tn_node_input(node, IN_Q);
    if (q == NULL || tn_node_input(node, IN_K) == NULL || tn_node_input(node, IN_V) == NULL) {
        return TN_OK;
    }
    attention_shapes s;
    TN_TRY(read_shapes(node, &s, err));
    tn_shape y = {.rank = TN_RANK_UNKNOWN};
    if (q->shape.rank == 4) {
        y = (tn_shape){.rank = 4, .dims = {s.q.dims[0], s.q.dims[1], s.q.dims[2], s.v.dims[3]}};
    } else if (q->shape.rank == 3) {
        int64_t width = TN_DIM_UNKNOWN;
        if (s.v.dims[3] < 0 || !tn_i64_mul(s.q.dims[1], s.v.dims[3], &width))
            width = TN_DIM_UNKNOWN;
        y = (tn_shape){.rank = 3, .dims = {s.q.dims[0], s.q.dims[2], width}};
    }
    const tn_shape keys = {.rank = 4, .dims = {s.k.dims[0], s.k.dims[1], s.total, s.k.dims[3]}};
    const tn_shape values = {.rank = 4, .dims = {s.v.dims[0], s.v.dims[1], s.total, s.v.dims[3]}};
    const tn_shape scores = {.rank = 4, .dims = {s.q.dims[0], s.q.dims[1], s.q.dims[2], s.total}};
    set_output(node, OUT_Y, IN_Q, &y);
    set_output(node, OUT_K, IN_K, &keys);
    set_output(node, OUT_V, IN_V, &values);
    set_output(node, OUT_SCORES, IN_Q, &scores);
    return TN_OK;
}

static size_t known(int64_t dim) {
    return dim < 0 ? 1 : (size_t)dim;
}

static bool reserve(size_t *total, size_t rows, size_t cols, size_t *out_at) {
    size_t floats;
    *out_at = *total;
    return tn_size_mul(rows, cols, &floats) && tn_size_align(floats, 16, &floats) &&
           tn_size_add(*total, floats, total);
}

static bool lay_out(attention_record *r) {
    const attention_sizes *z = &r->sizes;
    attention_scratch *s = &r->scratch;
    const size_t rows = tn_size_min(z->queries, QUERY_BLOCK);
    const bool converts = r->q_type != TN_DTYPE_F32;
    const bool converts_v = r->v_type != TN_DTYPE_F32;
    const size_t widest = tn_size_max(tn_size_max(z->total, z->value_head), z->head);
    const size_t gemm_bytes = tn_gemm_scratch_bytes(r->isa, rows, widest, widest, true, true);
    size_t total = 0;
    const bool fits = reserve(&total, rows, z->total, &s->scores) &&
                      reserve(&total, converts ? rows : 0, z->head, &s->q) &&
                      reserve(&total, converts ? z->total : 0, z->head, &s->k) &&
                      reserve(&total, converts_v ? z->total : 0, z->value_head, &s->v) &&
                      reserve(&total, converts ? rows : 0, z->value_head, &s->y) &&
                      reserve(&total, 1, gemm_bytes / sizeof(float), &s->gemm);
    s->total = total;
    return fits && total <= SIZE_MAX / sizeof(float);
}

static void describe_mask(const tn_fact *mask, attention_record *r) {
    if (mask == NULL) return;
    r->mask_type = mask->dtype;
    const int32_t rank = mask->shape.rank;
    size_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const size_t dim = known(mask->shape.dims[i]);
        const int32_t axis = 4 - rank + i;
        if (axis == 3) {
            r->mask_cols = dim;
        } else {
            r->mask_strides[axis] = dim == 1 ? 0 : step;
        }
        step *= dim;
    }
}

static tn_status describe(const tn_node_facts *node, const tn_gemm_isa *isa, attention_record *r,
                          tn_error *err) {
    const attention_params *p = node->params;
    attention_shapes s;
    TN_TRY(read_shapes(node, &s, err));
    *r = (attention_record){.isa = isa,
                            .q_type = tn_node_input(node, IN_Q)->dtype,
                            .v_type = tn_node_input(node, IN_V)->dtype,
                            .mode = (score_mode)p->score_mode,
                            .softcap = p->softcap,
                            .is_causal = p->is_causal,
                            .has_lengths = tn_node_input(node, IN_LENGTHS) != NULL};
    r->sizes = (attention_sizes){.batch = known(s.q.dims[0]),
                                 .q_heads = known(s.q.dims[1]),
                                 .kv_heads = known(s.k.dims[1]),
                                 .queries = known(s.q.dims[2]),
                                 .keys = known(s.k.dims[2]),
                                 .past = known(s.past),
                                 .head = known(s.q.dims[3]),
                                 .value_head = known(s.v.dims[3]),
                                 .is_packed = tn_node_input(node, IN_Q)->shape.rank == 3};
    r->sizes.total = r->sizes.past + r->sizes.keys;
    r->scale = p->scale != 0.0F ? p->scale : 1.0F / sqrtf((float)r->sizes.head);
    describe_mask(tn_node_input(node, IN_MASK), r);
    r->query_blocks = (r->sizes.queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
    for (uint32_t i = 0; i < OUTPUTS; i++) r->has_output[i] = tn_node_output(node, i) != NULL;
    TN_REQUIRE(lay_out(r), err, TN_OVERFLOW, "scores of %zu keys do not fit in memory",
               r->sizes.total);
    return TN_OK;
}

typedef struct attention_tile {
    const attention_record *r;
    tn_kernel_context *ctx;
    float *scratch;
    size_t batch, head, kv_head;
    size_t query0, queries;
} attention_tile;

/* First element of a head and elements between its rows, in an input or output of Q's, K's or V's
 * form. */
static size_t head_at(const attention_sizes *z, size_t batch, size_t head, size_t heads,
                      size_t length, size_t width, size_t *out_stride) {
    *out_stride = z->is_packed ? heads * width : width;
    return z->is_packed ? batch * length * heads * width + head * width
                        : (batch * heads + head) * length * width;
}

static void to_floats(tn_dtype dtype, const void *data, size_t at, size_t count, float *out) {
    if (dtype == TN_DTYPE_F32) {
        memcpy(out, (const float *)data + at, count * sizeof *out);
        return;
    }
    const uint16_t *halves = (const uint16_t *)data + at;
    for (size_t i = 0; i < count; i++) {
        out[i] = dtype == TN_DTYPE_F16 ? tn_f32_from_f16(halves[i]) : tn_f32_from_bf16(halves[i]);
    }
}

static void from_floats(tn_dtype dtype, const float *in, size_t count, void *data, size_t at) {
    if (dtype == TN_DTYPE_F32) {
        memcpy((float *)data + at, in, count * sizeof *in);
        return;
    }
    uint16_t *halves = (uint16_t *)data + at;
    for (size_t i = 0; i < count; i++) {
        halves[i] = dtype == TN_DTYPE_F16 ? tn_f16_from_f32(in[i]) : tn_bf16_from_f32(in[i]);
    }
}

/* Rows as f32: in place when they are, else converted into `scratch` without gaps. */
typedef struct float_rows {
    const float *data;
    size_t stride;
} float_rows;

static float_rows rows_of(tn_dtype dtype, const void *data, size_t at, size_t stride, size_t rows,
                          size_t width, float *scratch) {
    if (dtype == TN_DTYPE_F32) return (float_rows){(const float *)data + at, stride};
    for (size_t i = 0; i < rows; i++) {
        to_floats(dtype, data, at + i * stride, width, scratch + i * width);
    }
    return (float_rows){scratch, width};
}

/* Rows of K or V of this tile's head: the new ones, and those of the cache. */
static float_rows new_rows(const attention_tile *t, uint32_t slot, tn_dtype dtype, size_t width,
                           float *scratch) {
    const attention_sizes *z = &t->r->sizes;
    size_t stride;
    const size_t at = head_at(z, t->batch, t->kv_head, z->kv_heads, z->keys, width, &stride);
    return rows_of(dtype, tn_kernel_in(t->ctx, slot), at, stride, z->keys, width,
                   scratch + z->past * width);
}

static float_rows past_rows(const attention_tile *t, uint32_t slot, tn_dtype dtype, size_t width,
                            float *scratch) {
    const attention_sizes *z = &t->r->sizes;
    const size_t at = (t->batch * z->kv_heads + t->kv_head) * z->past * width;
    return rows_of(dtype, tn_kernel_in(t->ctx, slot), at, width, z->past, width, scratch);
}

static void multiply(const attention_tile *t, tn_gemm_task *task) {
    task->a_k_stride = 1;
    tn_gemm_run(t->r->isa, task, t->scratch + t->r->scratch.gemm);
}

static void make_scores(const attention_tile *t, float *scores) {
    const attention_sizes *z = &t->r->sizes;
    float *k_scratch = t->scratch + t->r->scratch.k;
    size_t stride;
    const size_t at = head_at(z, t->batch, t->head, z->q_heads, z->queries, z->head, &stride);
    const float_rows q = rows_of(t->r->q_type, tn_kernel_in(t->ctx, IN_Q), at + t->query0 * stride,
                                 stride, t->queries, z->head, t->scratch + t->r->scratch.q);
    for (size_t piece = 0; piece < 2; piece++) {
        const size_t keys = piece == 0 ? z->past : z->keys;
        if (keys == 0) continue;
        const float_rows k = piece == 0 ? past_rows(t, IN_PAST_K, t->r->q_type, z->head, k_scratch)
                                        : new_rows(t, IN_K, t->r->q_type, z->head, k_scratch);
        tn_gemm_task task = {.m = t->queries,
                             .n = keys,
                             .k = z->head,
                             .a = q.data,
                             .a_row_stride = q.stride,
                             .b = k.data,
                             .b_k_stride = 1,
                             .b_col_stride = k.stride,
                             .c = scores + (piece == 0 ? 0 : z->past),
                             .c_row_stride = z->total};
        multiply(t, &task);
    }
    for (size_t i = 0; i < t->queries * z->total; i++) scores[i] *= t->r->scale;
}

static void show_scores(const attention_tile *t, score_mode mode, const float *scores) {
    const attention_sizes *z = &t->r->sizes;
    if (!t->r->has_output[OUT_SCORES] || t->r->mode != mode) return;
    const size_t row = (t->batch * z->q_heads + t->head) * z->queries + t->query0;
    from_floats(t->r->q_type, scores, t->queries * z->total, tn_kernel_out(t->ctx, OUT_SCORES),
                row * z->total);
}

/* Adds one row of the mask; what it does not reach is masked out. */
static void mask_row(const attention_tile *t, size_t query, float *row) {
    const attention_record *r = t->r;
    const void *mask = tn_kernel_in(t->ctx, IN_MASK);
    const size_t at =
        t->batch * r->mask_strides[0] + t->head * r->mask_strides[1] + query * r->mask_strides[2];
    const size_t cols = tn_size_min(r->mask_cols, r->sizes.total);
    if (r->mask_type == TN_DTYPE_BOOL) {
        const uint8_t *keeps = (const uint8_t *)mask + at;
        for (size_t j = 0; j < cols; j++) row[j] = keeps[j] != 0 ? row[j] : -INFINITY;
    } else if (r->mask_type == TN_DTYPE_F32) {
        const float *bias = (const float *)mask + at;
        for (size_t j = 0; j < cols; j++) row[j] += bias[j];
    } else {
        for (size_t j = 0; j < cols; j++) {
            row[j] += (float)tn_number_read(mask, r->mask_type, at + j);
        }
    }
    for (size_t j = cols; j < r->sizes.total; j++) row[j] = -INFINITY;
}

/* Keys that query `query` may see at most: causal order and lengths of the batch. */
static size_t visible_keys(const attention_tile *t, size_t query) {
    const attention_record *r = t->r;
    size_t visible = r->sizes.total;
    if (r->is_causal) visible = tn_size_min(visible, r->sizes.past + query + 1);
    if (r->has_lengths) {
        const int64_t length = ((const int64_t *)tn_kernel_in(t->ctx, IN_LENGTHS))[t->batch];
        visible = tn_size_min(visible, length < 0 ? 0 : (size_t)length);
    }
    return visible;
}

static void bias_row(const attention_tile *t, size_t query, float *row) {
    if (t->r->mask_type != TN_DTYPE_NONE) mask_row(t, query, row);
    for (size_t j = visible_keys(t, query); j < t->r->sizes.total; j++) row[j] = -INFINITY;
}

/* A row in which nothing may be seen gives zeros, not NaN. */
static void softmax_row(const attention_tile *t, float *row) {
    const size_t total = t->r->sizes.total;
    bool is_visible = false;
    for (size_t j = 0; j < total && !is_visible; j++) is_visible = row[j] != -INFINITY;
    if (!is_visible) {
        memset(row, 0, total * sizeof *row);
        return;
    }
    const tn_softmax_span span = {.x = row, .y = row, .length = total, .stride = 1, .cols = 1};
    t->r->softmax(&span);
}

static void weigh_values(const attention_tile *t, const float *scores) {
    const attention_record *r = t->r;
    const attention_sizes *z = &r->sizes;
    float *v_scratch = t->scratch + r->scratch.v;
    size_t stride;
    const size_t at = head_at(z, t->batch, t->head, z->q_heads, z->queries, z->value_head, &stride);
    const size_t first = at + t->query0 * stride;
    const bool converts = r->q_type != TN_DTYPE_F32;
    float *y = converts ? t->scratch + r->scratch.y : (float *)tn_kernel_out(t->ctx, OUT_Y) + first;
    tn_gemm_task task = {.m = t->queries,
                         .n = z->value_head,
                         .a_row_stride = z->total,
                         .b_col_stride = 1,
                         .c = y,
                         .c_row_stride = converts ? z->value_head : stride};
    for (size_t piece = 0; piece < 2; piece++) {
        task.k = piece == 0 ? z->past : z->keys;
        if (piece == 0 && task.k == 0) continue;
        const float_rows v = piece == 0
                                 ? past_rows(t, IN_PAST_V, r->v_type, z->value_head, v_scratch)
                                 : new_rows(t, IN_V, r->v_type, z->value_head, v_scratch);
        task.a = scores + (piece == 0 ? 0 : z->past);
        task.b = v.data;
        task.b_k_stride = v.stride;
        multiply(t, &task);
        task.adds = true;
    }
    for (size_t i = 0; converts && i < t->queries; i++) {
        from_floats(r->q_type, y + i * z->value_head, z->value_head, tn_kernel_out(t->ctx, OUT_Y),
                    first + i * stride);
    }
}

/* The cache with the new rows behind it, as output [batch, kv heads, total, width]. */
static void copy_present(const attention_tile *t, uint32_t in, uint32_t past, uint32_t out,
                         size_t width) {
    const attention_sizes *z = &t->r->sizes;
    if (!t->r->has_output[out]) return;
    const size_t bytes = tn_dtype_bits(in == IN_V ? t->r->v_type : t->r->q_type) / 8;
    const size_t head = t->batch * z->kv_heads + t->kv_head;
    char *to = (char *)tn_kernel_out(t->ctx, out) + head * z->total * width * bytes;
    if (z->past > 0) {
        memcpy(to, (const char *)tn_kernel_in(t->ctx, past) + head * z->past * width * bytes,
               z->past * width * bytes);
        to += z->past * width * bytes;
    }
    size_t stride;
    const size_t at = head_at(z, t->batch, t->kv_head, z->kv_heads, z->keys, width, &stride);
    for (size_t i = 0; i < z->keys; i++) {
        memcpy(to + i * width * bytes,
               (const char *)tn_kernel_in(t->ctx, in) + (at + i * stride) * bytes, width * bytes);
    }
}

static void run_tile(const attention_tile *t) {
    const attention_sizes *z = &t->r->sizes;
    float *scores = t->scratch + t->r->scratch.scores;
    /* one query head of each group, in its first block, writes the cache */
    if (t->query0 == 0 && t->head % (z->q_heads / z->kv_heads) == 0) {
        copy_present(t, IN_K, IN_PAST_K, OUT_K, z->head);
        copy_present(t, IN_V, IN_PAST_V, OUT_V, z->value_head);
    }
    make_scores(t, scores);
    show_scores(t, SCORES_SCALED, scores);
    const float cap = t->r->softcap;
    for (size_t i = 0; cap > 0.0F && i < t->queries * z->total; i++) {
        scores[i] = tanhf(scores[i] / cap) * cap;
    }
    show_scores(t, SCORES_CAPPED, scores);
    for (size_t i = 0; i < t->queries; i++) bias_row(t, t->query0 + i, scores + i * z->total);
    show_scores(t, SCORES_BIASED, scores);
    for (size_t i = 0; i < t->queries; i++) softmax_row(t, scores + i * z->total);
    show_scores(t, SCORES_SOFTMAX, scores);
    if (t->r->has_output[OUT_Y]) weigh_values(t, scores);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const attention_record *r = record;
    const attention_sizes *z = &r->sizes;
    if (z->batch == 0 || z->q_heads == 0 || z->queries == 0) return TN_OK;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        const size_t item = tile / r->query_blocks;
        attention_tile t = {.r = r,
                            .ctx = ctx,
                            .scratch = tn_kernel_scratch(ctx, worker),
                            .batch = item / z->q_heads,
                            .head = item % z->q_heads,
                            .query0 = tile % r->query_blocks * QUERY_BLOCK};
        t.kv_head = t.head / (z->q_heads / z->kv_heads);
        t.queries = tn_size_min(QUERY_BLOCK, z->queries - t.query0);
        run_tile(&t);
    }
    return TN_OK;
}

static const char *const variant_names[TN_GEMM_ISA_COUNT] = {"attention portable", "attention avx2",
                                                             "attention avx512"};

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    *out_count = 0;
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, query->cpu);
        if (isa == NULL) continue;
        attention_record r;
        TN_TRY(describe(query->node, isa, &r, err));
        const attention_sizes *z = &r.sizes;
        const double macs = (double)z->batch * (double)z->q_heads * (double)z->queries *
                            (double)z->total * (double)(z->head + z->value_head);
        tn_variant *variant = &out[(*out_count)++];
        *variant = (tn_variant){.name = variant_names[id],
                                .run = run,
                                .worker_scratch_bytes = r.scratch.total * sizeof(float),
                                .cost_ns = 200.0 + 2.0 * macs / isa->macs_per_ns};
        variant->tile_counts[0] = (uint32_t)tn_size_max(z->batch * z->q_heads * r.query_blocks, 1);
    }
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    static const tn_cpu_features features[TN_GEMM_ISA_COUNT] = {TN_CPU_PORTABLE, TN_CPU_AVX2,
                                                                TN_CPU_AVX512};
    attention_record *r = record;
    const tn_gemm_isa *isa = &tn_gemm_portable;
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        if (strcmp(ctx->variant->name, variant_names[id]) != 0) continue;
        isa = tn_gemm_isa_get(id, ctx->cpu);
    }
    TN_TRY(describe(ctx->node, isa, r, ctx->err));
    r->softmax = tn_softmax_get(TN_SOFTMAX_EXP, TN_DTYPE_F32, features[isa->id] & ctx->cpu)->row;
    return TN_OK;
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F16) | TN_TYPE_BIT(BF16))

static const uint32_t types[] = {
    FLOATS, FLOATS, FLOATS, TN_TYPES_NUMBER | TN_TYPE_BIT(BOOL), FLOATS, FLOATS, TN_TYPE_BIT(I64)};

#define ROW(since, until, most)                                                                \
    {                                                                                          \
        .name = "Attention", .since_version = since, .until_version = until, .min_inputs = 3,  \
        .max_inputs = most, .min_outputs = 1, .max_outputs = OUTPUTS, .flags = TN_OP_FOLDABLE, \
        .input_types = types, .input_types_count = TN_COUNTOF(types),                          \
        .same_type_mask = 1u << IN_Q | 1u << IN_K | 1u << IN_PAST_K,                           \
        .params_bytes = sizeof(attention_params), .record_bytes = sizeof(attention_record),    \
        .check = check, .infer = infer, .variants = variants, .bind = bind                     \
    }

static const tn_op_def rows[] = {ROW(23, 23, 6), ROW(24, 0, 7)};

const tn_op_table tn_attention_table = {rows, TN_COUNTOF(rows)};
