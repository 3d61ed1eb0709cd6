/* Sizes of dense tensors. All arithmetic on dims that came from outside happens here, once, with
 * checks; layers above work with the proved results. */
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked_size.h"
#include "base/error.h"

/* No machine has more. A shape that says so is wrong, and no matter of memory. */
#define MAX_TENSOR_BYTES ((size_t)1 << 47)

const char *tn_shape_print(const tn_shape *shape, char *text, size_t capacity_bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (int32_t axis = 0; axis < shape->rank && axis < TN_MAX_RANK; axis++) {
        const int wrote = snprintf(text + used, capacity_bytes - used, "%s%" PRId64,
                                   axis == 0 ? "[" : ", ", shape->dims[axis]);
        if (wrote < 0 || (size_t)wrote >= capacity_bytes - used) return text;
        used += (size_t)wrote;
    }
    (void)snprintf(text + used, capacity_bytes - used, shape->rank > 0 ? "]" : "[]");
    return text;
}

static tn_status check_dims(const tn_shape *shape, bool *out_has_zero, tn_error *err) {
    *out_has_zero = false;
    TN_REQUIRE(shape->rank >= 0, err, TN_OUT_OF_RANGE, "rank %d is negative", (int)shape->rank);
    TN_REQUIRE(shape->rank <= TN_MAX_RANK, err, TN_UNSUPPORTED, "rank %d is above the limit of %d",
               (int)shape->rank, TN_MAX_RANK);
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        TN_REQUIRE(shape->dims[axis] >= 0, err, TN_OUT_OF_RANGE,
                   "dim %" PRId64 " of axis %d is negative", shape->dims[axis], (int)axis);
        if (shape->dims[axis] == 0) *out_has_zero = true;
    }
    return TN_OK;
}

static tn_status overflow(const tn_shape *shape, const char *unit, tn_error *err) {
    char text[TN_SHAPE_TEXT_BYTES];
    return tn_error_set(err, TN_OVERFLOW, "shape %s has more %s than any machine can hold",
                        tn_shape_print(shape, text, sizeof text), unit);
}

tn_status tn_shape_len_elems(const tn_shape *shape, size_t *out_elems, tn_error *err) {
    bool has_zero = false;
    TN_TRY(check_dims(shape, &has_zero, err));

    size_t len_elems = has_zero ? 0 : 1;
    for (int32_t axis = 0; !has_zero && axis < shape->rank; axis++) {
        if (!tn_size_mul(len_elems, (size_t)shape->dims[axis], &len_elems)) {
            return overflow(shape, "elements", err);
        }
    }
    *out_elems = len_elems;
    return TN_OK;
}

tn_status tn_shape_size_bytes(const tn_shape *shape, tn_dtype dtype, size_t *out_bytes,
                              tn_error *err) {
    const unsigned bits = tn_dtype_bits(dtype);
    size_t len_elems = 0;
    TN_REQUIRE(bits != 0, err, TN_INVALID_ARGUMENT, "%d is no element type", (int)dtype);
    TN_TRY(tn_shape_len_elems(shape, &len_elems, err));

    if (bits < 8) {
        const size_t per_byte = 8 / bits;
        const size_t packed_bytes = len_elems / per_byte + (len_elems % per_byte != 0);
        if (packed_bytes > MAX_TENSOR_BYTES) return overflow(shape, "bytes", err);
        *out_bytes = packed_bytes;
        return TN_OK;
    }
    size_t size_bytes = 0;
    if (!tn_size_mul(len_elems, bits / 8, &size_bytes) || size_bytes > MAX_TENSOR_BYTES) {
        return overflow(shape, "bytes", err);
    }
    *out_bytes = size_bytes;
    return TN_OK;
}
