/* Model: a loaded ONNX file, shared by sessions. */
#include "python/py_state.h"

typedef struct model_object {
    PyObject_HEAD tn_model *model; /* one reference; NULL once closed */
} model_object;

static model_object *as_model(PyObject *self) {
    return (model_object *)self;
}

tn_model *tnpy_model_get(tnpy_state *state, PyObject *object) {
    if (!Py_IS_TYPE(object, state->model_type)) {
        PyErr_Format(PyExc_TypeError, "a Model is needed, not %R", object);
        return NULL;
    }
    if (as_model(object)->model == NULL) {
        (void)tnpy_raise_text(state, TN_CLOSED, "the model is closed");
    }
    return as_model(object)->model;
}

/* From a path: shared with other sessions of the environment. */
static PyObject *load_file(tnpy_state *state, tn_environment *environment, PyObject *source,
                           PyObject *self) {
    tn_error err = {.code = TN_OK};
    PyObject *path = NULL;
    tn_status status = TN_OK;
    if (!PyUnicode_FSConverter(source, &path)) return NULL;
    const char *text = PyBytes_AsString(path);
    tn_model **out = &as_model(self)->model;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_environment_load_model(environment, text, out, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    return status == TN_OK ? self : tnpy_raise(state, &err);
}

static PyObject *load_bytes(tnpy_state *state, tn_environment *environment, PyObject *source,
                            const char *folder, PyObject *self) {
    tn_error err = {.code = TN_OK};
    Py_buffer view;
    tn_status status = TN_OK;
    const tn_model_options options = {.struct_size = sizeof options, .external_data_dir = folder};
    if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) != 0) return NULL;
    tn_model **out = &as_model(self)->model;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_model_load_bytes(tn_environment_allocator(environment), view.buf, (size_t)view.len,
                                 &options, out, &err);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return status == TN_OK ? self : tnpy_raise(state, &err);
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"environment", "source", "external_data_dir", NULL};
    tnpy_state *state = tnpy_state_of(type);
    PyObject *environment_object = Py_None;
    PyObject *source = NULL;
    const char *folder = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|z:Model", names, &environment_object,
                                     &source, &folder)) {
        return NULL;
    }
    tn_environment *environment = tnpy_environment_get(state, environment_object);
    PyObject *self = environment == NULL ? NULL : tnpy_new(type);
    if (self == NULL) return NULL;
    PyObject *made = PyObject_CheckBuffer(source)
                         ? load_bytes(state, environment, source, folder, self)
                         : load_file(state, environment, source, self);
    if (made == NULL) Py_DECREF(self);
    return made;
}

static PyObject *close_model(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_model *model = as_model(self)->model;
    as_model(self)->model = NULL;
    tn_model_release(model);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self) {
    tn_model_release(as_model(self)->model);
    tnpy_free(self);
}

static PyMethodDef methods[] = {
    {"close", close_model, METH_NOARGS, "Lets the model go; sessions keep theirs."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("Model(environment, path_or_bytes, external_data_dir=None)")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure._tenure.Model",
    .basicsize = sizeof(model_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_model_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->model_type);
}
