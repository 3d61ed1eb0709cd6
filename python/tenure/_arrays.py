"""NumPy arrays from tensors and back.

Types that NumPy lacks come through ml_dtypes when that is installed, else as the unsigned integers
that carry their bits. Types of fewer than eight bits are packed in the library and one element a
byte in Python, so those are the one kind of output that is copied; strings are the other.
"""

import functools

import numpy as np

from . import _tenure
from ._errors import invalid_argument, not_supported

STRING = 8
# Numbers are those of onnx TensorProto.DataType.
_NUMPY_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
}
_NARROW_TYPES = {  # number: (name in ml_dtypes, carrier, bits)
    16: ("bfloat16", "uint16", 16),
    17: ("float8_e4m3fn", "uint8", 8),
    18: ("float8_e4m3fnuz", "uint8", 8),
    19: ("float8_e5m2", "uint8", 8),
    20: ("float8_e5m2fnuz", "uint8", 8),
    21: ("uint4", "uint8", 4),
    22: ("int4", "int8", 4),
    23: ("float4_e2m1fn", "uint8", 4),
    24: ("float8_e8m0fnu", "uint8", 8),
    25: ("uint2", "uint8", 2),
    26: ("int2", "int8", 2),
}
_PLAIN = frozenset(_NUMPY_TYPES)


@functools.lru_cache(maxsize=None)
def numpy_type(number):
    """The dtype under which elements of type ``number`` appear in Python."""
    if number in _NUMPY_TYPES:
        return np.dtype(_NUMPY_TYPES[number])
    if number == STRING:
        return np.dtype(object)
    name, carrier, _ = _NARROW_TYPES[number]
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype(carrier)


@functools.lru_cache(maxsize=None)
def _numbers():
    """The reverse: dtype to number, for types that carry their own name."""
    numbers = {np.dtype(name): number for number, name in _NUMPY_TYPES.items()}
    for number, (name, _, _) in _NARROW_TYPES.items():
        if numpy_type(number).name == name:
            numbers[numpy_type(number)] = number
    return numbers


def number_of(dtype):
    """TensorProto.DataType of a NumPy dtype, 0 when there is none."""
    if dtype.kind in "OUST":
        return STRING
    return _numbers().get(dtype.newbyteorder("="), 0)


def _unpack(packed, count, bits, is_signed):
    per_byte = 8 // bits
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    values = (packed[:, None] >> shifts & ((1 << bits) - 1)).ravel()[:count]
    if is_signed:
        values = ((values ^ (1 << bits - 1)).astype(np.int8) - (1 << bits - 1)).astype(np.int8)
    return values


def _from_packed(tensor, number):
    name, _, bits = _NARROW_TYPES[number]
    shape = tensor.shape
    count = int(np.prod(shape, dtype=np.int64))
    values = _unpack(np.asarray(tensor), count, bits, name.startswith("int")).reshape(shape)
    dtype = numpy_type(number)
    if name == "float4_e2m1fn" and dtype.name == name:
        return values.view(dtype)  # ml_dtypes keeps one in the low bits of a byte
    return values.astype(dtype)


def to_numpy(tensor):
    """The tensor as an array: over its memory wherever NumPy can."""
    number = tensor.dtype_number
    if number in _PLAIN:
        return np.asarray(tensor)
    if number == STRING:
        array = np.empty(tensor.shape, dtype=object)
        array.reshape(-1)[:] = tensor.strings()
        return array
    if _NARROW_TYPES[number][2] < 8:
        return _from_packed(tensor, number)
    array = np.asarray(tensor)
    dtype = numpy_type(number)
    return array if array.dtype == dtype else array.view(dtype)


def _pack(array, bits):
    per_byte = 8 // bits
    flat = array.reshape(-1)
    raw = flat.view(np.uint8) if flat.dtype.itemsize == 1 else flat.astype(np.int8).view(np.uint8)
    raw = raw & np.uint8((1 << bits) - 1)
    padded = np.zeros(-(-raw.size // per_byte) * per_byte, dtype=np.uint8)
    padded[: raw.size] = raw
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)


def _string_tensor(value):
    array = np.asarray(value)
    if array.dtype.kind not in "OUST":
        return None
    return _tenure.string_tensor(array.reshape(-1).tolist(), array.shape)


def _refuse(name, number, array):
    given = number_of(array.dtype)
    given_name = "str" if given == STRING else f"{array.dtype}"
    raise invalid_argument(
        f"input '{name}' wants {'str' if number == STRING else numpy_type(number).name}, "
        f"got {given_name}"
    )


def stage(session, name, value, number):
    """Writes ``value`` once into a block of the session's I/O arena, as elements of type ``number``.

    Values of another type are converted where NumPy calls that a cast of the same kind (float64 to
    float32, int32 to float32); others are refused. ``number`` 0 takes the value's own type.
    """
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        value = value.numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise invalid_argument(f"input '{name}': {error}") from None
    number = number or number_of(array.dtype)
    if number == 0:
        raise not_supported(f"input '{name}': elements of type {array.dtype} have no ONNX type")
    if number == STRING:
        tensor = _string_tensor(array)
        return _refuse(name, number, array) if tensor is None else tensor
    dtype = numpy_type(number)
    _, carrier, bits = _NARROW_TYPES.get(number, (None, dtype, 8 * dtype.itemsize))
    if array.dtype == dtype and bits >= 8 and number in _NARROW_TYPES:
        return array.view(carrier)  # the same bits under a type that has a buffer
    if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
        _refuse(name, number, array)
    tensor = session.stage(number, array.shape)
    view = np.asarray(tensor)
    if bits < 8:
        view[...] = _pack(array.astype(dtype, copy=False), bits)
    else:
        view.view(dtype)[...] = array
    return tensor
