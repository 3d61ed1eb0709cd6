#!/usr/bin/env python3
"""Writes the synthetic models that tests and benchmarks name: numpy seed 0, opset 13, IR 7.

usage: make_models.py [NAME]... [--out DIR]

Names: see --list; tiny takes a count (tiny:100), ushape_matmul a width (ushape_matmul:256). A model
is the same bytes whenever and wherever it is made.
"""

import argparse
import math
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


class Graph:
    """Collects nodes and weights; every method that adds a node gives back its output's name."""

    def __init__(self, name):
        self.name, self.nodes, self.weights = name, [], []
        self.inputs, self.outputs = [], []
        self.random = numpy.random.RandomState(0)

    def input(self, name, *dims):
        self.inputs.append(helper.make_tensor_value_info(name, F32, list(dims)))
        return name

    def output(self, name, *dims):
        self.outputs.append(helper.make_tensor_value_info(name, F32, list(dims)))

    def weight(self, array, name=None):
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def scalar(self, value):
        return self.weight(numpy.array([value], numpy.float32))

    def normal(self, *shape, scale=1.0):
        return self.weight((self.random.standard_normal(shape) * scale).astype(numpy.float32))

    def add(self, op, *inputs, output=None, **attributes):
        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output],
                                           name=f"{op}_{len(self.nodes)}", **attributes))
        return output

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                  producer_name="tenure")
        model.ir_version = 7
        onnx.checker.check_model(model)
        return model


def elementwise8():
    g = Graph("elementwise8")
    x, count = g.input("x", 1000, 25000), 0
    for _ in range(2):
        for op in ("Add", "Mul", "Relu", "Sub"):
            if op == "Relu":
                x = g.add(op, x)
            else:
                x = g.add(op, x, g.scalar(1.0 + 0.01 * count))
                count += 1
    axes = g.weight(numpy.array([0, 1], numpy.int64))
    g.add("ReduceSum", x, axes, output="y", keepdims=1)
    g.output("y", 1, 1)
    return g


def add400():
    g = Graph("add400")
    g.add("Add", g.input("x", 1000, 100000), g.normal(1, 100000), output="y")
    g.output("y", 1000, 100000)
    return g


def convolution(g, x, channels_in, channels_out, kernel, stride=1, group=1, bias=False):
    """Convolution with He-scaled weights and padding that keeps the size at stride 1."""
    fan_in = channels_in // group * kernel * kernel
    weight = g.normal(channels_out, channels_in // group, kernel, kernel,
                      scale=math.sqrt(2.0 / fan_in))
    inputs = [x, weight] + ([g.normal(channels_out, scale=0.1)] if bias else [])
    return g.add("Conv", *inputs, kernel_shape=[kernel, kernel], strides=[stride, stride],
                 pads=[kernel // 2] * 4, group=group)


def batch_norm(g, x, channels):
    scale = g.weight((1 + 0.1 * g.random.standard_normal(channels)).astype(numpy.float32))
    bias, mean = g.normal(channels, scale=0.1), g.normal(channels, scale=0.1)
    variance = g.weight((0.5 + g.random.random_sample(channels)).astype(numpy.float32))
    return g.add("BatchNormalization", x, scale, bias, mean, variance, epsilon=1e-5)


def classifier(g, x, channels, classes=1000):
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    weight = g.normal(classes, channels, scale=math.sqrt(1.0 / channels))
    g.add("Gemm", x, weight, g.normal(classes, scale=0.1), output="y", transB=1)
    g.output("y", 1, classes)


def resnet50():
    g = Graph("resnet50")

    def conv_norm(x, wide_in, wide_out, kernel, stride=1):
        return batch_norm(g, convolution(g, x, wide_in, wide_out, kernel, stride), wide_out)

    x = g.add("Relu", conv_norm(g.input("x", 1, 3, 224, 224), 3, 64, 7, 2))
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    wide_in = 64
    for stage, (blocks, wide) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = g.add("Relu", conv_norm(x, wide_in, wide, 1))
            y = g.add("Relu", conv_norm(y, wide, wide, 3, stride))
            y = conv_norm(y, wide, 4 * wide, 1)
            if block == 0:
                x = conv_norm(x, wide_in, 4 * wide, 1, stride)
            x = g.add("Relu", g.add("Add", y, x))
            wide_in = 4 * wide
    classifier(g, x, wide_in)
    return g


def mobilenetv2():
    g = Graph("mobilenetv2")

    def relu6(x):
        low, high = (g.weight(numpy.array(v, numpy.float32)) for v in (0.0, 6.0))
        return g.add("Clip", x, low, high)

    def conv_norm(x, wide_in, wide_out, kernel, stride=1, group=1):
        return batch_norm(g, convolution(g, x, wide_in, wide_out, kernel, stride, group), wide_out)

    x = relu6(conv_norm(g.input("x", 1, 3, 224, 224), 3, 32, 3, 2))
    wide_in = 32
    for expand, wide, repeats, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                                (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                                (6, 320, 1, 1)):
        for repeat in range(repeats):
            stride, hidden, y = first_stride if repeat == 0 else 1, wide_in * expand, x
            if expand != 1:
                y = relu6(conv_norm(y, wide_in, hidden, 1))
            y = relu6(conv_norm(y, hidden, hidden, 3, stride, hidden))
            y = conv_norm(y, hidden, wide, 1)
            x = g.add("Add", x, y) if stride == 1 and wide_in == wide else y
            wide_in = wide
    classifier(g, relu6(conv_norm(x, wide_in, 1280, 1)), 1280)
    return g


def layer_norm(g, x, wide):
    centred = g.add("Sub", x, g.add("ReduceMean", x, axes=[-1], keepdims=1))
    square = g.add("Pow", centred, g.weight(numpy.array(2.0, numpy.float32)))
    variance = g.add("ReduceMean", square, axes=[-1], keepdims=1)
    shifted = g.add("Add", variance, g.weight(numpy.array(1e-12, numpy.float32)))
    normal = g.add("Div", centred, g.add("Sqrt", shifted))
    scale = g.weight((1 + 0.1 * g.random.standard_normal(wide)).astype(numpy.float32))
    return g.add("Add", g.add("Mul", normal, scale), g.normal(wide, scale=0.1))


def gelu(g, x):
    half, one, root = (g.weight(numpy.array(v, numpy.float32)) for v in (0.5, 1.0, math.sqrt(2.0)))
    y = g.add("Add", g.add("Erf", g.add("Div", x, root)), one)
    return g.add("Mul", g.add("Mul", x, y), half)


def linear(g, x, wide_in, wide_out):
    y = g.add("MatMul", x, g.normal(wide_in, wide_out, scale=math.sqrt(1.0 / wide_in)))
    return g.add("Add", y, g.normal(wide_out, scale=0.1))


def attention(g, x, mask, rows, wide, heads):
    depth = wide // heads
    split = g.weight(numpy.array([1, rows, heads, depth], numpy.int64))
    joined = g.weight(numpy.array([1, rows, wide], numpy.int64))
    query, key, value = (
        g.add("Transpose", g.add("Reshape", linear(g, x, wide, wide), split), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    root = g.weight(numpy.array(math.sqrt(depth), numpy.float32))
    scores = g.add("Add", g.add("Div", g.add("MatMul", query, key), root), mask)
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), value)
    mixed = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
    return linear(g, mixed, wide, wide)


def encoder6():
    g = Graph("encoder6")
    rows, wide, inner, heads = 128, 384, 1536, 12
    x, mask = g.input("x", 1, rows, wide), g.input("mask", 1, 1, 1, rows)
    for _ in range(6):
        x = layer_norm(g, g.add("Add", x, attention(g, x, mask, rows, wide, heads)), wide)
        y = linear(g, gelu(g, linear(g, x, wide, inner)), inner, wide)
        x = layer_norm(g, g.add("Add", x, y), wide)
    g.nodes[-1].output[0] = "y"
    g.output("y", 1, rows, wide)
    return g


def tiny(count=100):
    g = Graph(f"tiny{count}")
    x, one = g.input("x", 8), g.normal(8)
    for i in range(count):
        x = g.add("Add", x, one, output="y" if i == count - 1 else None)
    g.output("y", 8)
    return g


def dynchain():
    g = Graph("dynchain")
    x = g.input("x", "N", 1000)
    x = g.add("Relu", g.add("Mul", g.add("Add", x, g.scalar(1.0)), g.scalar(1.01)))
    g.add("Sub", x, g.scalar(1.02), output="y")
    g.output("y", "N", 1000)
    return g


def u_turn(g, x, step):
    """Six steps down whose results are all kept, six additions back up, the mean."""
    kept = []
    for _ in range(6):
        x = step(x)
        kept.append(x)
    for down in reversed(kept):
        x = g.add("Add", x, down)
    g.add("ReduceMean", x, output="y", keepdims=0)
    g.output("y")
    return g


def ushape():
    g = Graph("ushape")
    return u_turn(g, g.input("x", "n"), lambda x: g.add("Sin", x))


def ushape_matmul(width=256):
    g = Graph(f"ushape_matmul{width}")
    weight = g.normal(width, width, scale=math.sqrt(1.0 / width))
    return u_turn(g, g.input("x", "rows", width), lambda x: g.add("MatMul", x, weight))


def mlp64():
    g = Graph("mlp64")
    x = g.input("x", 1, 2048)
    for i in range(4):
        x = g.add("MatMul", x, g.normal(2048, 2048, scale=math.sqrt(2.0 / 2048)))
        x = g.add("Relu", x, output="y" if i == 3 else None)
    g.output("y", 1, 2048)
    return g


def smallconv():
    g = Graph("smallconv")
    x = g.add("Relu", convolution(g, g.input("x", 1, 3, 64, 64), 3, 16, 3, bias=True))
    x = g.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.add("Relu", convolution(g, x, 16, 16, 3, group=16, bias=True))
    classifier(g, convolution(g, x, 16, 32, 1, bias=True), 32, 10)
    return g


def conv3d_t8():
    g = Graph("conv3d_t8")
    weight = g.normal(16, 8, 3, 3, 3, scale=math.sqrt(2.0 / 216))
    g.add("Conv", g.input("x", 1, 8, 48, 96, 96), weight, output="y", kernel_shape=[3, 3, 3],
          pads=[1] * 6)
    g.output("y", 1, 16, 48, 96, 96)
    return g


MODELS = {make.__name__: make for make in (
    elementwise8, add400, resnet50, mobilenetv2, encoder6, tiny, dynchain, ushape, ushape_matmul,
    mlp64, smallconv, conv3d_t8)}


def make(name):
    """The ModelProto of `name` or `name:number`."""
    base, _, number = name.partition(":")
    if base not in MODELS:
        raise SystemExit(f"make_models: unknown model {base} (known: {', '.join(MODELS)})")
    return MODELS[base](*([int(number)] if number else [])).model()


def write(name, folder):
    """Path of the file of `name` in `folder`; made when it is not there."""
    path = pathlib.Path(folder) / f"{name.replace(':', '_')}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(make(name).SerializeToString(deterministic=True))
        part.rename(path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", default="build/models")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return
    for name in options.names or MODELS:
        print(f"making {name}", file=sys.stderr, flush=True)
        path = write(name, options.out)
        print(f"{path.stat().st_size / 1e6:8.1f} MB  {path}")


if __name__ == "__main__":
    main()
