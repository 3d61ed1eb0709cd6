"""Writes model files that must not hurt, and good ones that look suspicious.

Every case is a function that fills a folder with `model.onnx` (and what it refers to). The row
says what a loader must answer: the statuses that are right, and words of which the message must
have one.

    python make_hostile.py FOLDER
"""

import os
import pathlib
import socket
import struct
import sys

import onnx
from onnx import TensorProto, helper

CASES = {}
BIG = 1 << 62


def case(statuses, *words):
    """Registers a builder; `statuses` is one name or several with bars between."""

    def register(builder):
        CASES[builder.__name__] = (builder, tuple(statuses.split("|")), words)
        return builder

    return register


# Pieces of models.


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, data):
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def int_field(number, value):
    return varint(number << 3) + varint(value)


def value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def graph_of(nodes, initializers=(), inputs=("x",), outputs=("y",)):
    return helper.make_graph(
        nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs], list(initializers)
    )


def model_of(graph, **more):
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, **more
    )


def save(folder, model):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    (folder / "model.onnx").write_bytes(data)


def simple_model(initializers=()):
    return model_of(graph_of([helper.make_node("Relu", ["x"], ["y"], name="relu_1")], initializers))


def raw_tensor(name, dtype, dims, data):
    t = TensorProto(name=name, data_type=dtype, dims=dims)
    if data is not None:
        t.raw_data = data
    return t


def external_tensor(name, dims, location, offset=None, length=None, dtype=TensorProto.FLOAT):
    t = TensorProto(name=name, data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": length}
    for key, entry in entries.items():
        if entry is not None:
            t.external_data.add(key=key, value=str(entry))
    return t


def save_external(folder, *tensors):
    save(folder, simple_model(tensors))


def weights(folder, name="w.bin", size=64):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(i % 251 for i in range(size)))
    return path


# External data.


@case("INVALID_MODEL", "..")
def external_parent(folder):
    (folder.parent / "outside.bin").write_bytes(bytes(64))
    save_external(folder, external_tensor("w", [4], "../outside.bin"))


@case("INVALID_MODEL", "..")
def external_parent_inside(folder):
    weights(folder, "ok/w.bin")
    (folder.parent / "outside.bin").write_bytes(bytes(64))
    save_external(folder, external_tensor("w", [4], "ok/../../outside.bin", 0, 16))


@case("INVALID_MODEL", "absolute")
def external_absolute(folder):
    save_external(folder, external_tensor("w", [4], "/etc/passwd", 0, 16))


@case("IO", "link")
def external_symlink(folder):
    weights(folder)
    (folder / "link.bin").symlink_to("w.bin")
    save_external(folder, external_tensor("w", [4], "link.bin", 0, 16))


@case("IO", "link", "directory")
def external_symlink_folder(folder):
    weights(folder, "real/w.bin")
    (folder / "link").symlink_to("real")
    save_external(folder, external_tensor("w", [4], "link/w.bin", 0, 16))


@case("IO", "link")
def external_symlink_to_device(folder):
    (folder / "zero").symlink_to("/dev/zero")
    save_external(folder, external_tensor("w", [4], "zero", 0, 16))


@case("IO", "names")
def external_hard_link(folder):
    os.link(weights(folder), folder / "second.bin")
    save_external(folder, external_tensor("w", [4], "second.bin", 0, 16))


@case("IO", "regular")
def external_directory(folder):
    (folder / "dir").mkdir()
    save_external(folder, external_tensor("w", [4], "dir", 0, 16))


@case("IO", "regular")
def external_fifo(folder):
    os.mkfifo(folder / "pipe")
    save_external(folder, external_tensor("w", [4], "pipe", 0, 16))


@case("IO", "socket", "device", "regular")
def external_socket(folder):
    here = os.getcwd()
    os.chdir(folder)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket")
    os.chdir(here)
    save_external(folder, external_tensor("w", [4], "socket", 0, 16))


@case("IO", "No such file")
def external_absent(folder):
    save_external(folder, external_tensor("w", [4], "absent.bin", 0, 16))


@case("INVALID_MODEL", "location")
def external_no_location(folder):
    save_external(folder, external_tensor("w", [4], None, 0, 16))


@case("INVALID_MODEL", "zero byte")
def external_zero_byte(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin\0.txt", 0, 16))


@case("INVALID_MODEL|IO", "location", "long")
def external_long_name(folder):
    save_external(folder, external_tensor("w", [4], "a" * 3000, 0, 16))


@case("INVALID_MODEL", "offset")
def external_offset_huge(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", BIG, 16))


@case("INVALID_MODEL", "size", "needs")
def external_sum_wraps(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", 16, (1 << 64) - 8))


@case("OVERFLOW", "bytes")
def external_sum_wraps_signed(folder):
    weights(folder)
    dims = [(1 << 63) - 1]
    t = external_tensor("w", dims, "w.bin", 16, (1 << 63) - 1, TensorProto.UINT8)
    save_external(folder, t)


@case("INVALID_MODEL", "size")
def external_offset_overflows(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", "99999999999999999999999", 16))


@case("INVALID_MODEL", "offset")
def external_offset_negative(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", -4, 16))


@case("INVALID_MODEL", "length")
def external_length_text(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", 0, "0x10"))


@case("INVALID_MODEL", "needs")
def external_length_differs(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", 0, 12))


@case("INVALID_MODEL", "behind")
def external_short_file(folder):
    weights(folder, size=15)
    save_external(folder, external_tensor("w", [4], "w.bin", 0, 16))


@case("INVALID_MODEL", "needs")
def external_short_file_no_length(folder):
    weights(folder, size=15)
    save_external(folder, external_tensor("w", [4], "w.bin"))


@case("INVALID_MODEL", "string")
def external_strings(folder):
    weights(folder)
    save_external(folder, external_tensor("w", [4], "w.bin", 0, 64, TensorProto.STRING))


@case("OK")
def external_reverse_order(folder):
    weights(folder, size=4096)
    tensors = [external_tensor(f"w{i}", [4], "w.bin", 16 * i, 16) for i in range(8)]
    save_external(folder, *reversed(tensors))


@case("OK")
def external_odd_offset(folder):
    weights(folder, size=20000)
    save_external(folder, external_tensor("w", [1024], "w.bin", 8191, 4096))


@case("OK")
def external_same_bytes(folder):
    weights(folder)
    tensors = [external_tensor("a", [4], "w.bin"), external_tensor("b", [8], "./w.bin", 0, 32)]
    save_external(folder, *tensors)


# Sizes of tensors.


@case("INVALID_MODEL", "needs")
def dims_huge_without_data(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [1 << 40], None)]))


@case("OVERFLOW", "shape")
def dims_product_overflows(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [1 << 33, 1 << 33], b"1234")]))


@case("OVERFLOW", "bytes")
def dims_bytes_overflow(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.DOUBLE, [1 << 31, 1 << 31], b"1234")]))


@case("INVALID_MODEL", "negative")
def dims_negative(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [-1], bytes(4))]))


@case("INVALID_MODEL", "negative")
def dims_two_negative(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [-2, -2], bytes(16))]))


@case("INVALID_MODEL", "needs 8")
def raw_too_long(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.INT64, [1], bytes(2048))]))


@case("INVALID_MODEL", "needs")
def raw_too_short(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [4], bytes(12))]))


@case("INVALID_MODEL", "needs")
def raw_for_no_elements(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [0], bytes(4))]))


@case("INVALID_MODEL", "needs")
def int4_too_short(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.INT4, [5], bytes(2))]))


@case("UNSUPPORTED", "rank")
def rank_17(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [1] * 17, bytes(4))]))


@case("UNSUPPORTED", "rank")
def rank_of_thousands(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.FLOAT, [1] * 3000, bytes(4))]))


@case("INVALID_MODEL", "length")
def rank_2_to_30(folder):
    tensor = varint(1 << 3 | 2) + varint(1 << 30) + b"\1\1"
    save(folder, model_bytes(field(5, tensor)))


@case("UNSUPPORTED", "rank")
def type_rank_17(folder):
    graph = graph_of([helper.make_node("Relu", ["x"], ["y"])])
    graph.input[0].CopyFrom(value("x", shape=[1] * 17))
    save(folder, model_of(graph))


@case("INVALID_MODEL", "data_type")
def tensor_without_type(folder):
    save(folder, simple_model([raw_tensor("w", 0, [1], bytes(4))]))


@case("UNSUPPORTED", "data_type 99")
def tensor_type_unknown(folder):
    save(folder, simple_model([raw_tensor("w", 99, [1], bytes(4))]))


@case("INVALID_MODEL", "both")
def tensor_with_two_payloads(folder):
    t = raw_tensor("w", TensorProto.FLOAT, [1], bytes(4))
    t.float_data.append(1.0)
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "field 5")
def tensor_in_wrong_field(folder):
    t = raw_tensor("w", TensorProto.FLOAT, [1], None)
    t.int32_data.append(1)
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "needs")
def typed_too_few(folder):
    t = raw_tensor("w", TensorProto.INT64, [1 << 20], None)
    t.int64_data.extend([1, 2, 3])
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "needs")
def typed_too_many(folder):
    t = raw_tensor("w", TensorProto.FLOAT16, [2], None)
    t.int32_data.extend([1] * 900)
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "needs")
def complex_of_odd_length(folder):
    t = raw_tensor("w", TensorProto.COMPLEX64, [1], None)
    t.float_data.extend([1.0, 2.0, 3.0])
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "string")
def string_in_raw(folder):
    save(folder, simple_model([raw_tensor("w", TensorProto.STRING, [1], bytes(16))]))


@case("INVALID_MODEL", "needs")
def strings_too_few(folder):
    t = raw_tensor("w", TensorProto.STRING, [1 << 40], None)
    t.string_data.append(b"a")
    save(folder, simple_model([t]))


@case("UNSUPPORTED", "segment")
def tensor_segment(folder):
    t = raw_tensor("w", TensorProto.FLOAT, [1], bytes(4))
    t.segment.begin = 0
    save(folder, simple_model([t]))


@case("INVALID_MODEL", "name")
def initializer_without_name(folder):
    save(folder, simple_model([raw_tensor("", TensorProto.FLOAT, [1], bytes(4))]))


def sparse_model(values, indices, dims):
    s = onnx.SparseTensorProto(dims=dims)
    s.values.CopyFrom(helper.make_tensor("s", TensorProto.FLOAT, [len(values)], values))
    shape = [len(indices)] if indices and isinstance(indices[0], int) else [len(indices), len(dims)]
    flat = [i for row in indices for i in (row if isinstance(row, list) else [row])]
    s.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, shape, flat))
    model = simple_model()
    model.graph.sparse_initializer.append(s)
    return model


@case("OK")
def sparse_good(folder):
    save(folder, sparse_model([1.0, 2.0], [[0, 1], [2, 2]], [3, 3]))


@case("INVALID_MODEL", "indices")
def sparse_index_outside(folder):
    save(folder, sparse_model([1.0], [9], [3, 3]))


@case("INVALID_MODEL", "indices")
def sparse_index_negative(folder):
    save(folder, sparse_model([1.0], [[0, -1]], [3, 3]))


@case("INVALID_MODEL", "indices")
def sparse_counts_differ(folder):
    save(folder, sparse_model([1.0, 2.0], [4], [3, 3]))


@case("OVERFLOW", "shape")
def sparse_dims_overflow(folder):
    save(folder, sparse_model([1.0], [4], [1 << 40, 1 << 40]))


@case("INVALID_MODEL", "values and indices")
def sparse_empty(folder):
    model = simple_model()
    model.graph.sparse_initializer.add()
    save(folder, model)


# Nodes, names, order.


def relu(x, y, name=""):
    return helper.make_node("Relu", [x], [y], name=name)


@case("OK")
def nodes_unsorted(folder):
    save(folder, model_of(graph_of([relu("b", "y"), relu("a", "b"), relu("x", "a")])))


@case("OK")
def nodes_unsorted_by_capture(folder):
    body = helper.make_graph([relu("late", "z")], "body", [], [value("z")])
    pick = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    cond = helper.make_node("Cast", ["x"], ["c"], to=TensorProto.BOOL)
    save(folder, model_of(graph_of([pick, cond, relu("x", "late")])))


@case("INVALID_MODEL", "cycle")
def node_cycle(folder):
    nodes = [relu("x", "q"), helper.make_node("Add", ["b", "q"], ["a"], name="left")]
    nodes += [relu("a", "b", "right"), relu("b", "y")]
    save(folder, model_of(graph_of(nodes)))


@case("INVALID_MODEL", "cycle")
def node_feeds_itself(folder):
    save(folder, model_of(graph_of([helper.make_node("Add", ["x", "y"], ["y"], name="self")])))


@case("INVALID_MODEL", "cycle")
def node_cycle_by_capture(folder):
    body = helper.make_graph([relu("y", "z")], "body", [], [value("z")])
    pick = helper.make_node("If", ["x"], ["y"], "picker", then_branch=body, else_branch=body)
    save(folder, model_of(graph_of([pick])))


@case("INVALID_MODEL", "op_type")
def node_without_operator(folder):
    model = simple_model()
    model.graph.node[0].ClearField("op_type")
    save(folder, model)


@case("INVALID_MODEL", "nowhere")
def input_produced_nowhere(folder):
    add = helper.make_node("Add", ["x", "ghost"], ["y"], name="adder")
    save(folder, model_of(graph_of([add])))


@case("INVALID_MODEL", "nowhere")
def inner_name_used_outside(folder):
    body = helper.make_graph([relu("x", "inner")], "body", [], [value("inner")])
    pick = helper.make_node("If", ["x"], ["q"], then_branch=body, else_branch=body)
    save(folder, model_of(graph_of([pick, relu("inner", "y", "user")])))


@case("INVALID_MODEL", "second time")
def output_made_twice(folder):
    save(folder, model_of(graph_of([relu("x", "y"), relu("x", "y", "again")])))


@case("INVALID_MODEL", "second time")
def output_overwrites_input(folder):
    save(folder, model_of(graph_of([relu("x", "x", "over"), relu("x", "y")])))


@case("INVALID_MODEL", "nowhere")
def graph_output_produced_nowhere(folder):
    save(folder, model_of(graph_of([relu("x", "z")])))


@case("INVALID_MODEL", "name")
def graph_output_without_name(folder):
    save(folder, model_of(graph_of([relu("x", "z")], outputs=("",))))


@case("INVALID_MODEL", "type")
def graph_input_without_type(folder):
    model = simple_model()
    model.graph.input[0].ClearField("type")
    save(folder, model)


@case("INVALID_MODEL", "type")
def graph_input_without_element_type(folder):
    model = simple_model()
    model.graph.input[0].type.tensor_type.ClearField("elem_type")
    save(folder, model)


@case("UNSUPPORTED", "elem_type")
def graph_input_of_unknown_type(folder):
    model = simple_model()
    model.graph.input[0].type.tensor_type.elem_type = 4711
    save(folder, model)


@case("INVALID_MODEL", "name")
def graph_input_without_name(folder):
    model = simple_model()
    model.graph.input.add().CopyFrom(value(""))
    save(folder, model)


@case("INVALID_MODEL", "twice")
def graph_input_twice(folder):
    save(folder, model_of(graph_of([relu("x", "y")], inputs=("x", "x"))))


@case("OK")
def initializer_twice(folder):
    first = raw_tensor("w", TensorProto.FLOAT, [1], bytes(4))
    second = raw_tensor("w", TensorProto.FLOAT, [2], bytes(8))
    save(folder, simple_model([first, second]))


@case("OK")
def name_with_control_bytes(folder):
    save(folder, model_of(graph_of([relu("x", "a\n\x1b\0b"), relu("a\n\x1b\0b", "y")])))


@case("INVALID_MODEL", "nowhere")
def missing_name_with_control_bytes(folder):
    save(folder, model_of(graph_of([relu("\n\x1b[2J\0", "y", "bad\nname")])))


@case("OK")
def file_over_4_gib(folder):
    size = (4 << 30) + 12345
    head = field(8, b"w") + int_field(1, size) + int_field(2, TensorProto.UINT8)
    head += varint(9 << 3 | 2) + varint(size)
    rest = model_bytes(b"")
    graph_at = rest.index(varint(7 << 3 | 2), 4)
    graph = rest[graph_at + 2 :]
    assert rest[graph_at + 1] == len(graph)
    start = graph + varint(5 << 3 | 2) + varint(len(head) + size) + head
    start = rest[:graph_at] + varint(7 << 3 | 2) + varint(len(start) + size) + start
    with open(folder / "model.onnx", "wb") as file:
        file.write(start)
        file.truncate(len(start) + size)  # a hole: takes no room


@case("INVALID_MODEL", "op_type")
def million_empty_nodes(folder):
    save(folder, model_bytes(field(1, b"") * 1_000_000))


# Attributes.


def with_attribute(**fields):
    model = simple_model()
    model.graph.node[0].attribute.add(**fields)
    return model


@case("INVALID_MODEL", "name")
def attribute_without_name(folder):
    save(folder, with_attribute(type=onnx.AttributeProto.INT, i=1))


@case("INVALID_MODEL", "neither")
def attribute_without_type_and_value(folder):
    save(folder, with_attribute(name="a"))


@case("OK")
def attribute_without_type(folder):
    save(folder, with_attribute(name="a", ints=[1, 2]))


@case("INVALID_MODEL", "function")
def attribute_of_no_function(folder):
    save(folder, with_attribute(name="a", ref_attr_name="b", type=onnx.AttributeProto.INT))


@case("INVALID_MODEL", "no value")
def attribute_without_tensor(folder):
    save(folder, with_attribute(name="a", type=onnx.AttributeProto.TENSOR))


@case("INVALID_MODEL", "no value")
def attribute_without_graph(folder):
    save(folder, with_attribute(name="a", type=onnx.AttributeProto.GRAPH))


@case("UNSUPPORTED", "type 77")
def attribute_of_unknown_type(folder):
    node = field(1, b"x") + field(2, b"y") + field(4, b"Relu")
    node += field(5, field(1, b"a") + int_field(20, 77))
    save(folder, model_bytes(field(1, node)))


@case("INVALID_MODEL", "twice")
def attribute_twice(folder):
    model = with_attribute(name="a", type=onnx.AttributeProto.INT, i=1)
    model.graph.node[0].attribute.add(name="a", type=onnx.AttributeProto.INT, i=2)
    save(folder, model)


@case("UNSUPPORTED", "attributes")
def attributes_by_the_hundred(folder):
    model = simple_model()
    for i in range(300):
        model.graph.node[0].attribute.add(name=f"a{i}", type=onnx.AttributeProto.INT, i=1)
    save(folder, model)


@case("INVALID_MODEL", "needs")
def attribute_tensor_without_data(folder):
    model = simple_model()
    t = raw_tensor("t", TensorProto.FLOAT, [1 << 40], None)
    model.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=t)
    save(folder, model)


# Depth.


def nested_bodies(levels):
    """Wire bytes of a GraphProto with `levels` graphs inside each other."""
    inner = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu"))
    inner += field(12, field(1, b"y"))
    for _ in range(levels):
        branch = field(5, field(1, b"b") + int_field(20, 5) + field(6, inner))
        inner = field(1, field(2, b"y") + field(4, b"If") + branch) + field(12, field(1, b"y"))
    return inner


@case("OK")
def subgraphs_32_deep(folder):
    save(folder, model_bytes(nested_bodies(32), with_node=False))


@case("UNSUPPORTED", "deeper")
def subgraphs_33_deep(folder):
    save(folder, model_bytes(nested_bodies(33), with_node=False))


@case("UNSUPPORTED|INVALID_MODEL", "deeper")
def subgraphs_by_the_hundred(folder):
    save(folder, model_bytes(nested_bodies(100), with_node=False))


@case("UNSUPPORTED", "deeper")
def subgraphs_1000_deep(folder):
    save(folder, model_bytes(nested_bodies(1000), with_node=False))


@case("UNSUPPORTED", "deeper")
def types_1000_deep(folder):
    inner = field(1, int_field(1, 1))
    for _ in range(1000):
        inner = field(4, field(1, inner))
    save(folder, model_bytes(field(11, field(1, b"deep") + field(2, inner))))


# Functions.


def function(name, nodes, domain="f", **more):
    f = onnx.FunctionProto(name=name, domain=domain, input=["x"], output=["y"], **more)
    f.node.extend(nodes)
    f.opset_import.add(domain="", version=21)
    return f


def call(name, x="x", y="y"):
    return helper.make_node(name, [x], [y], domain="f")


def function_model(*functions):
    model = model_of(graph_of([call(functions[0].name)]))
    model.opset_import.add(domain="f", version=1)
    model.functions.extend(functions)
    return model


@case("OK")
def functions_good(folder):
    save(folder, function_model(function("f", [call("g")]), function("g", [relu("x", "y")])))


@case("INVALID_MODEL", "itself")
def function_calls_itself(folder):
    save(folder, function_model(function("f", [call("f")])))


@case("INVALID_MODEL", "itself")
def functions_call_each_other(folder):
    save(folder, function_model(function("f", [call("g")]), function("g", [call("f")])))


@case("INVALID_MODEL", "itself")
def functions_call_in_a_ring(folder):
    ring = [function("f", [call("g")]), function("g", [call("h")]), function("h", [call("f")])]
    save(folder, function_model(*ring))


@case("INVALID_MODEL", "itself")
def function_calls_itself_in_a_branch(folder):
    body = helper.make_graph([call("f", "x", "z")], "body", [], [value("z")])
    pick = helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)
    save(folder, function_model(function("f", [pick])))


@case("UNSUPPORTED", "too many nodes")
def functions_multiply(folder):
    chain = [function(f"f{i}", [call(f"f{i + 1}", "x", "a"), call(f"f{i + 1}", "a", "y")])
             for i in range(30)]  # fmt: skip
    save(folder, function_model(*chain, function("f30", [relu("x", "y")])))


@case("INVALID_MODEL", "twice")
def function_twice(folder):
    save(folder, function_model(function("f", [relu("x", "y")]), function("f", [relu("x", "y")])))


@case("OK")
def function_overloads(folder):
    second = function("f", [relu("x", "y")], overload="second")
    save(folder, function_model(function("f", [relu("x", "y")]), second))


@case("INVALID_MODEL", "name")
def function_without_name(folder):
    model = function_model(function("f", [relu("x", "y")]))
    model.functions[0].ClearField("name")
    save(folder, model)


@case("INVALID_MODEL", "function f: Add (node 0): value w is produced nowhere")
def function_sees_no_outer_names(folder):
    w = raw_tensor("w", TensorProto.FLOAT, [1], bytes(4))
    model = function_model(function("f", [helper.make_node("Add", ["x", "w"], ["y"])]))
    model.graph.initializer.append(w)
    save(folder, model)


@case("INVALID_MODEL", "function f: Relu (node 1): needs its own result (cycle")
def function_with_node_cycle(folder):
    nodes = [helper.make_node("Add", ["x", "b"], ["y"]), relu("y", "b")]
    save(folder, function_model(function("f", nodes)))


# The model message and the wire format.


def model_bytes(graph, with_node=True):
    """A ModelProto whose GraphProto is `graph` plus what a good one needs."""
    tensor_type = field(2, field(1, int_field(1, 1)))
    good = field(11, field(1, b"x") + tensor_type)
    if with_node:
        good += field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu"))
        good += field(12, field(1, b"y") + tensor_type)
    return int_field(1, 10) + field(8, int_field(2, 21)) + field(7, graph + good)


@case("OK")
def newer_ir_version(folder):
    model = simple_model()
    model.ir_version = 99
    save(folder, model)


@case("OK")
def newer_opset(folder):
    model = simple_model()
    model.opset_import[0].version = 9999
    save(folder, model)


@case("OK")
def first_ir_version_without_opset(folder):
    model = simple_model()
    model.ir_version = 1
    del model.opset_import[:]
    save(folder, model)


@case("OK")
def unknown_fields(folder):
    unknown = field(999, b"new") + int_field(1000, 1) + varint(1001 << 3 | 5) + bytes(4)
    save(folder, model_bytes(unknown) + unknown)


@case("INVALID_MODEL", "ir_version")
def no_ir_version(folder):
    model = simple_model()
    model.ClearField("ir_version")
    save(folder, model)


@case("INVALID_MODEL", "opset")
def no_opset(folder):
    model = simple_model()
    del model.opset_import[:]
    save(folder, model)


@case("INVALID_MODEL", "negative")
def negative_opset(folder):
    model = simple_model()
    model.opset_import[0].version = -1
    save(folder, model)


@case("INVALID_MODEL", "graph")
def no_graph(folder):
    model = simple_model()
    model.ClearField("graph")
    save(folder, model)


@case("INVALID_MODEL", "ModelProto")
def empty_file(folder):
    save(folder, b"")


@case("INVALID_MODEL", "ModelProto")
def text_file(folder):
    save(folder, b"#!/bin/sh\nexit 1\n" * 100)


@case("INVALID_MODEL", "ModelProto")
def zeros(folder):
    save(folder, bytes(4096))


@case("INVALID_MODEL", "length 2147483648")
def length_2_to_31(folder):
    save(folder, model_bytes(b"") + varint(7 << 3 | 2) + varint(1 << 31) + b"x")


@case("INVALID_MODEL", "length")
def length_2_to_63(folder):
    save(folder, model_bytes(varint(1 << 3 | 2) + varint(1 << 63)))


@case("INVALID_MODEL", "length")
def length_wraps(folder):
    save(folder, model_bytes(varint(1 << 3 | 2) + varint((1 << 64) - 1)))


@case("INVALID_MODEL", "groups")
def group_wire_type(folder):
    save(folder, model_bytes(b"") + varint(9 << 3 | 3) + varint(9 << 3 | 4))


@case("INVALID_MODEL", "groups")
def groups_nested(folder):
    save(folder, model_bytes(b"") + varint(9 << 3 | 3) * 2000)


@case("INVALID_MODEL", "wire type")
def unknown_wire_type(folder):
    save(folder, model_bytes(b"") + varint(9 << 3 | 7))


@case("INVALID_MODEL", "field number")
def field_number_0(folder):
    save(folder, model_bytes(b"") + b"\0\0")


@case("INVALID_MODEL", "varint", "tag")
def varint_of_11_bytes(folder):
    save(folder, model_bytes(b"") + b"\x28" + b"\x80" * 10 + b"\1")


@case("INVALID_MODEL", "multiple")
def packed_floats_cut(folder):
    tensor = int_field(1, 1) + int_field(2, 1) + field(4, b"123") + field(8, b"w")
    save(folder, model_bytes(field(5, tensor)))


@case("INVALID_MODEL", "varint")
def packed_varint_cut(folder):
    tensor = field(1, b"\x80") + int_field(2, 1) + field(8, b"w")
    save(folder, model_bytes(field(5, tensor)))


@case("OK")
def messages_split(folder):
    one = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu"))
    two = field(11, field(1, b"x") + field(2, field(1, int_field(1, 1))))
    rest = field(2, field(1, field(2, field(1, int_field(1, 3)))))
    three = field(12, field(1, b"y") + field(2, field(1, int_field(1, 1))) + rest)
    facts = int_field(1, 10) + field(8, int_field(2, 21))
    save(folder, field(7, one) + facts + field(7, two + three))


@case("UNSUPPORTED", "split")
def messages_split_to_multiply(folder):
    inner = field(2, b"n" * 100_000)
    for _ in range(30):
        branch = field(1, b"b") + int_field(20, 5) + field(6, b"") + field(6, inner)
        inner = field(1, field(2, b"q") + field(4, b"If") + field(5, branch))
    save(folder, model_bytes(inner))


@case("IO", "regular")
def model_is_a_directory(folder):
    (folder / "model.onnx").mkdir()


@case("IO", "regular")
def model_is_a_pipe(folder):
    os.mkfifo(folder / "model.onnx")


@case("IO", "No such file")
def model_is_absent(folder):
    del folder


@case("OK")
def model_is_a_symlink(folder):
    save(folder, simple_model())
    (folder / "model.onnx").rename(folder / "real.onnx")
    (folder / "model.onnx").symlink_to("real.onnx")


def make(folder):
    """Writes all cases below `folder`, one folder each; returns {name: (path, statuses, words)}."""
    made = {}
    for name, (builder, statuses, words) in CASES.items():
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True)
        builder(place)
        made[name] = (place / "model.onnx", statuses, words)
    return made


if __name__ == "__main__":
    for made_name, row in make(sys.argv[1]).items():
        print(made_name, *row[1])
