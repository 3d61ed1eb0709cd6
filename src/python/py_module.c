/* The extension module tenure._tenure: state, types, and nothing at import that costs anything.
 *
 * It uses the limited API only and holds no Python object outside its module's state, so that one
 * file serves every interpreter from 3.11 on. */
#include "python/py_state.h"

#include <string.h>

static struct PyModuleDef module_def;

tnpy_state *tnpy_state_of(PyTypeObject *type) {
    return PyType_GetModuleState(type); /* our types are final, so this never fails */
}

tn_environment *tnpy_default_environment(tnpy_state *state) {
    tn_error err = {.code = TN_OK};
    if (state->default_environment == NULL &&
        tn_environment_create(NULL, &state->default_environment, &err) != TN_OK) {
        (void)tnpy_raise(state, &err);
    }
    return state->default_environment;
}

int tnpy_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}

PyObject *tnpy_new(PyTypeObject *type) {
    return PyType_GenericAlloc(type, 0);
}

void tnpy_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyUnicode_FromString(tn_version());
}

static PyObject *string_tensor(PyObject *module, PyObject *args) {
    PyObject *strings = NULL;
    PyObject *shape = NULL;
    if (!PyArg_ParseTuple(args, "OO:string_tensor", &strings, &shape)) return NULL;
    return tnpy_tensor_from_strings(PyModule_GetState(module), strings, shape);
}

static PyObject *op_row(const tn_op_info *info) {
    return Py_BuildValue("(ssii)", info->name, info->domain, (int)info->since_version,
                         (int)info->until_version);
}

static PyObject *operators(PyObject *module, PyObject *unused) {
    (void)unused;
    tnpy_state *state = PyModule_GetState(module);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < tn_op_count(); i++) {
        tn_op_info info = {.struct_size = sizeof info};
        tn_error err = {.code = TN_OK};
        if (tn_op_get(i, &info, &err) != TN_OK) {
            Py_DECREF(list);
            return tnpy_raise(state, &err);
        }
        PyObject *row = op_row(&info);
        if (row == NULL || PyList_Append(list, row) != 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef methods[] = {
    {"version", version, METH_NOARGS, "version() -> str"},
    {"string_tensor", string_tensor, METH_VARARGS, "string_tensor(strings, shape) -> Tensor"},
    {"operators", operators, METH_NOARGS, "operators() -> list of (name, domain, since, until)"},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    tnpy_state *state = PyModule_GetState(module);
    memset(state, 0, sizeof *state);
    int (*const adders[])(PyObject *, tnpy_state *) = {tnpy_add_errors,
                                                       tnpy_add_tensor_type,
                                                       tnpy_add_allocator_type,
                                                       tnpy_add_buffer_type,
                                                       tnpy_add_environment_type,
                                                       tnpy_add_model_type,
                                                       tnpy_add_execution_arena_type,
                                                       tnpy_add_io_arena_type,
                                                       tnpy_add_session_type,
                                                       tnpy_add_binding_type};
    for (size_t i = 0; i < sizeof adders / sizeof adders[0]; i++) {
        if (adders[i](module, state) != 0) return -1;
    }
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    tnpy_state *state = PyModule_GetState(module);
    if (state == NULL) return 0;
    for (size_t i = 0; i < TNPY_ERROR_COUNT; i++) Py_VISIT(state->errors[i]);
    Py_VISIT(state->tensor_type);
    Py_VISIT(state->allocator_type);
    Py_VISIT(state->buffer_type);
    Py_VISIT(state->environment_type);
    Py_VISIT(state->model_type);
    Py_VISIT(state->execution_arena_type);
    Py_VISIT(state->io_arena_type);
    Py_VISIT(state->session_type);
    Py_VISIT(state->binding_type);
    return 0;
}

static int clear(PyObject *module) {
    tnpy_state *state = PyModule_GetState(module);
    if (state == NULL) return 0;
    for (size_t i = 0; i < TNPY_ERROR_COUNT; i++) Py_CLEAR(state->errors[i]);
    Py_CLEAR(state->tensor_type);
    Py_CLEAR(state->allocator_type);
    Py_CLEAR(state->buffer_type);
    Py_CLEAR(state->environment_type);
    Py_CLEAR(state->model_type);
    Py_CLEAR(state->execution_arena_type);
    Py_CLEAR(state->io_arena_type);
    Py_CLEAR(state->session_type);
    Py_CLEAR(state->binding_type);
    return 0;
}

static void release(void *module) {
    tnpy_state *state = PyModule_GetState(module);
    (void)clear(module);
    /* sessions and outputs still alive hold references of their own */
    tn_environment_release(state->default_environment);
    state->default_environment = NULL;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, TNPY_SLOT(execute)},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tenure._tenure",
    .m_doc = "Tenure's C library; use the names in package tenure instead.",
    .m_size = sizeof(tnpy_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__tenure(void);

PyMODINIT_FUNC PyInit__tenure(void) {
    return PyModuleDef_Init(&module_def);
}
