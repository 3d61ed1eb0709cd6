#!/usr/bin/env python3
"""Rules that a compiler does not check: layers, exported symbols, names, sizes, leftovers."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "memory", "tensor", "model", "plan", "kernels", "runtime"]
FACES = ["cli", "python"]
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 1000


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in out.splitlines() if (ROOT / line).is_file()]


def check_layers(faults):
    """A file includes its own layer and lower ones only; faces see public headers only."""
    for path in tracked("src/*.c", "src/*.h"):
        layer = path.relative_to(ROOT / "src").parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#include\s+"([^"/]+)/', line)
            if not found:
                continue
            target = found.group(1)
            if layer in FACES and target != layer:
                faults.append(f"{path}:{number}: {layer} includes {target}, faces see <tenure/...> only")
            if layer in LAYERS and target in LAYERS and LAYERS.index(target) > LAYERS.index(layer):
                faults.append(f"{path}:{number}: {layer} includes the higher layer {target}")
            if layer in LAYERS and target in FACES:
                faults.append(f"{path}:{number}: {layer} includes the face {target}")


def check_unique_names(faults):
    seen = {}
    for path in tracked("src/*.c", "src/*.h", "include/*.h"):
        if path.name in seen:
            faults.append(f"{path}: the name is also {seen[path.name]}")
        seen[path.name] = path


def check_operator_names(faults):
    """No compare with an operator's name outside the registry look-up and the pattern tables."""
    rows = set()
    for path in tracked("src/kernels/*.c"):
        rows.update(re.findall(r'\.name\s*=\s*"([A-Z]\w+)"', path.read_text()))
    for path in tracked("src/*.c"):
        relative = path.relative_to(ROOT / "src")
        if relative.name.startswith("fuse_") or relative.name.endswith("_test.c"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.search(r'(?:strcmp|equals\w*)\([^;]*"(\w+)"', line)
            if found and found.group(1) in rows:
                faults.append(f"{path}:{number}: compares with the operator name {found.group(1)}")


def check_functions(faults):
    for path in tracked("src/*.c"):
        text = path.read_text().splitlines()
        if len(text) > MAX_FILE_LINES:
            faults.append(f"{path}: {len(text)} lines, at most {MAX_FILE_LINES}")
        start = name = None
        for number, line in enumerate(text, 1):
            if re.match(r"^[A-Za-z_].*\)\s*\{$", line) or (start is None and line == "{"):
                start, name = number, line
            elif line == "}" and start:
                if number - start > MAX_FUNCTION_LINES:
                    faults.append(f"{path}:{start}: {number - start} lines: {name[:60]}")
                start = None


def check_leftovers(faults):
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in tracked("src/*", "include/*", "python/*", "tests/*"):
        if path.suffix not in {".c", ".h", ".py", ".pyi"}:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if marks.search(line):
                faults.append(f"{path}:{number}: leftover mark")


def check_mutable_globals(faults):
    """Objects with static storage are const: found by their section in the built library."""
    library = ROOT / "build/release/libtenure.a"
    if not library.exists():
        return
    out = subprocess.run(["nm", "-A", str(library)], capture_output=True, text=True).stdout
    for line in out.splitlines():
        if re.search(r" [dDbBC] (?!\.L)(?!__)", line):
            faults.append(f"mutable object: {line.split(':', 1)[1]}")


def check_symbols(faults):
    """Only tn_ symbols leave the shared library, and nothing else is external in the archive."""
    for library in (ROOT / "build/release").glob("libtenure.so"):
        out = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True,
                             text=True).stdout
        for line in out.splitlines():
            symbol = line.split()[-1]
            if not symbol.startswith("tn_"):
                faults.append(f"{library.name} exports {symbol}")
    archive = ROOT / "build/release/libtenure.a"
    if archive.exists():
        out = subprocess.run(["nm", "-g", "--defined-only", str(archive)], capture_output=True,
                             text=True).stdout
        for line in out.splitlines():
            parts = line.split()
            if len(parts) == 3 and not parts[2].startswith("tn_"):
                faults.append(f"libtenure.a defines {parts[2]}")


def check_headers_alone(faults):
    for path in tracked("include/*.h", "src/*.h"):
        if path.name.endswith("_template.h"):
            continue
        done = subprocess.run(["gcc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Iinclude",
                               "-Isrc", "-Itests", "-x", "c", str(path)], cwd=ROOT, capture_output=True,
                              text=True)
        if done.returncode != 0:
            faults.append(f"{path} does not compile alone: {done.stderr.splitlines()[0]}")


def main():
    faults = []
    checks = [check_layers, check_unique_names, check_operator_names, check_functions,
              check_leftovers, check_mutable_globals, check_symbols, check_headers_alone]
    for check in checks:
        check(faults)
    for fault in faults:
        print(str(fault).replace(str(ROOT) + "/", ""))
    print(f"source: {len(checks)} rules, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
