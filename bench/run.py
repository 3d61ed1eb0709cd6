#!/usr/bin/env python3
"""Every model, Tenure and its peer in turn, round by round: only ratios within a round count.

usage: run.py [--models REGEX] [--rounds N] [--seconds S] [--threads T] [--list]

Writes bench/results/models_<threads>.json and prints a table.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import fetch_models  # noqa: E402
import make_models  # noqa: E402

ENGINES = ("tenure", "onnxruntime")
# name: (package, end of the file's path, shapes)
REAL = {
    "magika": ("magika", "model.onnx", {"bytes": [1, 2048]}),
    "silero": ("silero-vad", "/silero_vad.onnx",
               {"input": [1, 512], "state": [2, 1, 128], "sr": []}),
    "silero_ifless": ("silero-vad", "op18_ifless.onnx",
                      {"input": [1, 512], "state": [2, 1, 128], "sr": []}),
    "v6_det": ("rapidocr", "PP-OCRv6_det_small.onnx", {"x": [1, 3, 640, 640]}),
    "v6_rec": ("rapidocr", "PP-OCRv6_rec_small.onnx", {"x": [1, 3, 48, 320]}),
    "v4_cls": ("rapidocr-onnxruntime", "cls_infer.onnx", {"x": [1, 3, 48, 192]}),
    "v4_det": ("rapidocr-onnxruntime", "det_infer.onnx", {"x": [1, 3, 640, 640]}),
    "v4_rec": ("rapidocr-onnxruntime", "rec_infer.onnx", {"x": [1, 3, 48, 320]}),
}
SYNTHETIC = ("resnet50", "mobilenetv2", "encoder6", "elementwise8", "add400", "tiny:100", "mlp64",
             "smallconv", "conv3d_t8")


def path_of(name):
    if name in REAL:
        package, suffix, shapes = REAL[name]
        return next(p for p in fetch_models.models(package) if str(p).endswith(suffix)), shapes
    return make_models.write(name, ROOT / "build/models"), {}


def measure(engine, path, shapes, options):
    command = [sys.executable, str(ROOT / "bench/engine.py"), engine, str(path),
               str(options.seconds), str(options.threads), json.dumps(shapes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def compare(name, options):
    """Rounds of both engines, the order changing from round to round."""
    path, shapes = path_of(name)
    rounds = []
    for number in range(options.rounds):
        order = ENGINES if number % 2 == 0 else ENGINES[::-1]
        results = {engine: measure(engine, path, shapes, options) for engine in order}
        rounds.append(results)
        if any("error" in r for r in results.values()):
            break
        print(f"  {name}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return rounds


def errors_of(rounds):
    return {engine: r["error"] for results in rounds for engine, r in results.items()
            if "error" in r}


def row_of(name, rounds):
    if errors_of(rounds):
        return f"{name:16} " + "; ".join(f"{e}: {text[:90]}" for e, text in errors_of(rounds).items())

    def middle(engine, key):
        return statistics.median(r[engine][key] for r in rounds)
    ratio = statistics.median(r["tenure"]["median_ns"] / r["onnxruntime"]["median_ns"]
                              for r in rounds)
    cells = [f"{middle(e, 'median_ns') / 1e6:9.2f}" for e in ENGINES] + [f"{ratio:6.2f}"]
    cells += [f"{middle(e, 'peak_bytes') / 2**20:8.0f}" for e in ENGINES]
    cells += [f"{middle(e, 'load_ns') / 1e6:8.0f}" for e in ENGINES]
    return f"{name:16} " + " ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="", metavar="REGEX")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    names = [n for n in (*REAL, *SYNTHETIC) if re.search(options.models, n)]
    if options.list:
        print("\n".join(names))
        return
    results = {name: compare(name, options) for name in names}
    folder = ROOT / "bench/results"
    folder.mkdir(parents=True, exist_ok=True)
    report = {"machine": platform.machine(), "processors": os.cpu_count(),
              "threads": options.threads, "seconds": options.seconds, "models": results}
    (folder / f"models_{options.threads}.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"{'':16} {'median ms':>19} {'ratio':>6} {'peak MiB':>17} {'load ms':>17}")
    print(f"{'model':16} {'tenure':>9} {'ort':>9} {'':6} {'tenure':>8} {'ort':>8} {'tenure':>8} "
          f"{'ort':>8}")
    for name in names:
        print(row_of(name, results[name]))


if __name__ == "__main__":
    main()
