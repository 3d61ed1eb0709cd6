/* MatMul and Gemm. Both are one (batched) product with an optional scaled third operand; f32 goes
 * to the blocked kernels of common/gemm.h, with constant right sides packed once, everything else
 * to plain loops. Transposed operands are only other strides. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/gemm.h"
#include "kernels/elementwise/program_run.h"
#include "kernels/matmul/product.h"

/* Packing formats of this family: base + 2 * instruction set + transposed. */
enum { PACK_FORMAT_BASE = 0x1000 };

typedef struct product_params {
    float alpha;
    float beta;
    bool transposes_a;
    bool transposes_b;
    bool is_plain; /* MatMul: ranks and batches as NumPy has them, no third operand */
} product_params;

typedef struct product_record {
    tn_product_geometry geometry;
    tn_product_tiling tiling;
    const tn_gemm_isa *isa;        /* NULL: generic */
    tn_product_generic_fn generic; /* NULL: isa */
    size_t element_bytes;
    size_t packed_floats; /* of one matrix; 0: the right side is not packed */
    size_t c_row_stride;
    size_t c_col_stride;
    float alpha;
    float beta;
    bool has_third;
    bool has_epilogue;
    uint32_t epilogue_count; /* its operands, from input `first_epilogue` on */
    uint32_t first_epilogue;
    tn_program_bound epilogue;
} product_record;

static tn_status check_matmul(const tn_check_context *ctx, void *params) {
    (void)ctx;
    product_params *p = params;
    p->alpha = 1.0F;
    p->beta = 0.0F;
    p->is_plain = true;
    return TN_OK;
}

static tn_status check_gemm(const tn_check_context *ctx, void *params) {
    product_params *p = params;
    int64_t transposes_a;
    int64_t transposes_b;
    TN_TRY(tn_check_float(ctx, "alpha", 1.0F, &p->alpha));
    TN_TRY(tn_check_float(ctx, "beta", 1.0F, &p->beta));
    TN_TRY(tn_check_int(ctx, "transA", 0, &transposes_a));
    TN_TRY(tn_check_int(ctx, "transB", 0, &transposes_b));
    p->transposes_a = transposes_a != 0;
    p->transposes_b = transposes_b != 0;
    return TN_OK;
}

static tn_status infer_matmul(const tn_node_facts *node, tn_error *err) {
    const tn_fact *a = tn_node_input(node, 0);
    const tn_fact *b = tn_node_input(node, 1);
    tn_fact *out = tn_node_output(node, 0);
    if (a == NULL || b == NULL || out == NULL) return TN_OK;
    out->kind = TN_KIND_TENSOR;
    out->dtype = a->dtype != TN_DTYPE_NONE ? a->dtype : b->dtype;
    return tn_product_infer(&a->shape, &b->shape, &out->shape, err);
}

static tn_shape transposed(const tn_shape *shape, bool transposes) {
    tn_shape result = *shape;
    if (transposes && shape->rank == 2) {
        result.dims[0] = shape->dims[1];
        result.dims[1] = shape->dims[0];
    }
    return result;
}

/* C must broadcast to [M, N], one way. */
static tn_status check_third(const tn_shape *c, const tn_shape *out, tn_error *err) {
    if (c->rank < 0) return TN_OK;
    bool fits = c->rank <= 2;
    for (int32_t i = 0; fits && i < c->rank; i++) {
        const int64_t dim = c->dims[i];
        const int64_t wanted = out->dims[i + 2 - c->rank];
        fits = dim == 1 || dim < 0 || wanted < 0 || dim == wanted;
    }
    if (fits) return TN_OK;
    char text_c[160];
    char text_out[160];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "C of shape %s does not broadcast to %s",
                        tn_shape_text(c, text_c, sizeof text_c),
                        tn_shape_text(out, text_out, sizeof text_out));
}

static tn_status infer_gemm(const tn_node_facts *node, tn_error *err) {
    const product_params *p = node->params;
    const tn_fact *a = tn_node_input(node, 0);
    const tn_fact *b = tn_node_input(node, 1);
    const tn_fact *c = tn_node_input(node, 2);
    tn_fact *out = tn_node_output(node, 0);
    if (a == NULL || b == NULL || out == NULL) return TN_OK;
    out->kind = TN_KIND_TENSOR;
    out->dtype = a->dtype != TN_DTYPE_NONE ? a->dtype : b->dtype;
    if (a->shape.rank < 0 && b->shape.rank < 0) {
        out->shape = (tn_shape){.rank = 2, .dims = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
        return TN_OK;
    }
    const bool has_ranks =
        (a->shape.rank < 0 || a->shape.rank == 2) && (b->shape.rank < 0 || b->shape.rank == 2);
    TN_REQUIRE(has_ranks, err, TN_INVALID_ARGUMENT, "Gemm needs matrices, has ranks %d and %d",
               (int)a->shape.rank, (int)b->shape.rank);
    static const tn_shape unknown = {.rank = 2, .dims = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    const tn_shape shape_a = transposed(a->shape.rank < 0 ? &unknown : &a->shape, p->transposes_a);
    const tn_shape shape_b = transposed(b->shape.rank < 0 ? &unknown : &b->shape, p->transposes_b);
    TN_TRY(tn_product_infer(&shape_a, &shape_b, &out->shape, err));
    return c == NULL ? TN_OK : check_third(&c->shape, &out->shape, err);
}

static void geometry_of(const tn_node_facts *node, tn_product_geometry *out) {
    const product_params *p = node->params;
    const tn_fact *a = tn_node_input(node, 0);
    const tn_fact *b = tn_node_input(node, 1);
    const tn_shape shape_a = transposed(&a->shape, p->transposes_a);
    const tn_shape shape_b = transposed(&b->shape, p->transposes_b);
    tn_product_from_shapes(&shape_a, &shape_b, out);
    if (p->transposes_a) {
        out->a_row_stride = 1;
        out->a_k_stride = out->m;
    }
    if (p->transposes_b) {
        out->b_k_stride = 1;
        out->b_col_stride = out->k;
    }
}

static bool packs_weight(const tn_node_facts *node) {
    const tn_fact *b = tn_node_input(node, 1);
    tn_product_geometry geometry;
    if (b == NULL || !b->is_constant || b->data == NULL) return false;
    geometry_of(node, &geometry);
    return geometry.n > 1; /* one column is a dot product: in place */
}

static void tile_f32(const tn_product_geometry *geometry, const tn_gemm_isa *isa, bool is_packed,
                     tn_product_tiling *out) {
    /* few rows wait for memory, not for arithmetic */
    const double share = geometry->m >= isa->mr ? 1.0 : 0.25;
    const tn_product_tiling_options options = {.macs_per_ns = isa->macs_per_ns * share,
                                               .row_step = isa->mr,
                                               .col_step = isa->nr,
                                               .splits_cols_first = !is_packed};
    tn_product_tile(geometry, &options, out);
}

static void tile_generic(const tn_product_geometry *geometry, tn_product_tiling *out) {
    const tn_product_tiling_options options = {.macs_per_ns = 1.0, .row_step = 1, .col_step = 64};
    tn_product_tile(geometry, &options, out);
}

static tn_status run_f32(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker);
static tn_status run_generic(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker);

static void describe(const tn_product_geometry *geometry, const tn_product_tiling *tiling,
                     double macs_per_ns, tn_variant *out) {
    const double macs = (double)geometry->m * (double)geometry->n * (double)geometry->k *
                        (double)geometry->batch_count;
    out->tile_counts[0] = tiling->tiles_m * tiling->tiles_n * tiling->tiles_batch;
    out->cost_ns = 50.0 + macs / macs_per_ns;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    static const char *const names[TN_GEMM_ISA_COUNT] = {"gemm portable", "gemm avx2",
                                                         "gemm avx512"};
    const tn_node_facts *node = query->node;
    const product_params *p = node->params;
    const tn_dtype dtype = tn_node_input(node, 0)->dtype;
    tn_product_geometry geometry;
    tn_product_tiling tiling;
    geometry_of(node, &geometry);
    *out_count = 0;
    if (dtype != TN_DTYPE_F32) {
        TN_REQUIRE(tn_product_generic(dtype) != NULL, err, TN_UNSUPPORTED, "%s of %s",
                   node->op->name, tn_dtype_name(dtype));
        tile_generic(&geometry, &tiling);
        out[0] = (tn_variant){.name = "loops", .run = run_generic};
        describe(&geometry, &tiling, 1.0, &out[0]);
        *out_count = 1;
        return TN_OK;
    }
    const bool is_packed = packs_weight(node);
    for (uint32_t id = 0; id < TN_GEMM_ISA_COUNT; id++) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, query->cpu);
        if (isa == NULL) continue;
        tile_f32(&geometry, isa, is_packed, &tiling);
        tn_variant *variant = &out[(*out_count)++];
        *variant = (tn_variant){
            .name = names[id], .run = run_f32, .pack_input = 1, .takes_epilogue = true};
        if (is_packed) {
            variant->pack_format = (uint16_t)(PACK_FORMAT_BASE + 2 * id + p->transposes_b);
        }
        const bool packs_a =
            tn_gemm_packs_a(geometry.a_row_stride, geometry.a_k_stride, tiling.rows, tiling.cols);
        variant->worker_scratch_bytes =
            tn_gemm_scratch_bytes(isa, tiling.rows, tiling.cols, geometry.k, packs_a, !is_packed);
        describe(&geometry, &tiling, isa->macs_per_ns, variant);
    }
    return TN_OK;
}

/* The instruction set whose variant was chosen, by its run function and name's place. */
static const tn_gemm_isa *isa_of(const tn_variant *variant, tn_cpu_features cpu) {
    for (uint32_t id = TN_GEMM_ISA_COUNT; id-- > 0;) {
        const tn_gemm_isa *isa = tn_gemm_isa_get(id, cpu);
        if (isa != NULL && strcmp(variant->name + strlen("gemm "), isa->name) == 0) return isa;
    }
    return &tn_gemm_portable;
}

static void third_strides(const tn_fact *c, product_record *out) {
    if (c == NULL) return;
    out->has_third = true;
    const tn_shape *shape = &c->shape;
    const int64_t cols = shape->rank >= 1 ? shape->dims[shape->rank - 1] : 1;
    const int64_t rows = shape->rank == 2 ? shape->dims[0] : 1;
    out->c_col_stride = cols == 1 ? 0 : 1;
    out->c_row_stride = rows == 1 ? 0 : (size_t)cols;
}

/* Operands of an epilogue follow the own inputs of the node. */
static tn_status bind_epilogue(const tn_bind_context *ctx, product_record *r) {
    const tn_program *program = ctx->epilogue;
    const tn_product_geometry *g = &r->geometry;
    if (program == NULL || g->batch_count == 0 || g->m == 0 || g->n == 0) return TN_OK;
    r->has_epilogue = true;
    r->first_epilogue = ctx->first_epilogue_input;
    r->epilogue_count = program->operand_count;
    const tn_fact *operands[TN_PROGRAM_MAX_OPERANDS];
    for (uint32_t i = 0; i < r->epilogue_count; i++) {
        operands[i] = tn_node_input(ctx->node, r->first_epilogue + i);
    }
    const tn_program_bind_query query = {.program = program,
                                         .output = tn_node_output(ctx->node, 0),
                                         .operands = operands,
                                         .rows = g->batch_count * g->m,
                                         .cols = g->n,
                                         .cpu = ctx->cpu,
                                         .nontemporal = ctx->nontemporal};
    return tn_program_bind(&query, &r->epilogue, ctx->err);
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    product_record *r = record;
    const product_params *p = ctx->node->params;
    const tn_dtype dtype = tn_node_input(ctx->node, 0)->dtype;
    geometry_of(ctx->node, &r->geometry);
    r->element_bytes = tn_dtype_bits(dtype) / 8;
    r->alpha = p->alpha;
    r->beta = p->beta;
    if (!p->is_plain) third_strides(tn_node_input(ctx->node, 2), r);
    if (ctx->variant->run == run_generic) {
        r->generic = tn_product_generic(dtype);
        tile_generic(&r->geometry, &r->tiling);
        return TN_OK;
    }
    r->isa = isa_of(ctx->variant, ctx->cpu);
    const bool is_packed = ctx->variant->pack_format != 0;
    tile_f32(&r->geometry, r->isa, is_packed, &r->tiling);
    if (is_packed) {
        size_t packed_bytes = 0;
        TN_REQUIRE(tn_gemm_packed_bytes(r->isa, r->geometry.n, r->geometry.k, &packed_bytes),
                   ctx->err, TN_OVERFLOW, "a packed weight of %zu x %zu is too large",
                   r->geometry.k, r->geometry.n);
        r->packed_floats = packed_bytes / sizeof(float);
    }
    return bind_epilogue(ctx, r);
}

/* Matrices in the constant right side. */
static size_t weight_count(const tn_shape *shape) {
    size_t count = 1;
    for (int32_t i = 0; i + 2 < shape->rank; i++) count *= (size_t)shape->dims[i];
    return count;
}

static tn_status pack_size(const tn_pack_context *ctx, size_t *out_bytes) {
    tn_product_geometry geometry;
    geometry_of(ctx->node, &geometry);
    const tn_gemm_isa *isa = isa_of(ctx->variant, ctx->cpu);
    const size_t count = weight_count(&tn_node_input(ctx->node, 1)->shape);
    size_t one = 0;
    TN_REQUIRE(tn_gemm_packed_bytes(isa, geometry.n, geometry.k, &one) &&
                   tn_size_mul(one, count, out_bytes),
               ctx->err, TN_OVERFLOW, "a packed weight of %zu x %zu x %zu is too large", count,
               geometry.k, geometry.n);
    return TN_OK;
}

static tn_status pack(const tn_pack_context *ctx, void *packed) {
    tn_product_geometry geometry;
    geometry_of(ctx->node, &geometry);
    const tn_gemm_isa *isa = isa_of(ctx->variant, ctx->cpu);
    const tn_fact *b = tn_node_input(ctx->node, 1);
    const size_t count = weight_count(&b->shape);
    const size_t matrix_bytes = geometry.n * geometry.k * sizeof(float);
    size_t packed_bytes = 0;
    (void)tn_gemm_packed_bytes(isa, geometry.n, geometry.k, &packed_bytes);
    for (size_t i = 0; i < count; i++) {
        tn_gemm_pack(isa, (const char *)b->data + i * matrix_bytes, geometry.b_k_stride,
                     geometry.b_col_stride, geometry.n, geometry.k,
                     (float *)((char *)packed + i * packed_bytes));
    }
    return TN_OK;
}

/* out = alpha * out + beta * c over one tile that was just written. */
static void finish_f32(const product_record *r, const tn_product_part *part, const float *c,
                       float *out) {
    if (c == NULL && r->alpha == 1.0F) return;
    for (size_t i = part->row0; i < part->row0 + part->rows; i++) {
        float *row = out + i * r->geometry.n + part->col0;
        if (r->alpha != 1.0F) {
            for (size_t j = 0; j < part->cols; j++) row[j] *= r->alpha;
        }
        if (c == NULL) continue;
        const float *from = c + i * r->c_row_stride + part->col0 * r->c_col_stride;
        if (r->c_col_stride == 0) {
            const float term = r->beta * *from;
            for (size_t j = 0; j < part->cols; j++) row[j] += term;
        } else {
            for (size_t j = 0; j < part->cols; j++) row[j] += r->beta * from[j];
        }
    }
}

/* The epilogue over one tile that was just written. */
static void apply_epilogue(const product_record *r, const tn_kernel_context *ctx,
                           const tn_product_part *part, size_t batch, float *out) {
    if (!r->has_epilogue) return;
    const void *operands[TN_PROGRAM_MAX_OPERANDS];
    for (uint32_t i = 0; i < r->epilogue_count; i++) {
        operands[i] = tn_kernel_in(ctx, r->first_epilogue + i);
    }
    float *at = out + part->row0 * r->geometry.n + part->col0;
    const tn_program_tile tile = {.in = at,
                                  .in_row_stride = r->geometry.n,
                                  .out = at,
                                  .out_row_stride = r->geometry.n,
                                  .row0 = batch * r->geometry.m + part->row0,
                                  .col0 = part->col0,
                                  .rows = part->rows,
                                  .cols = part->cols,
                                  .operands = operands};
    tn_program_apply(&r->epilogue, &tile);
}

static tn_status run_f32(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                         uint32_t worker) {
    const product_record *r = record;
    const tn_product_geometry *g = &r->geometry;
    const bool is_packed = r->packed_floats != 0;
    const size_t b_matrix = is_packed ? r->packed_floats : g->k * g->n;
    const float *a = tn_kernel_in(ctx, 0);
    const float *b = tn_kernel_in(ctx, 1);
    const float *c = r->has_third ? tn_kernel_in(ctx, 2) : NULL;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        tn_product_part part;
        tn_product_part_of(g, &r->tiling, tile, &part);
        for (size_t batch = part.batch0; batch < part.batch1; batch++) {
            size_t index_a;
            size_t index_b;
            tn_product_batch_at(g, batch, &index_a, &index_b);
            float *out = (float *)tn_kernel_out(ctx, 0) + batch * g->m * g->n;
            const tn_gemm_task task = {
                .m = part.rows,
                .n = part.cols,
                .k = g->k,
                .a = a + index_a * g->m * g->k + part.row0 * g->a_row_stride,
                .a_row_stride = g->a_row_stride,
                .a_k_stride = g->a_k_stride,
                .b = b + index_b * b_matrix + part.col0 * (is_packed ? g->k : g->b_col_stride),
                .b_panel_rows = g->k,
                .b_k_stride = g->b_k_stride,
                .b_col_stride = g->b_col_stride,
                .c = out + part.row0 * g->n + part.col0,
                .c_row_stride = g->n,
                .b_is_packed = is_packed};
            tn_gemm_run(r->isa, &task, tn_kernel_scratch(ctx, worker));
            finish_f32(r, &part, c, out);
            apply_epilogue(r, ctx, &part, batch, out);
        }
    }
    return TN_OK;
}

static tn_status run_generic(const void *record, tn_kernel_context *ctx, uint32_t tile0,
                             uint32_t tile1, uint32_t worker) {
    (void)worker;
    const product_record *r = record;
    const tn_product_geometry *g = &r->geometry;
    for (uint32_t tile = tile0; tile < tile1; tile++) {
        tn_product_part part;
        tn_product_part_of(g, &r->tiling, tile, &part);
        for (size_t batch = part.batch0; batch < part.batch1; batch++) {
            size_t index_a;
            size_t index_b;
            tn_product_batch_at(g, batch, &index_a, &index_b);
            const tn_product_call call = {
                .geometry = g,
                .a = (const char *)tn_kernel_in(ctx, 0) + index_a * g->m * g->k * r->element_bytes,
                .b = (const char *)tn_kernel_in(ctx, 1) + index_b * g->k * g->n * r->element_bytes,
                .out = (char *)tn_kernel_out(ctx, 0) + batch * g->m * g->n * r->element_bytes,
                .c = r->has_third ? tn_kernel_in(ctx, 2) : NULL,
                .c_row_stride = r->c_row_stride,
                .c_col_stride = r->c_col_stride,
                .alpha = r->alpha,
                .beta = r->beta};
            r->generic(&call, &part);
        }
    }
    return TN_OK;
}

#define FLOATS (TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64) | TN_TYPE_BIT(F16))
#define INTS (TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64) | TN_TYPE_BIT(U32) | TN_TYPE_BIT(U64))

static const uint32_t types_1[] = {FLOATS};
static const uint32_t types_9[] = {FLOATS | INTS};
static const uint32_t types_13[] = {FLOATS | INTS | TN_TYPE_BIT(BF16)};

#define PRODUCT_FUNCTIONS(check_fn, infer_fn)                                         \
    .flags = TN_OP_FOLDABLE, .params_bytes = sizeof(product_params),                  \
    .record_bytes = sizeof(product_record), .min_outputs = 1, .input_types_count = 1, \
    .check = check_fn, .infer = infer_fn, .variants = variants, .bind = bind,         \
    .pack_size = pack_size, .pack = pack

#define MATMUL(since, until, types)                                                        \
    {                                                                                      \
        .name = "MatMul", .since_version = since, .until_version = until, .min_inputs = 2, \
        .max_inputs = 2, .same_type_mask = 3, .input_types = types,                        \
        PRODUCT_FUNCTIONS(check_matmul, infer_matmul)                                      \
    }

#define GEMM(since, until, least_inputs, types)                                                 \
    {                                                                                           \
        .name = "Gemm", .since_version = since, .until_version = until,                         \
        .min_inputs = least_inputs, .max_inputs = 3, .same_type_mask = 7, .input_types = types, \
        PRODUCT_FUNCTIONS(check_gemm, infer_gemm)                                               \
    }

static const tn_op_def rows[] = {
    MATMUL(1, 8, types_1),   MATMUL(9, 12, types_9),   MATMUL(13, 0, types_13),
    GEMM(1, 5, 3, types_1),  GEMM(6, 6, 3, types_1),   GEMM(7, 8, 3, types_1),
    GEMM(9, 10, 3, types_9), GEMM(11, 12, 2, types_9), GEMM(13, 0, 2, types_13),
};

const tn_op_table tn_matmul_table = {rows, TN_COUNTOF(rows)};
