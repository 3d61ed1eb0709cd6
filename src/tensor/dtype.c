/* Facts of element types, all from the one list in tensor.h. */
#include <tenure/tensor.h>

typedef struct dtype_row {
    unsigned bits;
    const char *onnx_name;
    const char *numpy_name;
} dtype_row;

static const dtype_row rows[TN_DTYPE_COUNT] = {
#define TN_DTYPE_ROW(name, number, bits, onnx, numpy) [number] = {(bits), (onnx), (numpy)},
    TN_DTYPE_LIST(TN_DTYPE_ROW)
#undef TN_DTYPE_ROW
};

static const dtype_row *row_of(tn_dtype dtype) {
    /* row 0 is the empty one: zero bits, no names */
    return &rows[(unsigned)dtype < TN_DTYPE_COUNT ? (unsigned)dtype : 0];
}

unsigned tn_dtype_bits(tn_dtype dtype) {
    return row_of(dtype)->bits;
}

const char *tn_dtype_name(tn_dtype dtype) {
    return row_of(dtype)->onnx_name;
}

const char *tn_dtype_numpy_name(tn_dtype dtype) {
    return row_of(dtype)->numpy_name;
}
