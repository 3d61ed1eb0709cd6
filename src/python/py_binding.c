/* Binding: inputs and outputs that stay bound over many runs.
 *
 * A bound array is pinned until it is unbound or rebound: the old pin goes at once, on the thread
 * that rebinds. While a run is going on, everything else gets BusyError. */
#include <stddef.h>

#include "python/py_session.h"

typedef struct named_pin {
    struct named_pin *next;
    PyObject *name; /* str, one reference */
    tnpy_pin pin;
} named_pin;

typedef struct binding_object {
    PyObject_HEAD tn_io_binding *binding; /* owned */
    PyObject *session;                    /* one reference */
    named_pin *inputs;
    named_pin *outputs;
    bool is_running;
} binding_object;

static binding_object *as_binding(PyObject *self) {
    return (binding_object *)self;
}

/* Takes the pin of `name` out of the list; NULL when there is none. */
static named_pin *take_pin(named_pin **list, PyObject *name) {
    for (named_pin **link = list; *link != NULL; link = &(*link)->next) {
        if (PyUnicode_Compare((*link)->name, name) != 0) continue;
        named_pin *found = *link;
        *link = found->next;
        return found;
    }
    return NULL;
}

static void free_pin(named_pin *named) {
    if (named == NULL) return;
    tnpy_pin_release(&named->pin);
    Py_DECREF(named->name);
    PyMem_Free(named);
}

static void free_pins(named_pin **list) {
    while (*list != NULL) {
        named_pin *first = *list;
        *list = first->next;
        free_pin(first);
    }
}

/* Puts `pin` under `name` in place of the one before. On failure the pin is let go. */
static int keep_pin(named_pin **list, PyObject *name, tnpy_pin *pin) {
    named_pin *made = PyMem_Calloc(1, sizeof *made);
    if (made == NULL) {
        tnpy_pin_release(pin);
        (void)PyErr_NoMemory();
        return -1;
    }
    made->name = Py_NewRef(name);
    made->pin = *pin;
    named_pin *old = take_pin(list, name);
    made->next = *list;
    *list = made;
    free_pin(old);
    return 0;
}

static PyObject *create(PyTypeObject *type, PyObject *args) {
    tnpy_state *state = tnpy_state_of(type);
    tn_error err = {.code = TN_OK};
    PyObject *session_object = NULL;
    if (!PyArg_ParseTuple(args, "O:Binding", &session_object)) return NULL;
    tn_session *session = tnpy_session_hold(state, session_object);
    PyObject *self = session == NULL ? NULL : tnpy_new(type);
    if (self != NULL && tn_io_binding_create(session, &as_binding(self)->binding, &err) != TN_OK) {
        Py_CLEAR(self);
        (void)tnpy_raise(state, &err);
    }
    tn_session_release(session);
    if (self != NULL) as_binding(self)->session = Py_NewRef(session_object);
    return self;
}

static void dealloc(PyObject *self) {
    tn_io_binding_destroy(as_binding(self)->binding);
    free_pins(&as_binding(self)->inputs);
    free_pins(&as_binding(self)->outputs);
    Py_XDECREF(as_binding(self)->session);
    tnpy_free(self);
}

/* A new reference of the session; NULL with an exception while a run is going on or after close. */
static tn_session *enter(PyObject *self) {
    if (!as_binding(self)->is_running) return tnpy_session_hold_self(as_binding(self)->session);
    (void)tnpy_raise_text(tnpy_state_of(Py_TYPE(self)), TN_BUSY,
                          "the binding is in use on another thread");
    return NULL;
}

/* Arguments of the binding methods, and the session, which is given back. */
typedef struct bind_call {
    PyObject *self;
    tnpy_pin_rules rules;
    tn_session *session;
    PyObject *name; /* str */
    const char *text;
} bind_call;

static int begin(bind_call *call, PyObject *self, PyObject *name, PyObject *stage) {
    call->text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (call->text == NULL) return -1;
    call->session = enter(self);
    if (call->session == NULL) return -1;
    call->self = self;
    call->name = name;
    call->rules =
        (tnpy_pin_rules){tnpy_state_of(Py_TYPE(self)), tn_session_allocator(call->session), stage};
    return 0;
}

/* Pinning may run Python code, and that may start a run: the library says so then. */
static PyObject *finish(bind_call *call, named_pin **list, tnpy_pin *pin, tn_status status,
                        const tn_error *err) {
    if (status != TN_OK) {
        tnpy_pin_release(pin);
        return tnpy_raise(call->rules.state, err);
    }
    if (keep_pin(list, call->name, pin) != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *bind_input(PyObject *self, PyObject *args) {
    tn_error err = {.code = TN_OK};
    PyObject *name = NULL, *object = NULL, *stage = NULL;
    PyObject *result = NULL;
    tnpy_pin pin;
    bind_call call = {.session = NULL};
    if (!PyArg_ParseTuple(args, "UOO:bind_input", &name, &object, &stage) ||
        begin(&call, self, name, stage) != 0) {
        return NULL;
    }
    if (tnpy_pin_input(&call.rules, call.text, tnpy_input_dtype(call.session, call.text), object,
                       &pin) == 0) {
        const tn_status status =
            tn_io_binding_bind_input(as_binding(self)->binding, call.text, pin.value, &err);
        result = finish(&call, &as_binding(self)->inputs, &pin, status, &err);
    }
    tn_session_release(call.session);
    return result;
}

static PyObject *bind_output(PyObject *self, PyObject *args) {
    tn_error err = {.code = TN_OK};
    PyObject *name = NULL, *object = Py_None;
    PyObject *result = NULL;
    tnpy_pin pin = {.value = NULL};
    bind_call call = {.session = NULL};
    if (!PyArg_ParseTuple(args, "U|O:bind_output", &name, &object) ||
        begin(&call, self, name, NULL) != 0) {
        return NULL;
    }
    if (object == Py_None ||
        tnpy_pin_output(&call.rules, call.text, tnpy_output_dtype(call.session, call.text), object,
                        &pin) == 0) {
        const tn_status status =
            tn_io_binding_bind_output(as_binding(self)->binding, call.text, pin.value, &err);
        result = finish(&call, &as_binding(self)->outputs, &pin, status, &err);
    }
    tn_session_release(call.session);
    return result;
}

static PyObject *make_input(PyObject *self, PyObject *args) {
    tn_error err = {.code = TN_OK};
    PyObject *name = NULL, *sizes = NULL;
    tn_shape shape;
    tn_value *value = NULL;
    bind_call call = {.session = NULL};
    if (!PyArg_ParseTuple(args, "UO:make_input", &name, &sizes) ||
        tnpy_shape_from(sizes, &shape) != 0 || begin(&call, self, name, NULL) != 0) {
        return NULL;
    }
    const tn_status status =
        tn_io_binding_make_input(as_binding(self)->binding, call.text,
                                 tnpy_input_dtype(call.session, call.text), &shape, &value, &err);
    tn_session_release(call.session);
    if (status != TN_OK) return tnpy_raise(call.rules.state, &err);
    free_pin(take_pin(&as_binding(self)->inputs, name));
    return tnpy_tensor_wrap(call.rules.state, value);
}

static PyObject *run(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_error err = {.code = TN_OK};
    tn_status status = TN_OK;
    tn_session *session = enter(self);
    if (session == NULL) return NULL;
    tn_io_binding *binding = as_binding(self)->binding;
    as_binding(self)->is_running = true;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_io_binding_run(binding, &err);
    Py_END_ALLOW_THREADS;
    as_binding(self)->is_running = false;
    tn_session_release(session);
    if (status == TN_OK) Py_RETURN_NONE;
    return tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
}

/* Tensors in the order in which outputs were bound. */
static PyObject *outputs(PyObject *self, PyObject *unused) {
    (void)unused;
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_session *session = enter(self);
    if (session == NULL) return NULL;
    tn_io_binding *binding = as_binding(self)->binding;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < tn_io_binding_output_count(binding); i++) {
        tn_value *value = NULL;
        if (tn_io_binding_output(binding, i, &value, &err) != TN_OK) {
            (void)tnpy_raise(state, &err);
            Py_CLEAR(list);
            break;
        }
        PyObject *tensor = tnpy_tensor_wrap(state, value);
        if (tensor == NULL || PyList_Append(list, tensor) != 0) Py_CLEAR(list);
        Py_XDECREF(tensor);
    }
    tn_session_release(session);
    return list;
}

static PyObject *clear_inputs(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = enter(self);
    if (session == NULL) return NULL;
    tn_io_binding_clear_inputs(as_binding(self)->binding);
    free_pins(&as_binding(self)->inputs);
    tn_session_release(session);
    Py_RETURN_NONE;
}

static PyObject *clear_outputs(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = enter(self);
    if (session == NULL) return NULL;
    tn_io_binding_clear_outputs(as_binding(self)->binding);
    free_pins(&as_binding(self)->outputs);
    tn_session_release(session);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind_input", bind_input, METH_VARARGS, "bind_input(name, object, stage)"},
    {"make_input", make_input, METH_VARARGS,
     "make_input(name, shape) -> bound Tensor in the I/O arena, to be filled"},
    {"bind_output", bind_output, METH_VARARGS,
     "bind_output(name, array=None): written into array, or a new value each run"},
    {"run", run, METH_NOARGS, "Runs once with what is bound."},
    {"outputs", outputs, METH_NOARGS, "Results of the last run in order of binding."},
    {"clear_inputs", clear_inputs, METH_NOARGS, "Unbinds all inputs."},
    {"clear_outputs", clear_outputs, METH_NOARGS, "Unbinds all outputs and drops results."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("Binding(session)")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure._tenure.Binding",
    .basicsize = sizeof(binding_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_binding_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->binding_type);
}
