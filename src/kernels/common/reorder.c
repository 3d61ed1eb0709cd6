/* Reorder: a value from plain to blocked layout or back. Plans insert it at the borders of chains
 * that run in blocks; no model holds it.
 *
 * A tile is a run of pixels of some channel blocks, moved in squares of channels by pixels so that
 * both sides are read and written in short contiguous runs. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/transpose.h"
#include "plan/op_def.h"

enum { TILE_ELEMS = 16 * 1024, MAX_BLOCK = 16, SQUARE = 8 };

typedef struct reorder_record {
    size_t block, channels, blocks, spatial, planes; /* planes: batch x blocks */
    size_t band, bands;                              /* pixels of a unit */
    size_t units_per_tile;
    bool to_blocks;
    tn_transpose_fn transpose;
} reorder_record;

static size_t blocks_of(size_t count, size_t block) {
    return (count + block - 1) / block;
}

static void describe(const tn_shape *shape, size_t block, bool to_blocks, reorder_record *r) {
    r->block = block;
    r->channels = (size_t)shape->dims[1];
    r->blocks = blocks_of(r->channels, block);
    r->planes = (size_t)shape->dims[0] * r->blocks;
    r->spatial = 1;
    for (int32_t i = 2; i < shape->rank; i++) r->spatial *= (size_t)shape->dims[i];
    r->to_blocks = to_blocks;
    r->band = tn_size_max(tn_size_min(TILE_ELEMS / block, r->spatial), 1);
    r->bands = blocks_of(r->spatial, r->band);
    r->units_per_tile = TILE_ELEMS / (r->band * block) + 1;
}

static size_t tile_count(const reorder_record *r) {
    return blocks_of(r->planes * r->bands, r->units_per_tile);
}

/* Pixels [first, end) of one block from `lanes` plain channels; the other lanes become zeros. Whole
 * squares of channels and pixels go through the transpose, the rest one by one. */
static void to_block(const reorder_record *r, const float *plain, size_t lanes, size_t first,
                     size_t end, float *blocked) {
    for (size_t lane = 0; lane < r->block; lane += SQUARE) {
        const size_t count = lane < lanes ? tn_size_min(lanes - lane, SQUARE) : 0;
        const float *from = plain + lane * r->spatial;
        float *to = blocked + lane;
        size_t pixel = first;
        for (; count == SQUARE && pixel + SQUARE <= end; pixel += SQUARE) {
            r->transpose(from + pixel, r->spatial, to + pixel * r->block, r->block);
        }
        for (; pixel < end; pixel++) {
            for (size_t i = 0; i < SQUARE; i++) {
                to[pixel * r->block + i] = i < count ? from[i * r->spatial + pixel] : 0.0F;
            }
        }
    }
}

static void from_block(const reorder_record *r, const float *blocked, size_t lanes, size_t first,
                       size_t end, float *plain) {
    for (size_t lane = 0; lane < lanes; lane += SQUARE) {
        const size_t count = tn_size_min(lanes - lane, SQUARE);
        const float *from = blocked + lane;
        float *to = plain + lane * r->spatial;
        size_t pixel = first;
        for (; count == SQUARE && pixel + SQUARE <= end; pixel += SQUARE) {
            r->transpose(from + pixel * r->block, r->block, to + pixel, r->spatial);
        }
        for (; pixel < end; pixel++) {
            for (size_t i = 0; i < count; i++) {
                to[i * r->spatial + pixel] = from[pixel * r->block + i];
            }
        }
    }
}

static void run_unit(const reorder_record *r, const float *x, float *y, size_t unit) {
    const size_t plane = unit / r->bands;
    const size_t first = unit % r->bands * r->band;
    const size_t end = tn_size_min(first + r->band, r->spatial);
    const size_t channel = plane % r->blocks * r->block;
    const size_t lanes = tn_size_min(r->block, r->channels - channel);
    const size_t plain = (plane / r->blocks * r->channels + channel) * r->spatial;
    const size_t blocked = plane * r->block * r->spatial;
    if (r->to_blocks) {
        to_block(r, x + plain, lanes, first, end, y + blocked);
    } else {
        from_block(r, x + blocked, lanes, first, end, y + plain);
    }
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const reorder_record *r = record;
    const size_t end = tn_size_min(tile1 * r->units_per_tile, r->planes * r->bands);
    (void)worker;
    for (size_t unit = tile0 * r->units_per_tile; unit < end; unit++) {
        run_unit(r, tn_kernel_in(ctx, 0), tn_kernel_out(ctx, 0), unit);
    }
    return TN_OK;
}

static tn_variant variant_of(const tn_variant_query *query, bool to_blocks) {
    const tn_fact *x = tn_node_input(query->node, 0);
    const tn_layout blocked = {query->preferred_block};
    tn_variant v = {.name = to_blocks ? "plain to blocks" : "blocks to plain",
                    .run = run,
                    .input_layout = {to_blocks ? 0 : blocked.block},
                    .output_layout = {to_blocks ? blocked.block : 0},
                    .layout_input_mask = to_blocks ? 0u : 1u};
    if (x == NULL || !tn_fact_is_sized(x) || x->shape.rank < 2) return v;
    reorder_record r;
    describe(&x->shape, query->preferred_block, to_blocks, &r);
    v.tile_counts[0] = (uint32_t)tn_size_max(tile_count(&r), 1);
    v.cost_ns = 50.0 + (double)r.planes * (double)(r.block * r.spatial) * 0.5;
    return v;
}

/* Nothing for a query without blocks: both sides would be plain. */
static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    (void)err;
    *out_count = 0;
    if (query->preferred_block == 0 || query->preferred_block > MAX_BLOCK ||
        query->preferred_block % SQUARE != 0)
        return TN_OK;
    out[(*out_count)++] = variant_of(query, true);
    out[(*out_count)++] = variant_of(query, false);
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *x = tn_node_input(node, 0);
    TN_REQUIRE(x == NULL || x->shape.rank == TN_RANK_UNKNOWN || x->shape.rank >= 2, err,
               TN_INVALID_ARGUMENT, "rank %d has no channels to cut into blocks",
               (int)x->shape.rank);
    return tn_infer_same_as_input0(node, err);
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    const bool to_blocks = ctx->variant->output_layout.block != 0;
    const size_t block =
        to_blocks ? ctx->variant->output_layout.block : ctx->variant->input_layout.block;
    describe(&tn_node_input(ctx->node, 0)->shape, block, to_blocks, record);
    ((reorder_record *)record)->transpose = tn_transpose_8x8_best(ctx->cpu);
    return TN_OK;
}

static const uint32_t types[] = {TN_TYPE_BIT(F32)};

static const tn_op_def reorder_ops[] = {
    {.name = "Reorder",
     .domain = "tenure",
     .since_version = 1,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .input_types = types,
     .input_types_count = 1,
     .record_bytes = sizeof(reorder_record),
     .infer = infer,
     .variants = variants,
     .bind = bind,
     .notes = "made by plans: between plain and blocked layout"},
};

const tn_op_table tn_reorder_table = {reorder_ops, TN_COUNTOF(reorder_ops)};
