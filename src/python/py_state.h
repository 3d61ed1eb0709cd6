/* What the files of the extension share: module state, errors, conversions.
 *
 * Threads: everything here needs the interpreter lock, except where it says "any". The lock is let
 * go around loading, running and closing. */
#ifndef TN_PYTHON_PY_STATE_H
#define TN_PYTHON_PY_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <tenure/tenure.h>

/* A slot's function as the pointer that PyType_Slot wants. */
#define TNPY_SLOT(function) ((void *)(uintptr_t)(function))
/* A method that takes keywords, as the pointer that PyMethodDef wants. */
#define TNPY_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

typedef enum tnpy_error_kind {
    TNPY_ERROR_BASE,
    TNPY_ERROR_INVALID_MODEL,
    TNPY_ERROR_INVALID_ARGUMENT,
    TNPY_ERROR_NOT_SUPPORTED,
    TNPY_ERROR_MEMORY_LIMIT,
    TNPY_ERROR_OUT_OF_MEMORY,
    TNPY_ERROR_BUSY,
    TNPY_ERROR_CLOSED,
    TNPY_ERROR_COUNT
} tnpy_error_kind;

typedef struct tnpy_state {
    PyObject *errors[TNPY_ERROR_COUNT];
    PyTypeObject *tensor_type;
    PyTypeObject *allocator_type;
    PyTypeObject *buffer_type;
    PyTypeObject *environment_type;
    PyTypeObject *model_type;
    PyTypeObject *execution_arena_type;
    PyTypeObject *io_arena_type;
    PyTypeObject *session_type;
    PyTypeObject *binding_type;
    tn_environment *default_environment; /* made at first use; one reference */
} tnpy_state;

/* Lends the state of the module that `type`, one of ours, belongs to. */
tnpy_state *tnpy_state_of(PyTypeObject *type);

/* Lends the environment used where none is given. NULL with an exception on failure. */
tn_environment *tnpy_default_environment(tnpy_state *state);

/* ---- errors ---- */

/* Makes the exception classes and adds them to `module`. */
int tnpy_add_errors(PyObject *module, tnpy_state *state);
/* Turns a failure of the library into an exception; returns NULL. */
PyObject *tnpy_raise(tnpy_state *state, const tn_error *err);
/* Raises with a status and a text of ours; returns NULL. */
PyObject *tnpy_raise_text(tnpy_state *state, tn_status code, const char *format, ...)
    TN_PRINTF(3, 4);

/* ---- types, one per file ---- */

int tnpy_add_tensor_type(PyObject *module, tnpy_state *state);
int tnpy_add_allocator_type(PyObject *module, tnpy_state *state);
int tnpy_add_buffer_type(PyObject *module, tnpy_state *state);
int tnpy_add_environment_type(PyObject *module, tnpy_state *state);
int tnpy_add_model_type(PyObject *module, tnpy_state *state);
int tnpy_add_execution_arena_type(PyObject *module, tnpy_state *state);
int tnpy_add_io_arena_type(PyObject *module, tnpy_state *state);
int tnpy_add_session_type(PyObject *module, tnpy_state *state);
int tnpy_add_binding_type(PyObject *module, tnpy_state *state);

/* Makes a heap type from `spec`, adds it to `module` and stores it in *out. */
int tnpy_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out);
/* Allocates an object of `type`, all fields behind the head zero. */
PyObject *tnpy_new(PyTypeObject *type);
/* Frees the object itself and lets its type go; the last line of a dealloc. */
void tnpy_free(PyObject *self);

/* ---- objects made from the library's ---- */

/* A Tensor over `take_value`, whose reference it takes, also on failure. */
PyObject *tnpy_tensor_wrap(tnpy_state *state, tn_value *take_value);
/* Lends the value of a Tensor. */
tn_value *tnpy_tensor_value(PyObject *tensor);
/* A string tensor with elements of `sequence` (str or bytes) and `shape`. */
PyObject *tnpy_tensor_from_strings(tnpy_state *state, PyObject *sequence, PyObject *shape);
/* An Allocator with a new reference on `allocator`. */
PyObject *tnpy_allocator_wrap(tnpy_state *state, tn_allocator *allocator);
/* Lends the allocator of an Allocator; NULL with TypeError for other objects. */
tn_allocator *tnpy_allocator_get(tnpy_state *state, PyObject *object);
/* A Buffer that takes the reference in `take_buffer`, also on failure. */
PyObject *tnpy_buffer_wrap(tnpy_state *state, tn_buffer *take_buffer);
PyObject *tnpy_io_arena_wrap(tnpy_state *state, tn_io_arena *arena);
/* Lend what the objects hold; NULL with an exception when closed or of another type. */
tn_environment *tnpy_environment_get(tnpy_state *state, PyObject *object);
tn_model *tnpy_model_get(tnpy_state *state, PyObject *object);
tn_execution_arena *tnpy_execution_arena_get(tnpy_state *state, PyObject *object);
tn_io_arena *tnpy_io_arena_get(tnpy_state *state, PyObject *object);
/* A new reference of a Session's session, so that another thread, or a finalizer on this one, may
 * close it meanwhile; give it back with tn_session_release. NULL with an exception. */
tn_session *tnpy_session_hold(tnpy_state *state, PyObject *object);

/* ---- conversions ---- */

/* The element type of a buffer with this format and item size; TN_DTYPE_NONE when there is none. */
tn_dtype tnpy_dtype_of_format(const char *format, Py_ssize_t item_bytes);
/* The format under which elements of `dtype` are exported; NULL for strings. */
const char *tnpy_format_of_dtype(tn_dtype dtype);
/* A tuple or list of sizes as a shape; false with an exception. */
int tnpy_shape_from(PyObject *object, tn_shape *out);
PyObject *tnpy_shape_to_tuple(const tn_shape *shape);
/* None is `fallback`; else bytes >= 0. False with an exception. */
int tnpy_bytes_from(PyObject *object, uint64_t fallback, uint64_t *out);
/* "hard" or "soft". */
int tnpy_trim_level_from(tnpy_state *state, const char *text, tn_trim_level *out);
/* Adds key = number to `dict`; -1 with an exception. */
int tnpy_set_u64(PyObject *dict, const char *key, uint64_t number);
int tnpy_set_steal(PyObject *dict, const char *key, PyObject *steal_value);
/* The allocator's tree as nested dicts. */
PyObject *tnpy_allocator_stats(const tn_allocator *allocator);
PyObject *tnpy_allocator_report(const tn_allocator *allocator);

#endif
