/* What a session tells about itself, as plain Python objects. */
#include <stdlib.h>
#include <string.h>

#include "python/py_session.h"

typedef tn_status (*info_fn)(const tn_session *, size_t, tn_value_info *, tn_error *);

/* Type strings as onnxruntime writes them: tensor(float), seq(tensor(float)). */
static PyObject *type_text(const tn_value_info *info) {
    const char *dtype = info->dtype == TN_DTYPE_NONE ? "undefined" : tn_dtype_name(info->dtype);
    switch (info->kind) {
        case TN_KIND_SEQUENCE:
            return PyUnicode_FromFormat("seq(tensor(%s))", dtype);
        case TN_KIND_OPTIONAL:
            return PyUnicode_FromFormat(info->element_kind == TN_KIND_SEQUENCE
                                            ? "optional(seq(tensor(%s)))"
                                            : "optional(tensor(%s))",
                                        dtype);
        case TN_KIND_MAP:
            return PyUnicode_FromFormat("map(%s)", dtype);
        case TN_KIND_SPARSE_TENSOR:
            return PyUnicode_FromFormat("sparse_tensor(%s)", dtype);
        case TN_KIND_TENSOR:
        case TN_KIND_UNKNOWN:
            break;
    }
    return PyUnicode_FromFormat("tensor(%s)", dtype);
}

/* Sizes, names of symbols, None where nothing is known; None when even the rank is unknown. */
static PyObject *shape_list(const tn_value_info *info) {
    if (info->rank < 0) return Py_NewRef(Py_None);
    PyObject *list = PyList_New(info->rank);
    for (int32_t d = 0; list != NULL && d < info->rank; d++) {
        PyObject *dim = NULL;
        if (info->dims[d] >= 0) {
            dim = PyLong_FromLongLong(info->dims[d]);
        } else if (info->dim_symbols[d] != NULL) {
            dim = PyUnicode_FromString(info->dim_symbols[d]);
        } else {
            dim = Py_NewRef(Py_None);
        }
        if (dim == NULL || PyList_SetItem(list, d, dim) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *info_tuple(const tn_value_info *info) {
    PyObject *type = type_text(info);
    PyObject *shape = shape_list(info);
    PyObject *tuple = type == NULL || shape == NULL
                          ? NULL
                          : Py_BuildValue("(sOOi)", info->name, type, shape, (int)info->dtype);
    Py_XDECREF(type);
    Py_XDECREF(shape);
    return tuple;
}

typedef size_t (*count_fn)(const tn_session *);

static PyObject *list_infos(PyObject *self, count_fn count, info_fn get) {
    tn_session *session = tnpy_session_hold_self(self);
    PyObject *list = session == NULL ? NULL : PyList_New(0);
    for (size_t i = 0; list != NULL && i < count(session); i++) {
        tn_value_info info = {.struct_size = sizeof info};
        tn_error err = {.code = TN_OK};
        if (get(session, i, &info, &err) != TN_OK) {
            (void)tnpy_raise(tnpy_state_of(Py_TYPE(self)), &err);
            Py_CLEAR(list);
            break;
        }
        PyObject *tuple = info_tuple(&info);
        if (tuple == NULL || PyList_Append(list, tuple) != 0) Py_CLEAR(list);
        Py_XDECREF(tuple);
    }
    tn_session_release(session);
    return list;
}

PyObject *tnpy_session_inputs(PyObject *self, PyObject *unused) {
    (void)unused;
    return list_infos(self, tn_session_input_count, tn_session_input_info);
}

PyObject *tnpy_session_outputs(PyObject *self, PyObject *unused) {
    (void)unused;
    return list_infos(self, tn_session_output_count, tn_session_output_info);
}

PyObject *tnpy_session_overridables(PyObject *self, PyObject *unused) {
    (void)unused;
    return list_infos(self, tn_session_overridable_count, tn_session_overridable_info);
}

static tn_dtype find_dtype(const tn_session *session, const char *name, size_t count, info_fn get) {
    for (size_t i = 0; i < count; i++) {
        tn_value_info info = {.struct_size = sizeof info};
        if (get(session, i, &info, NULL) != TN_OK) break;
        if (strcmp(info.name, name) == 0) return info.dtype;
    }
    return TN_DTYPE_NONE;
}

tn_dtype tnpy_input_dtype(const tn_session *session, const char *name) {
    return find_dtype(session, name, tn_session_input_count(session), tn_session_input_info);
}

tn_dtype tnpy_output_dtype(const tn_session *session, const char *name) {
    return find_dtype(session, name, tn_session_output_count(session), tn_session_output_info);
}

static PyObject *meta_text(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *meta_dict(const tn_session *session) {
    tn_model_meta meta = {.struct_size = sizeof meta};
    tn_session_meta(session, &meta);
    PyObject *dict = PyDict_New();
    PyObject *opsets = PyDict_New();
    PyObject *properties = PyDict_New();
    bool is_whole = dict != NULL && opsets != NULL && properties != NULL;
    for (size_t i = 0; is_whole && i < meta.opset_count; i++) {
        is_whole = tnpy_set_steal(opsets, meta.opset_domains[i],
                                  PyLong_FromLongLong(meta.opset_versions[i])) == 0;
    }
    for (size_t i = 0; is_whole && i < meta.property_count; i++) {
        is_whole = tnpy_set_steal(properties, meta.property_keys[i],
                                  meta_text(meta.property_values[i])) == 0;
    }
    is_whole = is_whole && PyDict_SetItemString(dict, "opsets", opsets) == 0 &&
               PyDict_SetItemString(dict, "custom_metadata_map", properties) == 0 &&
               tnpy_set_steal(dict, "producer_name", meta_text(meta.producer_name)) == 0 &&
               tnpy_set_steal(dict, "producer_version", meta_text(meta.producer_version)) == 0 &&
               tnpy_set_steal(dict, "graph_name", meta_text(meta.graph_name)) == 0 &&
               tnpy_set_steal(dict, "domain", meta_text(meta.domain)) == 0 &&
               tnpy_set_steal(dict, "description", meta_text(meta.doc_string)) == 0 &&
               tnpy_set_steal(dict, "version", PyLong_FromLongLong(meta.model_version)) == 0 &&
               tnpy_set_steal(dict, "ir_version", PyLong_FromLongLong(meta.ir_version)) == 0;
    Py_XDECREF(opsets);
    Py_XDECREF(properties);
    if (!is_whole) Py_CLEAR(dict);
    return dict;
}

PyObject *tnpy_session_meta(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    PyObject *dict = meta_dict(session);
    tn_session_release(session);
    return dict;
}

PyObject *tnpy_session_stats(PyObject *self, PyObject *unused) {
    (void)unused;
    tn_session *session = tnpy_session_hold_self(self);
    if (session == NULL) return NULL;
    tn_session_stats s = {.struct_size = sizeof s};
    tn_session_get_stats(session, &s);
    tn_session_release(session);
    const struct {
        const char *key;
        uint64_t number;
    } figures[] = {{"runs", s.run_count},
                   {"failed_runs", s.failed_run_count},
                   {"payload_copies", s.payload_copies},
                   {"copied_bytes", s.copied_bytes},
                   {"plans", s.plan_count},
                   {"plan_hits", s.plan_hits},
                   {"plan_misses", s.plan_misses},
                   {"weights", s.weights_bytes},
                   {"shared", s.shared_bytes},
                   {"weights_mapped", s.weights_mapped_bytes},
                   {"execution_live", s.execution_live_bytes},
                   {"execution_peak", s.execution_peak_bytes},
                   {"execution_retained", s.execution_retained_bytes},
                   {"workspace_peak", s.workspace_peak_bytes},
                   {"io_live", s.io_live_bytes},
                   {"io_peak", s.io_peak_bytes},
                   {"io_leased", s.io_leased_bytes},
                   {"io_retained", s.io_retained_bytes},
                   {"plan_metadata", s.plan_metadata_bytes},
                   {"measured_peak", s.measured_peak_bytes},
                   {"predicted_peak", s.predicted_peak_bytes},
                   {"execution_lower_bound", s.execution_lower_bound_bytes},
                   {"contexts", s.context_count}};
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < sizeof figures / sizeof figures[0]; i++) {
        if (tnpy_set_u64(dict, figures[i].key, figures[i].number) != 0) Py_CLEAR(dict);
    }
    if (dict != NULL &&
        tnpy_set_steal(dict, "prediction_complete", PyBool_FromLong(s.prediction_complete)) != 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* ---- plans ---- */

static const char *arena_name(const tn_plan_value *value) {
    static const char *const names[] = {
        [TN_PLAN_EXECUTION] = "execution", [TN_PLAN_IO] = "io",
        [TN_PLAN_INPUT] = "input",         [TN_PLAN_WEIGHT] = "weight",
        [TN_PLAN_ALIAS] = "alias",         [TN_PLAN_DYNAMIC] = "dynamic"};
    return value->is_workspace ? "workspace" : names[value->arena];
}

static PyObject *value_dict(const tn_plan_value *value) {
    PyObject *shape = tnpy_shape_to_tuple(&value->shape);
    if (shape == NULL) return NULL;
    PyObject *dict = Py_BuildValue(
        "{s:s,s:s,s:s,s:O,s:K,s:I,s:I,s:K,s:I,s:z}", "name", value->name, "arena",
        arena_name(value), "type", tn_dtype_name(value->dtype), "shape", shape, "size",
        (unsigned long long)value->size_bytes, "birth", (unsigned)value->birth, "death",
        (unsigned)value->death, "offset", (unsigned long long)value->offset_bytes, "layout_block",
        (unsigned)value->layout_block, "alias_of", value->alias_of);
    Py_DECREF(shape);
    return dict;
}

static PyObject *step_dict(const tn_plan_step *step) {
    static const char *const classes[] = {"exact", "reassociated", "approximate"};
    return Py_BuildValue("{s:s,s:s,s:s,s:K,s:s}", "node", step->name, "op", step->op, "kernel",
                         step->variant, "workspace", (unsigned long long)step->workspace_bytes,
                         "rewrite", classes[step->rewrite_class]);
}

static PyObject *plan_values(const tn_plan_report *report, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        tn_plan_value value = {.struct_size = sizeof value};
        if (tn_plan_report_value(report, i, &value, NULL) != TN_OK) break;
        PyObject *dict = value_dict(&value);
        if (dict == NULL || PyList_Append(list, dict) != 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *plan_steps(const tn_plan_report *report, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        tn_plan_step step = {.struct_size = sizeof step};
        if (tn_plan_report_step(report, i, &step, NULL) != TN_OK) break;
        PyObject *dict = step_dict(&step);
        if (dict == NULL || PyList_Append(list, dict) != 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

typedef size_t (*text_fn)(const tn_plan_report *, char *, size_t);

static PyObject *plan_text(const tn_plan_report *report, text_fn write) {
    const size_t needed = write(report, NULL, 0);
    char *text = malloc(needed);
    if (text == NULL) return PyErr_NoMemory();
    (void)write(report, text, needed);
    PyObject *made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)needed - 1, "replace");
    free(text);
    return made;
}

static PyObject *plan_dict(const tn_plan_report *report) {
    tn_plan_summary s = {.struct_size = sizeof s};
    tn_plan_report_summary(report, &s);
    PyObject *dict = PyDict_New();
    if (dict == NULL) return NULL;
    if (tnpy_set_u64(dict, "predicted_peak", s.predicted_peak_bytes) != 0 ||
        tnpy_set_u64(dict, "execution", s.execution_bytes) != 0 ||
        tnpy_set_u64(dict, "lower_bound", s.lower_bound_bytes) != 0 ||
        tnpy_set_u64(dict, "io", s.io_bytes) != 0 ||
        tnpy_set_u64(dict, "weights", s.weights_bytes) != 0 ||
        tnpy_set_u64(dict, "plan_metadata", s.metadata_bytes) != 0 ||
        tnpy_set_u64(dict, "workspace_peak", s.workspace_peak_bytes) != 0 ||
        tnpy_set_u64(dict, "copies", s.copy_count) != 0 ||
        tnpy_set_steal(dict, "complete", PyBool_FromLong(s.is_complete)) != 0 ||
        tnpy_set_steal(dict, "values", plan_values(report, s.value_count)) != 0 ||
        tnpy_set_steal(dict, "steps", plan_steps(report, s.step_count)) != 0 ||
        tnpy_set_steal(dict, "text", plan_text(report, tn_plan_report_text)) != 0 ||
        tnpy_set_steal(dict, "csv", plan_text(report, tn_plan_report_csv)) != 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* Reads one (name, shape, contents or None). Contents are bytes, kept by the caller's list. */
static int read_shape(PyObject *item, tn_plan_shape *out) {
    PyObject *shape = NULL;
    PyObject *contents = NULL;
    if (!PyArg_ParseTuple(item, "sOO:plan", &out->input_name, &shape, &contents) ||
        tnpy_shape_from(shape, &out->shape) != 0) {
        return -1;
    }
    out->data = NULL;
    if (contents == Py_None) return 0;
    out->data = PyBytes_AsString(contents);
    return out->data == NULL ? -1 : 0;
}

/* Plans for the items of a tuple. */
static PyObject *plan_items(tnpy_state *state, tn_session *session, PyObject *items) {
    tn_error err = {.code = TN_OK};
    tn_plan_report *report = NULL;
    tn_status status = TN_OK;
    const size_t count = (size_t)PyTuple_Size(items);
    tn_plan_shape *shapes = PyMem_Calloc(count + 1, sizeof *shapes);
    if (shapes == NULL) return PyErr_NoMemory();
    bool is_read = true;
    for (size_t i = 0; is_read && i < count; i++) {
        is_read = read_shape(PyTuple_GetItem(items, (Py_ssize_t)i), &shapes[i]) == 0;
    }
    PyObject *dict = NULL;
    if (is_read) {
        Py_BEGIN_ALLOW_THREADS;
        status = tn_session_plan(session, shapes, count, &report, &err);
        Py_END_ALLOW_THREADS;
        dict = status == TN_OK ? plan_dict(report) : tnpy_raise(state, &err);
    }
    tn_plan_report_destroy(report);
    PyMem_Free(shapes);
    return dict;
}

PyObject *tnpy_session_plan(PyObject *self, PyObject *list) {
    PyObject *items = PySequence_Tuple(list);
    tn_session *session = items == NULL ? NULL : tnpy_session_hold_self(self);
    PyObject *dict =
        session == NULL ? NULL : plan_items(tnpy_state_of(Py_TYPE(self)), session, items);
    tn_session_release(session);
    Py_XDECREF(items);
    return dict;
}
