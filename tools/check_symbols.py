#!/usr/bin/env python3
"""The libraries define tn_ symbols only, and no data that changes.

check_symbols.py BUILD_DIR"""

import pathlib
import re
import subprocess
import sys

from source_tree import finish

WRITABLE = re.compile(r"^[0-9a-f]+ (.{7}) (\.bss|\.data|\.tbss|\.tdata)(\.(?!rel\.ro)\S+)?\s+([0-9a-f]+)\s+(\S+)$")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def foreign_symbols(library, *options):
    """External definitions that do not begin with tn_."""
    for line in output_of("nm", "--defined-only", *options, str(library)).splitlines():
        fields = line.split()
        if len(fields) == 3 and not fields[2].startswith("tn_"):
            yield f"{library.name}: exports {fields[2]}"


def writable_data(archive):
    """Variables in sections that a program writes to; constants with addresses are .data.rel.ro."""
    member = ""
    for line in output_of("objdump", "-t", str(archive)).splitlines():
        if line.endswith("file format elf64-x86-64") or "file format" in line:
            member = line.split(":")[0]
        match = WRITABLE.match(line)
        if match and "O" in match.group(1) and not match.group(5).startswith("__"):
            yield f"{archive.name}: {member}: {match.group(5)} is a mutable variable"


def main():
    build = pathlib.Path(sys.argv[1])
    archive = build / "libtenure.a"
    shared = sorted(build.glob("libtenure.so.*"))
    if not archive.exists() or not shared:
        sys.exit(f"check_symbols: {build}: no libtenure.a or libtenure.so.N: build first")
    faults = [*foreign_symbols(archive, "-g"), *writable_data(archive),
              *foreign_symbols(shared[0].resolve(), "-D")]
    finish("symbols", faults, 2)


if __name__ == "__main__":
    main()
