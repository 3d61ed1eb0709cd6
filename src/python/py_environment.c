/* Environment: root of the tree, threads and loaded models. */
#include "python/py_state.h"

typedef struct environment_object {
    PyObject_HEAD tn_environment *environment; /* one reference */
} environment_object;

static tn_environment *environment_of(PyObject *self) {
    return ((environment_object *)self)->environment;
}

tn_environment *tnpy_environment_get(tnpy_state *state, PyObject *object) {
    if (object == NULL || object == Py_None) return tnpy_default_environment(state);
    if (Py_IS_TYPE(object, state->environment_type)) return environment_of(object);
    PyErr_Format(PyExc_TypeError, "an Environment or None is needed, not %R", object);
    return NULL;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"allocator", "memory_limit", "thread_count", "page_source", NULL};
    tnpy_state *state = tnpy_state_of(type);
    tn_error err = {.code = TN_OK};
    tn_environment_options options = {.struct_size = sizeof options};
    PyObject *allocator = Py_None;
    PyObject *limit = NULL;
    unsigned thread_count = 0;
    tn_status status = TN_OK;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOIz:Environment", names, &allocator, &limit,
                                     &thread_count, &options.page_source_name) ||
        tnpy_bytes_from(limit, 0, &options.memory_limit_bytes) != 0) {
        return NULL;
    }
    options.thread_count = thread_count;
    if (allocator != Py_None) {
        options.parent = tnpy_allocator_get(state, allocator);
        if (options.parent == NULL) return NULL;
    }
    PyObject *self = tnpy_new(type);
    if (self == NULL) return NULL;
    tn_environment **out = &((environment_object *)self)->environment;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_environment_create(&options, out, &err);
    Py_END_ALLOW_THREADS;
    if (status == TN_OK) return self;
    Py_DECREF(self);
    return tnpy_raise(state, &err);
}

static void dealloc(PyObject *self) {
    tn_environment *environment = environment_of(self);
    Py_BEGIN_ALLOW_THREADS; /* the last release waits for worker threads to end */
    tn_environment_release(environment);
    Py_END_ALLOW_THREADS;
    tnpy_free(self);
}

static PyObject *close_environment(PyObject *self, PyObject *unused) {
    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    tn_environment_close(environment_of(self));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *get_allocator(PyObject *self, void *unused) {
    (void)unused;
    return tnpy_allocator_wrap(tnpy_state_of(Py_TYPE(self)),
                               tn_environment_allocator(environment_of(self)));
}

static PyMethodDef methods[] = {
    {"close", close_environment, METH_NOARGS, "Ends use; outputs stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"allocator", get_allocator, NULL, "The node that everything here is charged to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     TNPY_SLOT("Environment(allocator=None, memory_limit=None, thread_count=0, page_source=None)")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.Environment",
    .basicsize = sizeof(environment_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_environment_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->environment_type);
}
