"""Tenure: an ONNX runtime whose memory can be reasoned about.

``InferenceSession`` has onnxruntime's calls, ``ReferenceEvaluator`` those of onnx.reference.
Outputs are NumPy arrays over the library's own memory: nothing is copied, each array keeps its
block until it is gone, whatever happens to the session.
"""

from ._tenure import (
    Allocator,
    Buffer,
    BusyError,
    ClosedError,
    Environment,
    ExecutionArena,
    InvalidArgumentError,
    InvalidModelError,
    IOArena,
    MemoryLimitError,
    NotSupportedError,
    OutOfMemoryError,
    Tensor,
    TenureError,
    version,
)
from .context import Reservation, RuntimeContext
from .options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from .reference import ReferenceEvaluator
from .session import InferenceSession, IOBinding, ModelMetadata, NodeArg, OrtValue, Plan

__version__ = version()

__all__ = [
    "Allocator",
    "Buffer",
    "BusyError",
    "ClosedError",
    "Environment",
    "ExecutionArena",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOArena",
    "IOBinding",
    "InferenceSession",
    "InvalidArgumentError",
    "InvalidModelError",
    "MemoryLimitError",
    "ModelMetadata",
    "NodeArg",
    "NotSupportedError",
    "OrtValue",
    "OutOfMemoryError",
    "Plan",
    "ReferenceEvaluator",
    "Reservation",
    "RunOptions",
    "RuntimeContext",
    "SessionOptions",
    "Tensor",
    "TenureError",
    "get_available_providers",
    "get_device",
]


def get_available_providers():
    """As onnxruntime's: the names that ``providers`` may hold."""
    return ["CPUExecutionProvider"]


def get_device():
    """As onnxruntime's."""
    return "CPU"
