/* One exception per kind of failure. Each carries code, node and detail; classes also derive from
 * the built-in that a caller would expect, so that `except MemoryError` works. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "python/py_state.h"

static const tnpy_error_kind kind_of_status[TN_STATUS_COUNT] = {
    [TN_OK] = TNPY_ERROR_BASE,
    [TN_INVALID_ARGUMENT] = TNPY_ERROR_INVALID_ARGUMENT,
    [TN_INVALID_MODEL] = TNPY_ERROR_INVALID_MODEL,
    [TN_UNSUPPORTED] = TNPY_ERROR_NOT_SUPPORTED,
    [TN_OUT_OF_RANGE] = TNPY_ERROR_INVALID_ARGUMENT,
    [TN_OVERFLOW] = TNPY_ERROR_INVALID_ARGUMENT,
    [TN_LIMIT] = TNPY_ERROR_MEMORY_LIMIT,
    [TN_OUT_OF_MEMORY] = TNPY_ERROR_OUT_OF_MEMORY,
    [TN_CLOSED] = TNPY_ERROR_CLOSED,
    [TN_BUSY] = TNPY_ERROR_BUSY,
    [TN_DEAD] = TNPY_ERROR_CLOSED,
    [TN_ROOT_MISMATCH] = TNPY_ERROR_INVALID_ARGUMENT,
    [TN_VETOED] = TNPY_ERROR_MEMORY_LIMIT,
    [TN_IO] = TNPY_ERROR_BASE,
    [TN_TIMED_OUT] = TNPY_ERROR_BUSY,
    [TN_INTERNAL] = TNPY_ERROR_BASE,
};

/* TenureError, with defaults for what every instance has. */
static PyObject *make_base(void) {
    PyObject *names =
        Py_BuildValue("{s:O,s:O,s:O}", "code", Py_None, "node", Py_None, "detail", Py_None);
    if (names == NULL) return NULL;
    PyObject *base = PyErr_NewExceptionWithDoc(
        "tenure.TenureError",
        "Any failure. code: name of the status; node: the node, field or file at fault, or None;\n"
        "detail: dict of message, allocator, requested, rounded, used, limit.",
        NULL, names);
    Py_DECREF(names);
    return base;
}

static PyObject *make_kind(PyObject *base, const char *name, const char *doc, PyObject *builtin) {
    char full[64];
    PyObject *bases = PyTuple_Pack(2, base, builtin);
    if (bases == NULL) return NULL;
    (void)snprintf(full, sizeof full, "tenure.%s", name);
    PyObject *made = PyErr_NewExceptionWithDoc(full, doc, bases, NULL);
    Py_DECREF(bases);
    return made;
}

int tnpy_add_errors(PyObject *module, tnpy_state *state) {
    const struct {
        const char *name, *doc;
        PyObject *builtin;
    } kinds[TNPY_ERROR_COUNT] = {
        [TNPY_ERROR_BASE] = {"TenureError", NULL, NULL},
        [TNPY_ERROR_INVALID_MODEL] = {"InvalidModelError", "The model is malformed.",
                                      PyExc_ValueError},
        [TNPY_ERROR_INVALID_ARGUMENT] = {"InvalidArgumentError",
                                         "An argument is wrong; the message says which and why.",
                                         PyExc_ValueError},
        [TNPY_ERROR_NOT_SUPPORTED] = {"NotSupportedError", "This build cannot do that.",
                                      PyExc_NotImplementedError},
        [TNPY_ERROR_MEMORY_LIMIT] = {"MemoryLimitError", "A memory limit refused the request.",
                                     PyExc_MemoryError},
        [TNPY_ERROR_OUT_OF_MEMORY] = {"OutOfMemoryError", "The system has no more memory.",
                                      PyExc_MemoryError},
        [TNPY_ERROR_BUSY] = {"BusyError", "It is in use, or waiting for it took too long.",
                             PyExc_RuntimeError},
        [TNPY_ERROR_CLOSED] = {"ClosedError", "It was closed or released before.",
                               PyExc_RuntimeError},
    };
    for (size_t i = 0; i < TNPY_ERROR_COUNT; i++) {
        state->errors[i] = i == TNPY_ERROR_BASE
                               ? make_base()
                               : make_kind(state->errors[TNPY_ERROR_BASE], kinds[i].name,
                                           kinds[i].doc, kinds[i].builtin);
        if (state->errors[i] == NULL ||
            PyModule_AddObjectRef(module, kinds[i].name, state->errors[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *make_detail(const tn_error *err) {
    PyObject *detail =
        Py_BuildValue("{s:s,s:s}", "message", err->message, "status", tn_status_text(err->code));
    if (detail == NULL) return NULL;
    PyObject *path =
        err->allocator[0] == '\0' ? Py_NewRef(Py_None) : PyUnicode_FromString(err->allocator);
    if (tnpy_set_steal(detail, "allocator", path) != 0 ||
        tnpy_set_u64(detail, "requested", err->requested_bytes) != 0 ||
        tnpy_set_u64(detail, "rounded", err->rounded_bytes) != 0 ||
        tnpy_set_u64(detail, "used", err->used_bytes) != 0 ||
        tnpy_set_u64(detail, "limit", err->limit_bytes) != 0) {
        Py_CLEAR(detail);
    }
    return detail;
}

static int set_attribute(PyObject *object, const char *name, PyObject *steal_value) {
    if (steal_value == NULL) return -1;
    const int result = PyObject_SetAttrString(object, name, steal_value);
    Py_DECREF(steal_value);
    return result;
}

PyObject *tnpy_raise(tnpy_state *state, const tn_error *err) {
    const unsigned code = (unsigned)err->code < TN_STATUS_COUNT ? err->code : TN_INTERNAL;
    PyObject *kind = state->errors[kind_of_status[code]];
    PyObject *text =
        PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    PyObject *instance = text == NULL ? NULL : PyObject_CallFunctionObjArgs(kind, text, NULL);
    Py_XDECREF(text);
    if (instance == NULL) return NULL;
    PyObject *node =
        err->node[0] == '\0'
            ? Py_NewRef(Py_None)
            : PyUnicode_DecodeUTF8(err->node, (Py_ssize_t)strlen(err->node), "replace");
    if (set_attribute(instance, "code", PyUnicode_FromString(tn_status_name(err->code))) == 0 &&
        set_attribute(instance, "node", Py_NewRef(node)) == 0 &&
        set_attribute(instance, "detail", make_detail(err)) == 0) {
        PyErr_SetObject(kind, instance);
    }
    Py_XDECREF(node);
    Py_DECREF(instance);
    return NULL;
}

PyObject *tnpy_raise_text(tnpy_state *state, tn_status code, const char *format, ...) {
    tn_error err;
    va_list args;
    memset(&err, 0, sizeof err);
    err.code = code;
    va_start(args, format);
    (void)vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    return tnpy_raise(state, &err);
}
