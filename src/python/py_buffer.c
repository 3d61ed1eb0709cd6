/* Buffer: bytes of an allocator or an arena under the buffer protocol. */
#include "python/py_state.h"

typedef struct buffer_object {
    PyObject_HEAD tn_buffer buffer; /* one reference; ledger NULL once released */
    Py_ssize_t export_count;        /* views that look at the bytes */
} buffer_object;

static buffer_object *as_buffer(PyObject *self) {
    return (buffer_object *)self;
}

PyObject *tnpy_buffer_wrap(tnpy_state *state, tn_buffer *take_buffer) {
    PyObject *self = tnpy_new(state->buffer_type);
    if (self == NULL) {
        (void)tn_buffer_release(take_buffer);
        return NULL;
    }
    as_buffer(self)->buffer = *take_buffer;
    return self;
}

static void dealloc(PyObject *self) {
    if (as_buffer(self)->buffer.ledger != NULL) (void)tn_buffer_release(&as_buffer(self)->buffer);
    tnpy_free(self);
}

static int check_alive(PyObject *self) {
    if (as_buffer(self)->buffer.ledger != NULL) return 0;
    (void)tnpy_raise_text(tnpy_state_of(Py_TYPE(self)), TN_DEAD, "the buffer is already released");
    return -1;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    buffer_object *buffer = as_buffer(self);
    view->obj = NULL;
    if (check_alive(self) != 0) return -1;
    const int result = PyBuffer_FillInfo(view, self, buffer->buffer.data,
                                         (Py_ssize_t)buffer->buffer.size_bytes, 0, flags);
    if (result == 0) buffer->export_count++;
    return result;
}

static void release_buffer(PyObject *self, Py_buffer *view) {
    (void)view;
    as_buffer(self)->export_count--;
}

static PyObject *release(PyObject *self, PyObject *unused) {
    (void)unused;
    buffer_object *buffer = as_buffer(self);
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    if (check_alive(self) != 0) return NULL;
    if (buffer->export_count > 0) {
        return tnpy_raise_text(state, TN_BUSY, "%zd views look at the buffer's bytes",
                               buffer->export_count);
    }
    (void)tn_buffer_release(&buffer->buffer);
    buffer->buffer = (tn_buffer){0};
    Py_RETURN_NONE;
}

static PyObject *slice(PyObject *self, PyObject *args) {
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_buffer window = {0};
    Py_ssize_t offset = 0;
    Py_ssize_t size = 0;
    if (!PyArg_ParseTuple(args, "nn:slice", &offset, &size) || check_alive(self) != 0) return NULL;
    if (offset < 0 || size < 0) {
        return tnpy_raise_text(state, TN_OUT_OF_RANGE, "offset %zd, size %zd", offset, size);
    }
    if (tn_buffer_slice(&as_buffer(self)->buffer, (size_t)offset, (size_t)size, &window, &err) !=
            TN_OK ||
        tn_buffer_retain(&as_buffer(self)->buffer, &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    return tnpy_buffer_wrap(state, &window);
}

static Py_ssize_t length(PyObject *self) {
    return (Py_ssize_t)as_buffer(self)->buffer.size_bytes;
}

static PyObject *get_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(as_buffer(self)->buffer.size_bytes);
}

static PyObject *get_address(PyObject *self, void *unused) {
    (void)unused;
    if (check_alive(self) != 0) return NULL;
    return PyLong_FromVoidPtr(as_buffer(self)->buffer.data);
}

static PyObject *get_is_released(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(as_buffer(self)->buffer.ledger == NULL);
}

static PyMethodDef methods[] = {
    {"release", release, METH_NOARGS, "Gives the bytes back; BusyError while views exist."},
    {"slice", slice, METH_VARARGS, "slice(offset, size) -> Buffer over part of the same bytes"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"size", get_size, NULL, "Size in bytes.", NULL},
    {"address", get_address, NULL, "Address of the first byte.", NULL},
    {"released", get_is_released, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("Bytes of an allocator; writable through the buffer protocol.")},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_sq_length, TNPY_SLOT(length)},
    {Py_bf_getbuffer, TNPY_SLOT(get_buffer)},
    {Py_bf_releasebuffer, TNPY_SLOT(release_buffer)},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.Buffer",
    .basicsize = sizeof(buffer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tnpy_add_buffer_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->buffer_type);
}
