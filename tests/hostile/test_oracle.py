"""What is read equals what the onnx package reads, over its own test models and over made ones."""

import pathlib
import random
import subprocess
import sys

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_hostile  # noqa: E402
import oracle  # noqa: E402

SUITE = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


def dump_all(probe, paths):
    """Lines of every file, by path; a refused file has one line that starts with its status."""
    names = "".join(f"{p}\n" for p in paths)
    run = subprocess.run([probe, "dump"], input=names.encode(), capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    seen = {}
    for line in run.stdout.decode().split("\n"):
        if line.startswith("file "):
            lines = seen.setdefault(line[5:], [])
        elif line.startswith("end "):
            assert line == "end 0"  # nothing stays charged
        elif line:
            lines.append(line)
    assert len(seen) == len(paths)
    return seen


def test_suite_models_are_read_alike(probe):
    paths = sorted(SUITE.glob("**/*.onnx"))
    assert len(paths) > 1500

    seen = dump_all(probe, paths)

    different = [p for p in paths if seen[str(p)] != oracle.dump(p)]
    assert not different


def typed_tensors():
    """Every element type, in raw_data and in its typed field."""
    rng = np.random.default_rng(1)
    for name, number in TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        dtype = helper.tensor_dtype_to_np_dtype(number)
        for count in (0, 1, 5, 8):
            values = rng.integers(0, 2, count) if name == "BOOL" else rng.integers(0, 3, count)
            array = values.astype(np.float32).astype(dtype)
            raw = numpy_helper.from_array(array, f"{name}_{count}_raw")
            raw.data_type = number
            yield raw
            yield helper.make_tensor(f"{name}_{count}_typed", number, [count], array)
    yield helper.make_tensor("strings", TensorProto.STRING, [2, 2], [b"a", b"", b"\xff\0", b"long"])
    yield helper.make_tensor("negative", TensorProto.INT8, [3], [-1, -128, 127])
    yield helper.make_tensor("wide", TensorProto.INT64, [2], [-(1 << 63), (1 << 63) - 1])


PACKED_FIELDS = {
    "float_data": 4,
    "int32_data": 5,
    "int64_data": 7,
    "double_data": 10,
    "uint64_data": 11,
}


def rewritten(tensor):
    """Wire bytes of `tensor` with typed fields unpacked, and with them in two pieces."""
    for name, number in PACKED_FIELDS.items():
        scalars = list(getattr(tensor, name))
        if len(scalars) < 2:
            continue
        rest = TensorProto()
        rest.CopyFrom(tensor)
        rest.ClearField(name)
        head = rest.SerializeToString()
        singles = b""
        for scalar in scalars:
            piece = TensorProto()
            getattr(piece, name).append(scalar)
            data = piece.SerializeToString()  # tag, length, one scalar
            wire = {4: 5, 10: 1}.get(number, 0)
            singles += bytes([number << 3 | wire]) + data[2:]
        first, second = TensorProto(), TensorProto()
        getattr(first, name).extend(scalars[:1])
        getattr(second, name).extend(scalars[1:])
        yield head + singles
        yield head + first.SerializeToString() + second.SerializeToString()


def test_every_type_and_field_is_read_alike(probe, tmp_path):
    tensors = list(typed_tensors())
    encodings = [t.SerializeToString() for t in tensors]
    for tensor in tensors:
        encodings += rewritten(tensor)
    paths = []
    for i, data in enumerate(encodings):
        model = make_hostile.model_bytes(make_hostile.field(5, data))
        paths.append(tmp_path / f"{i}.onnx")
        paths[-1].write_bytes(model)

    seen = dump_all(probe, paths)

    assert len(paths) > 250
    for path in paths:
        assert seen[str(path)] == oracle.dump(path)


def attributes_of_every_type():
    """One attribute of each type, and the lists empty, single and longer."""
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, -2.0])
    sparse = onnx.SparseTensorProto(dims=[3])
    sparse.values.CopyFrom(helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0]))
    sparse.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [1], [2]))
    relu = helper.make_node("Relu", ["x"], ["inner"])
    graph = helper.make_graph([relu], "body", [], [make_hostile.value("inner")])
    types = [
        helper.make_tensor_type_proto(TensorProto.INT64, [2, "n", None]),
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
        helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.BOOL, [])),
        helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.DOUBLE, [1])
        ),
        helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [4, 4]),
    ]
    kind = onnx.AttributeProto
    yield kind(name="f", type=kind.FLOAT, f=-0.5)
    yield kind(name="i", type=kind.INT, i=-(1 << 63))
    yield kind(name="s", type=kind.STRING, s=b"\xff text")
    yield kind(name="t", type=kind.TENSOR, t=tensor)
    yield kind(name="g", type=kind.GRAPH, g=graph)
    yield kind(name="st", type=kind.SPARSE_TENSOR, sparse_tensor=sparse)
    yield kind(name="tp", type=kind.TYPE_PROTO, tp=types[0])
    for count in (0, 1, 3):
        yield kind(name=f"f{count}", type=kind.FLOATS, floats=[0.1, float("inf"), -0.0][:count])
        yield kind(name=f"i{count}", type=kind.INTS, ints=[7, -1, 1 << 40][:count])
        yield kind(name=f"s{count}", type=kind.STRINGS, strings=[b"", b"a", b"\0"][:count])
        yield kind(name=f"t{count}", type=kind.TENSORS, tensors=[tensor] * count)
        yield kind(name=f"g{count}", type=kind.GRAPHS, graphs=[graph] * count)
        yield kind(name=f"st{count}", type=kind.SPARSE_TENSORS, sparse_tensors=[sparse] * count)
    yield kind(name="tps", type=kind.TYPE_PROTOS, type_protos=types)


def test_every_attribute_type_is_read_alike(probe, tmp_path):
    attributes = list(attributes_of_every_type())
    model = make_hostile.simple_model()
    node = model.graph.node[0]
    node.attribute.extend(attributes)
    node.overload = "special"
    for attribute in attributes:
        bare = model.graph.node.add(op_type="Bare", output=[f"bare_{attribute.name}"], input=["x"])
        if len(attribute.ListFields()) > 2:  # a list without elements has nothing to tell its type
            bare.attribute.add().CopyFrom(attribute)
            bare.attribute[0].ClearField("type")
    function = make_hostile.function("F", [make_hostile.relu("x", "y")], attribute=["needed"])
    function.attribute_proto.extend(attributes)
    function.node[0].attribute.add(
        name="alpha", ref_attr_name="needed", type=onnx.AttributeProto.FLOAT
    )
    function.value_info.append(make_hostile.value("y"))
    function.overload = "other"
    model.functions.append(function)
    model.metadata_props.add(key="author", value="somebody")
    model.model_version, model.domain, model.producer_version = 3, "test.domain", "1.2"
    packed = tmp_path / "packed.onnx"
    packed.write_bytes(model.SerializeToString())

    seen = dump_all(probe, [packed])

    assert seen[str(packed)] == oracle.dump(packed)
    assert len(seen[str(packed)]) > 100


def test_split_messages_are_read_alike(probe, tmp_path):
    model = (SUITE / "node" / "test_if" / "model.onnx").read_bytes()
    proto = onnx.load_from_string(model)
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    whole = proto.SerializeToString()
    paths = []
    for cut in field_ends(graph):
        paths.append(tmp_path / f"{cut}.onnx")
        paths[-1].write_bytes(
            make_hostile.field(7, graph[:cut]) + whole + make_hostile.field(7, graph[cut:])
        )

    seen = dump_all(probe, paths)

    assert len(paths) >= 3
    for path in paths:
        assert seen[str(path)] == oracle.dump(path)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def field_ends(message):
    """Offsets between the fields of a message made of length-delimited fields."""
    at, ends = 0, []
    while at < len(message):
        tag, at = read_varint(message, at)
        assert tag & 7 == 2
        size, at = read_varint(message, at)
        at += size
        ends.append(at)
    return ends[:-1]


@pytest.mark.parametrize("name", ["test_if", "test_relu", "test_loop13_seq", "test_constant"])
def test_no_prefix_is_taken_for_a_model(probe, tmp_path, name):
    data = (SUITE / "node" / name / "model.onnx").read_bytes()
    paths = []
    for size in range(len(data)):
        paths.append(tmp_path / f"{size}.onnx")
        paths[-1].write_bytes(data[:size])

    seen = dump_all(probe, paths)

    for path in paths:
        assert len(seen[str(path)]) == 1
        assert seen[str(path)][0].startswith("INVALID_MODEL: ")


def test_fuzz_seeds_are_refused_or_read_alike(probe):
    paths = sorted((pathlib.Path(__file__).parents[1] / "corpus" / "model_fuzz").iterdir())

    seen = dump_all(probe, paths)

    read = [p for p in paths if seen[str(p)][0].startswith("ir ")]
    assert len(read) > 50
    assert len(paths) - len(read) > 50
    for path in read:
        # order, and an initializer that is given twice, are put right on the way
        assert set(seen[str(path)]) <= set(oracle.dump(path)), path


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif kind == 2:
            del data[at : at + rng.randint(1, 4)]
        else:
            data[at:at] = data[at : at + rng.randint(1, 16)]
    return bytes(data) or b"\0"


def test_damaged_models_are_refused_or_read_alike(probe, tmp_path):
    rng = random.Random(20)
    small = [p for p in sorted(SUITE.glob("node/*/model.onnx")) if p.stat().st_size < 600]
    paths = []
    for i in range(3000):
        paths.append(tmp_path / f"{i}.onnx")
        paths[-1].write_bytes(mutate(rng.choice(small).read_bytes(), rng))

    seen = dump_all(probe, paths)

    read = unread = 0
    for path in paths:
        lines = seen[str(path)]
        if not lines[0].startswith("ir "):
            continue
        try:
            expected = oracle.dump(path)
        except DecodeError:
            unread += 1  # the damage lies in a message that a run has no use for
            continue
        assert sorted(lines) == sorted(expected), path  # an unsorted graph gets sorted
        read += 1
    assert read > 100
    assert unread < 10
