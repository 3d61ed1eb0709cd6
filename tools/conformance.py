#!/usr/bin/env python3
"""The ONNX backend data on disk through the C library, one process for all cases.

usage: conformance.py RUNNER RESULT.tsv [--only REGEX] [--list-failures] [--seconds S]

Fails when fewer cases pass than tests/conformance_floor.txt says. A case that kills the runner is
counted as failed with the signal as its reason, and the runner is started again behind it.
"""

import argparse
import collections
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOOR = ROOT / "tests/conformance_floor.txt"
LIGHT_RTOL = {"light_densenet121": 2e-3}


def light_case(model, work):
    """The light models come without inputs: input = arange(n) / n, expected output beside them."""
    import numpy
    import onnx
    from onnx import numpy_helper

    name = model.stem
    folder = work / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").symlink_to(model)
    graph = onnx.load(model).graph
    initializers = {i.name for i in graph.initializer}
    inputs = [i for i in graph.input if i.name not in initializers]
    for number, value in enumerate(inputs):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        count = int(numpy.prod(shape))
        array = (numpy.arange(count) / count).astype(numpy.float32).reshape(shape)
        (data / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    expected = model.parent / f"{name}_output_0.pb"
    (data / "output_0.pb").symlink_to(expected)
    return name, folder


def find_cases(work):
    import onnx

    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    cases = []
    for group in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        for folder in sorted((data / group).iterdir()):
            if (folder / "model.onnx").exists():
                cases.append((f"{group}/{folder.name}", folder, 1e-3, 1e-7))
    for model in sorted((data / "light").glob("light_*.onnx")):
        name, folder = light_case(model, work)
        cases.append((f"light/{name}", folder, LIGHT_RTOL.get(name, 1e-3), 1e-7))
    return cases


def answers(runner, cases, work, seconds):
    """Lines of one runner as they come; ends with its status, or None when it hung and was ended."""
    listing = work / "cases.txt"
    listing.write_text("".join(f"{n}\t{f}\t{r}\t{a}\n" for n, f, r, a in cases))
    with open(listing) as given, open(work / "stderr.txt", "w") as errors:
        process = subprocess.Popen([runner], stdin=given, stdout=subprocess.PIPE, stderr=errors)
        pending = b""
        while True:
            if not select.select([process.stdout], [], [], seconds)[0]:
                process.kill()
                process.wait()
                yield None
                return
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                yield process.wait()
                return
            *lines, pending = (pending + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)


def run_all(runner, cases, work, seconds):
    """Verdicts by case, and how often the runner had to be started again."""
    results = {}
    pending = list(cases)
    restarts = 0
    shown = time.monotonic()
    while pending:
        for line in answers(runner, pending, work, seconds):
            if line is None or isinstance(line, int):
                ended = line
                break
            name, verdict, reason = (line.split("\t") + ["", ""])[:3]
            results[name] = (verdict, reason)
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                print(f"conformance: {len(results)} of {len(cases)}", file=sys.stderr, flush=True)
        left = [case for case in pending if case[0] not in results]
        if left and ended == 0:
            raise SystemExit(f"the runner left out {left[0][0]}")
        if left:
            said = (work / "stderr.txt").read_text(errors="replace").strip().splitlines()
            how = f"no answer in {seconds} s" if ended is None else f"the runner ended with {ended}"
            why = f"{how}: {said[0]}" if said else how
            results[left[0][0]] = ("failed", " ".join(why.split()))
            restarts += 1
        pending = left[1:]
    return results, restarts


def commonest_reasons(results, limit=5):
    """What stands in the way of most cases: the commonest reasons, shortened to their first words."""
    counts = collections.Counter(" ".join(results[name][1].split()[:8])
                                 for name in results if results[name][0] != "passed")
    return counts.most_common(limit)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("result")
    parser.add_argument("--only")
    parser.add_argument("--list-failures", action="store_true")
    parser.add_argument("--seconds", type=int, default=60, help="longest silence of one case")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        cases = find_cases(pathlib.Path(work))
        if options.only:
            cases = [case for case in cases if re.search(options.only, case[0])]
        print(f"conformance: {len(cases)} cases", flush=True)
        results, restarts = run_all(options.runner, cases, pathlib.Path(work), options.seconds)
    with open(options.result, "w") as out:
        out.write("case\tverdict\treason\n")
        for name, (verdict, reason) in results.items():
            out.write(f"{name}\t{verdict}\t{reason}\n")
            if options.list_failures and verdict != "passed":
                print(f"{name}: {reason}")
    passed = sum(verdict == "passed" for verdict, _ in results.values())
    for reason, count in commonest_reasons(results):
        print(f"  {count:5d} failed: {reason}")
    if restarts:
        print(f"  {restarts} cases ended the runner")
    if not options.only:
        floor = int(FLOOR.read_text())
        if passed < floor:
            print(f"conformance: {passed} is below the recorded {floor}")
            print(f"{passed} passed of {len(results)}")
            return 1
    print(f"{passed} passed of {len(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
