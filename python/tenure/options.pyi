import enum

from ._tenure import Allocator, ExecutionArena, IOArena

class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99

class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1

class SessionOptions:
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: int
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    allocator: Allocator | None
    disable_in_place: bool
    exact_only: bool
    execution_arena: ExecutionArena | IOArena | None
    io_arena: IOArena | None
    max_concurrent_runs: int
    memory_limit: int | None
    name: str | None
    poison: bool
    retention: str
    retention_window: int
    wait_for_memory: float
    def add_session_config_entry(self, key: str, value: str) -> None: ...
    def get_session_config_entry(self, key: str) -> str: ...
    def add_free_dimension_override_by_name(self, name: str, size: int) -> None: ...
    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None: ...
    def register_custom_ops_library(self, path: str) -> None: ...
    def add_initializer(self, name: str, value: object) -> None: ...

class RunOptions:
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool
    training_mode: bool
    def add_run_config_entry(self, key: str, value: str) -> None: ...
    def get_run_config_entry(self, key: str) -> str: ...
