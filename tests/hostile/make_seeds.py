"""Writes seeds for the fuzz target of the loader: small models of the onnx package and all hostile
ones that a fuzzer can start from.

    python make_seeds.py FOLDER

tests/corpus/model_fuzz holds those of them that a merge (`model_fuzz -merge=1`) found to differ.
"""

import pathlib
import sys
import tempfile

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_hostile  # noqa: E402

SUITE = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
MAX_BYTES = 1500
EVERY = 10  # neighbours by name are much alike


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    small = [p for p in sorted(SUITE.glob("**/model.onnx")) if p.stat().st_size <= MAX_BYTES]
    for path in small[::EVERY]:
        (folder / path.parent.name).write_bytes(path.read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        for name, (path, _, _) in make_hostile.make(scratch).items():
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                (folder / name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
