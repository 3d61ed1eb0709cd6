/* Tensor records. The bytes belong to the caller (borrowed, with an optional release), to a buffer,
 * or to a lease of an I/O arena; the record belongs to an allocator that it keeps alive. */
#include "tensor/tensor_record.h"

#include <string.h>

#include "base/checked_size.h"
#include "base/error.h"
#include "base/ref_count.h"
#include "memory/tree.h"

struct tn_tensor {
    tn_ref_count refs;
    tn_allocator *allocator; /* one reference; made this record */
    tn_dtype dtype;
    bool is_dense;
    tn_shape shape;
    int64_t strides[TN_MAX_RANK]; /* [shape.rank] bytes, when not dense */
    void *data;
    size_t size_bytes;
    tn_release_fn release; /* borrowed memory; NULL: none */
    void *release_ctx;
    tn_buffer buffer;   /* ledger NULL: none */
    tn_io_lease *lease; /* NULL: none */
};

static tn_status create(tn_allocator *allocator, tn_dtype dtype, const tn_shape *shape,
                        tn_tensor **out, tn_error *err) {
    size_t size_bytes = 0;
    *out = NULL;
    TN_REQUIRE(tn_dtype_bits(dtype) != 0, err, TN_INVALID_ARGUMENT, "element type %d is unknown",
               (int)dtype);
    TN_REQUIRE(shape->rank >= 0 && shape->rank <= TN_MAX_RANK, err, TN_INVALID_ARGUMENT,
               "rank %d is outside [0, %d]", (int)shape->rank, TN_MAX_RANK);
    TN_TRY(tn_shape_size_bytes(shape, dtype, &size_bytes, err));
    const uint64_t refusals = tn_tree_refusal_number(allocator);
    tn_tensor *tensor = tn_allocator_malloc(allocator, sizeof *tensor);
    if (tensor == NULL) {
        const tn_status status =
            tn_error_set(err, TN_OUT_OF_MEMORY, "a tensor record needs %zu bytes", sizeof *tensor);
        return tn_tree_explain(allocator, refusals, status, err);
    }
    memset(tensor, 0, sizeof *tensor);
    tn_ref_count_init(&tensor->refs, 1);
    tensor->allocator = tn_allocator_retain(allocator);
    tensor->dtype = dtype;
    tensor->shape = *shape;
    tensor->size_bytes = size_bytes;
    tensor->is_dense = true;
    *out = tensor;
    return TN_OK;
}

/* Dense strides are dropped, so that one test tells whether a copy is needed. */
static bool strides_are_dense(const tn_shape *shape, const int64_t *strides, size_t item_bytes) {
    int64_t expected = (int64_t)item_bytes;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 0) return true; /* and then the other dims may be any */
    }
    for (int32_t i = shape->rank; i-- > 0;) {
        if (shape->dims[i] != 1 && strides[i] != expected) return false;
        expected *= shape->dims[i];
    }
    return true;
}

tn_status tn_tensor_create_borrowed(tn_allocator *allocator, tn_dtype dtype, const tn_shape *shape,
                                    const int64_t *strides_bytes, void *data, tn_release_fn release,
                                    void *release_ctx, tn_tensor **out, tn_error *err) {
    TN_REQUIRE(allocator != NULL && shape != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a tensor needs an allocator, a shape and a place for the result");
    tn_tensor *tensor = NULL;
    *out = NULL;
    TN_TRY(create(allocator, dtype, shape, &tensor, err));
    if (tensor->size_bytes > 0 && data == NULL) {
        tn_tensor_release(tensor);
        return tn_error_set(err, TN_INVALID_ARGUMENT, "a tensor of %zu bytes has no data",
                            tensor->size_bytes);
    }
    const unsigned bits = tn_dtype_bits(dtype);
    if (strides_bytes != NULL && bits >= 8 && !strides_are_dense(shape, strides_bytes, bits / 8)) {
        tensor->is_dense = false;
        memcpy(tensor->strides, strides_bytes, (size_t)shape->rank * sizeof *strides_bytes);
    }
    tensor->data = data;
    tensor->release = release;
    tensor->release_ctx = release_ctx;
    *out = tensor;
    return TN_OK;
}

tn_status tn_tensor_create(tn_allocator *allocator, tn_dtype dtype, const tn_shape *shape,
                           tn_tensor **out, tn_error *err) {
    tn_status status = TN_OK;
    tn_tensor *tensor = NULL;
    TN_REQUIRE(allocator != NULL && shape != NULL && out != NULL, err, TN_INVALID_ARGUMENT,
               "a tensor needs an allocator, a shape and a place for the result");
    *out = NULL;
    TN_REQUIRE(dtype != TN_DTYPE_STRING, err, TN_INVALID_ARGUMENT,
               "strings have no buffer of their own; wrap an array of tn_string");
    TN_TRY(create(allocator, dtype, shape, &tensor, err));
    TN_TRY_GOTO(tn_buffer_create(allocator, tensor->size_bytes, 0, &tensor->buffer, err), cleanup);
    tensor->data = tensor->buffer.data;
    *out = tensor;
    tensor = NULL;

cleanup:
    tn_tensor_release(tensor);
    return status;
}

tn_status tn_tensor_create_leased(tn_allocator *allocator, tn_dtype dtype, const tn_shape *shape,
                                  tn_io_lease **take_lease, tn_tensor **out, tn_error *err) {
    tn_tensor *tensor = NULL;
    *out = NULL;
    TN_TRY(create(allocator, dtype, shape, &tensor, err));
    tensor->lease = *take_lease;
    tensor->data = tn_io_lease_data(*take_lease);
    *take_lease = NULL;
    *out = tensor;
    return TN_OK;
}

tn_tensor *tn_tensor_retain(tn_tensor *tensor) {
    if (tensor == NULL || !tn_ref_count_retain(&tensor->refs)) return NULL;
    return tensor;
}

void tn_tensor_release(tn_tensor *tensor) {
    bool was_last = false;
    if (tensor == NULL || !tn_ref_count_release(&tensor->refs, &was_last) || !was_last) return;
    if (tensor->release != NULL) tensor->release(tensor->release_ctx, tensor->data);
    if (tensor->buffer.ledger != NULL) (void)tn_buffer_release(&tensor->buffer);
    tn_io_lease_release(tensor->lease);
    tn_allocator *allocator = tensor->allocator;
    tn_allocator_free(allocator, tensor);
    tn_allocator_release(allocator);
}

tn_value_kind tn_value_kind_of(const tn_value *value) {
    return value == NULL ? TN_KIND_UNKNOWN : TN_KIND_TENSOR;
}

tn_dtype tn_tensor_dtype(const tn_tensor *tensor) {
    return tensor->dtype;
}

const tn_shape *tn_tensor_borrow_shape(const tn_tensor *tensor) {
    return &tensor->shape;
}

const int64_t *tn_tensor_borrow_strides(const tn_tensor *tensor) {
    return tensor->is_dense ? NULL : tensor->strides;
}

void *tn_tensor_borrow_data(const tn_tensor *tensor) {
    return tensor->data;
}

size_t tn_tensor_size_bytes(const tn_tensor *tensor) {
    return tensor->size_bytes;
}

bool tn_tensor_is_dense(const tn_tensor *tensor) {
    return tensor->is_dense;
}

void tn_tensor_copy_dense(const tn_tensor *tensor, void *data) {
    if (tensor->size_bytes == 0) return;
    if (tensor->is_dense) {
        memcpy(data, tensor->data, tensor->size_bytes);
        return;
    }
    const size_t item_bytes = tn_dtype_bits(tensor->dtype) / 8;
    const int32_t rank = tensor->shape.rank;
    int64_t index[TN_MAX_RANK] = {0};
    const char *source = tensor->data;
    char *target = data;
    for (size_t done = 0; done < tensor->size_bytes; done += item_bytes) {
        memcpy(target + done, source, item_bytes);
        for (int32_t axis = rank - 1; axis >= 0; axis--) {
            source += tensor->strides[axis];
            if (++index[axis] < tensor->shape.dims[axis]) break;
            source -= tensor->strides[axis] * tensor->shape.dims[axis];
            index[axis] = 0;
        }
    }
}
