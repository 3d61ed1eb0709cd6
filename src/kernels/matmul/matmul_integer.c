/* MatMulInteger: products of 8-bit integers whose zero points are one number, one per row of A or
 * one per column of B. */
#include "base/checked_size.h"
#include "kernels/matmul/integer_product.h"

enum { IN_A, IN_B, IN_A_ZERO, IN_B_ZERO };

typedef struct integer_record {
    tn_product_geometry geometry;
    tn_product_tiling tiling;
    tn_integer_row_fn row;
    tn_dtype a_type, b_type;
    /* Zero points repeat over rows of A and columns of B, counted through the batch; 0: none. */
    size_t a_zero_count, b_zero_count;
} integer_record;

/* Zero points must be one number, or one per row (A: axis -2, B: axis -1) with equal or absent
 * batch axes. */
static tn_status check_zero(const tn_fact *zero, const tn_fact *operand, bool is_a, tn_error *err) {
    if (zero == NULL || zero->shape.rank < 0 || operand->shape.rank < 0) return TN_OK;
    const tn_shape *shape = &operand->shape;
    const int64_t lines = shape->rank < 2 ? 1 : shape->dims[shape->rank - (is_a ? 2 : 1)];
    if (!tn_fact_is_sized(zero) || lines < 0) return TN_OK;
    const size_t count = tn_fact_len_elems(zero);
    bool fits = count == 1 || (zero->shape.rank == 1 && count == (size_t)lines);
    if (!fits && zero->shape.rank == shape->rank && shape->rank >= 2) {
        fits = true;
        for (int32_t i = 0; i < shape->rank; i++) {
            const bool is_line = i == shape->rank - (is_a ? 2 : 1);
            const bool is_batch = i < shape->rank - 2;
            const int64_t wanted = is_line || is_batch ? shape->dims[i] : 1;
            fits = fits && (zero->shape.dims[i] == wanted || wanted < 0);
        }
    }
    if (fits) return TN_OK;
    char text[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "zero point of shape %s fits neither way",
                        tn_shape_text(&zero->shape, text, sizeof text));
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *a = tn_node_input(node, IN_A);
    const tn_fact *b = tn_node_input(node, IN_B);
    tn_fact *out = tn_node_output(node, 0);
    if (a == NULL || b == NULL || out == NULL) return TN_OK;
    out->kind = TN_KIND_TENSOR;
    out->dtype = TN_DTYPE_I32;
    TN_TRY(tn_product_infer(&a->shape, &b->shape, &out->shape, err));
    TN_TRY(check_zero(tn_node_input(node, IN_A_ZERO), a, true, err));
    return check_zero(tn_node_input(node, IN_B_ZERO), b, false, err);
}

static void tile(const tn_product_geometry *geometry, tn_product_tiling *out) {
    const tn_product_tiling_options options = {
        .macs_per_ns = 8.0, .row_step = 1, .col_step = TN_INTEGER_COLS};
    tn_product_tile(geometry, &options, out);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker);

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    (void)err;
    tn_product_geometry geometry;
    tn_product_tiling tiling;
    tn_product_from_shapes(&tn_node_input(query->node, IN_A)->shape,
                           &tn_node_input(query->node, IN_B)->shape, &geometry);
    tile(&geometry, &tiling);
    out[0] = (tn_variant){.name = "integer rows", .run = run};
    out[0].tile_counts[0] = tiling.tiles_m * tiling.tiles_n * tiling.tiles_batch;
    out[0].cost_ns = 50.0 + (double)geometry.m * (double)geometry.n * (double)geometry.k *
                                (double)geometry.batch_count / 8.0;
    *out_count = 1;
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    integer_record *r = record;
    const tn_fact *a = tn_node_input(ctx->node, IN_A);
    const tn_fact *b = tn_node_input(ctx->node, IN_B);
    const tn_fact *a_zero = tn_node_input(ctx->node, IN_A_ZERO);
    const tn_fact *b_zero = tn_node_input(ctx->node, IN_B_ZERO);
    tn_product_from_shapes(&a->shape, &b->shape, &r->geometry);
    tile(&r->geometry, &r->tiling);
    r->a_type = a->dtype;
    r->b_type = b->dtype;
    r->row = tn_integer_isa_get(ctx->cpu)->rows[a->dtype == TN_DTYPE_I8][b->dtype == TN_DTYPE_I8];
    r->a_zero_count = a_zero == NULL ? 0 : tn_fact_len_elems(a_zero);
    r->b_zero_count = b_zero == NULL ? 0 : tn_fact_len_elems(b_zero);
    return TN_OK;
}

static int32_t zero_at(const void *zeros, tn_dtype dtype, size_t index) {
    if (dtype == TN_DTYPE_I8) return ((const int8_t *)zeros)[index];
    return ((const uint8_t *)zeros)[index];
}

/* One row against one strip of columns. */
static void run_strip(const integer_record *r, const tn_kernel_context *ctx, size_t batch,
                      size_t row, size_t col, size_t cols) {
    const tn_product_geometry *g = &r->geometry;
    int32_t b_zeros[TN_INTEGER_COLS] = {0};
    size_t index_a;
    size_t index_b;
    tn_product_batch_at(g, batch, &index_a, &index_b);
    for (size_t j = 0; r->b_zero_count > 0 && j < cols; j++) {
        const size_t at = (index_b * g->n + col + j) % r->b_zero_count;
        b_zeros[j] = zero_at(tn_kernel_in(ctx, IN_B_ZERO), r->b_type, at);
    }
    tn_integer_row call = {
        .a = (const uint8_t *)tn_kernel_in(ctx, IN_A) + (index_a * g->m + row) * g->k,
        .b = (const uint8_t *)tn_kernel_in(ctx, IN_B) + index_b * g->k * g->n + col,
        .b_k_stride = g->n,
        .k = g->k,
        .cols = cols,
        .b_zeros = b_zeros,
        .out = (int32_t *)tn_kernel_out(ctx, 0) + (batch * g->m + row) * g->n + col};
    if (r->a_zero_count > 0) {
        const size_t at = (index_a * g->m + row) % r->a_zero_count;
        call.a_zero = zero_at(tn_kernel_in(ctx, IN_A_ZERO), r->a_type, at);
    }
    r->row(&call);
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    (void)worker;
    const integer_record *r = record;
    for (uint32_t index = tile0; index < tile1; index++) {
        tn_product_part part;
        tn_product_part_of(&r->geometry, &r->tiling, index, &part);
        for (size_t batch = part.batch0; batch < part.batch1; batch++) {
            for (size_t done = 0; done < part.cols; done += TN_INTEGER_COLS) {
                const size_t cols = tn_size_min(TN_INTEGER_COLS, part.cols - done);
                for (size_t row = part.row0; row < part.row0 + part.rows; row++) {
                    run_strip(r, ctx, batch, row, part.col0 + done, cols);
                }
            }
        }
    }
    return TN_OK;
}

#define BYTES (TN_TYPE_BIT(U8) | TN_TYPE_BIT(I8))

static const uint32_t types[] = {BYTES};

static const tn_op_def rows[] = {
    {.name = "MatMulInteger",
     .since_version = 10,
     .min_inputs = 2,
     .max_inputs = 4,
     .min_outputs = 1,
     .flags = TN_OP_FOLDABLE,
     .input_types = types,
     .input_types_count = 1,
     .record_bytes = sizeof(integer_record),
     .infer = infer,
     .variants = variants,
     .bind = bind},
};

const tn_op_table tn_matmul_integer_table = {rows, TN_COUNTOF(rows)};
