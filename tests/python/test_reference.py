"""ReferenceEvaluator and the backend interface, against onnx.reference."""

import numpy as np
import onnx
import onnx.reference
import pytest
import session_models as models
import tenure
from onnx import helper
from tenure import backend


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((5, 64), np.float32)


def test_model_is_evaluated_as_the_reference_does(x, tmp_path):
    model = onnx.ModelProto.FromString(models.dense())
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    path = tmp_path / "model.onnx"
    onnx.save(model, path)

    for source in (model, models.dense(), str(path)):
        evaluator = tenure.ReferenceEvaluator(source)
        (y,) = evaluator.run(None, {"x": x})
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)

    assert evaluator.input_names == ["x"] and evaluator.output_names == ["y"]
    assert evaluator.opsets == {"": 18}


def test_arenas_persist_and_may_be_given(x):
    execution, io = tenure.ExecutionArena(), tenure.IOArena()
    evaluator = tenure.ReferenceEvaluator(models.dense(), execution_arena=execution, io_arena=io)
    assert evaluator.execution_arena is execution and evaluator.io_arena is io

    for _ in range(5):
        (y,) = evaluator.run(None, {"x": x})

    assert io.leased_bytes == y.nbytes
    own = tenure.ReferenceEvaluator(models.dense())
    own.run(None, {"x": x})
    before = own.io_arena.stats()["sys_allocs"]
    for _ in range(5):
        own.run(None, {"x": x})
    assert own.io_arena.stats()["sys_allocs"] == before


def test_same_io_arena_twice_is_single_arena_mode(x):
    arena = tenure.IOArena()
    evaluator = tenure.ReferenceEvaluator(models.dense(), execution_arena=arena, io_arena=arena)

    (y,) = evaluator.run(None, {"x": x})

    assert arena.peak_bytes > y.nbytes
    with pytest.raises(tenure.InvalidArgumentError, match="cannot serve outputs"):
        both = tenure.ExecutionArena()
        tenure.ReferenceEvaluator(models.dense(), execution_arena=both, io_arena=both)


def test_node_is_evaluated_with_the_types_fed():
    node = helper.make_node("Add", ["a", "b"], ["c"])
    evaluator = tenure.ReferenceEvaluator(node)

    for dtype in (np.float32, np.int64):
        (c,) = evaluator.run(None, {"a": np.array([1, 2], dtype), "b": np.array([3, 4], dtype)})
        assert c.dtype == dtype and c.tolist() == [4, 6]
    assert evaluator.input_names == ["a", "b"] and evaluator.output_names == ["c"]


def test_graph_is_evaluated_with_opsets(x):
    graph = onnx.ModelProto.FromString(models.dense()).graph
    evaluator = tenure.ReferenceEvaluator(graph, opsets={"": 18})

    (y,) = evaluator.run(None, {"x": x})

    (wanted,) = tenure.ReferenceEvaluator(models.dense()).run(None, {"x": x})
    np.testing.assert_array_equal(y, wanted)


def test_function_is_evaluated():
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
    )

    (b,) = tenure.ReferenceEvaluator(function).run(None, {"a": np.array([1, 2], np.float32)})

    assert b.tolist() == [2, 4]


def test_what_is_not_supported_says_so(x):
    evaluator = tenure.ReferenceEvaluator(models.dense())
    with pytest.raises(tenure.NotSupportedError, match="intermediate"):
        evaluator.run(None, {"x": x}, intermediate=True)
    with pytest.raises(tenure.NotSupportedError, match="new_ops"):
        tenure.ReferenceEvaluator(models.dense(), new_ops=[object])
    with pytest.raises(TypeError):
        tenure.ReferenceEvaluator(onnx.TensorProto())


def test_backend_prepares_and_runs_models(x):
    model = onnx.ModelProto.FromString(models.dense())

    prepared = backend.prepare(model, device="CPU")

    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    for outputs in (prepared.run([x]), prepared.run(x), prepared.run({"x": x}),
                    backend.run_model(model, [x])):
        np.testing.assert_allclose(outputs[0], wanted, rtol=1e-4, atol=1e-4)
        assert outputs.y is outputs[0]


def test_backend_runs_nodes():
    node = helper.make_node("Add", ["a", "b"], ["c"])

    outputs = backend.run_node(node, [np.float32([1, 2]), np.float32([3, 4])])

    assert outputs[0].tolist() == [4, 6]


def test_backend_knows_devices_and_models():
    assert backend.supports_device("CPU") and backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    assert backend.is_compatible(models.dense())
    unknown = models.build([helper.make_node("Nothing", ["x"], ["y"])], {"x": (1, [1])}, {"y": (1, [1])})
    assert not backend.is_compatible(unknown)
    with pytest.raises(tenure.NotSupportedError):
        backend.prepare(models.dense(), device="CUDA")


def test_backend_runs_onnx_own_cases():
    import onnx.backend.test

    cases = onnx.backend.test.BackendTest(backend, __name__)
    cases.include("test_relu_cpu")
    cases.include("test_concat_2d_axis_0_cpu")
    suite = cases.test_suite

    import unittest

    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun > len(result.skipped)
    assert result.errors == [] and result.failures == []
