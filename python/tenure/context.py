"""RuntimeContext: named values that runs read and write, with arenas of its own."""

from . import _tenure
from ._arrays import to_numpy
from ._errors import invalid_argument, not_supported
from .session import InferenceSession


class Reservation:
    """A promise of memory that allocations draw down; the tree has none of its own yet."""

    def __init__(self, allocator, size):
        raise not_supported("reservations: give the child allocator a reservation instead")


class RuntimeContext:
    """Holds values by name; ``run`` executes a session with them and keeps its outputs.

    Arrays that are set stay where they are: they are borrowed while they are held. Arrays that are
    got are outputs like any other: clearing the context, running again or dropping it changes none.
    The arenas persist between runs and sessions. An ``IOArena`` given as ``execution_arena`` too
    serves both roles.
    """

    def __init__(self, execution_arena=None, io_arena=None):
        if isinstance(io_arena, _tenure.ExecutionArena):
            raise invalid_argument("an ExecutionArena cannot serve outputs, an IOArena can")
        self.io_arena = _tenure.IOArena() if io_arena is None else io_arena
        self.execution_arena = (
            _tenure.ExecutionArena() if execution_arena is None else execution_arena
        )
        self._values = {}
        self._sessions = {}

    def set(self, name, value):
        self._values[name] = value

    def get(self, name):
        if name not in self._values:
            raise invalid_argument(f"the context has no value '{name}'")
        value = self._values[name]
        return to_numpy(value) if isinstance(value, _tenure.Tensor) else value

    def __contains__(self, name):
        return name in self._values

    def names(self):
        return list(self._values)

    def remove(self, name):
        self._values.pop(name, None)

    def clear(self):
        """Drops all values; arrays got from here are untouched."""
        self._values.clear()

    def _session_of(self, session):
        made = self._sessions.get(id(session))
        if made is None or made[0] is not session:
            own = InferenceSession._over(
                session,
                execution_arena=self.execution_arena,
                io_arena=self.io_arena,
                max_concurrent_runs=0,
            )
            made = self._sessions[id(session)] = (session, own)
        return made[1]

    def run(self, session, output_names=None):
        """Runs ``session`` with the values held here; its outputs become values."""
        session._open()
        own = self._session_of(session)
        wanted = [row[0] for row in own._session.inputs()]
        feeds = {name: self._values[name] for name in wanted if name in self._values}
        names = list(output_names or (row[0] for row in own._session.outputs()))
        for name, tensor in zip(names, own._session.run(names, feeds, None, own._stage)):
            self._values[name] = tensor
        return names

    def close(self):
        """Clears, and closes the sessions made for this context."""
        self.clear()
        for _, own in self._sessions.values():
            own._session.close()
        self._sessions.clear()
