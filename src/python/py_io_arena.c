/* IOArena. */
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
    if (tn_io_arena_create(allocator, &options, &arena->io, &err) != TN_OK) {
        Py_DECREF(self);
        return tnpy_raise(state, &err);
    }
    arena->arena = tn_io_arena_as_arena(arena->io);
    return self;
}

PyObject *tnpy_io_arena_wrap(tnpy_state *state, tn_io_arena *arena) {
    PyObject *self = tnpy_new(state->io_arena_type);
    if (self == NULL) return NULL;
    as_arena(self)->io = tn_io_arena_retain(arena);
    as_arena(self)->arena = tn_io_arena_as_arena(arena);
    return self;
}

tn_io_arena *tnpy_io_arena_get(tnpy_state *state, PyObject *object) {
    if (Py_IS_TYPE(object, state->io_arena_type)) return as_arena(object)->io;
    PyErr_Format(PyExc_TypeError, "an IOArena is needed, not %R", object);
    return NULL;
}

static void dealloc(PyObject *self) {
    tn_io_arena_release(as_arena(self)->io);
    tnpy_free(self);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("IOArena(retention_cap=None, allocator=None, adaptive=False)\n\n"
                          "Memory of outputs and staged inputs; safe from any thread.")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_methods, tnpy_arena_methods},
    {Py_tp_getset, tnpy_arena_getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.IOArena",
    .basicsize = sizeof(tnpy_arena_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_io_arena_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->io_arena_type);
}
