/* Methods and figures of both arena types. */
#include "python/py_arena.h"

#include <stddef.h>
#include <string.h>

static tn_arena *arena_of(PyObject *self) {
    return ((tnpy_arena_object *)self)->arena;
}

/* None is no cap. */
static int cap_from(PyObject *object, uint64_t *out) {
    return tnpy_bytes_from(object, TN_RETENTION_UNLIMITED, out);
}

tn_allocator *tnpy_arena_parse(tnpy_state *state, PyObject *args, PyObject *keywords,
                               tn_arena_options *out) {
    static char *names[] = {"retention_cap", "allocator", "adaptive", NULL};
    PyObject *cap = Py_None;
    PyObject *allocator = Py_None;
    int is_adaptive = 0;
    uint64_t cap_bytes = 0;
    *out = (tn_arena_options){.struct_size = sizeof *out};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOp:Arena", names, &cap, &allocator,
                                     &is_adaptive) ||
        cap_from(cap, &cap_bytes) != 0) {
        return NULL;
    }
    out->has_retention_cap = cap_bytes != TN_RETENTION_UNLIMITED;
    out->retention_cap_bytes = cap_bytes;
    out->is_adaptive = is_adaptive != 0;
    if (allocator != Py_None) return tnpy_allocator_get(state, allocator);
    tn_environment *environment = tnpy_default_environment(state);
    return environment == NULL ? NULL : tn_environment_allocator(environment);
}

static PyObject *trim(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"level", NULL};
    const char *text = "hard";
    tn_trim_level level = TN_TRIM_HARD;
    size_t given_bytes = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|s:trim", names, &text) ||
        tnpy_trim_level_from(tnpy_state_of(Py_TYPE(self)), text, &level) != 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    given_bytes = tn_arena_trim(arena_of(self), level);
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(given_bytes);
}

static PyObject *shrink(PyObject *self, PyObject *target) {
    uint64_t target_bytes = 0;
    if (tnpy_bytes_from(target, 0, &target_bytes) != 0) return NULL;
    return PyLong_FromSize_t(tn_arena_shrink(arena_of(self), target_bytes));
}

static PyObject *reset_peak(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_arena_reset_peak(arena_of(self));
    Py_RETURN_NONE;
}

static PyObject *allocate(PyObject *self, PyObject *size) {
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_allocation_handle handle = {0};
    tn_buffer buffer = {0};
    uint64_t size_bytes = 0;
    if (tnpy_bytes_from(size, 0, &size_bytes) != 0) return NULL;
    if (tn_arena_allocate(arena_of(self), (size_t)size_bytes, &handle, &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    if (tn_allocation_handle_release(&handle, &buffer, &err) != TN_OK) {
        (void)tn_allocation_handle_reset(&handle);
        return tnpy_raise(state, &err);
    }
    return tnpy_buffer_wrap(state, &buffer);
}

static PyObject *stats(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_arena_stats s = {.struct_size = sizeof s};
    tn_arena_get_stats(arena_of(self), &s);
    const struct {
        const char *key;
        uint64_t number;
    } figures[] = {{"live", s.live_bytes},
                   {"live_capacity", s.live_capacity_bytes},
                   {"leased", s.leased_bytes},
                   {"retained", s.retained_bytes},
                   {"live_peak", s.live_peak_bytes},
                   {"live_capacity_peak", s.live_capacity_peak_bytes},
                   {"retained_peak", s.retained_peak_bytes},
                   {"allocated_count", s.allocated_count},
                   {"leased_count", s.leased_count},
                   {"retained_count", s.retained_count},
                   {"hits", s.hits},
                   {"misses", s.misses},
                   {"sys_allocs", s.sys_allocs},
                   {"sys_frees", s.sys_frees},
                   {"evictions", s.evictions},
                   {"copies", s.copies},
                   {"copied_bytes", s.copied_bytes},
                   {"adopted", s.adopted},
                   {"slab", s.slab_bytes},
                   {"runs", s.run_count}};
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < sizeof figures / sizeof figures[0]; i++) {
        if (tnpy_set_u64(dict, figures[i].key, figures[i].number) != 0) Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *get_figure(PyObject *self, void *closure) {
    tn_arena_stats s = {.struct_size = sizeof s};
    uint64_t number = 0;
    tn_arena_get_stats(arena_of(self), &s);
    memcpy(&number, (const char *)&s + (uintptr_t)closure, sizeof number);
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *get_cap(PyObject *self, void *unused) {
    (void)unused;
    const uint64_t cap_bytes = tn_arena_retention_cap(arena_of(self));
    if (cap_bytes == TN_RETENTION_UNLIMITED) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(cap_bytes);
}

static int set_cap(PyObject *self, PyObject *value, void *unused) {
    (void)unused;
    uint64_t cap_bytes = 0;
    if (cap_from(value, &cap_bytes) != 0) return -1;
    (void)tn_arena_set_retention_cap(arena_of(self), cap_bytes);
    return 0;
}

static PyObject *get_allocator(PyObject *self, void *unused) {
    (void)unused;
    return tnpy_allocator_wrap(tnpy_state_of(Py_TYPE(self)), tn_arena_allocator(arena_of(self)));
}

PyMethodDef tnpy_arena_methods[] = {
    {"trim", TNPY_KEYWORDS(trim), METH_VARARGS | METH_KEYWORDS,
     "trim(level='hard') -> bytes of retained blocks given back"},
    {"shrink", shrink, METH_O,
     "shrink(target) -> bytes given back, least recently used first, until target is retained"},
    {"reset_peak", reset_peak, METH_NOARGS, "Sets the peaks to what is live and retained now."},
    {"allocate", allocate, METH_O, "allocate(size) -> Buffer whose release returns its block"},
    {"stats", stats, METH_NOARGS, "All figures as a dict."},
    {NULL, NULL, 0, NULL},
};

#define FIGURE(field) ((void *)offsetof(tn_arena_stats, field))

PyGetSetDef tnpy_arena_getters[] = {
    {"live_bytes", get_figure, NULL, "Logical bytes of live blocks.", FIGURE(live_bytes)},
    {"live_capacity", get_figure, NULL, "Capacity of live blocks.", FIGURE(live_capacity_bytes)},
    {"leased_bytes", get_figure, NULL, "The exported part of live.", FIGURE(leased_bytes)},
    {"retained_bytes", get_figure, NULL, "Capacity kept for reuse.", FIGURE(retained_bytes)},
    {"peak_bytes", get_figure, NULL, "Most that was live.", FIGURE(live_peak_bytes)},
    {"retention_cap", get_cap, set_cap, "Most that is retained; None is no cap.", NULL},
    {"allocator", get_allocator, NULL, "The allocator that is charged.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
