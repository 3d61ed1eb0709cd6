/* Tensor: a value of the library under Python's buffer protocol.
 *
 * Whoever looks at the bytes keeps the Tensor alive, the Tensor keeps the value, the value keeps
 * its lease. Letting go is pure C and touches neither the session nor module state, so a Tensor may
 * die last of all, also while the interpreter shuts down. */
#include <stdlib.h>
#include <string.h>

#include "python/py_state.h"

typedef struct tensor_object {
    PyObject_HEAD tn_value *value;   /* one reference */
    Py_ssize_t shape[TN_MAX_RANK];   /* of the exported buffer */
    Py_ssize_t strides[TN_MAX_RANK]; /* bytes */
    int rank;
    Py_ssize_t item_bytes;
} tensor_object;

static tensor_object *as_tensor(PyObject *self) {
    return (tensor_object *)self;
}

/* Shape and strides as they are exported: packed types as one row of bytes. */
static void describe(tensor_object *self) {
    const tn_shape *shape = tn_tensor_borrow_shape(self->value);
    const unsigned bits = tn_dtype_bits(tn_tensor_dtype(self->value));
    if (bits < 8) {
        self->rank = 1;
        self->item_bytes = 1;
        self->shape[0] = (Py_ssize_t)tn_tensor_size_bytes(self->value);
        self->strides[0] = 1;
        return;
    }
    self->rank = shape->rank;
    self->item_bytes = (Py_ssize_t)bits / 8;
    const int64_t *strides = tn_tensor_borrow_strides(self->value);
    Py_ssize_t stride = self->item_bytes;
    for (int d = self->rank; d-- > 0;) {
        self->shape[d] = (Py_ssize_t)shape->dims[d];
        self->strides[d] = strides == NULL ? stride : (Py_ssize_t)strides[d];
        stride *= self->shape[d];
    }
}

PyObject *tnpy_tensor_wrap(tnpy_state *state, tn_value *take_value) {
    PyObject *self = tnpy_new(state->tensor_type);
    if (self == NULL) {
        tn_tensor_release(take_value);
        return NULL;
    }
    as_tensor(self)->value = take_value;
    describe(as_tensor(self));
    return self;
}

tn_value *tnpy_tensor_value(PyObject *tensor) {
    return as_tensor(tensor)->value;
}

static void dealloc(PyObject *self) {
    tn_tensor_release(as_tensor(self)->value);
    tnpy_free(self);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    tensor_object *tensor = as_tensor(self);
    const char *format = tnpy_format_of_dtype(tn_tensor_dtype(tensor->value));
    view->obj = NULL;
    if (format == NULL) {
        PyErr_SetString(PyExc_BufferError, "a tensor of strings has no buffer, use strings()");
        return -1;
    }
    const bool is_dense = tn_tensor_borrow_strides(tensor->value) == NULL;
    if (!is_dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "this tensor is not contiguous");
        return -1;
    }
    view->buf = tn_tensor_borrow_data(tensor->value);
    view->len = (Py_ssize_t)tn_tensor_size_bytes(tensor->value);
    view->itemsize = tensor->item_bytes;
    view->readonly = 0;
    view->ndim = tensor->rank;
    view->format = (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)format : NULL;
    view->shape = (flags & PyBUF_ND) != 0 ? tensor->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? tensor->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->obj = Py_NewRef(self);
    return 0;
}

static PyObject *strings(PyObject *self, PyObject *unused) {
    (void)unused;
    const tn_value *value = as_tensor(self)->value;
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    size_t count = 0;
    if (tn_tensor_dtype(value) != TN_DTYPE_STRING) {
        return tnpy_raise_text(state, TN_INVALID_ARGUMENT, "this tensor holds %s, not strings",
                               tn_dtype_name(tn_tensor_dtype(value)));
    }
    if (tn_shape_len_elems(tn_tensor_borrow_shape(value), &count, &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    const tn_string *items = tn_tensor_borrow_data(value);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *text =
            PyUnicode_DecodeUTF8(items[i].data, (Py_ssize_t)items[i].size_bytes, "surrogateescape");
        if (text == NULL || PyList_SetItem(list, (Py_ssize_t)i, text) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    return tnpy_shape_to_tuple(tn_tensor_borrow_shape(as_tensor(self)->value));
}

static PyObject *get_dtype(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tn_dtype_name(tn_tensor_dtype(as_tensor(self)->value)));
}

static PyObject *get_dtype_number(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong((long)tn_tensor_dtype(as_tensor(self)->value));
}

static PyObject *get_numpy_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tn_dtype_numpy_name(tn_tensor_dtype(as_tensor(self)->value)));
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(tn_tensor_size_bytes(as_tensor(self)->value));
}

static PyObject *get_address(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(tn_tensor_borrow_data(as_tensor(self)->value));
}

static PyObject *repr(PyObject *self) {
    PyObject *shape = get_shape(self, NULL);
    if (shape == NULL) return NULL;
    PyObject *text = PyUnicode_FromFormat(
        "<tenure.Tensor %s %R>", tn_dtype_name(tn_tensor_dtype(as_tensor(self)->value)), shape);
    Py_DECREF(shape);
    return text;
}

static PyMethodDef methods[] = {
    {"strings", strings, METH_NOARGS, "Elements of a string tensor in row-major order."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "Sizes, as a tuple.", NULL},
    {"dtype", get_dtype, NULL, "ONNX's name of the element type, such as 'float'.", NULL},
    {"dtype_number", get_dtype_number, NULL, "TensorProto.DataType of the elements.", NULL},
    {"numpy_name", get_numpy_name, NULL, "NumPy's or ml_dtypes' name of the type.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {"address", get_address, NULL, "Address of the first byte.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("A value of a run, exported through the buffer protocol.")},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_repr, TNPY_SLOT(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_bf_getbuffer, TNPY_SLOT(get_buffer)},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tnpy_add_tensor_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->tensor_type);
}

/* ---- string tensors made from Python's strings ---- */

static void free_block(void *ctx, void *data) {
    (void)ctx;
    free(data);
}

/* UTF-8 of one element; bytes stand for themselves. A new reference to a bytes object. */
static PyObject *encode(PyObject *item) {
    if (PyBytes_Check(item)) return Py_NewRef(item);
    if (!PyUnicode_Check(item)) {
        PyObject *text = PyObject_Str(item);
        if (text == NULL) return NULL;
        PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
        Py_DECREF(text);
        return encoded;
    }
    return PyUnicode_AsEncodedString(item, "utf-8", "surrogateescape");
}

/* List of bytes objects from any sequence; *out_bytes is their sum. */
static PyObject *encode_all(PyObject *sequence, size_t *out_bytes) {
    PyObject *list = PySequence_List(sequence);
    *out_bytes = 0;
    for (Py_ssize_t i = 0; list != NULL && i < PyList_Size(list); i++) {
        PyObject *bytes = encode(PyList_GetItem(list, i));
        if (bytes == NULL) {
            Py_CLEAR(list);
            break;
        }
        *out_bytes += (size_t)PyBytes_Size(bytes);
        if (PyList_SetItem(list, i, bytes) != 0) Py_CLEAR(list);
    }
    return list;
}

/* References first, then the bytes that they point to, in one block. */
static tn_string *gather(PyObject *list, size_t text_bytes) {
    const size_t count = (size_t)PyList_Size(list);
    tn_string *block = malloc(count * sizeof *block + text_bytes + 1);
    if (block == NULL) return NULL;
    char *at = (char *)(block + count);
    for (size_t i = 0; i < count; i++) {
        PyObject *bytes = PyList_GetItem(list, (Py_ssize_t)i);
        const size_t size_bytes = (size_t)PyBytes_Size(bytes);
        memcpy(at, PyBytes_AsString(bytes), size_bytes);
        block[i] = (tn_string){at, size_bytes};
        at += size_bytes;
    }
    return block;
}

PyObject *tnpy_tensor_from_strings(tnpy_state *state, PyObject *sequence, PyObject *shape_object) {
    tn_error err = {.code = TN_OK};
    tn_shape shape;
    size_t text_bytes = 0;
    size_t count = 0;
    tn_value *value = NULL;
    if (tnpy_shape_from(shape_object, &shape) != 0) return NULL;
    tn_environment *environment = tnpy_default_environment(state);
    if (environment == NULL) return NULL;
    if (tn_shape_len_elems(&shape, &count, &err) != TN_OK) return tnpy_raise(state, &err);
    PyObject *list = encode_all(sequence, &text_bytes);
    if (list == NULL) return NULL;
    if ((size_t)PyList_Size(list) != count) {
        (void)tnpy_raise_text(state, TN_INVALID_ARGUMENT, "%zd strings for a shape of %zu",
                              PyList_Size(list), count);
        Py_DECREF(list);
        return NULL;
    }
    tn_string *block = gather(list, text_bytes);
    Py_DECREF(list);
    if (block == NULL) return PyErr_NoMemory();
    if (tn_tensor_create_borrowed(tn_environment_allocator(environment), TN_DTYPE_STRING, &shape,
                                  NULL, block, free_block, NULL, &value, &err) != TN_OK) {
        free(block);
        return tnpy_raise(state, &err);
    }
    return tnpy_tensor_wrap(state, value);
}
