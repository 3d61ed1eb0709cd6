/* Lists of integers, axes, strides and tile ranges, as rows that move elements need them. */
#include "kernels/common/shape_arith.h"

#include "base/checked_size.h"
#include "kernels/common/number.h"

int64_t tn_list_length(const tn_fact *fact) {
    if (fact == NULL || fact->shape.rank < 0) return -1;
    if (fact->shape.rank == 0) return 1;
    return fact->shape.rank == 1 && fact->shape.dims[0] >= 0 ? fact->shape.dims[0] : -1;
}

tn_status tn_read_int_list(const tn_node_facts *node, uint32_t slot, tn_int_list *out,
                           tn_error *err) {
    const tn_fact *fact = tn_node_input(node, slot);
    out->is_present = fact != NULL;
    out->is_known = false;
    out->count = 0;
    if (fact == NULL) return TN_OK;
    TN_REQUIRE(tn_list_length(fact) <= TN_MAX_LIST, err, TN_INVALID_ARGUMENT,
               "input %u has %lld numbers, at most %d make sense", slot,
               (long long)tn_list_length(fact), TN_MAX_LIST);
    if (fact->data == NULL || !tn_fact_is_sized(fact)) return TN_OK;
    const size_t count = tn_fact_len_elems(fact);
    /* what is known must be readable, or the output would stay unsized while it runs */
    TN_REQUIRE(count <= TN_MAX_LIST && (1u << fact->dtype & TN_TYPES_NUMBER) != 0, err,
               TN_INVALID_ARGUMENT, "input %u has %zu elements of type %s, not a list of numbers",
               slot, count, tn_dtype_name(fact->dtype));
    for (size_t i = 0; i < count; i++) {
        out->values[i] = tn_number_read_int(fact->data, fact->dtype, i);
    }
    out->count = count;
    out->is_known = true;
    return TN_OK;
}

tn_status tn_check_int_list(const tn_check_context *ctx, const char *name, tn_int_list *out) {
    TN_TRY(tn_check_ints(ctx, name, out->values, TN_MAX_LIST, &out->count, &out->is_present));
    out->is_known = out->is_present;
    return TN_OK;
}

void tn_set_output(const tn_node_facts *node, uint32_t slot, tn_dtype dtype,
                   const tn_shape *shape) {
    tn_fact *output = tn_node_output(node, slot);
    if (output == NULL) return;
    output->kind = TN_KIND_TENSOR;
    output->dtype = dtype;
    output->shape.rank = TN_RANK_UNKNOWN;
    if (shape != NULL) output->shape = *shape;
}

tn_status tn_put_output(const tn_node_facts *node, uint32_t slot, tn_dtype dtype,
                        const tn_shape *shape, tn_error *err) {
    tn_set_output(node, slot, dtype, shape);
    const tn_fact *output = tn_node_output(node, slot);
    size_t size_bytes = 0;
    if (output == NULL || !tn_fact_is_sized(output)) return TN_OK;
    TN_TRY(
        tn_shape_size_bytes(shape, dtype == TN_DTYPE_NONE ? TN_DTYPE_U8 : dtype, &size_bytes, err));
    /* offsets are signed */
    TN_REQUIRE(size_bytes <= PTRDIFF_MAX, err, TN_OVERFLOW, "output %u would have %zu bytes", slot,
               size_bytes);
    return TN_OK;
}

tn_shape tn_unknown_dims(int32_t rank) {
    tn_shape shape = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) shape.dims[i] = TN_DIM_UNKNOWN;
    return shape;
}

bool tn_input_has_rank(const tn_node_facts *node, uint32_t index) {
    const tn_fact *fact = tn_node_input(node, index);
    return fact != NULL && fact->shape.rank >= 0;
}

tn_dtype tn_input_dtype(const tn_node_facts *node, uint32_t index) {
    const tn_fact *fact = tn_node_input(node, index);
    return fact == NULL ? TN_DTYPE_NONE : fact->dtype;
}

bool tn_node_is_sized(const tn_node_facts *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        const tn_fact *fact = node->inputs[i];
        if (fact == NULL) continue;
        if (!tn_fact_is_sized(fact) || fact->dtype == TN_DTYPE_NONE) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const tn_fact *fact = node->outputs[i];
        if (fact == NULL) continue;
        if (!tn_fact_is_sized(fact) || fact->dtype == TN_DTYPE_NONE) return false;
    }
    return true;
}

size_t tn_elem_bytes(tn_dtype dtype) {
    const unsigned bits = tn_dtype_bits(dtype);
    return bits < 8 ? 1 : bits / 8;
}

int64_t tn_dims_product(const tn_shape *shape, int32_t first, int32_t last) {
    uint64_t product = 1; /* unsigned: beside a zero the others may be any size */
    for (int32_t i = first; i < last; i++) product *= (uint64_t)shape->dims[i];
    return (int64_t)product;
}

void tn_row_strides(const tn_shape *shape, int64_t unit, int64_t *strides) {
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        strides[i] = unit;
        unit = (int64_t)((uint64_t)unit * (uint64_t)shape->dims[i]);
    }
}

tn_status tn_axes_mask(const tn_int_list *axes, int32_t rank, uint32_t *out_mask, tn_error *err) {
    *out_mask = 0;
    for (size_t i = 0; i < axes->count; i++) {
        int32_t axis = 0;
        TN_TRY(tn_infer_axis(axes->values[i], rank, &axis, err));
        TN_REQUIRE((*out_mask >> axis & 1u) == 0, err, TN_INVALID_MODEL, "axis %lld is named twice",
                   (long long)axes->values[i]);
        *out_mask |= 1u << axis;
    }
    return TN_OK;
}

uint32_t tn_tiles_for_bytes(size_t total_bytes, size_t limit) {
    const size_t tiles = tn_size_min(total_bytes / (128 * 1024), tn_size_min(limit, 1u << 20));
    return tiles == 0 ? 1 : (uint32_t)tiles;
}

void tn_tile_range(size_t count, uint32_t tile_count, uint32_t tile, size_t *out_begin,
                   size_t *out_end) {
    const size_t each = count / tile_count;
    const size_t rest = count % tile_count;
    *out_begin = each * tile + tn_size_min(tile, rest);
    *out_end = *out_begin + each + (tile < rest ? 1 : 0);
}

int64_t tn_read_index(const void *data, tn_dtype dtype, size_t index) {
    if (dtype == TN_DTYPE_I64) {
        int64_t value;
        memcpy(&value, (const char *)data + index * sizeof value, sizeof value);
        return value;
    }
    int32_t value;
    memcpy(&value, (const char *)data + index * sizeof value, sizeof value);
    return value;
}

tn_status tn_bad_index(const tn_kernel_context *ctx, uint32_t worker, int64_t index, size_t element,
                       int64_t dim) {
    return tn_error_set(tn_kernel_error(ctx, worker), TN_OUT_OF_RANGE,
                        "index %lld (element %zu of the indices) is outside [-%lld, %lld)",
                        (long long)index, element, (long long)dim, (long long)dim);
}

void tn_one_variant(const char *name, tn_run_fn run, size_t bytes, size_t tile_limit,
                    tn_variant *out, uint32_t *out_count) {
    out[0] = (tn_variant){.name = name, .run = run, .rewrite_class = TN_REWRITE_EXACT};
    out[0].tile_counts[0] = tn_tiles_for_bytes(bytes, tile_limit);
    out[0].cost_ns = 30.0 + (double)bytes * 0.2;
    *out_count = 1;
}

size_t tn_output_bytes(const tn_node_facts *node, uint32_t slot) {
    const tn_fact *output = tn_node_output(node, slot);
    if (output == NULL || !tn_node_is_sized(node)) return 0;
    size_t size_bytes = 0;
    return tn_fact_size_bytes(output, &size_bytes, NULL) == TN_OK ? size_bytes : 0;
}
