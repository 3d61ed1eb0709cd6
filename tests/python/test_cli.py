"""The command line: exit statuses, messages, JSON, help."""

import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
import session_models as models
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
COMMANDS = ["run", "bench", "inspect", "plan", "mem", "ops", "check"]


def program():
    if "TENURE_CLI" in os.environ:
        return os.environ["TENURE_CLI"]
    built = [p for p in (ROOT / "build/release/tenure", ROOT / "build/dev/tenure") if p.exists()]
    assert built, "no command line is built: make build"
    return str(max(built, key=lambda p: p.stat().st_mtime))


def call(*arguments, **environment):
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    (made / "dense.onnx").write_bytes(models.dense(rows="batch"))
    (made / "unary.onnx").write_bytes(models.unary())
    (made / "unknown.onnx").write_bytes(
        models.build([helper.make_node("Nothing", ["x"], ["y"], name="it")], {"x": (1, [2])},
                     {"y": (1, [2])})
    )
    (made / "broken.onnx").write_bytes(b"\xff" * 100)
    return made


def one_line(done, status):
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stderr.startswith("tenure: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_help_is_everywhere_with_an_example():
    done = call("--help")
    assert done.returncode == 0 and done.stderr == ""
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout
        own = call(command, "--help")
        assert own.returncode == 0 and own.stderr == ""
        assert own.stdout.startswith(f"Usage: tenure {command}")
        assert f"\nExample:\n  tenure {command}" in own.stdout
        assert all(len(line) <= 100 for line in own.stdout.splitlines())
        assert call("help", command).stdout == own.stdout
    assert call("--version").stdout.startswith("tenure ")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["fly"], "fly"),
        (["run"], "MODEL is missing"),
        (["run", "a", "b"], "one operand too many"),
        (["run", "m", "--no-such"], "--no-such"),
        (["bench", "m", "--runs", "many"], "'many' is not a whole number"),
        (["bench", "m", "--max-peak", "4XB"], "'4XB' is not a size"),
        (["bench", "m", "--runs"], "a value is missing"),
        (["bench", "m", "--json=yes"], "takes no value"),
        (["bench", "m", "--concurrency", "0"], "--concurrency"),
        (["check", "m", "--rtol", "x"], "'x' is not a number"),
        (["run", "m", "-j"], "two dashes"),
    ],
)
def test_wrong_usage_is_status_two_in_one_line(arguments, said):
    assert said in one_line(call(*arguments), 2)


def test_no_command_prints_usage_and_status_two():
    done = call()
    assert done.returncode == 2 and "Usage: tenure" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", ["run", "bench", "plan", "mem"])
def test_refused_models_are_status_three(command, folder):
    assert "it" in one_line(call(command, folder / "unknown.onnx"), 3)
    assert "broken.onnx" in one_line(call(command, folder / "broken.onnx"), 3)
    assert "none.onnx" in one_line(call(command, folder / "none.onnx"), 3)


@pytest.mark.parametrize("command", ["run", "bench"])
def test_memory_limit_is_status_four(command, folder):
    done = call(command, folder / "dense.onnx", "--dim", "batch=4096", "--memory-limit", "300KiB")

    assert "limit" in one_line(done, 4)


def test_names_that_are_not_in_the_model_are_status_two(folder):
    model = folder / "dense.onnx"
    assert "'z'" in one_line(call("run", model, "--input", "z=ones"), 2)
    assert "'z'" in one_line(call("run", model, "--shape", "z=1x2"), 2)
    assert "'bach'" in one_line(call("run", model, "--dim", "bach=2"), 2)
    assert "1x3x224x224" in one_line(call("run", model, "--shape", "x=1,2"), 2)
    assert "neither a file" in one_line(call("run", model, "--input", "x=wat"), 2)


def test_run_reads_and_writes_arrays(folder, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 64), np.float32)
    weights = {w.name: numpy_helper.to_array(w)
               for w in onnx.load(folder / "dense.onnx").graph.initializer}
    wanted = x @ weights["w0"] @ weights["w1"] @ weights["w2"]
    np.save(tmp_path / "c.npy", x)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(x))
    np.save(tmp_path / "big.npy", x.astype(">f4"))
    (tmp_path / "x.raw").write_bytes(x.tobytes())
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())

    for name in ("c.npy", "fortran.npy", "big.npy", "x.pb", "x.raw"):
        out = tmp_path / name.replace(".", "_")
        done = call("run", folder / "dense.onnx", "--input", f"x={tmp_path / name}", "--dim",
                    "batch=3", "--output", out, "--json")
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(np.load(out / "y.npy"), wanted, rtol=1e-3, atol=1e-3)
        (output,) = json.loads(done.stdout)["outputs"]
        assert output["name"] == "y" and output["shape"] == [3, 32]
        assert output["mean"] == pytest.approx(float(wanted.mean()), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    "what, wanted",
    [("ones", [1, 1, 1]), ("zeros", [0, 0, 0]), ("range", [0, 1, 2]), ("2.5", [2.5, 2.5, 2.5])],
)
def test_run_generates_inputs(folder, what, wanted):
    done = call("run", folder / "unary.onnx", "--shape", "3", "--input", f"x={what}", "--json")

    assert json.loads(done.stdout)["outputs"][0]["first"] == wanted


def test_run_prints_a_table_that_lines_up(folder):
    done = call("run", folder / "dense.onnx", "--dim", "batch=2")

    head, row = done.stdout.splitlines()[:2]
    assert head.split() == ["output", "type", "shape", "min", "max", "mean", "first", "values"]
    assert row.split()[:3] == ["y", "float", "2x32"]
    assert head.index("shape") == row.index("2x32")
    assert "\033" not in done.stdout


@pytest.mark.parametrize("name", ["float16", "int8", "uint64", "bool"])
def test_run_keeps_types(tmp_path, name):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    (tmp_path / "m.onnx").write_bytes(models.identity(number, ["n"]))
    x = np.array([0, 1, 1, 3]).astype(name)
    np.save(tmp_path / "x.npy", x)

    done = call("run", tmp_path / "m.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path)

    assert done.returncode == 0, done.stderr
    y = np.load(tmp_path / "y.npy")
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_run_writes_strings(tmp_path):
    (tmp_path / "m.onnx").write_bytes(models.identity(TensorProto.STRING, ["n"]))
    (tmp_path / "x.pb").write_bytes(
        helper.make_tensor("x", TensorProto.STRING, [2], ["grün".encode(), b"b"]).SerializeToString()
    )

    done = call("run", tmp_path / "m.onnx", "--input", f"x={tmp_path / 'x.pb'}", "--output", tmp_path)

    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").tolist() == ["grün", "b"]


def test_damaged_array_files_are_refused(folder, tmp_path):
    np.save(tmp_path / "good.npy", np.ones((3, 64), np.float32))
    good = (tmp_path / "good.npy").read_bytes()
    damaged = {"cut.npy": good[:-1], "head.npy": good[:20], "magic.npy": b"x" + good[1:],
               "shape.npy": good.replace(b"(3, 64)", b"(-3, 4)"), "empty.npy": b""}
    for name, data in damaged.items():
        (tmp_path / name).write_bytes(data)
        one_line(call("run", folder / "dense.onnx", "--input", f"x={tmp_path / name}"), 2)


BENCH_KEYS = {
    "": {"model", "runs", "threads", "concurrency", "latency_ns", "load_ns", "first_run_ns", "steady",
         "bytes", "rss"},
    "latency_ns": {"min", "p50", "p90", "p99", "max", "mean"},
    "steady": {"minor_faults", "system_allocations", "system_frees", "heap_allocations",
               "payload_copies", "copied_bytes"},
    "bytes": {"weights", "weights_mapped", "execution_live", "execution_peak", "workspace_peak",
              "execution_retained", "io_live", "io_peak", "io_leased", "io_retained",
              "plan_metadata", "slack", "predicted_peak", "prediction_complete", "measured_peak",
              "execution_lower_bound"},
    "rss": {"start", "loaded", "first_run", "peak", "end", "trimmed", "closed"},
}


@pytest.mark.parametrize(
    "extra",
    [[], ["--hold-outputs"], ["--concurrency", "3"], ["--alternate", "batch=2,batch=5"],
     ["--no-reuse"], ["--no-fusion"], ["--trim-after"], ["--threads", "1"]],
    ids=lambda e: e[0] if e else "plain",
)
def test_bench_json_has_every_key(folder, extra):
    done = call("bench", folder / "dense.onnx", "--runs", "30", "--dim", "batch=8", "--json", *extra)

    assert done.returncode == 0 and done.stderr == ""
    result = json.loads(done.stdout)
    for group, keys in BENCH_KEYS.items():
        assert keys <= set(result[group] if group else result)
    assert result["runs"] == 30
    latency = result["latency_ns"]
    assert 0 < latency["min"] <= latency["p50"] <= latency["p90"] <= latency["max"]
    assert result["bytes"]["measured_peak"] > 0 and result["bytes"]["weights"] > 0
    if extra == ["--hold-outputs"]:
        assert result["bytes"]["io_leased"] == 30 * 8 * 32 * 4
    elif extra != ["--no-reuse"]:
        assert result["steady"]["system_allocations"] == 0
        assert result["steady"]["heap_allocations"] == 0
        assert result["steady"]["payload_copies"] == 0


def test_bench_budgets_pass_and_fail(folder):
    model = folder / "dense.onnx"
    good = call("bench", model, "--runs", "200", "--threads", "1", "--assert-no-alloc",
                "--assert-no-copies", "--max-peak", "64MiB", "--max-rss", "1GiB")
    assert good.returncode == 0, good.stderr
    assert "--max-peak" in one_line(call("bench", model, "--runs", "50", "--max-peak", "1KiB"), 1)
    assert "--max-rss" in one_line(call("bench", model, "--runs", "50", "--max-rss", "64KiB"), 1)
    held = call("bench", model, "--runs", "2000", "--dim", "batch=64", "--hold-outputs",
                "--assert-no-alloc")
    assert "the first in run " in one_line(held, 1)


def test_bench_writes_a_trace(folder, tmp_path):
    trace = tmp_path / "trace.json"
    call("bench", folder / "dense.onnx", "--runs", "10", "--profile", trace)

    events = json.loads(trace.read_text())["traceEvents"]
    assert len(events) == 10 and all(e["dur"] > 0 for e in events)


def test_inspect_shows_what_the_model_is_made_of(folder):
    done = call("inspect", folder / "dense.onnx", "--json", "--nodes")

    result = json.loads(done.stdout)
    assert result["operators"] == {"MatMul": 3} and result["node_count"] == 3
    assert result["weights_bytes"] == 4 * (64 * 64 * 2 + 64 * 32)
    assert result["inputs"] == [{"name": "x", "type": "float", "shape": ["batch", 64]}]
    assert result["opsets"] == {"ai.onnx": 18} and result["unsupported"] == ""
    assert [n["name"] for n in result["nodes"]] == ["mm0", "mm1", "mm2"]
    assert "batchx64" in call("inspect", folder / "dense.onnx").stdout


def test_inspect_describes_models_that_cannot_run(folder):
    done = call("inspect", folder / "unknown.onnx")

    assert done.returncode == 0 and "Nothing" in done.stdout and "not supported" in done.stdout


def test_plan_prints_table_csv_json_and_picture(folder, tmp_path):
    model = folder / "dense.onnx"
    table = call("plan", model, "--shape", "x=16x64").stdout
    assert "predicted peak" in table and "h0" in table
    csv = call("plan", model, "--dim", "batch=16", "--csv").stdout
    assert csv.splitlines()[0] == "id,lower,upper,size,offset" and len(csv.splitlines()) >= 3
    result = json.loads(call("plan", model, "--dim", "batch=16", "--json").stdout)
    assert result["predicted_peak"] >= result["execution"] >= result["lower_bound"] > 0
    assert result["waste"] == result["execution"] - result["lower_bound"]
    picture = tmp_path / "plan.html"
    assert call("plan", model, "--dim", "batch=16", "--html", picture).returncode == 0
    assert "<svg" in picture.read_text() and "h0" in picture.read_text()


def test_plan_predicts_what_bench_measures(folder):
    planned = json.loads(call("plan", folder / "dense.onnx", "--dim", "batch=16", "--json").stdout)
    result = json.loads(call("bench", folder / "dense.onnx", "--runs", "20", "--dim", "batch=16",
                             "--json").stdout)

    assert result["bytes"]["execution_peak"] == planned["execution"]
    assert result["bytes"]["execution_lower_bound"] == planned["lower_bound"]


def test_mem_shows_four_points(folder):
    text = call("mem", folder / "dense.onnx", "--runs", "5").stdout
    for title in ("after load", "after the first run", "after 5 runs", "after trim"):
        assert title in text
    points = json.loads(call("mem", folder / "dense.onnx", "--runs", "5", "--json").stdout)["points"]
    assert [p["when"] for p in points] == ["after load", "after the first run", "after 5 runs",
                                           "after trim"]
    tree = points[0]["tree"]
    assert tree["charged"] >= sum(c["charged"] for c in tree["children"]) > 0


def test_ops_lists_operators(folder):
    listed = json.loads(call("ops", "--json").stdout)["operators"]
    assert {"name", "domain", "since", "until", "types", "notes"} <= set(listed[0])
    assert any(o["name"] == "MatMul" for o in listed)
    assert "MatMul" in call("ops").stdout
    missing = call("ops", "--missing", folder / "unknown.onnx")
    assert missing.returncode == 3 and "it" in missing.stdout
    assert call("ops", "--missing", folder / "dense.onnx").returncode == 0


def make_case(folder, x, y):
    (folder / "test_data_set_0").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(models.unary())
    for name, array in (("input_0", x), ("output_0", y)):
        (folder / f"test_data_set_0/{name}.pb").write_bytes(
            numpy_helper.from_array(array).SerializeToString()
        )
    return folder


def test_check_runs_a_case_folder(tmp_path):
    x = np.array([-1, 0.5], np.float32)
    right = make_case(tmp_path / "right", x, np.maximum(x, 0))
    wrong = make_case(tmp_path / "wrong", x, np.maximum(x, 0) + np.float32(0.1))

    assert call("check", right).returncode == 0
    assert "expected" in one_line(call("check", wrong), 1)
    assert call("check", wrong, "--atol", "0.2").returncode == 0
    assert json.loads(call("check", wrong, "--json").stdout)["passed"] is False
    one_line(call("check", tmp_path / "nowhere"), 2)


def test_check_compares_with_saved_outputs(folder, tmp_path):
    x = np.array([-1, 0.5], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.maximum(x, 0))
    np.save(tmp_path / "z.npy", x)
    given = ["check", folder / "unary.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--expect"]

    assert call(*given, f"y={tmp_path / 'y.npy'}").returncode == 0
    one_line(call(*given, f"y={tmp_path / 'z.npy'}"), 1)
    one_line(call("check", folder / "unary.onnx"), 2)


def test_wrong_environment_variable_is_status_two(folder):
    done = call("run", folder / "unary.onnx", TENURE_NUM_THREADS="many")

    assert "TENURE_NUM_THREADS='many'" in one_line(done, 2)
