"""What the checks share: where the tree is, which files it has, how a failure is printed."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAYERS = ("base", "memory", "tensor", "model", "plan", "kernels", "runtime")
FACES = ("cli", "python")


def tracked(*suffixes):
    """Files that git tracks or would track, relative to the root, with one of the suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = sorted({n for n in listed.split("\0") if n and (ROOT / n).is_file()})
    return [pathlib.Path(n) for n in names if not suffixes or n.endswith(suffixes)]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_comments(text):
    """C text with comments blanked, line numbers kept; literals stay."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*'
    return re.sub(pattern, blank, text, flags=re.S)


def finish(name, faults, checked):
    """Prints every fault and a closing line; ends the process."""
    for fault in faults:
        print(fault)
    print(f"{name}: {checked} checked, {len(faults)} faults")
    sys.exit(1 if faults else 0)
