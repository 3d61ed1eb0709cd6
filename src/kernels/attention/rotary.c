/* RotaryEmbedding: pairs of elements of each head turned by an angle that depends on the position.
 * Pairs are neighbours (interleaved) or one from each half of the rotated part; what lies behind
 * that part is copied. */
#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "plan/op_def.h"

enum { IN_X, IN_COS, IN_SIN, IN_POSITIONS, INPUTS };
enum { TILE_ELEMS = 8 * 1024 };

typedef struct rotary_params {
    int64_t head_count;  /* rank 3 needs it */
    int64_t rotary_size; /* 0: the whole head */
    bool is_interleaved;
} rotary_params;

typedef struct rotary_record {
    tn_dtype dtype;
    size_t batch, heads, steps, size;
    size_t half; /* pairs per head */
    size_t cache_rows;
    size_t tile_rows; /* rows are (batch, head, step) in the order of x */
    bool is_packed;   /* rank 3: [batch, steps, heads * size] */
    bool is_interleaved;
    bool has_positions;
} rotary_record;

static tn_status check(const tn_check_context *ctx, void *params) {
    rotary_params *p = params;
    int64_t is_interleaved;
    TN_TRY(tn_check_int(ctx, "interleaved", 0, &is_interleaved));
    TN_TRY(tn_check_int(ctx, "num_heads", 0, &p->head_count));
    TN_TRY(tn_check_int(ctx, "rotary_embedding_dim", 0, &p->rotary_size));
    TN_REQUIRE(p->head_count >= 0 && p->rotary_size >= 0 && p->rotary_size % 2 == 0, ctx->err,
               TN_INVALID_MODEL, "num_heads is %lld, rotary_embedding_dim is %lld",
               (long long)p->head_count, (long long)p->rotary_size);
    p->is_interleaved = is_interleaved != 0;
    return TN_OK;
}

/* Fills sizes from a sized x. */
static tn_status read_sizes(const tn_node_facts *node, rotary_record *r, tn_error *err) {
    const rotary_params *p = node->params;
    const tn_fact *x = tn_node_input(node, IN_X);
    const int64_t *dims = x->shape.dims;
    TN_REQUIRE(x->shape.rank == 3 || x->shape.rank == 4, err, TN_INVALID_ARGUMENT,
               "RotaryEmbedding takes rank 3 or 4, got %d", (int)x->shape.rank);
    r->is_packed = x->shape.rank == 3;
    TN_REQUIRE(!r->is_packed || p->head_count > 0, err, TN_INVALID_MODEL, "rank 3 needs num_heads");
    TN_REQUIRE(!r->is_packed || dims[2] % p->head_count == 0, err, TN_INVALID_ARGUMENT,
               "%lld columns do not make %lld heads", (long long)dims[2], (long long)p->head_count);
    r->batch = (size_t)dims[0];
    r->heads = (size_t)(r->is_packed ? p->head_count : dims[1]);
    r->steps = (size_t)(r->is_packed ? dims[1] : dims[2]);
    r->size = (size_t)(r->is_packed ? dims[2] / p->head_count : dims[3]);
    const size_t rotary = p->rotary_size > 0 ? (size_t)p->rotary_size : r->size;
    TN_REQUIRE(rotary <= r->size && rotary % 2 == 0, err, TN_INVALID_ARGUMENT,
               "%zu elements cannot be rotated in heads of %zu", rotary, r->size);
    r->half = rotary / 2;
    return TN_OK;
}

/* The caches hold one row of angles per position, or per batch entry and step. */
static tn_status check_cache(const tn_node_facts *node, uint32_t slot, rotary_record *r,
                             tn_error *err) {
    const tn_fact *cache = tn_node_input(node, slot);
    const tn_shape *shape = &cache->shape;
    if (!tn_fact_is_sized(cache)) return TN_OK;
    bool fits = shape->rank == (r->has_positions ? 2 : 3) &&
                (size_t)shape->dims[shape->rank - 1] == r->half;
    if (fits && !r->has_positions) {
        fits = (size_t)shape->dims[0] == r->batch && (size_t)shape->dims[1] == r->steps;
    }
    char text[160];
    TN_REQUIRE(fits, err, TN_INVALID_ARGUMENT, "cache %s does not fit %zu x %zu steps, %zu pairs",
               tn_shape_text(shape, text, sizeof text), r->batch, r->steps, r->half);
    if (r->has_positions) {
        const size_t rows = (size_t)shape->dims[0];
        r->cache_rows = slot == IN_COS ? rows : tn_size_min(r->cache_rows, rows);
    }
    return TN_OK;
}

static tn_status describe(const tn_node_facts *node, rotary_record *r, tn_error *err) {
    const tn_fact *x = tn_node_input(node, IN_X);
    const tn_fact *positions = tn_node_input(node, IN_POSITIONS);
    *r = (rotary_record){.dtype = x->dtype,
                         .is_interleaved = ((const rotary_params *)node->params)->is_interleaved,
                         .has_positions = positions != NULL,
                         .tile_rows = 1};
    if (!tn_fact_is_sized(x)) return TN_OK;
    TN_TRY(read_sizes(node, r, err));
    if (positions != NULL && tn_fact_is_sized(positions)) {
        const size_t count = tn_fact_len_elems(positions);
        TN_REQUIRE(count == r->batch * r->steps, err, TN_INVALID_ARGUMENT,
                   "%zu position_ids for %zu x %zu steps", count, r->batch, r->steps);
    }
    TN_TRY(check_cache(node, IN_COS, r, err));
    TN_TRY(check_cache(node, IN_SIN, r, err));
    r->tile_rows = tn_size_max(TILE_ELEMS / tn_size_max(r->size, 1), 1);
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    rotary_record r;
    if (tn_node_input(node, IN_X) == NULL || tn_node_input(node, IN_COS) == NULL ||
        tn_node_input(node, IN_SIN) == NULL) {
        return TN_OK;
    }
    TN_TRY(describe(node, &r, err));
    return tn_infer_same_as_input0(node, err);
}

/* One head at one step; y may be x: both of a pair are read before they are written. */
static void rotate(const rotary_record *r, tn_kernel_context *ctx, size_t at, size_t angle_at) {
    const void *x = tn_kernel_in(ctx, IN_X);
    void *y = tn_kernel_out(ctx, 0);
    const size_t step = r->is_interleaved ? 1 : r->half;
    for (size_t i = 0; i < r->half; i++) {
        const size_t first = at + (r->is_interleaved ? 2 * i : i);
        const float cosine =
            (float)tn_number_read(tn_kernel_in(ctx, IN_COS), r->dtype, angle_at + i);
        const float sine = (float)tn_number_read(tn_kernel_in(ctx, IN_SIN), r->dtype, angle_at + i);
        const float a = (float)tn_number_read(x, r->dtype, first);
        const float b = (float)tn_number_read(x, r->dtype, first + step);
        tn_number_write(y, r->dtype, first, (double)(cosine * a - sine * b));
        tn_number_write(y, r->dtype, first + step, (double)(sine * a + cosine * b));
    }
    for (size_t i = 2 * r->half; i < r->size; i++) {
        tn_number_write(y, r->dtype, at + i, tn_number_read(x, r->dtype, at + i));
    }
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const rotary_record *r = record;
    const int64_t *positions = r->has_positions ? tn_kernel_in(ctx, IN_POSITIONS) : NULL;
    const size_t end = tn_size_min((size_t)tile1 * r->tile_rows, r->batch * r->heads * r->steps);
    for (size_t row = (size_t)tile0 * r->tile_rows; row < end; row++) {
        const size_t batch = row / (r->heads * r->steps);
        const size_t step = r->is_packed ? row / r->heads % r->steps : row % r->steps;
        size_t angles = batch * r->steps + step;
        if (r->has_positions) {
            const int64_t position = positions[angles];
            TN_REQUIRE(position >= 0 && (uint64_t)position < r->cache_rows,
                       tn_kernel_error(ctx, worker), TN_OUT_OF_RANGE,
                       "position %lld is outside a cache of %zu rows", (long long)position,
                       r->cache_rows);
            angles = (size_t)position;
        }
        rotate(r, ctx, row * r->size, angles * r->half);
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    rotary_record r;
    TN_TRY(describe(query->node, &r, err));
    const size_t rows = r.batch * r.heads * r.steps;
    out[0] = (tn_variant){.name = "rotate", .run = run};
    out[0].cost_ns = 50.0 + 5.0 * (double)rows * (double)r.size;
    out[0].tile_counts[0] = (uint32_t)tn_size_max((rows + r.tile_rows - 1) / r.tile_rows, 1);
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    return describe(ctx->node, record, ctx->err);
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F16) | TN_TYPE_BIT(BF16))

static const uint32_t types[] = {FLOATS, FLOATS, FLOATS, TN_TYPE_BIT(I64)};

static const tn_op_def rows[] = {
    {.name = "RotaryEmbedding",
     .since_version = 23,
     .min_inputs = 3,
     .max_inputs = INPUTS,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .in_place_mask = 1,
     .input_types = types,
     .input_types_count = INPUTS,
     .same_type_mask = 7,
     .params_bytes = sizeof(rotary_params),
     .record_bytes = sizeof(rotary_record),
     .check = check,
     .infer = infer,
     .variants = variants,
     .bind = bind},
};

const tn_op_table tn_rotary_table = {rows, TN_COUNTOF(rows)};
