"""InferenceSession and what hangs on it: onnxruntime's calls over the library."""

import functools
import os
import types

import numpy as np

from . import _tenure
from ._arrays import number_of, numpy_type, stage, to_numpy
from ._errors import invalid_argument, not_supported, unknown_option
from .options import _DEFAULTS, SessionOptions

_PROVIDER = "CPUExecutionProvider"


class NodeArg:
    """A declared input or output."""

    __slots__ = ("name", "shape", "type", "_number")

    def __init__(self, name, type_text, shape, number):
        self.name = name
        self.type = type_text
        self.shape = shape
        self._number = number

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    """Facts of the model, as onnxruntime's."""

    def __init__(self, meta):
        self.producer_name = meta["producer_name"]
        self.producer_version = meta["producer_version"]
        self.graph_name = meta["graph_name"]
        self.domain = meta["domain"]
        self.description = meta["description"]
        self.graph_description = ""
        self.version = meta["version"]
        self.ir_version = meta["ir_version"]
        self.opsets = meta["opsets"]
        self.custom_metadata_map = meta["custom_metadata_map"]


class Plan:
    """What a run with given shapes needs; ``str()`` is the table."""

    def __init__(self, facts):
        self.peak_bytes = facts["predicted_peak"]
        self.execution_bytes = facts["execution"]
        self.lower_bound_bytes = facts["lower_bound"]
        self.io_bytes = facts["io"]
        self.weights_bytes = facts["weights"]
        self.metadata_bytes = facts["plan_metadata"]
        self.workspace_peak_bytes = facts["workspace_peak"]
        self.copy_count = facts["copies"]
        self.is_complete = facts["complete"]
        self.values = [types.SimpleNamespace(**value) for value in facts["values"]]
        self.steps = [types.SimpleNamespace(**step) for step in facts["steps"]]
        self.csv = facts["csv"]
        self._text = facts["text"]

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"<tenure.Plan peak {self.peak_bytes} bytes, {len(self.values)} values>"


class SessionMemory:
    """The session's part of the accounting tree."""

    def __init__(self, session):
        self._session = session

    def stats(self):
        """Nested dict of the tree; ``shared`` is what the model's file holds for all sessions."""
        tree = self._session.allocator.stats()
        tree["shared"] = self._session.stats()["shared"]
        return tree

    def counters(self):
        """Figures of the session as a flat dict."""
        return self._session.stats()

    def report(self):
        return self._session.allocator.report()

    def trim(self, level="hard"):
        """Gives retained memory back and returns the bytes."""
        return self._session.trim(level)

    def reset_counters(self):
        self._session.reset_counters()

    @property
    def limit(self):
        return self._session.allocator.limit

    @limit.setter
    def limit(self, limit):
        self._session.set_limit(limit)


class OrtValue:
    """A value as onnxruntime's bindings hand it out."""

    def __init__(self, tensor):
        self._tensor = tensor

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        _check_device(device_type, device_id)
        return OrtValue(np.asarray(array))

    def numpy(self):
        return self._tensor if isinstance(self._tensor, np.ndarray) else to_numpy(self._tensor)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def shape(self):
        return list(self._tensor.shape)

    def data_type(self):
        if isinstance(self._tensor, np.ndarray):
            number = number_of(self._tensor.dtype)
            return f"tensor({_onnx_name(number)})"
        return f"tensor({self._tensor.dtype})"

    def element_type(self):
        if isinstance(self._tensor, np.ndarray):
            return number_of(self._tensor.dtype)
        return self._tensor.dtype_number

    def data_ptr(self):
        if isinstance(self._tensor, np.ndarray):
            return self._tensor.ctypes.data
        return self._tensor.address

    def device_name(self):
        return "cpu"

    def has_value(self):
        return True

    def is_tensor(self):
        return True


def _onnx_name(number):
    names = {1: "float", 8: "string", 11: "double"}
    return names.get(number) or numpy_type(number).name


def _check_device(device_type, device_id):
    if device_type != "cpu" or device_id != 0:
        raise not_supported(f"device '{device_type}:{device_id}': only 'cpu:0' exists")


class IOBinding:
    """Inputs and outputs that stay bound over many runs.

    A bound array is kept alive until it is unbound or rebound, and read where it lies: what is
    written into it between runs is what the next run sees.
    """

    def __init__(self, session):
        self._session = session
        self._binding = _tenure.Binding(session._open())
        self._names = []

    def bind_cpu_input(self, name, arr_on_cpu):
        self._binding.bind_input(name, arr_on_cpu, self._session._stage)

    def bind_input(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                   buffer_ptr=None):
        _check_device(device_type, device_id)
        raise not_supported("raw pointers are not bound, they keep nothing alive: use bind_cpu_input")

    def bind_ortvalue_input(self, name, ortvalue):
        self.bind_cpu_input(name, ortvalue._tensor)

    def make_input(self, name, shape):
        """A new array in the session's I/O arena, bound as input ``name``, to be filled in place."""
        return to_numpy(self._binding.make_input(name, tuple(shape)))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                    buffer_ptr=None, *, array=None):
        """``array`` is written into by every run; without it each run makes a new one."""
        _check_device(device_type, device_id)
        if buffer_ptr is not None:
            raise not_supported("raw pointers are not bound, they keep nothing alive: use array=")
        self._binding.bind_output(name, array)
        if name not in self._names:
            self._names.append(name)

    def bind_ortvalue_output(self, name, ortvalue):
        self.bind_output(name, array=ortvalue._tensor)

    def run(self):
        self._binding.run()

    def get_outputs(self):
        """Results of the last run in order of binding."""
        return [OrtValue(tensor) for tensor in self._binding.outputs()]

    def copy_outputs_to_cpu(self):
        """The same as arrays; on a CPU there is nothing to copy."""
        return [to_numpy(tensor) for tensor in self._binding.outputs()]

    def synchronize_inputs(self):
        pass

    def synchronize_outputs(self):
        pass

    def clear_binding_inputs(self):
        self._binding.clear_inputs()

    def clear_binding_outputs(self):
        self._binding.clear_outputs()
        self._names.clear()


def _check_providers(providers, provider_options):
    for provider in providers or ():
        name = provider if isinstance(provider, str) else provider[0]
        if name != _PROVIDER:
            raise invalid_argument(f"provider '{name}' does not exist here, only '{_PROVIDER}'")
    if provider_options is not None and len(provider_options) != len(providers or ()):
        raise invalid_argument("provider_options must have one dict per provider")


def _merged(sess_options, options):
    if sess_options is not None and not isinstance(sess_options, SessionOptions):
        raise TypeError(f"sess_options must be SessionOptions, not {type(sess_options).__name__}")
    merged = SessionOptions() if sess_options is None else sess_options._copy()
    for name, value in options.items():
        if name not in _DEFAULTS:
            raise unknown_option(f"InferenceSession has no option '{name}'")
        setattr(merged, name, value)
    return merged


def _load(environment, source):
    if isinstance(source, (str, os.PathLike)):
        return _tenure.Model(environment, source)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _tenure.Model(environment, source)
    if hasattr(source, "SerializeToString"):
        return _tenure.Model(environment, source.SerializeToString())
    raise TypeError(f"a path, bytes or a ModelProto is needed, not {type(source).__name__}")


class InferenceSession:
    """A model ready to run, with onnxruntime's calls. Safe to run from many threads."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None,
                 **options):
        _check_providers(providers, provider_options)
        self._options = _merged(sess_options, options)
        native = self._options._native()
        self._environment = None
        if self._options.allocator is not None:
            self._environment = _tenure.Environment(
                self._options.allocator, thread_count=self._options.intra_op_num_threads
            )
        self._model = _load(self._environment, path_or_bytes)
        self._session = _tenure.Session(self._environment, self._model, **native)
        self._stage = functools.partial(stage, self._session)
        self.memory = SessionMemory(self._session)

    @classmethod
    def _over(cls, other, **changes):
        """Another session over the same loaded model, with some options changed."""
        other._open()
        made = cls.__new__(cls)
        made._options = _merged(other._options, changes)
        made._environment = other._environment
        made._model = other._model
        made._session = _tenure.Session(made._environment, made._model, **made._options._native())
        made._stage = functools.partial(stage, made._session)
        made.memory = SessionMemory(made._session)
        return made

    def _open(self):
        if self._session.closed:
            self._session.stats()  # raises ClosedError
        return self._session

    def run(self, output_names, input_feed, run_options=None, *, out=None):
        """Runs once. Outputs are new writable arrays, or those given in ``out`` (list or dict)."""
        names = output_names or None
        if out is not None:
            out = self._ordered(names, out)
        results = self._session.run(names, input_feed, out, self._stage)
        if out is None:
            return [to_numpy(tensor) for tensor in results]
        return [to_numpy(r) if isinstance(r, _tenure.Tensor) else r for r in results]

    def _ordered(self, names, out):
        """``out`` as a tuple in the order of the outputs, None where a new array is made."""
        names = names or [output[0] for output in self._session.outputs()]
        if not isinstance(out, dict):
            return tuple(out)
        unknown = set(out) - set(names)
        if unknown:
            raise invalid_argument(f"out names '{sorted(unknown)[0]}', which is no output of this run")
        return tuple(out.get(name) for name in names)

    def get_inputs(self):
        defaults = {row[0] for row in self._session.overridables()}
        return [NodeArg(*row) for row in self._session.inputs() if row[0] not in defaults]

    def get_outputs(self):
        return [NodeArg(*row) for row in self._session.outputs()]

    def get_overridable_initializers(self):
        return [NodeArg(*row) for row in self._session.overridables()]

    def get_modelmeta(self):
        return ModelMetadata(self._session.meta())

    def get_providers(self):
        return [_PROVIDER]

    def get_provider_options(self):
        return {_PROVIDER: {}}

    def set_providers(self, providers=None, provider_options=None):
        _check_providers(providers, provider_options)

    def get_session_options(self):
        return self._options._copy()

    def io_binding(self):
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        if iobinding._session is not self:
            raise invalid_argument("the binding belongs to another session")
        iobinding.run()

    def plan(self, shapes=None):
        """Plans without running.

        ``shapes`` maps inputs to shapes, or to arrays where the contents of small integer inputs
        decide shapes; inputs left out keep their declared shape.
        """
        rows = []
        for name, shape in (shapes or {}).items():
            contents = None
            if hasattr(shape, "dtype") and hasattr(shape, "shape"):
                array = np.ascontiguousarray(shape)
                contents = array.tobytes() if array.dtype in (np.int32, np.int64) else None
                shape = np.shape(shape)
            rows.append((name, tuple(shape), contents))
        return Plan(self._session.plan(rows))

    def allocator_for_output(self, node, slot=0):
        """The arena of output ``slot`` of the node named ``node``: "execution", "io", ..."""
        return self._session.allocator_for_output(node, slot)

    def end_profiling(self):
        raise not_supported("end_profiling: sessions write no profile yet")

    def close(self):
        """Ends use: later calls raise ClosedError, outputs stay valid."""
        self._session.close()
        self._model.close()
        self._environment = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
