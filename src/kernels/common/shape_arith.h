/* Small things that rows do with shapes and facts. */
#ifndef TN_KERNELS_COMMON_SHAPE_ARITH_H
#define TN_KERNELS_COMMON_SHAPE_ARITH_H

#include <string.h>

#include "plan/op_def.h"

/* Most numbers in a list of axes, starts, pads or repeats that can make sense. */
#define TN_MAX_LIST (2 * TN_MAX_RANK)

/* A list of integers from an attribute or an input, known or not. */
typedef struct tn_int_list {
    bool is_present; /* given at all */
    bool is_known;   /* `values` holds `count` numbers */
    size_t count;
    int64_t values[TN_MAX_LIST];
} tn_int_list;

/* Reads input `slot` as integers: absent, present and unknown, or known.
 * Errors: TN_INVALID_ARGUMENT when it has more than TN_MAX_LIST numbers. */
tn_status tn_read_int_list(const tn_node_facts *node, uint32_t slot, tn_int_list *out,
                           tn_error *err);

/* The numbers that input `slot` must have by its own shape: dims[0] of a 1-D input, 1 of a scalar,
 * -1 when not known. */
int64_t tn_list_length(const tn_fact *fact);

/* Attribute `name` as a list. Errors: TN_INVALID_MODEL. */
tn_status tn_check_int_list(const tn_check_context *ctx, const char *name, tn_int_list *out);

/* Writes a tensor output when somebody wants it; `shape` NULL leaves it unknown. */
void tn_set_output(const tn_node_facts *node, uint32_t slot, tn_dtype dtype, const tn_shape *shape);

/* The same for a shape that the row computed. Errors: TN_OVERFLOW when its bytes do not fit. */
tn_status tn_put_output(const tn_node_facts *node, uint32_t slot, tn_dtype dtype,
                        const tn_shape *shape, tn_error *err);

/* A shape of `rank` dims that are all unknown. */
tn_shape tn_unknown_dims(int32_t rank);

/* Whether input `index` is there with a rank; types of input 0 for outputs. */
bool tn_input_has_rank(const tn_node_facts *node, uint32_t index);
tn_dtype tn_input_dtype(const tn_node_facts *node, uint32_t index);

/* Whether all inputs that are there and all wanted outputs are sized and typed. */
bool tn_node_is_sized(const tn_node_facts *node);

/* Bytes per element of types of at least a byte; 1 for packed ones. */
size_t tn_elem_bytes(tn_dtype dtype);

/* Product of dims [first, last) of a sized shape. */
int64_t tn_dims_product(const tn_shape *shape, int32_t first, int32_t last);

/* Row-major strides of a sized shape in units of `unit`: strides [rank]. */
void tn_row_strides(const tn_shape *shape, int64_t unit, int64_t *strides);

/* Sorted, unique axes in [0, rank) as a bit mask. Errors: TN_INVALID_MODEL for an axis outside or
 * named twice. */
tn_status tn_axes_mask(const tn_int_list *axes, int32_t rank, uint32_t *out_mask, tn_error *err);

/* Types of whole bytes, for rows that move elements one by one. */
#define TN_TYPES_PACKED \
    (TN_TYPE_BIT(U4) | TN_TYPE_BIT(I4) | TN_TYPE_BIT(F4E2M1) | TN_TYPE_BIT(U2) | TN_TYPE_BIT(I2))
#define TN_TYPES_WHOLE (((1u << TN_DTYPE_COUNT) - 2u) & ~TN_TYPES_PACKED)
#define TN_TYPES_ANY ((1u << TN_DTYPE_COUNT) - 2u)
#define TN_TYPES_INDEX (TN_TYPE_BIT(I32) | TN_TYPE_BIT(I64))

/* Tiles of at least about 128 KiB of `total_bytes`, at most `limit`. */
uint32_t tn_tiles_for_bytes(size_t total_bytes, size_t limit);

/* [begin, end) of part `tile` of `tile_count` equal parts of `count`. */
void tn_tile_range(size_t count, uint32_t tile_count, uint32_t tile, size_t *out_begin,
                   size_t *out_end);

/* Reads element `index` of an i32 or i64 array at any alignment. */
int64_t tn_read_index(const void *data, tn_dtype dtype, size_t index);

/* A copy whose common sizes are constants, so that they become plain moves. */
static inline void tn_copy_small(char *to, const char *from, size_t size_bytes) {
    if (size_bytes == 4) {
        memcpy(to, from, 4);
    } else if (size_bytes == 8) {
        memcpy(to, from, 8);
    } else {
        memcpy(to, from, size_bytes);
    }
}

/* TN_OUT_OF_RANGE for `index`, element number `element` of an input of indices into `dim`. */
tn_status tn_bad_index(const tn_kernel_context *ctx, uint32_t worker, int64_t index, size_t element,
                       int64_t dim);

/* Fills the only variant of a row that writes about `bytes` in tiles of at most `tile_limit`. */
void tn_one_variant(const char *name, tn_run_fn run, size_t bytes, size_t tile_limit,
                    tn_variant *out, uint32_t *out_count);

/* Bytes of output `slot`, 0 while the node is not sized. */
size_t tn_output_bytes(const tn_node_facts *node, uint32_t slot);

#endif
