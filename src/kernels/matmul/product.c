/* Geometry of batched products: shapes, broadcast of batch axes, cutting into tiles. */
#include "kernels/matmul/product.h"

#include "base/checked_size.h"

enum { TILE_NS = 20000, MAX_TILES = 128 };

static tn_status refuse(const tn_shape *a, const tn_shape *b, tn_error *err) {
    char text_a[160];
    char text_b[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "shapes %s and %s cannot be multiplied",
                        tn_shape_text(a, text_a, sizeof text_a),
                        tn_shape_text(b, text_b, sizeof text_b));
}

/* Batch axes of `shape`, or none for ranks up to 2. */
static tn_shape batch_of(const tn_shape *shape) {
    tn_shape batch = {.rank = shape->rank > 2 ? shape->rank - 2 : 0};
    for (int32_t i = 0; i < batch.rank; i++) batch.dims[i] = shape->dims[i];
    return batch;
}

tn_status tn_product_infer(const tn_shape *a, const tn_shape *b, tn_shape *out, tn_error *err) {
    if (a->rank < 0 || b->rank < 0) {
        out->rank = TN_RANK_UNKNOWN;
        return TN_OK;
    }
    if (a->rank == 0 || b->rank == 0) return refuse(a, b, err);
    const int64_t k_a = a->dims[a->rank - 1];
    const int64_t k_b = b->rank == 1 ? b->dims[0] : b->dims[b->rank - 2];
    if (k_a >= 0 && k_b >= 0 && k_a != k_b) return refuse(a, b, err);
    const tn_shape batch_a = batch_of(a);
    const tn_shape batch_b = batch_of(b);
    tn_shape result;
    TN_TRY(tn_infer_broadcast(&batch_a, &batch_b, &result, err));
    if (a->rank > 1) result.dims[result.rank++] = a->dims[a->rank - 2];
    if (b->rank > 1) result.dims[result.rank++] = b->dims[b->rank - 1];
    *out = result;
    return TN_OK;
}

static size_t known(int64_t dim) {
    return dim < 0 ? 1 : (size_t)dim;
}

/* Matrices per step along each axis of `batch`, aligned to the last axes of a batch of `rank`. */
static void batch_steps(const tn_shape *batch, int32_t rank, size_t *steps) {
    size_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t axis = i - (rank - batch->rank);
        const size_t dim = axis < 0 ? 1 : known(batch->dims[axis]);
        steps[i] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

void tn_product_from_shapes(const tn_shape *a, const tn_shape *b, tn_product_geometry *out) {
    *out = (tn_product_geometry){.m = 1, .n = 1, .k = 1, .batch_count = 1};
    if (a->rank < 1 || b->rank < 1) return;
    out->m = a->rank == 1 ? 1 : known(a->dims[a->rank - 2]);
    out->n = b->rank == 1 ? 1 : known(b->dims[b->rank - 1]);
    const int64_t k_a = a->dims[a->rank - 1];
    out->k = known(k_a >= 0 ? k_a : b->dims[b->rank == 1 ? 0 : b->rank - 2]);
    out->a_row_stride = out->k;
    out->a_k_stride = 1;
    out->b_k_stride = out->n;
    out->b_col_stride = 1;
    const tn_shape batch_a = batch_of(a);
    const tn_shape batch_b = batch_of(b);
    if (batch_b.rank == 0) {
        for (int32_t i = 0; i < batch_a.rank; i++) out->m *= known(batch_a.dims[i]);
        return;
    }
    out->batch_rank = batch_a.rank > batch_b.rank ? batch_a.rank : batch_b.rank;
    batch_steps(&batch_a, out->batch_rank, out->a_steps);
    batch_steps(&batch_b, out->batch_rank, out->b_steps);
    for (int32_t i = 0; i < out->batch_rank; i++) {
        const int32_t axis_a = i - (out->batch_rank - batch_a.rank);
        const int32_t axis_b = i - (out->batch_rank - batch_b.rank);
        const size_t dim_a = axis_a < 0 ? 1 : known(batch_a.dims[axis_a]);
        const size_t dim_b = axis_b < 0 ? 1 : known(batch_b.dims[axis_b]);
        out->batch_dims[i] = dim_a == 1 ? dim_b : dim_a;
        out->batch_count *= out->batch_dims[i];
    }
}

void tn_product_batch_at(const tn_product_geometry *geometry, size_t batch, size_t *out_a,
                         size_t *out_b) {
    size_t a = 0;
    size_t b = 0;
    for (int32_t i = geometry->batch_rank - 1; i >= 0; i--) {
        const size_t at = batch % geometry->batch_dims[i];
        batch /= geometry->batch_dims[i];
        a += at * geometry->a_steps[i];
        b += at * geometry->b_steps[i];
    }
    *out_a = a;
    *out_b = b;
}

static size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Halves one side of the tile, rounded to its step; false when that side is small already. */
static bool halve(size_t *side, size_t step, size_t least) {
    if (*side <= least) return false;
    *side = ceil_div(ceil_div(*side, 2), step) * step;
    return true;
}

/* Cuts one item until it has `target` tiles. */
static void tile_item(const tn_product_geometry *geometry, const tn_product_tiling_options *options,
                      size_t target, tn_product_tiling *out) {
    const size_t least_rows = 2 * options->row_step;
    const size_t least_cols = 2 * options->col_step;
    while (ceil_div(geometry->m, out->rows) * ceil_div(geometry->n, out->cols) < target) {
        const bool prefers_cols = options->splits_cols_first || out->cols > out->rows;
        bool done = false;
        if (prefers_cols) done = halve(&out->cols, options->col_step, least_cols);
        if (!done) done = halve(&out->rows, options->row_step, least_rows);
        if (!done && !prefers_cols) done = halve(&out->cols, options->col_step, least_cols);
        if (!done) break;
    }
}

void tn_product_tile(const tn_product_geometry *geometry, const tn_product_tiling_options *options,
                     tn_product_tiling *out) {
    const double macs = (double)geometry->m * (double)geometry->n * (double)geometry->k *
                        (double)geometry->batch_count;
    const double wanted = macs / options->macs_per_ns / TILE_NS;
    const size_t target = wanted < 2 ? 1 : (wanted > MAX_TILES ? MAX_TILES : (size_t)wanted);
    *out = (tn_product_tiling){
        .rows = tn_size_max(geometry->m, 1), .cols = tn_size_max(geometry->n, 1), .batches = 1};
    const size_t batch_count = tn_size_max(geometry->batch_count, 1);
    if (batch_count >= target) {
        out->batches = ceil_div(batch_count, target);
    } else {
        tile_item(geometry, options, ceil_div(target, batch_count), out);
    }
    out->tiles_m = (uint32_t)ceil_div(tn_size_max(geometry->m, 1), out->rows);
    out->tiles_n = (uint32_t)ceil_div(tn_size_max(geometry->n, 1), out->cols);
    out->tiles_batch = (uint32_t)ceil_div(batch_count, out->batches);
}

void tn_product_part_of(const tn_product_geometry *geometry, const tn_product_tiling *tiling,
                        uint32_t tile, tn_product_part *out) {
    const uint32_t item_tiles = tiling->tiles_m * tiling->tiles_n;
    const size_t in_item = tile % item_tiles;
    out->batch0 = tile / item_tiles * tiling->batches;
    out->batch1 = tn_size_min(out->batch0 + tiling->batches, geometry->batch_count);
    out->row0 = in_item / tiling->tiles_n * tiling->rows;
    out->col0 = in_item % tiling->tiles_n * tiling->cols;
    out->rows = tn_size_min(tiling->rows, geometry->m - out->row0);
    out->cols = tn_size_min(tiling->cols, geometry->n - out->col0);
}
