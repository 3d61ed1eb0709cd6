"""Scenario 60: every element type, and empty and scalar shapes."""

import numpy as np
import pytest
import session_models as models
import tenure
from onnx import TensorProto

ml_dtypes = pytest.importorskip("ml_dtypes")

PLAIN = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "FLOAT16": np.float16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
    "COMPLEX128": np.complex128,
}
NARROW = {
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
PACKED = {
    "INT4": (ml_dtypes.int4, [-8, -1, 0, 7, 3]),
    "UINT4": (ml_dtypes.uint4, [15, 0, 1, 9, 8]),
    "FLOAT4E2M1": (ml_dtypes.float4_e2m1fn, [0.5, -6, 0, 3, -1.5]),
}


def through(name, array, opset=18):
    number = getattr(TensorProto, name)
    shape = [None] * np.ndim(array)
    from onnx import helper

    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    model = models.build(
        [node],
        {"x": (number, shape), "s": (TensorProto.INT64, [np.ndim(array)])},
        {"y": (number, shape)},
        opset=opset,
    )
    session = tenure.InferenceSession(model)
    return session.run(None, {"x": array, "s": np.array(np.shape(array), np.int64)})[0]


@pytest.mark.parametrize("name", PLAIN)
def test_60_plain_types_keep_type_and_values(name):
    array = np.array([[0, 1, 2], [3, 1, 0]]).astype(PLAIN[name])

    y = through(name, array)

    assert y.dtype == PLAIN[name] and y.flags.writeable
    np.testing.assert_array_equal(y, array)


@pytest.mark.parametrize("name", NARROW)
def test_60_narrow_floats_come_as_ml_dtypes(name):
    array = np.array([0, 1, -0.5, 2], np.float32).astype(NARROW[name])

    y = through(name, array, opset=23)

    assert y.dtype == NARROW[name] and y.flags.writeable
    np.testing.assert_array_equal(y.astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("name", NARROW)
def test_60_narrow_floats_may_be_fed_as_their_bits(name):
    array = np.array([0, 1, -0.5, 2], np.float32).astype(NARROW[name])
    bits = array.view(np.uint16 if name == "BFLOAT16" else np.uint8)

    y = through(name, bits, opset=23)

    np.testing.assert_array_equal(y.view(bits.dtype), bits)


@pytest.mark.parametrize("name", PACKED)
def test_60_packed_types_come_one_element_a_byte(name):
    dtype, values = PACKED[name]
    array = np.array(values, np.float32).astype(dtype)

    y = through(name, array, opset=23)

    assert y.dtype == dtype and y.shape == array.shape
    np.testing.assert_array_equal(y.astype(np.float32), array.astype(np.float32))


def test_60_strings_come_as_objects():
    array = np.array([["a", "bc"], ["", "grüße"]], dtype=object)

    y = through("STRING", array)

    assert y.dtype == object
    assert y.tolist() == array.tolist()


@pytest.mark.parametrize("value", [np.array(["ab", "c"]), ["ab", "c"]], ids=["unicode", "list"])
def test_60_strings_may_be_fed_as_unicode_arrays_and_lists(value):
    assert through("STRING", value).tolist() == ["ab", "c"]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2)])
def test_60_empty_outputs_keep_their_shape(shape):
    y = through("FLOAT", np.zeros(shape, np.float32))

    assert y.shape == shape and y.dtype == np.float32 and y.size == 0


def test_60_rank_zero_outputs():
    session = tenure.InferenceSession(models.unary("Neg", TensorProto.INT64, ()))

    (y,) = session.run(None, {"x": np.array(5, np.int64)})

    assert y.shape == () and y == -5
    y[...] = 1  # writable too
    assert y == 1


def test_without_ml_dtypes_bits_come_as_integers(monkeypatch):
    import builtins

    from tenure import _arrays

    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "ml_dtypes":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    array = np.array([0, 1, -0.5, 2], np.float32).astype(ml_dtypes.bfloat16)
    _arrays.numpy_type.cache_clear()
    _arrays._numbers.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    try:
        y = through("BFLOAT16", array.view(np.uint16))
    finally:
        monkeypatch.undo()
        _arrays.numpy_type.cache_clear()
        _arrays._numbers.cache_clear()

    assert y.dtype == np.uint16
    np.testing.assert_array_equal(y, array.view(np.uint16))
