"""Options of sessions and runs: onnxruntime's names, and those of our own."""

import enum

from ._errors import invalid_argument, not_supported


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


_RETENTIONS = {"adaptive": 0, "all": 1, "none": 2}

# name: default. The first group is onnxruntime's; of those, the ones read below have an effect here
# and the others are accepted so that existing code runs.
_DEFAULTS = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
    "execution_order": 0,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "profile_file_prefix": "tenure_profile_",
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
    # ours
    "allocator": None,
    "disable_in_place": False,
    "exact_only": False,
    "execution_arena": None,
    "io_arena": None,
    "max_concurrent_runs": 0,
    "memory_limit": None,
    "name": None,
    "poison": False,
    "retention": "adaptive",
    "retention_window": 0,
    "wait_for_memory": 0.0,
}


class SessionOptions:
    """Options of a session; a name that is none raises AttributeError.

    Beside onnxruntime's: ``memory_limit`` (bytes), ``max_concurrent_runs`` (0: no bound),
    ``wait_for_memory`` (seconds a run may wait for a context), ``allocator``, ``execution_arena``
    (then one run at a time), ``io_arena``, ``retention`` ("adaptive", "all", "none"),
    ``exact_only``, ``disable_in_place``, ``poison``, ``name``.

    ``graph_optimization_level`` ORT_DISABLE_ALL switches fusion off, ``enable_cpu_mem_arena`` False
    keeps nothing between runs, ``enable_mem_reuse`` False gives every value memory of its own.
    """

    __slots__ = (*_DEFAULTS, "_config", "_dimensions")

    def __init__(self):
        for name, value in _DEFAULTS.items():
            setattr(self, name, value)
        self._config = {}
        self._dimensions = {}

    def add_session_config_entry(self, key, value):
        self._config[str(key)] = str(value)

    def get_session_config_entry(self, key):
        if key not in self._config:
            raise invalid_argument(f"there is no session configuration entry '{key}'")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name, size):
        """Gives the symbolic dimension ``name`` a fixed size."""
        self._dimensions[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        raise not_supported("dimensions are overridden by name, not by denotation")

    def register_custom_ops_library(self, path):
        raise not_supported("libraries of custom operators for onnxruntime cannot be loaded")

    def add_initializer(self, name, value):
        raise not_supported("initializers come from the model")

    def _copy(self):
        made = SessionOptions()
        for name in _DEFAULTS:
            setattr(made, name, getattr(self, name))
        made._config = dict(self._config)
        made._dimensions = dict(self._dimensions)
        return made

    def _native(self):
        """Keywords of _tenure.Session."""
        if self.retention not in _RETENTIONS:
            raise invalid_argument(
                f"retention is {self.retention!r}, one of {', '.join(map(repr, _RETENTIONS))} is needed"
            )
        if self.execution_arena is not None and self.max_concurrent_runs > 1:
            raise invalid_argument(
                f"a caller's execution_arena serves one run at a time, "
                f"max_concurrent_runs is {self.max_concurrent_runs}"
            )
        if self.enable_profiling:
            raise not_supported("enable_profiling: sessions write no profile yet")
        retention = self.retention if self.enable_cpu_mem_arena else "none"
        return {
            "execution_arena": self.execution_arena,
            "io_arena": self.io_arena,
            "dim_overrides": self._dimensions,
            "memory_limit": self.memory_limit,
            "wait_for_memory_ns": int(self.wait_for_memory * 1e9),
            "thread_count": self.intra_op_num_threads,
            "max_concurrent_runs": self.max_concurrent_runs,
            "retention": _RETENTIONS[retention],
            "retention_window": self.retention_window,
            "name": self.name,
            "disable_reuse": not self.enable_mem_reuse,
            "disable_fusion": int(self.graph_optimization_level) == 0,
            "exact_only": self.exact_only or self.use_deterministic_compute,
            "disable_in_place": self.disable_in_place,
            "poison": self.poison,
        }


class RunOptions:
    """onnxruntime's options of one run; accepted, without effect here."""

    __slots__ = (
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "only_execute_path_to_fetches",
        "terminate",
        "training_mode",
        "_config",
    )

    def __init__(self):
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self.training_mode = False
        self._config = {}

    def add_run_config_entry(self, key, value):
        self._config[str(key)] = str(value)

    def get_run_config_entry(self, key):
        if key not in self._config:
            raise invalid_argument(f"there is no run configuration entry '{key}'")
        return self._config[key]
