"""onnx.backend's interface: prepare, run_model, run_node, supports_device, is_compatible."""

import collections

from ._errors import not_supported
from ._tenure import TenureError
from .session import InferenceSession


class BackendRep:
    """A prepared model; ``run`` takes inputs by position or by name."""

    def __init__(self, session):
        self.session = session
        self._input_names = [i.name for i in session.get_inputs()]
        self._input_names += [i.name for i in session.get_overridable_initializers()]
        names = [o.name for o in session.get_outputs()]
        self._make_outputs = collections.namedtuple("Outputs", names, rename=True)

    def run(self, inputs, **kwargs):
        if isinstance(inputs, dict):
            feeds = inputs
        elif isinstance(inputs, (list, tuple)):
            feeds = dict(zip(self._input_names, inputs))
        else:
            feeds = {self._input_names[0]: inputs}
        return self._make_outputs(*self.session.run(None, feeds))


def _check_device(device):
    if not supports_device(device):
        raise not_supported(f"device '{device}': only 'CPU' exists")


def prepare(model, device="CPU", **kwargs):
    """A BackendRep of ``model``: path, bytes or ModelProto. Keywords are session options."""
    _check_device(device)
    return BackendRep(InferenceSession(model, **kwargs))


def run_model(model, inputs, device="CPU", **kwargs):
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node, inputs, device="CPU", outputs_info=None, **kwargs):
    """Runs one node; inputs by position (those that are not empty names) or by name."""
    from .reference import ReferenceEvaluator

    _check_device(device)
    opset = kwargs.pop("opset_version", None)
    evaluator = ReferenceEvaluator(node, opsets={"": opset} if opset else None)
    names = [name for name in node.input if name]
    feeds = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
    outputs = collections.namedtuple("Outputs", [n for n in node.output if n], rename=True)
    return outputs(*evaluator.run(None, feeds))


def supports_device(device):
    return device.split(":")[0].upper() == "CPU"


def is_compatible(model, device="CPU", **kwargs):
    """True when every operator of ``model`` can be run."""
    if not supports_device(device):
        return False
    try:
        prepare(model, device, **kwargs)
    except TenureError:
        return False
    return True
