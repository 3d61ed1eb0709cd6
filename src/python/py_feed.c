/* Arrays of the right type are borrowed through the buffer protocol: no byte is copied, strided
 * ones are staged by the library. Everything else (lists, scalars, other types, strings) is handed
 * to `stage`, which writes it once into a block of the session's I/O arena. */
#include "python/py_feed.h"

#include <string.h>

void tnpy_pin_release(tnpy_pin *pin) {
    tn_tensor_release(pin->value);
    if (pin->has_view) PyBuffer_Release(&pin->view);
    Py_CLEAR(pin->owner);
    pin->value = NULL;
    pin->has_view = false;
}

/* Types that Python has no format for travel as unsigned integers of their size. */
static bool is_carried_as(tn_dtype wanted, tn_dtype given) {
    if (wanted == given || wanted == TN_DTYPE_NONE) return true;
    if (given == TN_DTYPE_U16) return wanted == TN_DTYPE_BF16;
    return given == TN_DTYPE_U8 && (wanted == TN_DTYPE_F8E4M3FN || wanted == TN_DTYPE_F8E4M3FNUZ ||
                                    wanted == TN_DTYPE_F8E5M2 || wanted == TN_DTYPE_F8E5M2FNUZ ||
                                    wanted == TN_DTYPE_F8E8M0);
}

/* The tensor over an exported buffer; TN_UNSUPPORTED without a message when it must be staged. */
static tn_status wrap_view(const tnpy_pin_rules *rules, tn_dtype wanted, const Py_buffer *view,
                           tn_value **out, tn_error *err) {
    tn_shape shape = {.rank = view->ndim};
    int64_t strides[TN_MAX_RANK];
    const tn_dtype given = tnpy_dtype_of_format(view->format, view->itemsize);
    if (given == TN_DTYPE_NONE || view->suboffsets != NULL || view->ndim > TN_MAX_RANK ||
        !is_carried_as(wanted, given)) {
        return TN_UNSUPPORTED;
    }
    for (int d = 0; d < view->ndim; d++) {
        shape.dims[d] = view->shape[d];
        strides[d] = view->strides[d];
    }
    return tn_tensor_create_borrowed(rules->allocator, wanted == TN_DTYPE_NONE ? given : wanted,
                                     &shape, strides, view->buf, NULL, NULL, out, err);
}

/* Borrows an exported buffer. Returns 0, -1 with an exception, or 1 when it must be staged. */
static int pin_buffer(const tnpy_pin_rules *rules, tn_dtype wanted, PyObject *object,
                      tnpy_pin *out) {
    tn_error err = {.code = TN_OK};
    if (!PyObject_CheckBuffer(object) ||
        PyObject_GetBuffer(object, &out->view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear();
        return 1;
    }
    if (wrap_view(rules, wanted, &out->view, &out->value, &err) == TN_OK) {
        out->has_view = true;
        return 0;
    }
    PyBuffer_Release(&out->view);
    if (err.code == TN_OK) return 1;
    (void)tnpy_raise(rules->state, &err);
    return -1;
}

/* What `stage` answers is a Tensor, or an array that can be borrowed after all. */
static int stage(const tnpy_pin_rules *rules, const char *name, tn_dtype wanted, PyObject *object,
                 tnpy_pin *out) {
    PyObject *staged = PyObject_CallFunction(rules->stage, "sOi", name, object, (int)wanted);
    if (staged == NULL) return -1;
    int result = 0;
    if (Py_IS_TYPE(staged, rules->state->tensor_type)) {
        out->value = tn_tensor_retain(tnpy_tensor_value(staged));
    } else {
        result = pin_buffer(rules, wanted, staged, out);
    }
    if (result == 1) {
        PyErr_Format(PyExc_TypeError, "staging input '%s' gave %R", name, staged);
        result = -1;
    }
    Py_DECREF(staged);
    return result;
}

int tnpy_pin_input(const tnpy_pin_rules *rules, const char *name, tn_dtype wanted, PyObject *object,
                   tnpy_pin *out) {
    *out = (tnpy_pin){.value = NULL};
    if (Py_IS_TYPE(object, rules->state->tensor_type)) {
        out->value = tn_tensor_retain(tnpy_tensor_value(object));
        return 0;
    }
    const int result = pin_buffer(rules, wanted, object, out);
    return result == 1 ? stage(rules, name, wanted, object, out) : result;
}

int tnpy_pin_output(const tnpy_pin_rules *rules, const char *name, tn_dtype wanted,
                    PyObject *object, tnpy_pin *out) {
    tn_error err = {.code = TN_OK};
    *out = (tnpy_pin){.value = NULL};
    if (Py_IS_TYPE(object, rules->state->tensor_type)) {
        out->value = tn_tensor_retain(tnpy_tensor_value(object));
        out->owner = Py_NewRef(object);
        return 0;
    }
    if (PyObject_GetBuffer(object, &out->view,
                           PyBUF_WRITABLE | PyBUF_ND | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
        PyErr_Clear();
        (void)tnpy_raise_text(rules->state, TN_INVALID_ARGUMENT,
                              "output '%s': the array to write into must be writable, "
                              "C-contiguous and of a type with a buffer",
                              name);
        return -1;
    }
    out->has_view = true;
    tn_status status = wrap_view(rules, wanted, &out->view, &out->value, &err);
    if (status == TN_UNSUPPORTED && err.code == TN_OK) {
        /* the library compares types and says what is wrong */
        status = wrap_view(rules, TN_DTYPE_NONE, &out->view, &out->value, &err);
    }
    if (status == TN_OK) {
        out->owner = Py_NewRef(object);
        return 0;
    }
    tnpy_pin_release(out);
    if (err.code == TN_OK) {
        (void)tnpy_raise_text(rules->state, TN_INVALID_ARGUMENT,
                              "output '%s': arrays of this type cannot be written into", name);
    } else {
        (void)tnpy_raise(rules->state, &err);
    }
    return -1;
}
