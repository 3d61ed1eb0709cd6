/* MaxUnpool: every element goes to the place its index names, all others are zero.
 *
 * Indices count the elements of the shape that kernel, strides and pads give; a wanted output_shape
 * may be larger, then that shape lies in its first corner. One tile: indices may repeat, and the
 * last one wins. */
#include <string.h>

#include "base/checked_size.h"
#include "kernels/common/window.h"

enum { IN_X, IN_INDICES, IN_SHAPE };

typedef struct unpool_record {
    tn_shape inferred; /* what the indices count */
    size_t out_strides[TN_MAX_RANK];
    size_t count;       /* elements of x */
    size_t index_limit; /* elements of `inferred` */
    size_t out_bytes;
    size_t elem_bytes;
    bool is_same_shape; /* an index is the place itself */
} unpool_record;

static tn_status check(const tn_check_context *ctx, void *params) {
    tn_window_params *p = params;
    TN_TRY(tn_window_check(ctx, p));
    TN_REQUIRE(p->kernel_count > 0, ctx->err, TN_INVALID_MODEL,
               "attribute kernel_shape is missing");
    TN_REQUIRE(p->stride_count == 0 || p->stride_count == p->kernel_count, ctx->err,
               TN_INVALID_MODEL, "attribute strides has %d numbers, kernel_shape %d",
               (int)p->stride_count, (int)p->kernel_count);
    TN_REQUIRE(p->pad_count == 0 || p->pad_count == 2 * p->kernel_count, ctx->err, TN_INVALID_MODEL,
               "attribute pads has %d numbers, kernel_shape %d", (int)p->pad_count,
               (int)p->kernel_count);
    return TN_OK;
}

/* The shape that pooling with these attributes turned into `x`. */
static tn_status inferred_shape(const tn_window_params *p, const tn_shape *x, tn_shape *out,
                                tn_error *err) {
    TN_REQUIRE(x->rank - 2 == p->kernel_count, err, TN_INVALID_ARGUMENT,
               "the input has rank %d, kernel_shape has %d numbers", (int)x->rank,
               (int)p->kernel_count);
    *out = *x;
    for (int32_t i = 0; i < p->kernel_count; i++) {
        int64_t *dim = &out->dims[2 + i];
        if (*dim < 0) {
            *dim = TN_DIM_UNKNOWN;
            continue;
        }
        const int64_t stride = p->stride_count > 0 ? p->strides[i] : 1;
        const int64_t pads = p->pad_count > 0 ? p->pads[i] + p->pads[p->kernel_count + i] : 0;
        TN_REQUIRE(tn_i64_mul(*dim - 1, stride, dim) && tn_i64_add(*dim, p->kernel[i] - pads, dim),
                   err, TN_OVERFLOW, "axis %d of the output is too long", (int)i);
        TN_REQUIRE(*dim >= 0, err, TN_INVALID_ARGUMENT,
                   "axis %d: pads of %lld leave an output of %lld", (int)i, (long long)pads,
                   (long long)*dim);
    }
    return TN_OK;
}

/* The wanted shape, checked against the inferred one where both are known. */
static tn_status read_wanted(const tn_fact *wanted, const tn_shape *inferred, tn_shape *out,
                             tn_error *err) {
    int64_t dims[TN_MAX_RANK];
    size_t count = 0;
    *out = *inferred;
    if (!tn_fact_read_ints(wanted, dims, TN_MAX_RANK, &count)) {
        for (int32_t i = 2; i < out->rank; i++) out->dims[i] = TN_DIM_UNKNOWN;
        return TN_OK;
    }
    TN_REQUIRE(count == (size_t)inferred->rank, err, TN_INVALID_ARGUMENT,
               "output_shape has %zu numbers, the input has rank %d", count, (int)inferred->rank);
    for (int32_t i = 0; i < inferred->rank; i++) {
        const bool is_known = inferred->dims[i] >= 0;
        const bool fits = i < 2 ? dims[i] == inferred->dims[i] : dims[i] >= inferred->dims[i];
        TN_REQUIRE(dims[i] >= 0 && (!is_known || fits), err, TN_INVALID_ARGUMENT,
                   "output_shape has %lld at %d, expected %s%lld", (long long)dims[i], (int)i,
                   i < 2 ? "" : "at least ", (long long)tn_i64_max(inferred->dims[i], 0));
        out->dims[i] = dims[i];
    }
    return TN_OK;
}

static tn_status check_indices(const tn_shape *x, const tn_fact *indices, tn_error *err) {
    if (indices == NULL || indices->shape.rank < 0) return TN_OK;
    bool agrees = indices->shape.rank == x->rank;
    for (int32_t i = 0; agrees && i < x->rank; i++) {
        const int64_t a = x->dims[i];
        const int64_t b = indices->shape.dims[i];
        agrees = a < 0 || b < 0 || a == b;
    }
    char x_text[128];
    char indices_text[128];
    TN_REQUIRE(agrees, err, TN_INVALID_ARGUMENT, "the input is %s, its indices %s",
               tn_shape_text(x, x_text, sizeof x_text),
               tn_shape_text(&indices->shape, indices_text, sizeof indices_text));
    return TN_OK;
}

static tn_status infer(const tn_node_facts *node, tn_error *err) {
    const tn_fact *x = tn_node_input(node, IN_X);
    const tn_fact *wanted = tn_node_input(node, IN_SHAPE);
    tn_fact *y = tn_node_output(node, 0);
    if (x == NULL || y == NULL) return TN_OK;
    y->kind = TN_KIND_TENSOR;
    y->dtype = x->dtype;
    y->shape.rank = TN_RANK_UNKNOWN;
    if (x->shape.rank < 0) return TN_OK;
    tn_shape inferred;
    TN_TRY(inferred_shape(node->params, &x->shape, &inferred, err));
    TN_TRY(check_indices(&x->shape, tn_node_input(node, IN_INDICES), err));
    if (wanted == NULL) {
        y->shape = inferred;
        return TN_OK;
    }
    return read_wanted(wanted, &inferred, &y->shape, err);
}

static void put(char *to, const char *from, size_t elem_bytes) {
    switch (elem_bytes) {
        case 2:
            memcpy(to, from, 2);
            break;
        case 4:
            memcpy(to, from, 4);
            break;
        default:
            memcpy(to, from, 8);
            break;
    }
}

static size_t place_of(const unpool_record *r, size_t index) {
    size_t place = 0;
    if (r->is_same_shape) return index;
    for (int32_t i = r->inferred.rank - 1; i >= 0; i--) {
        place += index % (size_t)r->inferred.dims[i] * r->out_strides[i];
        index /= (size_t)r->inferred.dims[i];
    }
    return place;
}

static tn_status run(const void *record, tn_kernel_context *ctx, uint32_t tile0, uint32_t tile1,
                     uint32_t worker) {
    const unpool_record *r = record;
    const char *x = tn_kernel_in(ctx, IN_X);
    const int64_t *indices = tn_kernel_in(ctx, IN_INDICES);
    char *y = tn_kernel_out(ctx, 0);
    (void)tile0;
    (void)tile1;
    if (r->out_bytes > 0) memset(y, 0, r->out_bytes);
    for (size_t i = 0; i < r->count; i++) {
        const int64_t index = indices[i];
        TN_REQUIRE(index >= 0 && (size_t)index < r->index_limit, tn_kernel_error(ctx, worker),
                   TN_OUT_OF_RANGE, "index %lld at %zu, the output has %zu elements",
                   (long long)index, i, r->index_limit);
        put(y + place_of(r, (size_t)index) * r->elem_bytes, x + i * r->elem_bytes, r->elem_bytes);
    }
    return TN_OK;
}

static tn_status variants(const tn_variant_query *query, tn_variant *out, uint32_t *out_count,
                          tn_error *err) {
    const tn_fact *x = tn_node_input(query->node, IN_X);
    (void)err;
    *out_count = 1;
    out[0] = (tn_variant){.name = "scatter", .run = run};
    if (tn_fact_is_sized(x)) out[0].cost_ns = 2 * (double)tn_fact_len_elems(x);
    return TN_OK;
}

static tn_status bind(const tn_bind_context *ctx, void *record) {
    unpool_record *r = record;
    const tn_fact *x = tn_node_input(ctx->node, IN_X);
    const tn_fact *y = tn_node_output(ctx->node, 0);
    memset(r, 0, sizeof *r);
    TN_TRY(inferred_shape(ctx->node->params, &x->shape, &r->inferred, ctx->err));
    TN_TRY(tn_fact_size_bytes(y, &r->out_bytes, ctx->err));
    r->count = tn_fact_len_elems(x);
    r->elem_bytes = tn_dtype_bits(x->dtype) / 8;
    r->is_same_shape = true;
    r->index_limit = 1;
    size_t stride = 1;
    for (int32_t i = y->shape.rank - 1; i >= 0; i--) {
        const int64_t dim = r->inferred.dims[i];
        r->out_strides[i] = stride;
        stride *= (size_t)y->shape.dims[i];
        r->index_limit *= (size_t)dim; /* no larger than the output, whose size is checked */
        r->is_same_shape = r->is_same_shape && dim == y->shape.dims[i];
    }
    return TN_OK;
}

#define FLOATS (TN_TYPE_BIT(F16) | TN_TYPE_BIT(F32) | TN_TYPE_BIT(F64))
static const uint32_t types_9[] = {FLOATS, TN_TYPE_BIT(I64), TN_TYPE_BIT(I64)};
static const uint32_t types_22[] = {FLOATS | TN_TYPE_BIT(BF16), TN_TYPE_BIT(I64), TN_TYPE_BIT(I64)};

#define ROW(since, until, types)                                                                  \
    {                                                                                             \
        .name = "MaxUnpool", .since_version = (since), .until_version = (until), .min_inputs = 2, \
        .max_inputs = 3, .min_outputs = 1, .max_outputs = 1, .flags = TN_OP_FOLDABLE,             \
        .input_types = (types), .input_types_count = 3, .params_bytes = sizeof(tn_window_params), \
        .record_bytes = sizeof(unpool_record), .check = check, .infer = infer,                    \
        .variants = variants, .bind = bind                                                        \
    }

static const tn_op_def rows[] = {
    ROW(9, 10, types_9),
    ROW(11, 21, types_9),
    ROW(22, 0, types_22),
};

const tn_op_table tn_max_unpool_table = {rows, TN_COUNTOF(rows)};
