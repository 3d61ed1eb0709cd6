"""The examples of the README are extracted, built against an installed tree, and run."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def example(language):
    text = (ROOT / "README.md").read_text()
    return re.search(rf"```{language}\n(.*?)```", text, re.S).group(1)


def expected_first_result():
    import numpy
    import onnxruntime

    session = onnxruntime.InferenceSession(model_path())
    x = numpy.zeros((1, 2048), numpy.float32)
    x[0, 0] = 1.0
    return session.run(None, {"x": x})[0][0, 0]


def model_path():
    import make_models

    return str(make_models.write("mlp64", ROOT / "build/models"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The release build, installed into a folder of its own."""
    prefix = tmp_path_factory.mktemp("prefix")
    done = subprocess.run(["cmake", "--install", ROOT / "build/release", "--prefix", prefix],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return prefix


def first_result(output):
    return float(re.search(r"y\[0\] = (\S+)", output).group(1))


@pytest.fixture(scope="module")
def run_c_example(installed, tmp_path_factory):
    """Runs the C example on a model; it is built with what pkg-config says."""
    folder = tmp_path_factory.mktemp("c")
    pc = next(installed.rglob("tenure.pc"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", pc], check=True, capture_output=True,
                           text=True).stdout.split()
    (folder / "example.c").write_text(example("c"))
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", folder / "example",
                    folder / "example.c", *flags], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(pc.parents[1])}

    def run(model):
        return subprocess.run([folder / "example", model], capture_output=True, text=True,
                              env=environment)
    return run


def test_c_example_gives_the_peers_answer_and_a_report(run_c_example):
    done = run_c_example(model_path())

    assert done.returncode == 0, done.stderr
    assert first_result(done.stdout) == pytest.approx(expected_first_result(), rel=1e-4)
    assert "weights" in done.stdout


def test_c_example_without_a_model_says_what_is_missing(run_c_example):
    done = run_c_example("no/such.onnx")

    assert done.returncode == 1 and "no/such.onnx" in done.stderr


def test_cmake_package_is_found_and_links(installed, tmp_path):
    (tmp_path / "main.c").write_text(
        "#include <tenure/tenure.h>\nint main(void) { return tn_version()[0] != '0'; }\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(user C)\nfind_package(tenure 0.1 REQUIRED)\n"
        "add_executable(shared main.c)\ntarget_link_libraries(shared tenure::tenure)\n"
        "add_executable(archive main.c)\ntarget_link_libraries(archive tenure::static)\n")
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja",
                    f"-DCMAKE_PREFIX_PATH={installed}"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "b"], check=True, capture_output=True)

    for name in ("shared", "archive"):
        assert subprocess.run([tmp_path / "b" / name]).returncode == 0


@pytest.mark.skipif(not (ROOT / "src/python").exists(), reason="this tree has no Python face")
def test_python_example_gives_the_peers_answer_after_close(tmp_path):
    source = tmp_path / "example.py"
    source.write_text(example("python"))

    done = subprocess.run([sys.executable, source, model_path()], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert first_result(done.stdout) == pytest.approx(expected_first_result(), rel=1e-4)
    assert "predicted" in done.stdout
