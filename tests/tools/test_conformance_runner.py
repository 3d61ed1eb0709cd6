"""The driver of the conformance suite counts what a runner says, and what it does not say."""

import pathlib
import stat
import subprocess
import sys

import conformance
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [(name, pathlib.Path("/nowhere"), 1e-3, 1e-7) for name in ("a", "b", "c")]
HEAD = "#!" + sys.executable + "\nimport os, sys, time\nfor line in sys.stdin:\n" \
       "    name = line.split('\\t')[0]\n"
PASS = "    print(name, 'passed', '', sep='\\t', flush=True)\n"


def runner(folder, body):
    path = folder / "runner"
    path.write_text(HEAD + body + PASS)
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_every_case_is_given_and_counted(tmp_path):
    results, restarts = conformance.run_all(runner(tmp_path, ""), CASES, tmp_path, 10)

    assert results == {name: ("passed", "") for name in "abc"}
    assert restarts == 0


def test_case_that_kills_the_runner_fails_alone(tmp_path):
    results, restarts = conformance.run_all(
        runner(tmp_path, "    if name == 'b': os.abort()\n"), CASES, tmp_path, 10)

    assert [results[n][0] for n in "abc"] == ["passed", "failed", "passed"]
    assert "-6" in results["b"][1] and restarts == 1


def test_case_that_hangs_fails_alone(tmp_path):
    results, _ = conformance.run_all(
        runner(tmp_path, "    if name == 'b': time.sleep(60)\n"), CASES, tmp_path, 1)

    assert [results[n][0] for n in "abc"] == ["passed", "failed", "passed"]
    assert "no answer" in results["b"][1]


def test_runner_that_leaves_a_case_out_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="left out b"):
        conformance.run_all(runner(tmp_path, "    if name == 'b': sys.exit(0)\n"), CASES, tmp_path,
                            10)


def test_all_cases_on_disk_are_found_with_their_tolerance(tmp_path):
    cases = conformance.find_cases(tmp_path)

    assert len(cases) == 1914
    assert {name: rtol for name, _, rtol, _ in cases}["light/light_densenet121"] == 2e-3
    assert all((folder / "model.onnx").exists() for _, folder, _, _ in cases)


def test_count_below_the_floor_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/conformance.py"),
         runner(tmp_path, "    print(name, 'failed', 'no', sep='\\t', flush=True); continue\n"),
         str(tmp_path / "result.tsv")], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed of 1914"
    assert len((tmp_path / "result.tsv").read_text().splitlines()) == 1915
