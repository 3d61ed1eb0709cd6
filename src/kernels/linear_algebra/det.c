/* Det: elimination with row pivots on a copy of each matrix, in double for every type. */
#include <math.h>

#include "base/checked_size.h"
#include "kernels/common/number.h"
#include "kernels/common/shape_arith.h"

typedef struct det_record {
    tn_dtype dtype;
    uint32_t tile_count;
    size_t matrix_count;
    size_t n;
} det_record;

static tn_status det_infer(const tn_node_facts *node, tn_error *err) {
    const tn_dtype dtype = tn_input_dtype(node, 0);
    tn_set_output(node, 0, dtype, NULL);
    if (!tn_input_has_rank(node, 0)) return TN_OK;
    tn_shape to = node->inputs[0]->shape;
    char text[160];
    const bool is_square = to.rank >= 2 && (to.dims[to.rank - 1] < 0 || to.dims[to.rank - 2] < 0 ||
                                            to.dims[to.rank - 1] == to.dims[to.rank - 2]);
    TN_REQUIRE(is_square, err, TN_INVALID_ARGUMENT, "input %s holds no square matrices",
               tn_shape_text(&to, text, sizeof text));
    to.rank -= 2;
    tn_set_output(node, 0, dtype, &to);
    return TN_OK;
}

static void swap_rows(double *m, size_t n, size_t a, size_t b) {
    for (size_t i = 0; i < n; i++) {
        const double kept = m[a * n + i];
        m[a * n + i] = m[b * n + i];
        m[b * n + i] = kept;
    }
}

/* Destroys m [n, n]. */
static double determinant(double *m, size_t n) {
    double product = 1.0;
    for (size_t column = 0; column < n; column++) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; row++) {
            if (fabs(m[row * n + column]) > fabs(m[pivot * n + column])) pivot = row;
        }
        if (m[pivot * n + column] == 0.0) return 0.0;
        if (pivot != column) {
            swap_rows(m, n, pivot, column);
            product = -product;
        }
        product *= m[column * n + column];
        for (size_t row = column + 1; row < n; row++) {
            const double factor = m[row * n + column] / m[column * n + column];
            for (size_t i = column; i < n; i++) m[row * n + i] -= factor * m[column * n + i];
        }
    }
    return product;
}

static tn_status det_run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    const det_record *r = record;
    double *m = tn_kernel_scratch(ctx, worker);
    size_t at = 0;
    size_t end = 0;
    size_t ignored = 0;
    tn_tile_range(r->matrix_count, r->tile_count, tile0, &at, &ignored);
    tn_tile_range(r->matrix_count, r->tile_count, tile1 - 1, &ignored, &end);
    for (; at < end; at++) {
        for (size_t i = 0; i < r->n * r->n; i++) {
            m[i] = tn_number_read(tn_kernel_in(ctx, 0), r->dtype, at * r->n * r->n + i);
        }
        tn_number_write(tn_kernel_out(ctx, 0), r->dtype, at, determinant(m, r->n));
    }
    return TN_OK;
}

static tn_status det_variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                              tn_error *err) {
    tn_one_variant("elimination", det_run, 0, 1, out, out_count);
    if (!tn_node_is_sized(query->node)) return TN_OK;
    const tn_shape *shape = &query->node->inputs[0]->shape;
    const size_t n = (size_t)shape->dims[shape->rank - 1];
    const size_t work = tn_fact_len_elems(query->node->inputs[0]) * tn_size_max(n, 1) * 8;
    out[0].tile_counts[0] = tn_tiles_for_bytes(work, tn_fact_len_elems(query->node->outputs[0]));
    TN_REQUIRE(
        tn_size_mul(n, n, &out[0].worker_scratch_bytes) &&
            tn_size_mul(out[0].worker_scratch_bytes, sizeof(double), &out[0].worker_scratch_bytes),
        err, TN_OVERFLOW, "matrices of %zu rows", n);
    return TN_OK;
}

static tn_status det_bind(const tn_bind_context *ctx, void *record) {
    det_record *r = record;
    const tn_fact *input = ctx->node->inputs[0];
    r->dtype = input->dtype;
    r->tile_count = ctx->variant->tile_counts[0];
    r->n = (size_t)input->shape.dims[input->shape.rank - 1];
    r->matrix_count = tn_fact_len_elems(ctx->node->outputs[0]);
    return TN_OK;
}

static const uint32_t det_types[] = {TN_TYPES_FLOAT};

static const tn_op_def rows[] = {
    {.name = "Det",
     .since_version = 11,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = det_types,
     .input_types_count = 1,
     .record_bytes = sizeof(det_record),
     .infer = det_infer,
     .variants = det_variants,
     .bind = det_bind},
};
const tn_op_table tn_det_table = {rows, TN_COUNTOF(rows)};
