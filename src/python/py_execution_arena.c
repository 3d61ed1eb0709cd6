/* ExecutionArena. */
#include "python/py_arena.h"

static tnpy_arena_object *as_arena(PyObject *self) {
    return (tnpy_arena_object *)self;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    tnpy_state *state = tnpy_state_of(type);
    tn_error err = {.code = TN_OK};
    tn_arena_options options;
    tn_allocator *allocator = tnpy_arena_parse(state, args, keywords, &options);
    PyObject *self = allocator == NULL ? NULL : tnpy_new(type);
    if (self == NULL) return NULL;
    tnpy_arena_object *arena = as_arena(self);
    if (tn_execution_arena_create(allocator, &options, &arena->execution, &err) != TN_OK) {
        Py_DECREF(self);
        return tnpy_raise(state, &err);
    }
    arena->arena = tn_execution_arena_as_arena(arena->execution);
    return self;
}

tn_execution_arena *tnpy_execution_arena_get(tnpy_state *state, PyObject *object) {
    if (Py_IS_TYPE(object, state->execution_arena_type)) return as_arena(object)->execution;
    PyErr_Format(PyExc_TypeError, "an ExecutionArena is needed, not %R", object);
    return NULL;
}

static void dealloc(PyObject *self) {
    tn_execution_arena_destroy(as_arena(self)->execution);
    tnpy_free(self);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("ExecutionArena(retention_cap=None, allocator=None, adaptive=False)\n\n"
                          "Memory of intermediates and workspaces; serves one run at a time.")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, tnpy_arena_methods},
    {Py_tp_getset, tnpy_arena_getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.ExecutionArena",
    .basicsize = sizeof(tnpy_arena_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_execution_arena_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->execution_arena_type);
}
