"""The synthetic models have the graphs that targets are written for."""

import collections

import make_models
import pytest


def operators(name):
    return collections.Counter(node.op_type for node in make_models.make(name).graph.node)


@pytest.mark.parametrize("name", ["elementwise8", "smallconv", "tiny:7", "ushape", "dynchain"])
def test_model_is_the_same_bytes_each_time(name):
    first, second = (make_models.make(name).SerializeToString(deterministic=True) for _ in "ab")

    assert first == second


@pytest.mark.parametrize("name, wanted", [
    ("elementwise8", {"Add": 2, "Mul": 2, "Relu": 2, "Sub": 2, "ReduceSum": 1}),
    ("tiny:7", {"Add": 7}),
    ("ushape", {"Sin": 6, "Add": 6, "ReduceMean": 1}),
    ("ushape_matmul:16", {"MatMul": 6, "Add": 6, "ReduceMean": 1}),
    ("mlp64", {"MatMul": 4, "Relu": 4}),
    ("smallconv", {"Conv": 3, "Relu": 2, "MaxPool": 1, "GlobalAveragePool": 1, "Flatten": 1,
                   "Gemm": 1}),
])
def test_model_has_the_operators_of_its_description(name, wanted):
    assert operators(name) == wanted


def test_networks_have_the_usual_numbers_of_convolutions():
    assert operators("resnet50")["Conv"] == operators("resnet50")["BatchNormalization"] == 53
    assert operators("mobilenetv2")["Conv"] == 52
    assert operators("encoder6")["MatMul"] == 6 * 8


def test_every_model_is_opset_13_and_ir_7():
    for name in ("add400", "dynchain", "conv3d_t8"):
        model = make_models.make(name)

        assert model.ir_version == 7
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]


def test_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(SystemExit, match="unknown model nonsense.*resnet50"):
        make_models.make("nonsense")
