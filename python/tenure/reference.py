"""ReferenceEvaluator: onnx.reference's calls over the library."""

import os

from . import _tenure
from ._errors import invalid_argument, not_supported
from .session import InferenceSession


def _read(proto):
    """A path or bytes as they are; anything else must be a message of the onnx package."""
    if isinstance(proto, (str, os.PathLike, bytes, bytearray, memoryview)):
        return proto, "ModelProto"
    return proto, type(proto).__name__


def _opset_imports(opsets, extra=()):
    import onnx

    versions = dict(opsets) if opsets else {"": onnx.defs.onnx_opset_version()}
    for domain in extra:
        versions.setdefault(domain, 1)
    return [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]


def _model_of(graph, opsets, functions, extra=()):
    import onnx

    return onnx.helper.make_model(
        graph, opset_imports=_opset_imports(opsets, extra), functions=functions, ir_version=10
    )


class ReferenceEvaluator:
    """Evaluates a model, graph, function or node.

    ``proto`` is a path, bytes, ModelProto, GraphProto, FunctionProto or NodeProto. The arenas are
    made here and persist between runs unless the caller gives its own; the same ``IOArena`` given
    twice is single-arena mode. With a graph, function or node ``opsets`` says which versions.
    """

    def __init__(self, proto, opsets=None, functions=None, verbose=0, new_ops=None, optimized=True,
                 *, execution_arena=None, io_arena=None):
        if new_ops:
            raise not_supported("new_ops: operators written in Python cannot be called")
        if isinstance(io_arena, _tenure.ExecutionArena):
            raise invalid_argument("an ExecutionArena cannot serve outputs, an IOArena can")
        self.io_arena = _tenure.IOArena() if io_arena is None else io_arena
        self.execution_arena = (
            _tenure.ExecutionArena() if execution_arena is None else execution_arena
        )
        self.verbose = verbose
        self._optimized = optimized
        self._functions = [getattr(f, "proto_", f) for f in functions or ()]
        self._opsets = dict(opsets) if opsets else None
        self.proto_, self._kind = _read(proto)
        self._sessions = {}
        self._prepare()

    def _prepare(self):
        if self._kind == "ModelProto":
            if self._opsets is not None:
                raise invalid_argument("opsets come from the model when proto is one")
            source = self.proto_
            if self._functions:
                import onnx

                source = onnx.ModelProto()
                source.CopyFrom(self._as_model())
                source.functions.extend(self._functions)
            self._model_session = self._open(source)
        elif self._kind == "GraphProto":
            self._model_session = self._open(_model_of(self.proto_, self._opsets, self._functions))
        elif self._kind in ("FunctionProto", "NodeProto"):
            self._model_session = None  # types are those of the first feeds
        else:
            raise TypeError(f"ReferenceEvaluator cannot evaluate {self._kind}")

    def _as_model(self):
        import onnx

        if isinstance(self.proto_, (str, os.PathLike)):
            return onnx.load(self.proto_)
        if isinstance(self.proto_, (bytes, bytearray, memoryview)):
            return onnx.ModelProto.FromString(bytes(self.proto_))
        return self.proto_

    def _open(self, source):
        return InferenceSession(
            source,
            execution_arena=self.execution_arena,
            io_arena=self.io_arena,
            graph_optimization_level=99 if self._optimized else 0,
        )

    def _call_of(self):
        """The node that stands for a function or node, and what its model needs beside it."""
        import onnx

        if self._kind == "NodeProto":
            return self.proto_, self._functions, [self.proto_.domain], self._opsets
        node = onnx.helper.make_node(
            self.proto_.name, list(self.proto_.input), list(self.proto_.output),
            domain=self.proto_.domain,
        )
        opsets = self._opsets or {o.domain: o.version for o in self.proto_.opset_import}
        return node, [self.proto_, *self._functions], [self.proto_.domain], opsets

    def _typed_session(self, feeds):
        """Functions and nodes declare no types: one session per types and ranks of the feeds."""
        import numpy as np
        import onnx

        from ._arrays import number_of

        arrays = {name: np.asarray(value) for name, value in feeds.items()}
        key = tuple((name, a.dtype.str, a.ndim) for name, a in sorted(arrays.items()))
        if key not in self._sessions:
            node, functions, domains, opsets = self._call_of()
            inputs = [
                onnx.helper.make_tensor_value_info(
                    name, number_of(arrays[name].dtype), [None] * arrays[name].ndim
                )
                for name in node.input
                if name in arrays
            ]
            outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
            graph = onnx.helper.make_graph([node], "evaluator", inputs, outputs)
            self._sessions[key] = self._open(_model_of(graph, opsets, functions, domains))
        return self._sessions[key]

    @property
    def input_names(self):
        if self._model_session is None:
            return [name for name in self.proto_.input if name]
        return [i.name for i in self._model_session.get_inputs()]

    @property
    def output_names(self):
        if self._model_session is None:
            return [name for name in self.proto_.output if name]
        return [o.name for o in self._model_session.get_outputs()]

    @property
    def input_types(self):
        return [] if self._model_session is None else self._model_session.get_inputs()

    @property
    def output_types(self):
        return [] if self._model_session is None else self._model_session.get_outputs()

    @property
    def opsets(self):
        if self._model_session is not None:
            return self._model_session.get_modelmeta().opsets
        return self._opsets or {o.domain: o.version for o in getattr(self.proto_, "opset_import", ())}

    def run(self, output_names, feed_inputs, attributes=None, intermediate=False):
        """Runs once and returns the outputs as a list of arrays."""
        if intermediate:
            raise not_supported("intermediate=True: intermediates share memory and are not kept")
        if attributes:
            raise not_supported("attributes: a function's attributes are those of the call")
        session = self._model_session or self._typed_session(feed_inputs)
        return session.run(output_names, feed_inputs)

    def close(self):
        for session in [self._model_session, *self._sessions.values()]:
            if session is not None:
                session.close()
