/* Contents stay where the file has them as long as a kernel can read them there; what is small or
 * unaligned is copied into the form's own memory, once. */
#include "plan/constant.h"

#include <string.h>

#include "base/checked_size.h"

#define SMALL_CONSTANT_BYTES ((size_t)16 * 1024)
#define DENSE_LIMIT_BYTES ((size_t)64 * 1024 * 1024)

bool tn_constant_is_aligned(const void *data, tn_dtype dtype) {
    const unsigned bits = tn_dtype_bits(dtype);
    size_t align = bits < 8 ? 1 : bits / 8;
    if (dtype == TN_DTYPE_STRING) align = sizeof(void *);
    if (dtype == TN_DTYPE_C128) align = 8;
    return ((uintptr_t)data & (align - 1)) == 0;
}

static tn_status copy_contents(tn_ir *ir, tn_ir_value *value, size_t size_bytes, tn_error *err) {
    void *copy = tn_bump_get(&ir->bump, tn_size_max(size_bytes, 64));
    if (copy == NULL) return tn_ir_no_memory(ir, err);
    if (size_bytes > 0) memcpy(copy, value->fact.data, size_bytes);
    value->fact.data = copy;
    value->is_inner_constant = true;
    return TN_OK;
}

tn_status tn_constant_from_tensor(tn_ir *ir, uint32_t id, const tn_graph_tensor *tensor,
                                  tn_error *err) {
    static const uint64_t empty_contents[8];
    tn_ir_value *value = &ir->values[id];
    value->tensor = tensor;
    value->fact = (tn_fact){.kind = TN_KIND_TENSOR,
                            .dtype = tensor->dtype,
                            .shape = tensor->shape,
                            .data = tensor->size_bytes == 0 ? empty_contents : tensor->data,
                            .is_constant = true};
    if (tensor->size_bytes > SMALL_CONSTANT_BYTES || tensor->size_bytes == 0) return TN_OK;
    if (tn_constant_is_aligned(tensor->data, tensor->dtype)) return TN_OK;
    return copy_contents(ir, value, tensor->size_bytes, err);
}

tn_status tn_constant_align(tn_ir *ir, uint32_t id, tn_error *err) {
    tn_ir_value *value = &ir->values[id];
    if (tn_constant_is_aligned(value->fact.data, value->fact.dtype)) return TN_OK;
    size_t size_bytes = 0;
    TN_TRY(tn_fact_size_bytes(&value->fact, &size_bytes, err));
    return copy_contents(ir, value, size_bytes, err);
}

static void set_dense(tn_ir_value *value, tn_dtype dtype, int32_t rank, size_t count,
                      const void *data) {
    value->fact = (tn_fact){.kind = TN_KIND_TENSOR,
                            .dtype = dtype,
                            .shape = {.rank = rank, .dims = {(int64_t)count}},
                            .data = data,
                            .is_constant = true};
}

/* Numbers of an attribute, copied aligned into the form. */
static tn_status set_numbers(tn_ir *ir, uint32_t id, tn_dtype dtype, int32_t rank, size_t count,
                             const void *numbers, tn_error *err) {
    const size_t size_bytes = count * (tn_dtype_bits(dtype) / 8);
    void *copy = tn_bump_get(&ir->bump, tn_size_max(size_bytes, 16));
    if (copy == NULL) return tn_ir_no_memory(ir, err);
    if (size_bytes > 0) memcpy(copy, numbers, size_bytes);
    set_dense(&ir->values[id], dtype, rank, count, copy);
    ir->values[id].is_inner_constant = true;
    return TN_OK;
}

static tn_status set_strings(tn_ir *ir, uint32_t id, int32_t rank, size_t count,
                             const tn_text *texts, tn_error *err) {
    tn_string *copy = tn_bump_array(&ir->bump, count + 1, sizeof *copy);
    if (copy == NULL) return tn_ir_no_memory(ir, err);
    for (size_t i = 0; i < count; i++) {
        copy[i] = (tn_string){texts[i].data, texts[i].size_bytes};
    }
    set_dense(&ir->values[id], TN_DTYPE_STRING, rank, count, copy);
    ir->values[id].is_inner_constant = true;
    return TN_OK;
}

tn_status tn_constant_from_attributes(tn_ir *ir, uint32_t id, const tn_graph_node *node,
                                      tn_error *err) {
    TN_REQUIRE(node->attribute_count == 1, err, TN_INVALID_MODEL,
               "constant '%.*s' has %zu attributes, expected one", tn_text_width(node->outputs[0]),
               node->outputs[0].data, node->attribute_count);
    const tn_graph_attribute *a = &node->attributes[0];
    switch (a->type) {
        case TN_ATTRIBUTE_TENSOR:
            return tn_constant_from_tensor(ir, id, a->tensor, err);
        case TN_ATTRIBUTE_SPARSE_TENSOR:
            return tn_constant_from_sparse(ir, id, a->sparse_tensor, err);
        case TN_ATTRIBUTE_INT:
            return set_numbers(ir, id, TN_DTYPE_I64, 0, 1, &a->i, err);
        case TN_ATTRIBUTE_INTS:
            return set_numbers(ir, id, TN_DTYPE_I64, 1, a->count, a->ints, err);
        case TN_ATTRIBUTE_FLOAT:
            return set_numbers(ir, id, TN_DTYPE_F32, 0, 1, &a->f, err);
        case TN_ATTRIBUTE_FLOATS:
            return set_numbers(ir, id, TN_DTYPE_F32, 1, a->count, a->floats, err);
        case TN_ATTRIBUTE_STRING:
            return set_strings(ir, id, 0, 1, &a->s, err);
        case TN_ATTRIBUTE_STRINGS:
            return set_strings(ir, id, 1, a->count, a->strings, err);
        default:
            return tn_error_set(
                err, TN_INVALID_MODEL, "constant '%.*s' has an attribute of type %d",
                tn_text_width(node->outputs[0]), node->outputs[0].data, (int)a->type);
    }
}

/* Row-major position of entry `i`; false when an index lies outside the shape. */
static bool sparse_position(const tn_graph_sparse_tensor *sparse, size_t i, size_t len_elems,
                            size_t *out) {
    const int32_t rank = sparse->shape.rank;
    const bool is_flat = sparse->indices.shape.rank == 1;
    size_t position = 0;
    for (int32_t axis = 0; axis < (is_flat ? 1 : rank); axis++) {
        int64_t index = 0;
        const size_t at = is_flat ? i : i * (size_t)rank + (size_t)axis;
        memcpy(&index, (const char *)sparse->indices.data + at * sizeof index, sizeof index);
        const int64_t dim = is_flat ? (int64_t)len_elems : sparse->shape.dims[axis];
        if (index < 0 || index >= dim) return false;
        position = is_flat ? (size_t)index : position * (size_t)dim + (size_t)index;
    }
    *out = position;
    return true;
}

tn_status tn_constant_from_sparse(tn_ir *ir, uint32_t id, const tn_graph_sparse_tensor *sparse,
                                  tn_error *err) {
    const size_t item_bytes = tn_dtype_bits(sparse->values.dtype) / 8;
    size_t size_bytes = 0;
    size_t len_elems = 0;
    TN_TRY(tn_shape_size_bytes(&sparse->shape, sparse->values.dtype, &size_bytes, err));
    TN_TRY(tn_shape_len_elems(&sparse->shape, &len_elems, err));
    TN_REQUIRE(size_bytes <= DENSE_LIMIT_BYTES && item_bytes > 0 &&
                   sparse->values.dtype != TN_DTYPE_STRING,
               err, TN_UNSUPPORTED, "sparse tensor '%.*s' is %zu bytes when dense",
               tn_text_width(sparse->values.name), sparse->values.name.data, size_bytes);
    char *dense = tn_bump_get(&ir->bump, tn_size_max(size_bytes, 64));
    if (dense == NULL) return tn_ir_no_memory(ir, err);
    const size_t count = sparse->values.size_bytes / item_bytes;
    TN_REQUIRE(sparse->indices.dtype == TN_DTYPE_I64, err, TN_INVALID_MODEL,
               "indices of a sparse tensor are not int64");
    const size_t index_rank = sparse->indices.shape.rank == 1 ? 1 : (size_t)sparse->shape.rank;
    TN_REQUIRE(sparse->indices.size_bytes == count * index_rank * sizeof(int64_t), err,
               TN_INVALID_MODEL, "a sparse tensor has %zu values and %zu bytes of indices", count,
               sparse->indices.size_bytes);
    for (size_t i = 0; i < count; i++) {
        size_t position = 0;
        TN_REQUIRE(sparse_position(sparse, i, len_elems, &position), err, TN_INVALID_MODEL,
                   "entry %zu of sparse tensor '%.*s' lies outside its shape", i,
                   tn_text_width(sparse->values.name), sparse->values.name.data);
        memcpy(dense + position * item_bytes, (const char *)sparse->values.data + i * item_bytes,
               item_bytes);
    }
    ir->values[id].fact = (tn_fact){.kind = TN_KIND_TENSOR,
                                    .dtype = sparse->values.dtype,
                                    .shape = sparse->shape,
                                    .data = dense,
                                    .is_constant = true};
    ir->values[id].is_inner_constant = true;
    return TN_OK;
}
