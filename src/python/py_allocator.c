/* Allocator: a node of the accounting tree. */
#include <stdlib.h>
#include <string.h>

#include "python/py_state.h"

typedef struct allocator_object {
    PyObject_HEAD tn_allocator *allocator; /* one reference */
} allocator_object;

static tn_allocator *allocator_of(PyObject *self) {
    return ((allocator_object *)self)->allocator;
}

static PyObject *wrap_steal(tnpy_state *state, tn_allocator *take_allocator) {
    PyObject *self = tnpy_new(state->allocator_type);
    if (self == NULL) {
        tn_allocator_release(take_allocator);
        return NULL;
    }
    ((allocator_object *)self)->allocator = take_allocator;
    return self;
}

PyObject *tnpy_allocator_wrap(tnpy_state *state, tn_allocator *allocator) {
    return wrap_steal(state, tn_allocator_retain(allocator));
}

tn_allocator *tnpy_allocator_get(tnpy_state *state, PyObject *object) {
    if (Py_IS_TYPE(object, state->allocator_type)) return allocator_of(object);
    PyErr_Format(PyExc_TypeError, "an Allocator is needed, not %R", object);
    return NULL;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"name", "limit", "page_source", NULL};
    tnpy_state *state = tnpy_state_of(type);
    tn_error err = {.code = TN_OK};
    tn_allocator *allocator = NULL;
    PyObject *limit = NULL;
    tn_allocator_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zOz:Allocator", names, &options.name, &limit,
                                     &options.page_source_name) ||
        tnpy_bytes_from(limit, 0, &options.limit_bytes) != 0) {
        return NULL;
    }
    if (tn_allocator_create_root(&options, &allocator, &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    return wrap_steal(state, allocator);
}

static void dealloc(PyObject *self) {
    tn_allocator_release(allocator_of(self));
    tnpy_free(self);
}

static PyObject *child(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"name", "limit", "reservation", NULL};
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_allocator *made = NULL;
    PyObject *limit = NULL;
    PyObject *reservation = NULL;
    tn_allocator_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zOO:child", names, &options.name, &limit,
                                     &reservation) ||
        tnpy_bytes_from(limit, 0, &options.limit_bytes) != 0 ||
        tnpy_bytes_from(reservation, 0, &options.reservation_bytes) != 0) {
        return NULL;
    }
    if (tn_allocator_create_child(allocator_of(self), &options, &made, &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    return wrap_steal(state, made);
}

static PyObject *buffer(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"size", "align", NULL};
    tnpy_state *state = tnpy_state_of(Py_TYPE(self));
    tn_error err = {.code = TN_OK};
    tn_buffer made = {0};
    PyObject *size = NULL;
    PyObject *align = NULL;
    uint64_t size_bytes = 0;
    uint64_t align_bytes = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:buffer", names, &size, &align) ||
        tnpy_bytes_from(size, 0, &size_bytes) != 0 ||
        tnpy_bytes_from(align, 0, &align_bytes) != 0) {
        return NULL;
    }
    if (tn_buffer_create(allocator_of(self), (size_t)size_bytes, (size_t)align_bytes, &made,
                         &err) != TN_OK) {
        return tnpy_raise(state, &err);
    }
    return tnpy_buffer_wrap(state, &made);
}

static PyObject *close_node(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_error err = {.code = TN_OK};
    if (tn_allocator_close(allocator_of(self), &err) == TN_OK) Py_RETURN_NONE;
    return tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
}

static PyObject *abandon(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_allocator_abandon(allocator_of(self));
    Py_RETURN_NONE;
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
    given_bytes = tn_allocator_trim(allocator_of(self), level);
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(given_bytes);
}

static PyObject *verify(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_error err = {.code = TN_OK};
    if (tn_allocator_verify(allocator_of(self), &err) == TN_OK) Py_RETURN_NONE;
    return tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
}

static PyObject *reset_peak(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_allocator_reset_peak(allocator_of(self));
    Py_RETURN_NONE;
}

PyObject *tnpy_allocator_report(const tn_allocator *allocator) {
    size_t capacity = 4096;
    for (;;) {
        char *text = malloc(capacity);
        if (text == NULL) return PyErr_NoMemory();
        const size_t needed = tn_allocator_report(allocator, text, capacity);
        PyObject *made = NULL;
        if (needed <= capacity) {
            made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)needed - 1, "replace");
        }
        free(text);
        if (needed <= capacity) return made;
        capacity = needed + needed / 4; /* the tree may grow meanwhile */
    }
}

static PyObject *report(PyObject *self, PyObject *unused) {
    (void)unused;
    return tnpy_allocator_report(allocator_of(self));
}

/* One node without its children. */
static PyObject *node_dict(const tn_allocator *allocator) {
    tn_allocator_stats s = {.struct_size = sizeof s};
    tn_allocator_get_stats(allocator, &s);
    PyObject *dict = PyDict_New();
    if (dict == NULL) return NULL;
    const struct {
        const char *key;
        uint64_t number;
    } figures[] = {{"reservation", s.reservation_bytes},
                   {"charged", s.charged_bytes},
                   {"used", s.charged_bytes},
                   {"own", s.own_bytes},
                   {"slack", s.slack_bytes},
                   {"live", s.live_bytes},
                   {"live_capacity", s.live_capacity_bytes},
                   {"retained", s.retained_bytes},
                   {"leased", s.leased_bytes},
                   {"mapped", s.mapped_bytes},
                   {"held", s.held_bytes},
                   {"peak", s.peak_bytes},
                   {"live_peak", s.live_peak_bytes},
                   {"shared", 0},
                   {"refusals", s.refusal_count},
                   {"blocks", s.block_count},
                   {"records", s.record_count}};
    PyObject *limit =
        s.limit_bytes == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(s.limit_bytes);
    bool is_whole = tnpy_set_steal(dict, "name", PyUnicode_FromString(s.name)) == 0 &&
                    tnpy_set_steal(dict, "limit", limit) == 0;
    for (size_t i = 0; is_whole && i < sizeof figures / sizeof figures[0]; i++) {
        is_whole = tnpy_set_u64(dict, figures[i].key, figures[i].number) == 0;
    }
    is_whole = is_whole && tnpy_set_steal(dict, "closed", PyBool_FromLong(s.is_closed)) == 0 &&
               tnpy_set_steal(dict, "children", PyList_New(0)) == 0;
    if (!is_whole) Py_CLEAR(dict);
    return dict;
}

typedef struct stats_walk {
    PyObject *path; /* list of the nodes from the top to the one visited last */
    PyObject *top;  /* one reference */
} stats_walk;

/* Shortens the path to `depth` nodes and hangs `node` below its last. */
static int attach(stats_walk *walk, PyObject *node, int depth) {
    const Py_ssize_t length = PyList_Size(walk->path);
    if (PyList_SetSlice(walk->path, depth, length, NULL) != 0) return -1;
    if (depth == 0) {
        walk->top = Py_NewRef(node);
    } else {
        PyObject *parent = PyList_GetItem(walk->path, depth - 1);
        PyObject *children = parent == NULL ? NULL : PyDict_GetItemString(parent, "children");
        if (children == NULL || PyList_Append(children, node) != 0) return -1;
    }
    return PyList_Append(walk->path, node);
}

static bool visit_node(void *ctx, const tn_allocator *allocator, int depth) {
    stats_walk *walk = ctx;
    PyObject *node = node_dict(allocator);
    const int result = node == NULL ? -1 : attach(walk, node, depth);
    Py_XDECREF(node);
    return result == 0;
}

PyObject *tnpy_allocator_stats(const tn_allocator *allocator) {
    stats_walk walk = {PyList_New(0), NULL};
    if (walk.path == NULL) return NULL;
    tn_allocator_visit(allocator, visit_node, &walk);
    Py_DECREF(walk.path);
    if (PyErr_Occurred() != NULL) Py_CLEAR(walk.top);
    return walk.top;
}

static PyObject *stats(PyObject *self, PyObject *unused) {
    (void)unused;
    return tnpy_allocator_stats(allocator_of(self));
}

static PyObject *page_source_stats(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_page_source_stats s = {.struct_size = sizeof s};
    tn_allocator_get_page_source_stats(allocator_of(self), &s);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K}", "held", (unsigned long long)s.held_bytes, "used",
        (unsigned long long)s.used_bytes, "allocations", (unsigned long long)s.alloc_count, "frees",
        (unsigned long long)s.free_count, "mappings", (unsigned long long)s.mapping_count);
}

static PyObject *enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *get_name(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(tn_allocator_name(allocator_of(self)));
}

static PyObject *get_parent(PyObject *self, void *unused) {
    (void)unused;
    tn_allocator *parent = tn_allocator_parent(allocator_of(self));
    if (parent == NULL) Py_RETURN_NONE;
    return tnpy_allocator_wrap(tnpy_state_of(Py_TYPE(self)), parent);
}

/* Which figure a getter shows: its offset in tn_allocator_stats. */
static PyObject *get_figure(PyObject *self, void *closure) {
    tn_allocator_stats s = {.struct_size = sizeof s};
    uint64_t number = 0;
    tn_allocator_get_stats(allocator_of(self), &s);
    memcpy(&number, (const char *)&s + (uintptr_t)closure, sizeof number);
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *get_limit(PyObject *self, void *unused) {
    (void)unused;
    tn_allocator_stats s = {.struct_size = sizeof s};
    tn_allocator_get_stats(allocator_of(self), &s);
    if (s.limit_bytes == 0) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(s.limit_bytes);
}

static int set_limit(PyObject *self, PyObject *value, void *unused) {
    (void)unused;
    uint64_t limit_bytes = 0;
    if (tnpy_bytes_from(value, 0, &limit_bytes) != 0) return -1;
    tn_allocator_set_limit(allocator_of(self), limit_bytes);
    return 0;
}

static PyObject *get_is_closed(PyObject *self, void *unused) {
    (void)unused;
    tn_allocator_stats s = {.struct_size = sizeof s};
    tn_allocator_get_stats(allocator_of(self), &s);
    return PyBool_FromLong(s.is_closed);
}

static PyObject *repr(PyObject *self) {
    return PyUnicode_FromFormat("<tenure.Allocator '%s' charged %llu>",
                                tn_allocator_name(allocator_of(self)),
                                (unsigned long long)tn_allocator_charged(allocator_of(self)));
}

static PyMethodDef methods[] = {
    {"child", TNPY_KEYWORDS(child), METH_VARARGS | METH_KEYWORDS,
     "child(name=None, limit=None, reservation=0) -> Allocator"},
    {"buffer", TNPY_KEYWORDS(buffer), METH_VARARGS | METH_KEYWORDS,
     "buffer(size, align=64) -> Buffer of uninitialised bytes"},
    {"close", close_node, METH_NOARGS,
     "Ends use; BusyError, with nothing changed, while something is outstanding."},
    {"abandon", abandon, METH_NOARGS, "Ends use whatever is outstanding."},
    {"trim", TNPY_KEYWORDS(trim), METH_VARARGS | METH_KEYWORDS,
     "trim(level='hard') -> bytes given back"},
    {"verify", verify, METH_NOARGS, "Proves that the numbers of the whole tree add up."},
    {"reset_peak", reset_peak, METH_NOARGS, "Sets the peak to what is charged now."},
    {"report", report, METH_NOARGS, "The tree as text."},
    {"stats", stats, METH_NOARGS, "The tree as nested dicts."},
    {"page_source_stats", page_source_stats, METH_NOARGS,
     "Counters of the whole tree's page sources."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", close_node, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define FIGURE(field) ((void *)offsetof(tn_allocator_stats, field))

static PyGetSetDef getters[] = {
    {"name", get_name, NULL, NULL, NULL},
    {"parent", get_parent, NULL, "The parent, or None.", NULL},
    {"limit", get_limit, set_limit, "Bytes, or None.", NULL},
    {"reservation", get_figure, NULL, "Bytes held from the parent.", FIGURE(reservation_bytes)},
    {"charged", get_figure, NULL, "Bytes that count against limits.", FIGURE(charged_bytes)},
    {"used", get_figure, NULL, "The same as charged.", FIGURE(charged_bytes)},
    {"peak", get_figure, NULL, "Most that was charged.", FIGURE(peak_bytes)},
    {"slack", get_figure, NULL, "Bytes held beyond what is charged.", FIGURE(slack_bytes)},
    {"closed", get_is_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, TNPY_SLOT("Allocator(name=None, limit=None, page_source=None)\n\nA node of the "
                          "accounting tree; made by itself it is a root.")},
    {Py_tp_new, TNPY_SLOT(create)},
    {Py_tp_dealloc, TNPY_SLOT(dealloc)},
    {Py_tp_repr, TNPY_SLOT(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenure.Allocator",
    .basicsize = sizeof(allocator_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tnpy_add_allocator_type(PyObject *module, tnpy_state *state) {
    return tnpy_add_type(module, &spec, &state->allocator_type);
}
