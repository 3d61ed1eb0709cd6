#!/usr/bin/env python3
"""The ONNX backend data on disk through the C library, one process for all cases.

usage: conformance.py RUNNER RESULT.tsv [--only REGEX] [--list-failures]

Fails when fewer cases pass than tests/conformance_floor.txt says. A case that kills the runner is
counted as failed with the signal as its reason, and the runner is started again behind it.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

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


def run_all(runner, cases):
    results = {}
    pending = list(cases)
    while pending:
        text = "".join(f"{n}\t{f}\t{r}\t{a}\n" for n, f, r, a in pending)
        done = subprocess.run([runner], input=text, capture_output=True, text=True, errors="replace")
        for line in done.stdout.splitlines():
            name, verdict, reason = (line.split("\t") + ["", ""])[:3]
            results[name] = (verdict, reason)
        left = [case for case in pending if case[0] not in results]
        if left and done.returncode == 0:
            raise SystemExit(f"the runner left out {left[0][0]}")
        if left:
            results[left[0][0]] = ("failed", f"the runner ended with {done.returncode}")
            left = left[1:]
        pending = left
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("result")
    parser.add_argument("--only")
    parser.add_argument("--list-failures", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        cases = find_cases(pathlib.Path(work))
        if options.only:
            cases = [case for case in cases if re.search(options.only, case[0])]
        print(f"conformance: {len(cases)} cases", flush=True)
        results = run_all(options.runner, cases)
    with open(options.result, "w") as out:
        out.write("case\tverdict\treason\n")
        for name, (verdict, reason) in results.items():
            out.write(f"{name}\t{verdict}\t{reason}\n")
            if options.list_failures and verdict != "passed":
                print(f"{name}: {reason}")
    passed = sum(verdict == "passed" for verdict, _ in results.values())
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
