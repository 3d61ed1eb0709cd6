/* What the two arena types have in common: all works on tn_arena. */
#ifndef TN_PYTHON_PY_ARENA_H
#define TN_PYTHON_PY_ARENA_H

#include "python/py_state.h"

/* Both types begin with this. `arena` is the same object under its common name. */
typedef struct tnpy_arena_object {
    PyObject_HEAD tn_arena *arena;
    tn_execution_arena *execution; /* owned; NULL in an IOArena */
    tn_io_arena *io;               /* one reference; NULL in an ExecutionArena */
} tnpy_arena_object;

/* Parses (retention_cap=None, allocator=None, adaptive=False). Lends the allocator; NULL with an
 * exception. */
tn_allocator *tnpy_arena_parse(tnpy_state *state, PyObject *args, PyObject *keywords,
                               tn_arena_options *out);

extern PyMethodDef tnpy_arena_methods[];
extern PyGetSetDef tnpy_arena_getters[];

#endif
