"""Prints a model, read by the onnx package, in the lines of `model_probe dump`."""

import struct
import zlib

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper

DTYPE_NAMES = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "string", 9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn",
    18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}


def text(value):
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    out = []
    for byte in data:
        if 0x20 < byte < 0x7F and byte not in b"%'":
            out.append(chr(byte))
        else:
            out.append(f"%{byte:02x}")
    return "'" + "".join(out) + "'"


def texts(what, values):
    return f" {what}" + "".join(" " + text(v) for v in values)


def domain(name):
    return "" if name == "ai.onnx" else name


def pack(array, bits):
    """Packs small integers, low bits first."""
    per_byte = 8 // bits
    codes = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    codes = np.concatenate([codes, np.zeros(-len(codes) % per_byte, np.uint8)])
    codes = codes.reshape(-1, per_byte)
    packed = np.zeros(len(codes), np.uint8)
    for i in range(per_byte):
        packed |= codes[:, i] << (i * bits)
    return packed.tobytes()


def tensor_bytes(tensor):
    array = numpy_helper.to_array(tensor)
    if tensor.data_type in BITS:
        return pack(array, BITS[tensor.data_type])
    return np.ascontiguousarray(array).tobytes()


def tensor(t):
    dims = ",".join(str(d) for d in t.dims)
    if t.data_type == onnx.TensorProto.STRING:
        size = 16 * len(t.string_data)
        data = b"".join(struct.pack("<Q", len(s)) + s for s in t.string_data)
    else:
        data = tensor_bytes(t)
        size = len(data)
    return f"{text(t.name)} {DTYPE_NAMES[t.data_type]} [{dims}] {size} {zlib.crc32(data):08x}"


def sparse(s):
    return f"{tensor(s.values)} {tensor(s.indices)}" + "".join(f" {d}" for d in s.dims)


def tensor_type(kind, t):
    out = f" {kind}"
    if t.elem_type:
        out += f" {DTYPE_NAMES[t.elem_type]}"
    if t.HasField("shape"):
        out += f" rank {len(t.shape.dim)}"
        for dim in t.shape.dim:
            value = dim.dim_value if dim.HasField("dim_value") else -1
            out += f" {max(value, -1)}" + text(dim.dim_param)
    return out


def type_proto(t):
    which = t.WhichOneof("value")
    if which == "tensor_type":
        return tensor_type("tensor", t.tensor_type)
    if which == "sparse_tensor_type":
        return tensor_type("sparse", t.sparse_tensor_type)
    if which == "sequence_type":
        return " sequence" + type_proto(t.sequence_type.elem_type)
    if which == "optional_type":
        return " optional" + type_proto(t.optional_type.elem_type)
    if which == "map_type":
        key = t.map_type.key_type
        return " map" + (f" {DTYPE_NAMES[key]}" if key else "") + type_proto(t.map_type.value_type)
    return " unknown"


def infos(what, values):
    return [f"{what} {text(v.name)}{type_proto(v.type)}" for v in values]


def float_bits(value):
    return f" {struct.unpack('<I', struct.pack('<f', value))[0]:08x}"


ATTRIBUTE_FIELDS = (
    "f i s t g floats ints strings tensors graphs sparse_tensor sparse_tensors tp type_protos"
)


def with_type(a):
    """Early format versions have no type: it is that of the first field with a value."""
    if a.type or a.ref_attr_name:
        return a
    filled = {f.name for f, _ in a.ListFields()}
    types = [i for i, name in enumerate(ATTRIBUTE_FIELDS.split(), 1) if name in filled]
    typed = onnx.AttributeProto()
    typed.CopyFrom(a)
    typed.type = types[0]
    return typed


def attribute(a):
    out = f"attribute {text(a.name)} {text(a.ref_attr_name)} {a.type}"
    kind = onnx.AttributeProto
    if a.ref_attr_name:
        return out
    if a.type == kind.FLOAT:
        out += float_bits(a.f)
    elif a.type == kind.INT:
        out += f" {a.i}"
    elif a.type == kind.STRING:
        out += text(a.s)
    elif a.type == kind.FLOATS:
        out += "".join(float_bits(f) for f in a.floats)
    elif a.type == kind.INTS:
        out += "".join(f" {i}" for i in a.ints)
    elif a.type == kind.STRINGS:
        out += texts("strings", a.strings) if a.strings else ""
    elif a.type == kind.TENSOR:
        out += tensor(a.t)
    elif a.type == kind.TENSORS:
        out += "".join(tensor(t) for t in a.tensors)
    elif a.type == kind.SPARSE_TENSOR:
        out += sparse(a.sparse_tensor)
    elif a.type == kind.SPARSE_TENSORS:
        out += "".join(sparse(s) for s in a.sparse_tensors)
    elif a.type == kind.TYPE_PROTO:
        out += type_proto(a.tp)
    elif a.type == kind.TYPE_PROTOS:
        out += "".join(type_proto(t) for t in a.type_protos)
    return out


def nodes(queue, values):
    lines = []
    for n in values:
        head = text(n.op_type) + text(domain(n.domain)) + text(n.overload) + text(n.name)
        lines.append(f"node {head}" + texts("in", n.input) + texts("out", n.output))
        for a in map(with_type, n.attribute):
            lines.append(attribute(a))
            if a.type == onnx.AttributeProto.GRAPH:
                queue.append(a.g)
            if a.type == onnx.AttributeProto.GRAPHS:
                queue.extend(a.graphs)
    return lines


def opsets(values):
    return [f"opset {text(domain(o.domain))} {o.version}" for o in values]


def graph(queue, g):
    lines = [f"graph {text(g.name)}"]
    lines += infos("input", g.input) + infos("output", g.output) + infos("value", g.value_info)
    lines += [f"initializer {tensor(t)}" for t in g.initializer]
    lines += [f"sparse {sparse(s)}" for s in g.sparse_initializer]
    return lines + nodes(queue, g.node)


def function(queue, f):
    head = text(f.name) + text(domain(f.domain)) + text(f.overload)
    head += texts("in", f.input) + texts("out", f.output) + texts("attributes", f.attribute)
    lines = [f"function {head}"] + [attribute(a) for a in f.attribute_proto]
    lines += opsets(f.opset_import) + infos("value", f.value_info)
    return lines + nodes(queue, f.node)


def dump(path):
    model = onnx.load(path, load_external_data=False)
    external_data_helper.load_external_data_for_model(model, str(path.parent))
    head = text(model.producer_name) + text(model.producer_version) + text(model.domain)
    lines = [f"ir {model.ir_version} version {model.model_version} {head}"]
    lines += opsets(model.opset_import)
    lines += [f"property {text(p.key)}{text(p.value)}" for p in model.metadata_props]
    queue = [model.graph]
    for f in model.functions:
        lines += function(queue, f)
    for g in queue:  # grows while it is walked
        lines += graph(queue, g)
    return lines
