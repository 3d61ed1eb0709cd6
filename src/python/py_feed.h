/* Python objects as values of a run, borrowed for as long as a pin lives. */
#ifndef TN_PYTHON_PY_FEED_H
#define TN_PYTHON_PY_FEED_H

#include "python/py_state.h"

/* A value and what keeps its memory in place. Zero is empty.
 * Threads: released on a thread that holds the interpreter lock. */
typedef struct tnpy_pin {
    tn_value *value; /* one reference */
    PyObject *owner; /* one reference, or NULL */
    Py_buffer view;
    bool has_view;
} tnpy_pin;

/* How inputs become values: where records are charged, and what is done with objects that cannot be
 * borrowed as they are. */
typedef struct tnpy_pin_rules {
    tnpy_state *state;
    tn_allocator *allocator;
    PyObject *stage; /* borrowed: stage(name, object, dtype_number) -> Tensor */
} tnpy_pin_rules;

/* Borrows `object` for input `name`, whose element type is `wanted` (TN_DTYPE_NONE: any). Returns
 * 0, or -1 with an exception. */
int tnpy_pin_input(const tnpy_pin_rules *rules, const char *name, tn_dtype wanted, PyObject *object,
                   tnpy_pin *out);

/* Borrows `object` to write output `name` into; its type is `wanted` where that is known. */
int tnpy_pin_output(const tnpy_pin_rules *rules, const char *name, tn_dtype wanted,
                    PyObject *object, tnpy_pin *out);

void tnpy_pin_release(tnpy_pin *pin);

#endif
