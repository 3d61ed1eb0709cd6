/* The session object, for the files that make up its type and for bindings. */
#ifndef TN_PYTHON_PY_SESSION_H
#define TN_PYTHON_PY_SESSION_H

#include "python/py_feed.h"

typedef struct tnpy_session_object {
    PyObject_HEAD tn_session *session; /* one reference; NULL once closed */
    PyObject *execution_arena;         /* one reference each, or NULL */
    PyObject *io_arena;
} tnpy_session_object;

/* tnpy_session_hold for a method's own object. */
tn_session *tnpy_session_hold_self(PyObject *self);

/* Element type of the declared input or output `name`; TN_DTYPE_NONE when unknown. */
tn_dtype tnpy_input_dtype(const tn_session *session, const char *name);
tn_dtype tnpy_output_dtype(const tn_session *session, const char *name);

/* Methods in py_session_info.c and py_session_run.c. */
PyObject *tnpy_session_run_method(PyObject *self, PyObject *args);
PyObject *tnpy_session_inputs(PyObject *self, PyObject *unused);
PyObject *tnpy_session_outputs(PyObject *self, PyObject *unused);
PyObject *tnpy_session_overridables(PyObject *self, PyObject *unused);
PyObject *tnpy_session_meta(PyObject *self, PyObject *unused);
PyObject *tnpy_session_stats(PyObject *self, PyObject *unused);
PyObject *tnpy_session_plan(PyObject *self, PyObject *shapes);

#endif
