#!/usr/bin/env python3
"""Rules of the code that a reader would miss: names, sizes, marks, headers, machine paths."""

import collections
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from source_tree import ROOT, finish, read, tracked, without_comments

LIST_LINES = 60
FAIL_LINES = 70
FILE_LINES = 1000
SHARED_NAMES = {"conftest.py", "__init__.py", "README.md", "CMakeLists.txt"}
ROW_NAME = re.compile(r'\.name = "([A-Z]\w+)"')
COMPARE = re.compile(r"strn?cmp|memcmp|_is\(|_equals?\(|==|!=")
MARKS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
MACHINE = re.compile(r"(?<![\w.$}/~*\"'-])/(?:work|root|home|Users)/\w|/\.library|pypi\.org|"
                     r"files\.pythonhosted|deb\.debian|\.\./shared/")
WIDE = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")
TEXT = (".c", ".h", ".py", ".pyi", ".md", ".sh", ".cmake", ".txt", ".toml", ".json", ".svg", ".in")


def operator_names(sources):
    names = set()
    for path in sources:
        if path.parts[:2] == ("src", "kernels"):
            names |= set(ROW_NAME.findall(read(path)))
    try:
        import onnx.defs
        names |= {s.name for s in onnx.defs.get_all_schemas_with_history()}
    except ImportError:
        pass
    return names


def compared_names(path, text, operators):
    """An operator is told from others by its row; only patterns and the look-up know names."""
    if path.name == "registry.c" or path.match("src/plan/fuse_*.c") or path.stem.endswith("_test"):
        return
    if path.parts[:2] not in {("src", d) for d in ("plan", "kernels", "runtime", "model")}:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not COMPARE.search(line):
            continue
        for literal in re.findall(r'"([A-Z]\w+)"', line):
            if literal in operators and ".name =" not in line:
                yield f"{path}:{number}: compares with the operator name {literal}"


def functions(text):
    """(line, lines, signature) of every function with a body: they start and end in column 0."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if start is None:
            if re.match(r"[A-Za-z_].*\(", line) and not line.rstrip().endswith(";"):
                start = (number, line.strip())
        elif line.startswith("}"):
            yield start[0], number - start[0] + 1, start[1]
            start = None
        elif line.rstrip().endswith(";") and not line.startswith((" ", "\t")):
            start = None
        elif line == "":
            if "{" not in "".join(text.split("\n")[start[0] - 1:number]):
                start = None


def long_functions(path, text, listed):
    for line, lines, signature in functions(text):
        if lines > FAIL_LINES:
            yield f"{path}:{line}: {lines} lines: {signature}"
        elif lines > LIST_LINES:
            listed.append(f"note: {path}:{line}: {lines} lines: {signature}")


def long_file(path, text):
    lines = text.count("\n")
    return [f"{path}: {lines} lines, at most {FILE_LINES}"] if lines > FILE_LINES else []


def repeated_names(paths):
    """Public headers are a name space of their own: they are always named with their folder."""
    where = collections.defaultdict(list)
    for path in paths:
        if path.name not in SHARED_NAMES and path.suffix in (".c", ".h", ".py"):
            where[path.parts[0] == "include", path.name].append(str(path))
    return [f"{name}: the name is taken more than once: {', '.join(found)}"
            for (_, name), found in where.items() if len(found) > 1]


def marks_and_paths(path):
    for number, line in enumerate(read(path).split("\n"), 1):
        if MARKS.search(line) and path.suffix in (".c", ".h", ".py", ".pyi", ".sh", ".cmake"):
            yield f"{path}:{number}: left-over mark"
        if MACHINE.search(line) and path.name != "check_names.py":
            yield f"{path}:{number}: names a path of one machine or a registry host"


def header_fault(path):
    """A header compiles when it is the first one of a file. Templates are parts of a file."""
    compiler = os.environ.get("CC", "gcc")
    with tempfile.NamedTemporaryFile("w", suffix=".c") as probe:
        probe.write(f'#include "{ROOT / path}"\ntypedef int not_empty;\n')
        probe.flush()
        isa = []
        if os.uname().machine == "x86_64":
            is_wide = path.stem.endswith("_avx512")
            isa = ["-mavx2", "-mfma", "-mf16c", *(WIDE if is_wide else ())]
        done = subprocess.run(
            [compiler, "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra",
             "-Wno-unused-function", "-Werror", *isa, "-I", ROOT / "include", "-I", ROOT / "src",
             "-I", ROOT / "tests", probe.name], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
    return f"{path}: does not compile alone: {said[0]}"


def main():
    paths = tracked()
    folders = ("src", "include", "tests", "tools", "bench")
    sources = [p for p in paths if p.suffix in (".c", ".h") and p.parts[0] in folders]
    operators = operator_names(sources)
    faults, listed = repeated_names(paths), []
    for path in sources:
        text = without_comments(read(path))
        faults += compared_names(path, text, operators)
        if path.suffix == ".c":
            faults += long_functions(path, text, listed)
            faults += long_file(path, text)
    for path in paths:
        if path.suffix in TEXT or path.name in ("Makefile", "run"):
            faults += marks_and_paths(path)
    headers = [p for p in sources if p.suffix == ".h" and not p.stem.endswith("_template")]
    headers = [p for p in headers if "python" not in p.parts]
    with ThreadPoolExecutor(2) as pool:
        faults += [f for f in pool.map(header_fault, headers) if f]
    print("\n".join(listed), file=sys.stderr, end="\n" if listed else "")
    finish("names", faults, len(paths))


if __name__ == "__main__":
    main()
