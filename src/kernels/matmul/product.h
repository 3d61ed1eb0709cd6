/* What MatMul, Gemm and MatMulInteger share: the geometry of a (batched) product. */
#ifndef TN_KERNELS_PRODUCT_H
#define TN_KERNELS_PRODUCT_H

#include "plan/op_def.h"

/* A batch of products c [m, n] = a [m, k] * b [k, n]; all strides count elements. */
typedef struct tn_product_geometry {
    size_t m, n, k;
    size_t a_row_stride, a_k_stride;
    size_t b_k_stride, b_col_stride;
    size_t batch_count;
    int32_t batch_rank;
    size_t batch_dims[TN_MAX_RANK]; /* [batch_rank] */
    size_t a_steps[TN_MAX_RANK];    /* matrices of a per step along a batch axis; 0: broadcast */
    size_t b_steps[TN_MAX_RANK];
} tn_product_geometry;

/* Shape of the product of a and b as MatMul defines it, ranks 1 and unknown dims included.
 * Errors: TN_INVALID_ARGUMENT with both shapes. */
tn_status tn_product_infer(const tn_shape *a, const tn_shape *b, tn_shape *out, tn_error *err);

/* Geometry for shapes that tn_product_infer accepted; unknown dims count as 1. Leading axes of a
 * become rows when b has none, so that one weight meets one tall matrix. */
void tn_product_from_shapes(const tn_shape *a, const tn_shape *b, tn_product_geometry *out);

/* Matrix numbers of a and b for batch item `batch`. */
void tn_product_batch_at(const tn_product_geometry *geometry, size_t batch, size_t *out_a,
                         size_t *out_b);

/* How the work is cut: tile t covers `batches` items, or one item's part of rows and columns. */
typedef struct tn_product_tiling {
    size_t rows, cols, batches;
    uint32_t tiles_m, tiles_n, tiles_batch;
} tn_product_tiling;

/* Cuts the work into tiles of about 20 us for a kernel of `macs_per_ns`. Rows and columns of tiles
 * are multiples of `row_step` and `col_step`. `splits_cols_first`: each tile of rows would repeat
 * the packing of its columns. */
typedef struct tn_product_tiling_options {
    double macs_per_ns;
    size_t row_step, col_step;
    bool splits_cols_first;
} tn_product_tiling_options;
void tn_product_tile(const tn_product_geometry *geometry, const tn_product_tiling_options *options,
                     tn_product_tiling *out);

/* Part of the work that tile `tile` covers. */
typedef struct tn_product_part {
    size_t batch0, batch1, row0, rows, col0, cols;
} tn_product_part;
void tn_product_part_of(const tn_product_geometry *geometry, const tn_product_tiling *tiling,
                        uint32_t tile, tn_product_part *out);

/* alpha * product + beta * c with c broadcast, for the generic kernels. */
typedef struct tn_product_call {
    const tn_product_geometry *geometry;
    const void *a, *b; /* of this batch item */
    void *out;         /* [m, n] */
    const void *c;     /* NULL: none */
    size_t c_row_stride, c_col_stride;
    float alpha, beta;
} tn_product_call;

/* Rows and columns of `part` by plain loops, for every element type. */
typedef void (*tn_product_generic_fn)(const tn_product_call *call, const tn_product_part *part);

/* NULL when there is no kernel for `dtype`. */
tn_product_generic_fn tn_product_generic(tn_dtype dtype);

#endif
