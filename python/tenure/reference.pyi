from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ._tenure import ExecutionArena, IOArena
from .session import NodeArg

class ReferenceEvaluator:
    execution_arena: ExecutionArena | IOArena
    io_arena: IOArena
    verbose: int
    proto_: Any
    def __init__(
        self,
        proto: Any,
        opsets: Mapping[str, int] | None = None,
        functions: Sequence[Any] | None = None,
        verbose: int = 0,
        new_ops: Sequence[Any] | None = None,
        optimized: bool = True,
        *,
        execution_arena: ExecutionArena | IOArena | None = None,
        io_arena: IOArena | None = None,
    ) -> None: ...
    @property
    def input_names(self) -> list[str]: ...
    @property
    def output_names(self) -> list[str]: ...
    @property
    def input_types(self) -> list[NodeArg]: ...
    @property
    def output_types(self) -> list[NodeArg]: ...
    @property
    def opsets(self) -> dict[str, int]: ...
    def run(
        self,
        output_names: Sequence[str] | None,
        feed_inputs: dict[str, Any],
        attributes: Mapping[str, Any] | None = None,
        intermediate: bool = False,
    ) -> list[NDArray[Any]]: ...
    def close(self) -> None: ...
