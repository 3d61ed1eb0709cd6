/* One run: objects are pinned, the interpreter lock is let go, results are wrapped.
 *
 * Everything that the run looks at is referenced from here, because other threads may change the
 * caller's dict and lists meanwhile. */
#include <string.h>

#include "python/py_session.h"

typedef struct run_call {
    const tnpy_pin_rules *rules;
    tn_session *session;
    PyObject *names;  /* tuple of str or NULL: all declared outputs */
    PyObject *keys;   /* list of the feeds' names; keeps their text in place */
    tn_feed *feeds;   /* [feed_count] */
    tnpy_pin *inputs; /* [feed_count] */
    size_t feed_count;
    const char **output_names; /* [output_count] */
    tn_value **values;         /* [output_count] */
    tnpy_pin *given;           /* [output_count]; empty where a new value is made */
    size_t output_count;
    void *memory;
} run_call;

/* All arrays in one zeroed block. */
static int reserve(run_call *call, size_t feed_count, size_t output_count) {
    const size_t feed_bytes = feed_count * (sizeof(tn_feed) + sizeof(tnpy_pin));
    const size_t output_bytes =
        output_count * (sizeof(char *) + sizeof(tn_value *) + sizeof(tnpy_pin));
    char *at = PyMem_Calloc(1, feed_bytes + output_bytes + 1);
    if (at == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    call->memory = at;
    call->inputs = (tnpy_pin *)(void *)at;
    at += feed_count * sizeof(tnpy_pin);
    call->given = (tnpy_pin *)(void *)at;
    at += output_count * sizeof(tnpy_pin);
    call->feeds = (tn_feed *)(void *)at;
    at += feed_count * sizeof(tn_feed);
    call->output_names = (const char **)(void *)at;
    at += output_count * sizeof(char *);
    call->values = (tn_value **)(void *)at;
    call->output_count = output_count;
    return 0;
}

static const char *text_of(PyObject *object, const char *what) {
    if (PyUnicode_Check(object)) return PyUnicode_AsUTF8AndSize(object, NULL);
    PyErr_Format(PyExc_TypeError, "%s must be str, not %R", what, object);
    return NULL;
}

static int pin_feeds(run_call *call, PyObject *feeds) {
    const Py_ssize_t count = PyList_Size(call->keys);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = PyList_GetItem(call->keys, i);
        const char *name = text_of(key, "the name of an input");
        if (name == NULL) return -1;
        PyObject *object = PyDict_GetItemWithError(feeds, key);
        if (object == NULL) {
            if (PyErr_Occurred() == NULL) PyErr_SetObject(PyExc_KeyError, key);
            return -1;
        }
        if (object == Py_None) continue; /* an optional input left out */
        const size_t index = call->feed_count;
        Py_INCREF(object);
        const int result = tnpy_pin_input(call->rules, name, tnpy_input_dtype(call->session, name),
                                          object, &call->inputs[index]);
        Py_DECREF(object);
        if (result != 0) return -1;
        call->feeds[index] = (tn_feed){name, call->inputs[index].value};
        call->feed_count++;
    }
    return 0;
}

static int name_outputs(run_call *call) {
    for (size_t i = 0; i < call->output_count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (call->names != NULL) {
            call->output_names[i] =
                text_of(PyTuple_GetItem(call->names, (Py_ssize_t)i), "the name of an output");
            if (call->output_names[i] == NULL) return -1;
        } else {
            tn_error err = {.code = TN_OK};
            if (tn_session_output_info(call->session, i, &info, &err) != TN_OK) {
                (void)tnpy_raise(call->rules->state, &err);
                return -1;
            }
            call->output_names[i] = info.name;
        }
    }
    return 0;
}

static int pin_outputs(run_call *call, PyObject *out) {
    if (out == Py_None) return 0;
    if ((size_t)PyTuple_Size(out) != call->output_count) {
        (void)tnpy_raise_text(call->rules->state, TN_INVALID_ARGUMENT,
                              "out has %zd arrays for %zu outputs", PyTuple_Size(out),
                              call->output_count);
        return -1;
    }
    for (size_t i = 0; i < call->output_count; i++) {
        PyObject *object = PyTuple_GetItem(out, (Py_ssize_t)i);
        const char *name = call->output_names[i];
        if (object == Py_None) continue;
        if (tnpy_pin_output(call->rules, name, tnpy_output_dtype(call->session, name), object,
                            &call->given[i]) != 0) {
            return -1;
        }
        call->values[i] = call->given[i].value;
    }
    return 0;
}

/* Tensors made by the run, or the caller's own arrays where it gave some. */
static PyObject *take_results(run_call *call) {
    PyObject *list = PyList_New((Py_ssize_t)call->output_count);
    for (size_t i = 0; list != NULL && i < call->output_count; i++) {
        PyObject *item = NULL;
        if (call->given[i].value != NULL) {
            item = Py_NewRef(call->given[i].owner);
        } else {
            item = tnpy_tensor_wrap(call->rules->state, call->values[i]);
            call->values[i] = NULL;
        }
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    for (size_t i = 0; i < call->output_count; i++) {
        if (call->given[i].value == NULL) tn_tensor_release(call->values[i]);
    }
    return list;
}

static PyObject *run_pinned(run_call *call) {
    tn_error err = {.code = TN_OK};
    tn_status status = TN_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_session_run(call->session, call->feeds, call->feed_count, call->output_names,
                            call->output_count, call->values, &err);
    Py_END_ALLOW_THREADS;
    return status == TN_OK ? take_results(call) : tnpy_raise(call->rules->state, &err);
}

static void let_go(run_call *call) {
    for (size_t i = 0; i < call->feed_count; i++) tnpy_pin_release(&call->inputs[i]);
    for (size_t i = 0; i < call->output_count; i++) tnpy_pin_release(&call->given[i]);
    PyMem_Free(call->memory);
    Py_XDECREF(call->keys);
    Py_XDECREF(call->names);
    tn_session_release(call->session);
}

static int begin(run_call *call, PyObject *names, PyObject *feeds) {
    if (names != Py_None) {
        call->names = PySequence_Tuple(names);
        if (call->names == NULL) return -1;
    }
    call->keys = PyDict_Keys(feeds);
    if (call->keys == NULL) return -1;
    const size_t output_count = call->names == NULL ? tn_session_output_count(call->session)
                                                    : (size_t)PyTuple_Size(call->names);
    return reserve(call, (size_t)PyList_Size(call->keys), output_count);
}

PyObject *tnpy_session_run_method(PyObject *self, PyObject *args) {
    PyObject *names = NULL, *feeds = NULL, *out = NULL, *stage = NULL;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "OO!OO:run", &names, &PyDict_Type, &feeds, &out, &stage)) {
        return NULL;
    }
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    const tnpy_pin_rules rules = {tnpy_state_of(Py_TYPE(self)), tn_session_allocator(session),
                                  stage};
    run_call call = {.rules = &rules, .session = session};
    if (begin(&call, names, feeds) == 0 && name_outputs(&call) == 0 &&
        pin_feeds(&call, feeds) == 0 && pin_outputs(&call, out) == 0) {
        result = run_pinned(&call);
    }
    let_go(&call);
    return result;
}
