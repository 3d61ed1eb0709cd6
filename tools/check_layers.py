#!/usr/bin/env python3
"""No file includes a layer above its own; public headers and the faces see public headers only."""

import re

from source_tree import FACES, LAYERS, ROOT, finish, read, tracked

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
TEST_PARTS = ("_test", "_fuzz", "_bench", "_fixture", "_suite")


def fault_of_layered(path, layer, name):
    """Why a file of `layer` may not include `name`, or None."""
    top = name.split("/")[0]
    if top in LAYERS:
        if LAYERS.index(top) <= LAYERS.index(layer):
            return None
        return f"layer {layer} includes {name} of a higher layer"
    if top in FACES:
        return f"layer {layer} includes {name} of a face"
    if path.stem.endswith(TEST_PARTS) and (ROOT / "tests" / name).is_file():
        return None
    return f"{name} is not named from src/ on"


def fault_of_face(path, name, quoted):
    """Why a file of cli/ or python/ may not include `name`, or None."""
    if name.split("/")[0] in LAYERS:
        return f"{name} is private; faces use <tenure/...>"
    is_test = path.stem.endswith(TEST_PARTS)
    own = (path.parent / name).name == name or name.split("/")[0] == path.parts[1]
    if quoted and not (own or is_test):
        return f"{name} lies outside {path.parts[1]}/"
    return None


def faults_of(path):
    text = read(path)
    for match in INCLUDE.finditer(text):
        quoted, name = match.group(1) == '"', match.group(2)
        line = text.count("\n", 0, match.start()) + 1
        fault = None
        if path.parts[0] == "include":
            if quoted:
                fault = f"public header includes {name} in quotes"
        elif path.parts[1] in LAYERS:
            fault = fault_of_layered(path, path.parts[1], name) if quoted else None
        elif path.parts[1] in FACES:
            fault = fault_of_face(path, name, quoted)
        else:
            fault = f"{path.parts[1]} is no layer"
        if name.endswith(".c"):
            fault = f"{name} is a source file"
        if fault:
            yield f"{path}:{line}: {fault}"


def main():
    paths = [p for p in tracked(".c", ".h") if p.parts[0] in ("src", "include")]
    finish("layers", [fault for path in paths for fault in faults_of(path)], len(paths))


if __name__ == "__main__":
    main()
