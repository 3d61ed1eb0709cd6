/* Session: the type, its options, its life. tenure.InferenceSession is made of one. */
#include "python/py_session.h"

#include <stdlib.h>
#include <string.h>

static tnpy_session_object *as_session(PyObject *self) {
    return (tnpy_session_object *)self;
}

tn_session *tnpy_session_hold_self(PyObject *self) {
    tn_session *held = tn_session_retain(as_session(self)->session);
    if (held == NULL) {
        (void)tnpy_raise_text(tnpy_state_of(Py_TYPE(self)), TN_CLOSED, "the session is closed");
    }
    return held;
}

tn_session *tnpy_session_hold(tnpy_state *state, PyObject *object) {
    if (Py_IS_TYPE(object, state->session_type)) return tnpy_session_hold_self(object);
    PyErr_Format(PyExc_TypeError, "a Session is needed, not %R", object);
    return NULL;
}

/* Which arenas: an IOArena given for execution is single-arena mode. */
static int read_arenas(tnpy_state *state, PyObject *execution, PyObject *io, PyObject *self,
                       tn_session_options *options) {
    if (execution != Py_None) {
        if (Py_IS_TYPE(execution, state->io_arena_type)) {
            options->execution_in_io_arena = tnpy_io_arena_get(state, execution);
        } else {
            options->execution_arena = tnpy_execution_arena_get(state, execution);
            if (options->execution_arena == NULL) return -1;
        }
        as_session(self)->execution_arena = Py_NewRef(execution);
    }
    if (io != Py_None) {
        if (Py_IS_TYPE(io, state->execution_arena_type)) {
            (void)tnpy_raise_text(state, TN_INVALID_ARGUMENT,
                                  "an ExecutionArena cannot serve outputs, an IOArena can");
            return -1;
        }
        options->io_arena = tnpy_io_arena_get(state, io);
        if (options->io_arena == NULL) return -1;
        as_session(self)->io_arena = Py_NewRef(io);
    }
    return 0;
}

/* Reads {symbol: value} into *out, which the caller frees; texts stay with the dict. */
static int read_overrides(PyObject *dict, tn_dim_override **out, size_t *out_count) {
    Py_ssize_t position = 0;
    PyObject *key = NULL;
    PyObject *value = NULL;
    *out_count = 0;
    *out = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof **out);
    if (*out == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    while (PyDict_Next(dict, &position, &key, &value)) {
        const char *symbol = PyUnicode_AsUTF8AndSize(key, NULL);
        const long long size = PyLong_AsLongLong(value);
        if (symbol == NULL || (size == -1 && PyErr_Occurred() != NULL)) return -1;
        (*out)[(*out_count)++] = (tn_dim_override){symbol, size};
    }
    return 0;
}

typedef struct session_arguments {
    PyObject *environment, *model, *execution, *io, *overrides, *limit, *wait_ns;
    tn_session_options options;
} session_arguments;

static int parse(PyObject *args, PyObject *keywords, session_arguments *out) {
    static char *names[] = {"environment",
                            "model",
                            "execution_arena",
                            "io_arena",
                            "dim_overrides",
                            "memory_limit",
                            "wait_for_memory_ns",
                            "thread_count",
                            "max_concurrent_runs",
                            "retention",
                            "retention_window",
                            "name",
                            "disable_reuse",
                            "disable_fusion",
                            "exact_only",
                            "disable_in_place",
                            "poison",
                            NULL};
    int flags[5] = {0};
    int retention = 0;
    tn_session_options *o = &out->options;
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "OO|OOO!OOIIiIzppppp:Session", names, &out->environment, &out->model,
            &out->execution, &out->io, &PyDict_Type, &out->overrides, &out->limit, &out->wait_ns,
            &o->thread_count, &o->max_concurrent_runs, &retention, &o->retention_window, &o->name,
            &flags[0], &flags[1], &flags[2], &flags[3], &flags[4])) {
        return -1;
    }
    o->retention = (tn_retention)retention;
    o->disable_reuse = flags[0] != 0;
    o->disable_fusion = flags[1] != 0;
    o->exact_only = flags[2] != 0;
    o->disable_in_place = flags[3] != 0;
    o->poison = flags[4] != 0;
    if (tnpy_bytes_from(out->limit, 0, &o->memory_limit_bytes) != 0 ||
        tnpy_bytes_from(out->wait_ns, 0, &o->wait_for_memory_ns) != 0) {
        return -1;
    }
    return 0;
}

static int open_session(tnpy_state *state, PyObject *self, session_arguments *arguments) {
    tn_error err = {.code = TN_OK};
    tn_status status = TN_OK;
    tn_environment *environment = tnpy_environment_get(state, arguments->environment);
    tn_model *model = environment == NULL ? NULL : tnpy_model_get(state, arguments->model);
    if (model == NULL) return -1;
    tn_session **out = &as_session(self)->session;
    const tn_session_options *options = &arguments->options;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_session_create(environment, model, options, out, &err);
    Py_END_ALLOW_THREADS;
    if (status == TN_OK) return 0;
    (void)tnpy_raise(state, &err);
    return -1;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    tnpy_state *state = tnpy_state_of(type);
    tn_dim_override *overrides = NULL;
    session_arguments arguments = {.execution = Py_None, .io = Py_None};
    arguments.options.struct_size = sizeof arguments.options;
    if (parse(args, keywords, &arguments) != 0) return NULL;
    PyObject *self = tnpy_new(type);
    if (self == NULL) return NULL;
    int result = read_arenas(state, arguments.execution, arguments.io, self, &arguments.options);
    if (result == 0 && arguments.overrides != NULL) {
        result =
            read_overrides(arguments.overrides, &overrides, &arguments.options.dim_override_count);
        arguments.options.dim_overrides = overrides;
    }
    if (result == 0) result = open_session(state, self, &arguments);
    PyMem_Free(overrides);
    if (result != 0) Py_CLEAR(self);
    return self;
}

static void dealloc(PyObject *self) {
    tn_session *session = as_session(self)->session;
    Py_BEGIN_ALLOW_THREADS; /* a session with threads of its own waits for them to end */
    tn_session_release(session);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(as_session(self)->execution_arena);
    Py_XDECREF(as_session(self)->io_arena);
    tnpy_free(self);
}

static PyObject *close_session(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = as_session(self)->session;
    as_session(self)->session = NULL; /* calls on other threads hold references of their own */
    if (session == NULL) Py_RETURN_NONE;
    Py_BEGIN_ALLOW_THREADS; /* waits for runs that are going on */
    tn_session_close(session);
    tn_session_release(session);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* ---- staging ---- */

static void release_staged(void *ctx, void *data) {
    tn_buffer *buffer = ctx;
    (void)data;
    (void)tn_buffer_release(buffer);
    free(buffer);
}

static tn_status make_staged(tn_session *session, tn_dtype dtype, const tn_shape *shape,
                             tn_value **out, tn_error *err) {
    size_t size_bytes = 0;
    tn_allocation_handle handle = {0};
    tn_io_arena *arena = tn_session_io_arena(session);
    tn_status status = tn_shape_size_bytes(shape, dtype, &size_bytes, err);
    if (status != TN_OK) return status;
    tn_buffer *buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL) {
        err->code = TN_OUT_OF_MEMORY;
        return TN_OUT_OF_MEMORY;
    }
    status = tn_io_arena_allocate(arena, size_bytes, &handle, err);
    if (status == TN_OK) status = tn_allocation_handle_release(&handle, buffer, err);
    if (status != TN_OK) {
        free(buffer);
        return status;
    }
    status = tn_tensor_create_borrowed(tn_session_allocator(session), dtype, shape, NULL,
                                       buffer->data, release_staged, buffer, out, err);
    if (status != TN_OK) release_staged(buffer, NULL);
    if (status == TN_OK) tn_arena_count_copy(tn_io_arena_as_arena(arena), size_bytes);
    return status;
}

static PyObject *stage(PyObject *self, PyObject *args) {
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_shape shape;
    PyObject *sizes = NULL;
    tn_value *value = NULL;
    int dtype = 0;
    if (!PyArg_ParseTuple(args, "iO:stage", &dtype, &sizes) ||
        tnpy_shape_from(sizes, &shape) != 0) {
        return NULL;
    }
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    const tn_status status = make_staged(session, (tn_dtype)dtype, &shape, &value, &err);
    tn_session_release(session);
    return status == TN_OK ? tnpy_tensor_wrap(state, value) : tnpy_raise(state, &err);
}

/* ---- memory ---- */

static PyObject *trim(PyObject *self, PyObject *args) {
    const char *text = "hard";
    tn_trim_level level = TN_TRIM_HARD;
    size_t given_bytes = 0;
    if (!PyArg_ParseTuple(args, "|s:trim", &text) ||
        tnpy_trim_level_from(tnpy_state_of(Py_TYPE(self)), text, &level) != 0) {
        return NULL;
    }
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    given_bytes = tn_session_trim(session, level);
    Py_END_ALLOW_THREADS;
    tn_session_release(session);
    return PyLong_FromSize_t(given_bytes);
}

static PyObject *set_limit(PyObject *self, PyObject *limit) {
    tn_error err = {.code = TN_OK};
    uint64_t limit_bytes = 0;
    if (tnpy_bytes_from(limit, 0, &limit_bytes) != 0) return NULL;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    const tn_status status = tn_session_set_memory_limit(session, limit_bytes, &err);
    tn_session_release(session);
    if (status == TN_OK) Py_RETURN_NONE;
    return tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
}

static PyObject *reset_counters(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    tn_session_reset_counters(session);
    tn_session_release(session);
    Py_RETURN_NONE;
}

static PyObject *allocator_for_output(PyObject *self, PyObject *args) {
    static const char *const names[] = {
        [TN_PLAN_EXECUTION] = "execution", [TN_PLAN_IO] = "io",
        [TN_PLAN_INPUT] = "input",         [TN_PLAN_WEIGHT] = "weight",
        [TN_PLAN_ALIAS] = "alias",         [TN_PLAN_DYNAMIC] = "dynamic"};
    tn_error err = {.code = TN_OK};
    const char *node = NULL;
    unsigned slot = 0;
    tn_plan_arena arena = TN_PLAN_EXECUTION;
    if (!PyArg_ParseTuple(args, "sI:allocator_for_output", &node, &slot)) return NULL;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    const tn_status status = tn_session_allocator_for_output(session, node, slot, &arena, &err);
    tn_session_release(session);
    if (status != TN_OK) return tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
    return PyUnicode_FromString(names[arena]);
}

static PyObject *get_allocator(PyObject *self, void *unused) {
    (void)unused;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    PyObject *made =
        tnpy_allocator_wrap(tnpy_state_of(Py_TYPE(self)), tn_session_allocator(session));
    tn_session_release(session);
    return made;
}

static PyObject *get_io_arena(PyObject *self, void *unused) {
    (void)unused;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    PyObject *made =
        as_session(self)->io_arena != NULL
            ? Py_NewRef(as_session(self)->io_arena)
            : tnpy_io_arena_wrap(tnpy_state_of(Py_TYPE(self)), tn_session_io_arena(session));
    tn_session_release(session);
    return made;
}

static PyObject *get_is_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(as_session(self)->session == NULL);
}

static PyMethodDef methods[] = {
    {"run", tnpy_session_run_method, METH_VARARGS,
     "run(names, feeds, out, stage) -> list of Tensor or of the arrays in out"},
    {"stage", stage, METH_VARARGS,
     "stage(dtype_number, shape) -> Tensor in the I/O arena, counted as a copy"},
    {"inputs", tnpy_session_inputs, METH_NOARGS, "Tuples of (name, type, shape, dtype number)."},
    {"outputs", tnpy_session_outputs, METH_NOARGS, "Tuples of (name, type, shape, dtype number)."},
    {"overridables", tnpy_session_overridables, METH_NOARGS, "Inputs that have a default."},
    {"meta", tnpy_session_meta, METH_NOARGS, "Facts of the model as a dict."},
    {"stats", tnpy_session_stats, METH_NOARGS, "Counters as a dict."},
    {"plan", tnpy_session_plan, METH_O, "plan([(name, shape, contents or None)]) -> dict"},
    {"trim", trim, METH_VARARGS, "trim(level='hard') -> bytes given back"},
    {"set_limit", set_limit, METH_O, "set_limit(bytes or None)"},
    {"reset_counters", reset_counters, METH_NOARGS, "Counters to 0, peaks to what is live."},
    {"allocator_for_output", allocator_for_output, METH_VARARGS,
     "allocator_for_output(node, slot) -> 'execution', 'io', ... as the newest plan has it"},
    {"close", close_session, METH_NOARGS, "Ends use; outputs stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"allocator", get_allocator, NULL, "The session's node of the accounting tree.", NULL},
    {"io_arena", get_io_arena, NULL, "The arena of its outputs.", NULL},
    {"closed", get_is_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("Session(environment, model, **options)")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure._tenure.Session",
    .basicsize = sizeof(tnpy_session_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_session_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->session_type);
}
