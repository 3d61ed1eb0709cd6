#!/usr/bin/env python3
"""Names the types of files of this repository with a real model, and shows what its memory did.

usage: demo.py [FILE]...
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import numpy

import fetch_models
from source_tree import ROOT

FILES = ("README.md", "Makefile", "CMakeLists.txt", "include/tenure/tenure.h", "src/base/status.c",
         "tools/demo.py", ".ci/run", "docs/architecture.svg", "pyproject.toml",
         "build/release/libtenure.so")
RUNS = 100


def tokens(path, config):
    """The model's input: what a file begins and ends with, bytes as numbers, gaps filled."""
    data = path.read_bytes()
    begin = data[:config["block_size"]].lstrip()[:config["beg_size"]]
    end = data[-config["block_size"]:].rstrip()[-config["end_size"]:]
    row = numpy.full((1, config["beg_size"] + config["end_size"]), config["padding_token"],
                     numpy.int32)
    row[0, :len(begin)] = numpy.frombuffer(begin, numpy.uint8)
    if end:
        row[0, -len(end):] = numpy.frombuffer(end, numpy.uint8)
    return row


def mib(size):
    return f"{size / 2**20:.2f} MiB"


def heading(text):
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def name_files(session, config, paths):
    heading("What the files are")
    for path in paths:
        scores = session.run(None, {"bytes": tokens(path, config)})[0][0]
        best = int(numpy.argmax(scores))
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"  {str(shown):32} {config['target_labels_space'][best]:12} {scores[best]:6.1%}")


def show_latency(session, row):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        session.run(None, {"bytes": row})
        times.append(time.perf_counter_ns() - start)
    heading(f"Latency of {RUNS} runs")
    print(f"  median {statistics.median(times) / 1e6:.2f} ms, best {min(times) / 1e6:.2f} ms")


def show_plan(session):
    plan = session.plan({"bytes": (1, 2048)})
    heading("The plan for this shape, known before the run")
    print(f"  whole session  {mib(plan.peak_bytes)} predicted, weights and results included")
    print(f"  intermediates  {mib(plan.lower_bound_bytes)} is the least that is possible")
    print(f"  values         {len(plan.values)} placed")


def show_memory(session):
    heading("Every byte, after the runs")
    print("  " + session.memory.report().rstrip().replace("\n", "\n  "))
    given_back = session.memory.trim("hard")
    print(f"  trim gives back {mib(given_back)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: some of this tree")
    options = parser.parse_args()
    import tenure

    model = fetch_models.models("magika")[0]
    config = json.loads((model.parent / "config.min.json").read_text())
    paths = [p.resolve() for p in options.files] or [ROOT / f for f in FILES]
    paths = [p for p in paths if p.is_file() or options.files]
    session = tenure.InferenceSession(str(model))
    print(f"magika, {model.stat().st_size / 1e6:.1f} MB, {len(config['target_labels_space'])} kinds "
          "of files")
    name_files(session, config, paths)
    show_latency(session, tokens(paths[0], config))
    show_plan(session)
    show_memory(session)


if __name__ == "__main__":
    main()
