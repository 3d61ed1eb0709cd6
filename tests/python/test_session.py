"""onnxruntime's calls: names, options, errors, bindings, contexts."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
import session_models as models
import tenure
from onnx import TensorProto, helper


@pytest.fixture
def session():
    with tenure.InferenceSession(models.dense(rows="batch")) as made:
        yield made


def test_declared_values_have_name_type_and_shape(session):
    (x,), (y,) = session.get_inputs(), session.get_outputs()

    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["batch", 64])
    assert (y.name, y.type, y.shape) == ("y", "tensor(float)", ["batch", 32])
    assert session.get_overridable_initializers() == []
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_metadata_comes_from_the_model():
    import onnx

    model = onnx.ModelProto.FromString(models.dense())
    model.producer_name, model.producer_version, model.model_version = "maker", "7", 3
    model.doc_string, model.domain = "what it does", "test.domain"
    helper.set_model_props(model, {"key": "value"})

    meta = tenure.InferenceSession(model.SerializeToString()).get_modelmeta()

    assert (meta.producer_name, meta.producer_version, meta.version) == ("maker", "7", 3)
    assert (meta.graph_name, meta.description, meta.domain) == ("graph", "what it does", "test.domain")
    assert meta.custom_metadata_map == {"key": "value"} and meta.opsets == {"": 18}


def test_model_comes_from_path_bytes_or_proto(tmp_path):
    import onnx

    path = tmp_path / "model.onnx"
    path.write_bytes(models.unary())
    x = np.array([-1, 2], np.float32)
    for source in (path, str(path), models.unary(), memoryview(models.unary()),
                   onnx.ModelProto.FromString(models.unary())):
        (y,) = tenure.InferenceSession(source).run(None, {"x": x})
        np.testing.assert_array_equal(y, [0, 2])
    with pytest.raises(TypeError):
        tenure.InferenceSession(5)


def test_missing_file_and_broken_model_are_told_apart(tmp_path):
    with pytest.raises(tenure.TenureError) as caught:
        tenure.InferenceSession(tmp_path / "none.onnx")
    assert caught.value.code == "IO" and "none.onnx" in str(caught.value)

    with pytest.raises(tenure.InvalidModelError) as caught:
        tenure.InferenceSession(b"\xff" * 40)
    assert isinstance(caught.value, ValueError)


def test_unsupported_nodes_are_all_named():
    nodes = [helper.make_node("Nothing", ["x"], ["t"], name="first"),
             helper.make_node("Nowhere", ["t"], ["y"], name="second")]
    model = models.build(nodes, {"x": (1, ["n"])}, {"y": (1, ["n"])})

    with pytest.raises(tenure.NotSupportedError) as caught:
        tenure.InferenceSession(model)

    assert isinstance(caught.value, NotImplementedError)
    assert "first" in str(caught.value) and "second" in str(caught.value)


def test_outputs_come_in_the_order_asked_for():
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    session = tenure.InferenceSession(
        models.build(nodes, {"x": (1, ["n"])}, {"a": (1, ["n"]), "b": (1, ["n"])})
    )
    x = np.array([-1, 2], np.float32)

    b, a = session.run(["b", "a"], {"x": x})
    (only,) = session.run(["b"], {"x": x})

    np.testing.assert_array_equal(a, [0, 2])
    np.testing.assert_array_equal(b, [1, -2])
    np.testing.assert_array_equal(only, b)
    assert len(session.run([], {"x": x})) == 2  # as onnxruntime: none named is all
    with pytest.raises(tenure.InvalidArgumentError, match="'c'"):
        session.run(["c"], {"x": x})


def test_providers_are_checked():
    for providers in (["CPUExecutionProvider"], [("CPUExecutionProvider", {})], None):
        tenure.InferenceSession(models.unary(), providers=providers)
    with pytest.raises(tenure.InvalidArgumentError, match="CUDAExecutionProvider"):
        tenure.InferenceSession(models.unary(), providers=["CUDAExecutionProvider"])


def test_unknown_options_raise():
    options = tenure.SessionOptions()
    with pytest.raises(AttributeError):
        options.memory_limits = 5
    with pytest.raises(tenure.InvalidArgumentError, match="no_such"):
        tenure.InferenceSession(models.unary(), no_such=1)
    with pytest.raises(tenure.InvalidArgumentError, match="'sometimes'"):
        tenure.InferenceSession(models.unary(), retention="sometimes")
    with pytest.raises(TypeError):
        tenure.InferenceSession(models.unary(), {"intra_op_num_threads": 1})
    with pytest.raises(AttributeError):
        tenure.RunOptions().no_such = 1


def test_onnxruntimes_options_exist():
    import onnxruntime

    theirs = {n for n in dir(onnxruntime.SessionOptions()) if not n.startswith("_")}
    not_ours = {
        "add_external_initializers", "add_external_initializers_from_files_in_memory",
        "add_provider", "add_provider_for_devices", "has_providers",
        "set_ep_context_data_read_func", "clear_ep_context_data_read_func",
        "set_load_cancellation_flag", "set_provider_selection_policy",
        "set_provider_selection_policy_delegate",
    }

    missing = {n for n in theirs if not hasattr(tenure.SessionOptions(), n)} - not_ours

    assert missing == set()


@pytest.mark.parametrize(
    "name, value",
    [
        ("graph_optimization_level", tenure.GraphOptimizationLevel.ORT_DISABLE_ALL),
        ("enable_cpu_mem_arena", False),
        ("enable_mem_reuse", False),
        ("enable_mem_pattern", False),
        ("intra_op_num_threads", 1),
        ("intra_op_num_threads", 3),
        ("exact_only", True),
        ("disable_in_place", True),
        ("poison", True),
        ("retention", "none"),
        ("retention", "all"),
    ],
)
def test_options_do_not_change_results(session, name, value):
    x = np.random.default_rng(3).standard_normal((9, 64), np.float32)
    options = tenure.SessionOptions()
    setattr(options, name, value)
    other = tenure.InferenceSession(models.dense(rows="batch"), options)

    for _ in range(3):
        (y,) = other.run(None, {"x": x})

    np.testing.assert_array_equal(y, session.run(None, {"x": x})[0])


def test_nothing_is_kept_without_an_arena():
    options = tenure.SessionOptions()
    options.enable_cpu_mem_arena = False
    session = tenure.InferenceSession(models.dense(), options)

    session.run(None, {"x": np.ones((64, 64), np.float32)})

    assert session._session.io_arena.retained_bytes == 0


def test_symbolic_dimension_can_be_fixed():
    options = tenure.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 3)
    session = tenure.InferenceSession(models.dense(rows="batch"), options)

    assert session.get_inputs()[0].shape == [3, 64]
    with pytest.raises(tenure.InvalidArgumentError):
        session.run(None, {"x": np.ones((4, 64), np.float32)})


def test_config_entries_are_kept():
    options = tenure.SessionOptions()
    options.add_session_config_entry("key", "value")
    session = tenure.InferenceSession(models.unary(), options)

    assert session.get_session_options().get_session_config_entry("key") == "value"
    with pytest.raises(tenure.InvalidArgumentError):
        options.get_session_config_entry("none")


def test_binding_keeps_inputs_and_makes_new_outputs(session):
    x = np.ones((4, 64), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")

    session.run_with_iobinding(binding)
    (first,) = binding.copy_outputs_to_cpu()
    copy = first.copy()
    x *= 2
    session.run_with_iobinding(binding)
    (second,) = binding.copy_outputs_to_cpu()

    np.testing.assert_array_equal(first, copy)
    np.testing.assert_allclose(second, 2 * copy, rtol=1e-5)
    value = binding.get_outputs()[0]
    assert value.shape() == [4, 32] and value.data_type() == "tensor(float)"
    np.testing.assert_array_equal(value.numpy(), second)


def test_rebinding_lets_the_old_array_go_at_once(session):
    x = np.ones((4, 64), np.float32)
    binding = session.io_binding()
    before = sys.getrefcount(x)
    binding.bind_cpu_input("x", x)
    assert sys.getrefcount(x) > before

    binding.bind_cpu_input("x", np.zeros((4, 64), np.float32))
    assert sys.getrefcount(x) == before

    binding.bind_cpu_input("x", x)
    binding.clear_binding_inputs()
    assert sys.getrefcount(x) == before
    binding.bind_output("y")
    with pytest.raises(tenure.InvalidArgumentError, match="not fed"):
        binding.run()


def test_bound_temporary_stays_alive(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.full((4, 64), 3, np.float32))
    binding.bind_output("y")
    others = [np.full((4, 64), 9, np.float32) for _ in range(8)]

    binding.run()

    (wanted,) = session.run(None, {"x": np.full((4, 64), 3, np.float32)})
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], wanted)
    del others


def test_bound_output_array_is_written_into(session):
    out = np.zeros((4, 32), np.float32)
    x = np.ones((4, 64), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", array=out)

    binding.run()

    np.testing.assert_array_equal(out, session.run(None, {"x": x})[0])
    with pytest.raises(tenure.NotSupportedError):
        binding.bind_output("y", buffer_ptr=out.ctypes.data)


def test_95_input_made_in_the_io_arena_is_filled_in_place(session):
    binding = session.io_binding()
    x = binding.make_input("x", (4, 64))
    binding.bind_output("y")
    x[:] = 1

    binding.run()
    x[:] = 2
    binding.run()

    (wanted,) = session.run(None, {"x": np.full((4, 64), 2, np.float32)})
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], wanted)
    assert session.memory.counters()["payload_copies"] == 0


def test_binding_of_another_session_is_refused(session):
    other = tenure.InferenceSession(models.dense())

    with pytest.raises(tenure.InvalidArgumentError):
        session.run_with_iobinding(other.io_binding())


def test_context_passes_values_from_session_to_session():
    first = tenure.InferenceSession(models.unary("Relu"))
    second = tenure.InferenceSession(
        models.build([helper.make_node("Neg", ["y"], ["z"])], {"y": (1, ["n"])}, {"z": (1, ["n"])})
    )
    context = tenure.RuntimeContext()
    context.set("x", np.array([-1, 2], np.float32))

    assert context.run(first) == ["y"]
    assert context.run(second) == ["z"]

    np.testing.assert_array_equal(context.get("z"), [0, -2])
    assert context.io_arena.live_bytes == 2 * 8
    context.clear()
    assert context.io_arena.live_bytes == 0
    with pytest.raises(tenure.InvalidArgumentError, match="'z'"):
        context.get("z")
    context.close()


def test_context_borrows_what_is_set():
    session = tenure.InferenceSession(models.unary())
    context = tenure.RuntimeContext()
    x = np.ones(1000, np.float32)

    context.set("x", x)

    assert context.io_arena.live_bytes == context.execution_arena.live_bytes == 0
    assert context.get("x") is x
    context.run(session)
    assert context.io_arena.stats()["allocated_count"] == 0


def test_every_error_is_a_tenure_error_and_a_builtin():
    kinds = {
        "InvalidModelError": ValueError,
        "InvalidArgumentError": ValueError,
        "NotSupportedError": NotImplementedError,
        "MemoryLimitError": MemoryError,
        "OutOfMemoryError": MemoryError,
        "BusyError": RuntimeError,
        "ClosedError": RuntimeError,
    }
    for name, builtin in kinds.items():
        kind = getattr(tenure, name)
        assert issubclass(kind, tenure.TenureError) and issubclass(kind, builtin)
        assert kind.__module__ == "tenure"
        assert (kind("x").code, kind("x").node, kind("x").detail) == (None, None, None)


def test_wrong_environment_variable_is_an_error():
    program = "import tenure; tenure.InferenceSession(b'')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "TENURE_NUM_THREADS": "many",
                               "PYTHONPATH": ":".join(sys.path)})

    assert "InvalidArgumentError" in done.stderr and "TENURE_NUM_THREADS='many'" in done.stderr


def test_import_is_light_and_all_names_exist():
    for name in tenure.__all__:
        assert hasattr(tenure, name)
    program = "import sys, tenure; print('onnx' in sys.modules, 'ml_dtypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.stdout.split() == ["False", "False"], done.stderr


def test_overridable_initializer_has_a_default_and_can_be_fed():
    import onnx

    node = helper.make_node("Add", ["x", "b"], ["y"])
    model = onnx.ModelProto.FromString(
        models.build([node], {"x": (1, [2]), "b": (1, [2])}, {"y": (1, [2])},
                     {"b": np.array([10, 20], np.float32)})
    )
    session = tenure.InferenceSession(model)
    x = np.array([1, 2], np.float32)

    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [i.name for i in session.get_overridable_initializers()] == ["b"]
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [11, 22])
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": x})[0], [2, 4])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [11, 22])


def test_kernel_error_names_the_node():
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"], name="picker")]
    session = tenure.InferenceSession(
        models.build(nodes, {"x": (1, [3]), "i": (TensorProto.INT64, [1])}, {"y": (1, [1])})
    )

    with pytest.raises(tenure.TenureError) as caught:
        session.run(None, {"x": np.zeros(3, np.float32), "i": np.array([7])})

    assert caught.value.node == "picker"
    (y,) = session.run(None, {"x": np.arange(3, dtype=np.float32), "i": np.array([2])})
    assert y[0] == 2


def outcome(call):
    try:
        return call()
    except tenure.TenureError:
        return None


def test_no_call_leaks_objects(session):
    x = np.ones((4, 64), np.float32)
    wrong = np.zeros((4, 31), np.float32)
    binding = session.io_binding()
    root = tenure.Allocator("root", limit=1000)

    def everything():
        session.run(None, {"x": x})
        session.run(["y"], {"x": x.astype(np.float64)[::-1]}, out=[np.zeros((4, 32), np.float32)])
        outcome(lambda: session.run(None, {"x": x, "z": x}))
        outcome(lambda: session.run(None, {"x": ["a"]}))
        outcome(lambda: session.run(None, {"x": x}, out=[wrong]))
        outcome(lambda: session.run(["z"], {"x": x}))
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        binding.run()
        binding.get_outputs()
        outcome(lambda: binding.bind_cpu_input("z", x))
        outcome(lambda: binding.bind_output("y", array=wrong))
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        session.memory.stats()
        session.memory.report()
        session.plan({"x": (4, 64)})
        session.get_modelmeta()
        session.get_inputs()
        outcome(lambda: root.buffer(2000))
        root.buffer(10).slice(1, 2)
        outcome(lambda: root.child("child", reservation=5000))
        tenure.IOArena().allocate(100)

    for _ in range(5):
        everything()
    gc.collect()
    blocks, references = sys.getallocatedblocks(), sys.getrefcount(x)
    for _ in range(50):
        everything()
    gc.collect()

    assert sys.getrefcount(x) == references
    assert sys.getallocatedblocks() - blocks < 50
    assert root.charged == 0
