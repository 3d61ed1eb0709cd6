"""Writes seeds for the fuzz target of sessions: the smallest model of the onnx package for every
operator and opset, within a size that a repository can hold.

    python make_session_seeds.py FOLDER

tests/corpus/session_fuzz holds these and what the target has found.
"""

import pathlib
import sys

import onnx

SUITE = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
MAX_BYTES = 700
MAX_TOTAL_BYTES = 60_000


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    smallest = {}
    for path in sorted(SUITE.glob("**/model.onnx"), key=lambda p: (p.stat().st_size, str(p))):
        if path.stat().st_size > MAX_BYTES:
            break
        model = onnx.load(path)
        smallest.setdefault(tuple(sorted({n.op_type for n in model.graph.node})), path)
    total = 0
    for path in smallest.values():
        total += path.stat().st_size
        if total > MAX_TOTAL_BYTES:
            return
        (folder / path.parent.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
