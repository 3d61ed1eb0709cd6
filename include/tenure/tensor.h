/* Element types, shapes and tensors.
 *
 * A tensor is a reference-counted value: element type, shape, and either borrowed memory or one
 * reference of a buffer or lease. Data is dense and row-major (C order) unless strides say so.
 * Threads: a tensor's count may be touched from any thread; its contents are the owner's affair. */
#ifndef TENURE_TENSOR_H
#define TENURE_TENSOR_H

#include <tenure/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks above this are refused with TN_UNSUPPORTED. */
#define TN_MAX_RANK 16

/* X(name, number, bits, onnx, numpy): numbers are those of onnx TensorProto.DataType.
 * Elements of fewer than 8 bits are packed, low bits first. */
#define TN_DTYPE_LIST(X)                                      \
    X(F32, 1, 32, "float", "float32")                         \
    X(U8, 2, 8, "uint8", "uint8")                             \
    X(I8, 3, 8, "int8", "int8")                               \
    X(U16, 4, 16, "uint16", "uint16")                         \
    X(I16, 5, 16, "int16", "int16")                           \
    X(I32, 6, 32, "int32", "int32")                           \
    X(I64, 7, 64, "int64", "int64")                           \
    X(STRING, 8, 128, "string", "str")                        \
    X(BOOL, 9, 8, "bool", "bool")                             \
    X(F16, 10, 16, "float16", "float16")                      \
    X(F64, 11, 64, "double", "float64")                       \
    X(U32, 12, 32, "uint32", "uint32")                        \
    X(U64, 13, 64, "uint64", "uint64")                        \
    X(C64, 14, 64, "complex64", "complex64")                  \
    X(C128, 15, 128, "complex128", "complex128")              \
    X(BF16, 16, 16, "bfloat16", "bfloat16")                   \
    X(F8E4M3FN, 17, 8, "float8e4m3fn", "float8_e4m3fn")       \
    X(F8E4M3FNUZ, 18, 8, "float8e4m3fnuz", "float8_e4m3fnuz") \
    X(F8E5M2, 19, 8, "float8e5m2", "float8_e5m2")             \
    X(F8E5M2FNUZ, 20, 8, "float8e5m2fnuz", "float8_e5m2fnuz") \
    X(U4, 21, 4, "uint4", "uint4")                            \
    X(I4, 22, 4, "int4", "int4")                              \
    X(F4E2M1, 23, 4, "float4e2m1", "float4_e2m1fn")           \
    X(F8E8M0, 24, 8, "float8e8m0", "float8_e8m0fnu")          \
    X(U2, 25, 2, "uint2", "uint2")                            \
    X(I2, 26, 2, "int2", "int2")

typedef enum tn_dtype {
    TN_DTYPE_NONE = 0,
#define TN_DTYPE_ENUM(name, number, bits, onnx, numpy) TN_DTYPE_##name = (number),
    TN_DTYPE_LIST(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
        TN_DTYPE_COUNT
} tn_dtype;

/* One element of a string tensor: `size_bytes` bytes of UTF-8, not NUL-terminated. */
typedef struct tn_string {
    const char *data;
    size_t size_bytes;
} tn_string;

typedef struct tn_shape {
    int32_t rank;
    int64_t dims[TN_MAX_RANK]; /* [rank]; >= 0 in shapes of data */
} tn_shape;

typedef struct tn_tensor tn_tensor;

/* Facts of an element type; 0, NULL or false for a number that is none. */
TN_API unsigned tn_dtype_bits(tn_dtype dtype);
TN_API const char *tn_dtype_name(tn_dtype dtype);       /* onnx: "float" */
TN_API const char *tn_dtype_numpy_name(tn_dtype dtype); /* numpy: "float32" */

/* Bytes of a dense tensor, sub-byte types packed and rounded up.
 * Errors: TN_OVERFLOW (says so, with the shape), TN_OUT_OF_RANGE for a negative dim. */
TN_API TN_MUST_USE tn_status tn_shape_size_bytes(const tn_shape *shape, tn_dtype dtype,
                                                 size_t *out_bytes, tn_error *err);
TN_API TN_MUST_USE tn_status tn_shape_len_elems(const tn_shape *shape, size_t *out_elems,
                                                tn_error *err);

/* A value of a run. Today every value is a tensor; sequences, optionals and maps will be further
 * kinds of the same handle, told apart by tn_value_kind_of. */
typedef tn_tensor tn_value;

typedef enum tn_value_kind {
    TN_KIND_UNKNOWN,
    TN_KIND_TENSOR,
    TN_KIND_SPARSE_TENSOR,
    TN_KIND_SEQUENCE,
    TN_KIND_OPTIONAL,
    TN_KIND_MAP
} tn_value_kind;

/* Called once when borrowed memory is no longer needed, on whatever thread lets go last. */
typedef void (*tn_release_fn)(void *ctx, void *data);

/* Wraps the caller's memory without copying.
 * Shapes:    data holds `shape` elements of `dtype`; strides_bytes [rank] or NULL for dense C
 * order. dtype STRING: data is const tn_string [len_elems]. Ownership: borrowed; `data` stays valid
 * until `release` is called (or, when that is NULL, until the tensor's last reference is gone). The
 * record is charged to `allocator`. Errors:    TN_INVALID_ARGUMENT, TN_OUT_OF_RANGE, TN_OVERFLOW,
 * TN_OUT_OF_MEMORY, TN_LIMIT; then `release` is not called. */
TN_API TN_MUST_USE tn_status tn_tensor_create_borrowed(tn_allocator *allocator, tn_dtype dtype,
                                                       const tn_shape *shape,
                                                       const int64_t *strides_bytes, void *data,
                                                       tn_release_fn release, void *release_ctx,
                                                       tn_tensor **out, tn_error *err);

/* Makes a dense tensor with its own uninitialised buffer of `allocator`. Not for strings. */
TN_API TN_MUST_USE tn_status tn_tensor_create(tn_allocator *allocator, tn_dtype dtype,
                                              const tn_shape *shape, tn_tensor **out,
                                              tn_error *err);

TN_API tn_tensor *tn_tensor_retain(tn_tensor *tensor);
TN_API void tn_tensor_release(tn_tensor *tensor); /* accepts NULL; any thread; never allocates */

TN_API tn_value_kind tn_value_kind_of(const tn_value *value);
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
/* Lends the shape; valid while `tensor` lives. */
TN_API const tn_shape *tn_tensor_borrow_shape(const tn_tensor *tensor);
/* NULL when dense. */
TN_API const int64_t *tn_tensor_borrow_strides(const tn_tensor *tensor);
/* Lends the first byte; never NULL for results, also when empty. Results are dense, at least
 * 64-byte aligned and writable. */
TN_API void *tn_tensor_borrow_data(const tn_tensor *tensor);
TN_API size_t tn_tensor_size_bytes(const tn_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
