"""Small models that the tests of the Python package run."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def build(nodes, inputs, outputs, initializers=None, opset=18):
    """Bytes of a model. `inputs` and `outputs` map names to (type, shape)."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return model.SerializeToString()


def unary(op="Relu", dtype=FLOAT, shape=("n",), **attributes):
    """y = op(x)."""
    node = helper.make_node(op, ["x"], ["y"], name="only", **attributes)
    return build([node], {"x": (dtype, shape)}, {"y": (dtype, None if op == "Transpose" else shape)})


def identity(dtype=FLOAT, shape=("n",)):
    return unary("Identity", dtype, shape)


def dense(rows="n", inner=64, columns=32, layers=3):
    """`layers` products with square weights, then one to `columns`: intermediates and an output."""
    rng = np.random.default_rng(0)
    nodes, weights, name = [], {}, "x"
    for i in range(layers):
        last = i == layers - 1
        weights[f"w{i}"] = rng.standard_normal((inner, columns if last else inner), np.float32)
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], ["y" if last else f"h{i}"],
                                      name=f"mm{i}"))
        name = f"h{i}"
    return build(nodes, {"x": (FLOAT, [rows, inner])}, {"y": (FLOAT, [rows, columns])}, weights)


def mixed():
    """One node whose two outputs are a graph output and an intermediate."""
    nodes = [
        helper.make_node("Split", ["x"], ["y", "t"], name="split", axis=0, num_outputs=2),
        helper.make_node("MatMul", ["t", "w"], ["z"], name="mm"),
    ]
    return build(
        nodes,
        {"x": (FLOAT, [8, 4])},
        {"y": (FLOAT, [4, 4]), "z": (FLOAT, [4, 4])},
        {"w": np.eye(4, dtype=np.float32)},
    )


def address(array):
    return array.__array_interface__["data"][0]
