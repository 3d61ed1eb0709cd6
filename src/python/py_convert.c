/* Small conversions between Python's and the library's values. */
#include <string.h>

#include "python/py_state.h"

/* Formats of the buffer protocol. Types without one are exported as unsigned integers of their
 * size, packed types as bytes. */
static const char *const formats[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = "f",        [TN_DTYPE_U8] = "B",         [TN_DTYPE_I8] = "b",
    [TN_DTYPE_U16] = "H",        [TN_DTYPE_I16] = "h",        [TN_DTYPE_I32] = "i",
    [TN_DTYPE_I64] = "l",        [TN_DTYPE_BOOL] = "?",       [TN_DTYPE_F16] = "e",
    [TN_DTYPE_F64] = "d",        [TN_DTYPE_U32] = "I",        [TN_DTYPE_U64] = "L",
    [TN_DTYPE_C64] = "Zf",       [TN_DTYPE_C128] = "Zd",      [TN_DTYPE_BF16] = "H",
    [TN_DTYPE_F8E4M3FN] = "B",   [TN_DTYPE_F8E4M3FNUZ] = "B", [TN_DTYPE_F8E5M2] = "B",
    [TN_DTYPE_F8E5M2FNUZ] = "B", [TN_DTYPE_U4] = "B",         [TN_DTYPE_I4] = "B",
    [TN_DTYPE_F4E2M1] = "B",     [TN_DTYPE_F8E8M0] = "B",     [TN_DTYPE_U2] = "B",
    [TN_DTYPE_I2] = "B",
};

const char *tnpy_format_of_dtype(tn_dtype dtype) {
    return dtype > TN_DTYPE_NONE && dtype < TN_DTYPE_COUNT ? formats[dtype] : NULL;
}

static tn_dtype integer_of(bool is_signed, Py_ssize_t item_bytes) {
    switch (item_bytes) {
        case 1:
            return is_signed ? TN_DTYPE_I8 : TN_DTYPE_U8;
        case 2:
            return is_signed ? TN_DTYPE_I16 : TN_DTYPE_U16;
        case 4:
            return is_signed ? TN_DTYPE_I32 : TN_DTYPE_U32;
        case 8:
            return is_signed ? TN_DTYPE_I64 : TN_DTYPE_U64;
        default:
            return TN_DTYPE_NONE;
    }
}

tn_dtype tnpy_dtype_of_format(const char *format, Py_ssize_t item_bytes) {
    if (format == NULL) return TN_DTYPE_U8;
    if (format[0] == '>' || format[0] == '!') {
        if (item_bytes != 1) return TN_DTYPE_NONE;
        format++;
    } else if (format[0] == '@' || format[0] == '=' || format[0] == '<') {
        format++;
    }
    if (strcmp(format, "Zf") == 0) return TN_DTYPE_C64;
    if (strcmp(format, "Zd") == 0) return TN_DTYPE_C128;
    if (format[0] == '\0' || format[1] != '\0') return TN_DTYPE_NONE;
    switch (format[0]) {
        case 'f':
            return TN_DTYPE_F32;
        case 'd':
            return TN_DTYPE_F64;
        case 'e':
            return TN_DTYPE_F16;
        case '?':
            return TN_DTYPE_BOOL;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
            return integer_of(true, item_bytes);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
            return integer_of(false, item_bytes);
        default:
            return TN_DTYPE_NONE;
    }
}

int tnpy_shape_from(PyObject *object, tn_shape *out) {
    *out = (tn_shape){.rank = 0};
    const Py_ssize_t rank = PySequence_Size(object);
    if (rank < 0) return -1;
    if (rank > TN_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d", rank, TN_MAX_RANK);
        return -1;
    }
    out->rank = (int32_t)rank;
    for (Py_ssize_t d = 0; d < rank; d++) {
        PyObject *item = PySequence_GetItem(object, d);
        PyObject *index = item == NULL ? NULL : PyNumber_Index(item);
        Py_XDECREF(item);
        if (index == NULL) return -1;
        out->dims[d] = PyLong_AsLongLong(index);
        Py_DECREF(index);
        if (out->dims[d] == -1 && PyErr_Occurred() != NULL) return -1;
        if (out->dims[d] < 0) {
            PyErr_Format(PyExc_ValueError, "dimension %zd is negative", d);
            return -1;
        }
    }
    return 0;
}

PyObject *tnpy_shape_to_tuple(const tn_shape *shape) {
    PyObject *tuple = PyTuple_New(shape->rank);
    for (int32_t d = 0; tuple != NULL && d < shape->rank; d++) {
        PyObject *dim = PyLong_FromLongLong(shape->dims[d]);
        if (dim == NULL || PyTuple_SetItem(tuple, d, dim) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

int tnpy_bytes_from(PyObject *object, uint64_t fallback, uint64_t *out) {
    *out = fallback;
    if (object == NULL || object == Py_None) return 0;
    PyObject *index = PyNumber_Index(object);
    if (index == NULL) return -1;
    const unsigned long long number = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (number == (unsigned long long)-1 && PyErr_Occurred() != NULL) return -1;
    *out = number;
    return 0;
}

int tnpy_trim_level_from(tnpy_state *state, const char *text, tn_trim_level *out) {
    const bool is_hard = strcmp(text, "hard") == 0;
    if (!is_hard && strcmp(text, "soft") != 0) {
        (void)tnpy_raise_text(state, TN_INVALID_ARGUMENT, "level '%s' is neither 'hard' nor 'soft'",
                              text);
        return -1;
    }
    *out = is_hard ? TN_TRIM_HARD : TN_TRIM_SOFT;
    return 0;
}

int tnpy_set_steal(PyObject *dict, const char *key, PyObject *steal_value) {
    if (steal_value == NULL) return -1;
    const int result = PyDict_SetItemString(dict, key, steal_value);
    Py_DECREF(steal_value);
    return result;
}

int tnpy_set_u64(PyObject *dict, const char *key, uint64_t number) {
    return tnpy_set_steal(dict, key, PyLong_FromUnsignedLongLong(number));
}
