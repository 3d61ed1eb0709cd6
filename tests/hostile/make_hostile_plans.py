"""Builds models that load and whose graphs are hostile: sizes, axes and windows that no run can
have. Each says in which stage it must be refused, how, and which node must be named."""

import numpy as np
from make_hostile import model_of
from onnx import TensorProto, helper, numpy_helper

CASES = {}
INT64_MAX = (1 << 63) - 1
INT64_MIN = -(1 << 63)


def case(statuses, *words, node="bad", stages=("session", "plan", "run")):
    """Registers a builder that returns a model; `statuses` may be several with bars between."""

    def register(builder):
        CASES[builder.__name__] = (builder, tuple(statuses.split("|")), words, node, stages)
        return builder

    return register


def one_node(op, inputs, feeds=(), weights=(), outputs=("y",), opset=21, out_type=1, **attributes):
    """A model of one node named "bad"; feeds are (name, type, shape), weights are (name, array)."""
    node = helper.make_node(op, list(inputs), list(outputs), name="bad", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(*feed) for feed in feeds],
        [helper.make_tensor_value_info(name, out_type, None) for name in outputs if name],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in weights],
    )
    model = model_of(graph)
    model.opset_import[0].version = opset
    return model


def ints(*values):
    return np.array(values, dtype=np.int64)


X4 = ("x", TensorProto.FLOAT, [1, 3, 8, 8])
W4 = ("w", np.ones((2, 3, 3, 3), dtype=np.float32))


def conv(x=X4, w=W4, op="Conv", **attributes):
    return one_node(op, ["x", w[0]], [x], [w], **attributes)


@case("LIMIT", "refused")
def constant_of_shape_2_to_44_elements():
    return one_node("ConstantOfShape", ["s"], weights=[("s", ints(1 << 44))])


@case("OVERFLOW|INVALID_ARGUMENT", "dim", "more", "shape")
def constant_of_shape_product_overflows():
    return one_node("ConstantOfShape", ["s"], weights=[("s", ints(1 << 33, 1 << 33))])


@case("INVALID_ARGUMENT", "-1")
def constant_of_shape_negative():
    return one_node("ConstantOfShape", ["s"], weights=[("s", ints(-1))])


@case("UNSUPPORTED|INVALID_ARGUMENT|INVALID_MODEL", "100000")
def constant_of_shape_rank_of_100000_fed():
    return one_node("ConstantOfShape", ["s"], [("s", TensorProto.INT64, [100000])])


@case("UNSUPPORTED|INVALID_ARGUMENT|OUT_OF_RANGE", "17")
def constant_of_shape_rank_17():
    return one_node("ConstantOfShape", ["s"], weights=[("s", np.ones(17, dtype=np.int64))])


def number_range(start, limit, delta, dtype=np.int64):
    values = [("a", dtype(start)), ("b", dtype(limit)), ("c", dtype(delta))]
    kind = 7 if dtype is np.int64 else 1
    return one_node("Range", ["a", "b", "c"], weights=values, out_type=kind)


@case("INVALID_ARGUMENT", "delta")
def range_step_0():
    return number_range(0, 10, 0)


@case("LIMIT|OVERFLOW", "refused", "more", "range")
def range_over_all_of_int64():
    return number_range(INT64_MIN, INT64_MAX, 1)


@case("LIMIT|OVERFLOW|INVALID_ARGUMENT", "refused", "elements", "nan", "inf")
def range_step_nan():
    return number_range(0, 10, float("nan"), np.float32)


@case("LIMIT|OVERFLOW|INVALID_ARGUMENT|OUT_OF_RANGE", "refused", "elements", "inf")
def range_to_infinity():
    return number_range(0, float("inf"), 1, np.float32)


@case("LIMIT|OVERFLOW", "refused", "more")
def tile_2_to_31():
    return one_node(
        "Tile", ["x", "r"], [("x", TensorProto.FLOAT, [2, 2])], [("r", ints(1 << 31, 1))]
    )


@case("OVERFLOW|INVALID_ARGUMENT", "more", "repeat", "dim")
def tile_overflows():
    return one_node(
        "Tile", ["x", "r"], [("x", TensorProto.FLOAT, [2, 2])], [("r", ints(INT64_MAX, INT64_MAX))]
    )


@case("INVALID_ARGUMENT", "repeat")
def tile_negative():
    return one_node("Tile", ["x", "r"], [("x", TensorProto.FLOAT, [2, 2])], [("r", ints(-1, 1))])


def gather(*indices, op="Gather"):
    return one_node(
        op, ["x", "i"], [("x", TensorProto.FLOAT, [12])], [("i", ints(*indices))], axis=0
    )


@case("OUT_OF_RANGE", "-13")
def gather_minus_13_of_12():
    return gather(-13)


@case("OUT_OF_RANGE", "12")
def gather_12_of_12():
    return gather(0, 12)


@case("OUT_OF_RANGE", "12")
def gather_elements_12_of_12():
    return gather(12, op="GatherElements")


@case("OUT_OF_RANGE", "-9223372036854775808")
def gather_least_int64():
    return gather(INT64_MIN)


def with_axis(op, axis, **more):
    return one_node(op, ["x"], [("x", TensorProto.FLOAT, [2, 3])], axis=axis, **more)


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "99")
def softmax_axis_99():
    return with_axis("Softmax", 99)


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "-99")
def flatten_axis_minus_99():
    return with_axis("Flatten", -99)


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "9223372036854775807")
def argmax_axis_int64_max():
    return with_axis("ArgMax", INT64_MAX, out_type=7)


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "99")
def concat_axis_99():
    return one_node("Concat", ["x", "x"], [("x", TensorProto.FLOAT, [2, 3])], axis=99)


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "99")
def reduce_sum_axis_99():
    return one_node(
        "ReduceSum", ["x", "a"], [("x", TensorProto.FLOAT, [2, 3])], [("a", ints(99))]
    )


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL|UNSUPPORTED", "axes", "axis", "17")
def reduce_sum_more_axes_than_any_rank():
    return one_node(
        "ReduceSum", ["x", "a"], [("x", TensorProto.FLOAT, [2, 3]), ("a", TensorProto.INT64, [17])]
    )


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL", "99")
def unsqueeze_axis_99():
    return one_node(
        "Unsqueeze", ["x", "a"], [("x", TensorProto.FLOAT, [2, 3])], [("a", ints(99))]
    )


@case("INVALID_ARGUMENT|OUT_OF_RANGE|INVALID_MODEL|UNSUPPORTED", "perm", "axis")
def transpose_axis_twice():
    return one_node("Transpose", ["x"], [("x", TensorProto.FLOAT, [2, 3])], perm=[0, 0])


@case("INVALID_ARGUMENT|INVALID_MODEL", "rank")
def conv_input_rank_4_weights_rank_5():
    return conv(w=("w", np.ones((2, 3, 3, 3, 3), dtype=np.float32)))


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "dilations")
def conv_dilations_short():
    return conv(dilations=[2])


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "pads")
def conv_pads_int64_max():
    return conv(pads=[INT64_MAX] * 4)


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "strides")
def conv_stride_0():
    return conv(strides=[0, 1])


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "kernel_shape")
def conv_kernel_shape_is_not_that_of_the_weights():
    return conv(kernel_shape=[5, 5])


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "kernel_shape")
def conv_transpose_kernel_shape_is_not_that_of_the_weights():
    w = ("w", np.ones((3, 2, 3, 3), dtype=np.float32))
    return conv(w=w, op="ConvTranspose", kernel_shape=[512, 512])


@case("INVALID_ARGUMENT|INVALID_MODEL", "bias")
def conv_transpose_bias_too_short():
    w = ("w", np.ones((3, 2, 3, 3), dtype=np.float32))
    bias = ("b", np.ones(1, dtype=np.float32))
    return one_node("ConvTranspose", ["x", "w", "b"], [X4], [w, bias])


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "group")
def conv_group_0():
    return conv(group=0)


@case("LIMIT|OVERFLOW", "refused", "more", "range")
def conv_padding_makes_a_huge_output():
    return conv(pads=[(1 << 31) - 1] * 4)


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "window")
def pool_window_of_2_to_90():
    side = 1 << 30
    x = ("x", TensorProto.FLOAT, [1, 1, 2, 2, 2])
    return one_node("AveragePool", ["x"], [x], kernel_shape=[side] * 3, pads=[side] * 6)


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "kernel_shape")
def pool_window_0():
    return one_node("MaxPool", ["x"], [X4], kernel_shape=[0, 0])


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "block")
def space_to_depth_block_0():
    return one_node("SpaceToDepth", ["x"], [X4], blocksize=0)


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED", "block")
def depth_to_space_block_int64_max():
    return one_node("DepthToSpace", ["x"], [X4], blocksize=INT64_MAX)


@case("INVALID_ARGUMENT|OVERFLOW|LIMIT", "more")
def expand_to_2_to_62():
    return one_node(
        "Expand", ["x", "s"], [("x", TensorProto.FLOAT, [1])], [("s", ints(1 << 31, 1 << 31))]
    )


@case("INVALID_ARGUMENT|OVERFLOW", "elements", "target")
def reshape_to_another_size():
    return one_node(
        "Reshape", ["x", "s"], [("x", TensorProto.FLOAT, [2, 3])], [("s", ints(1 << 40, 1 << 40))]
    )


@case("INVALID_ARGUMENT", "-1")
def reshape_two_unknown_dims():
    return one_node(
        "Reshape", ["x", "s"], [("x", TensorProto.FLOAT, [2, 3])], [("s", ints(-1, -1))]
    )


@case("INVALID_ARGUMENT|OUT_OF_RANGE|OVERFLOW", "pad")
def pad_int64_max():
    return one_node(
        "Pad", ["x", "p"], [("x", TensorProto.FLOAT, [2])], [("p", ints(INT64_MAX, INT64_MAX))]
    )


@case("INVALID_ARGUMENT|OUT_OF_RANGE|OVERFLOW", "pad")
def pad_below_nothing():
    return one_node(
        "Pad", ["x", "p"], [("x", TensorProto.FLOAT, [2])], [("p", ints(INT64_MIN, 0))]
    )


@case("INVALID_ARGUMENT", "step")
def slice_step_0():
    weights = [("a", ints(0)), ("b", ints(2)), ("c", ints(0)), ("d", ints(0))]
    return one_node("Slice", list("xabcd"), [("x", TensorProto.FLOAT, [2])], weights)


@case("INVALID_ARGUMENT|INVALID_MODEL|UNSUPPORTED|OUT_OF_RANGE", "depth", "-5")
def one_hot_negative_depth():
    weights = [("d", ints(-5)), ("v", np.array([0, 1], dtype=np.float32))]
    return one_node("OneHot", ["x", "d", "v"], [("x", TensorProto.INT64, [3])], weights)


@case("LIMIT|OVERFLOW", "refused", "more")
def one_hot_huge_depth():
    weights = [("d", ints(1 << 40)), ("v", np.array([0, 1], dtype=np.float32))]
    return one_node("OneHot", ["x", "d", "v"], [("x", TensorProto.INT64, [3])], weights)


@case("INVALID_ARGUMENT|OUT_OF_RANGE", "k is", "4")
def top_k_more_than_there_are():
    return one_node(
        "TopK", ["x", "k"], [("x", TensorProto.FLOAT, [3])], [("k", ints(4))], ("y", "")
    )


@case("INVALID_ARGUMENT|INVALID_MODEL|OVERFLOW|LIMIT", "scale", "refused", "size")
def resize_scale_infinite():
    weights = [("s", np.array([1, 1, np.inf, 1], dtype=np.float32))]
    return one_node("Resize", ["x", "", "s"], [X4], weights)


@case("INVALID_MODEL|UNSUPPORTED", "missing")
def sum_with_a_gap():
    return one_node("Sum", ["x", ""], [("x", TensorProto.FLOAT, [2])])


@case("INVALID_MODEL|UNSUPPORTED", "missing")
def concat_with_a_gap():
    return one_node("Concat", ["x", "", "x"], [("x", TensorProto.FLOAT, [2])], axis=0)


@case("INVALID_MODEL|UNSUPPORTED", "missing")
def add_without_second_input():
    return one_node("Add", ["x"], [("x", TensorProto.FLOAT, [2])])


@case("INVALID_MODEL|UNSUPPORTED|INVALID_ARGUMENT", "equation")
def einsum_without_sense():
    return one_node("Einsum", ["x"], [("x", TensorProto.FLOAT, [2])], equation="i,j->->k")


@case("INVALID_ARGUMENT|INVALID_MODEL", "split", "length", "sum")
def split_lengths_overflow():
    return one_node(
        "Split",
        ["x", "s"],
        [("x", TensorProto.FLOAT, [2])],
        [("s", ints(INT64_MAX, 3))],
        ("y", "z"),
    )


def make(folder):
    """Writes every case; name -> (path, statuses, words, node, stages)."""
    found = {}
    for name, (builder, *expected) in CASES.items():
        path = folder / f"{name}.onnx"
        path.write_bytes(builder().SerializeToString())
        found[name] = (path, *expected)
    return found
