"""Models that load and cannot run: a typed error that names the node, in bounded time and memory."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import make_hostile_plans  # noqa: E402

MAX_SECONDS = 1.0
MAX_GROWTH_KIB = 8 * 1024
CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "session_fuzz"


def drive(probe, paths):
    """Rows of the probe, one per file: stage, status, us, KiB, bytes left, fault, node, message."""
    run = subprocess.run([probe, *paths], capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    return [line.split("\t") for line in run.stdout.decode().splitlines()]


@pytest.fixture(scope="session")
def plans(tmp_path_factory):
    return make_hostile_plans.make(tmp_path_factory.mktemp("plans"))


@pytest.mark.parametrize("name", sorted(make_hostile_plans.CASES))
def test_plan_is_refused(session_probe, plans, name):
    path, statuses, words, node, stages = plans[name]
    [(stage, status, elapsed_us, growth_kib, left, fault, named, message)] = drive(
        session_probe, [path]
    )

    assert status in statuses, (stage, status, named, message)
    assert stage in stages
    assert fault == ""
    assert int(left) == 0
    if status != "LIMIT":  # of a whole plan, which names the allocator
        assert node in named or f"'{node}'" in message, (named, message)
    assert any(word in message for word in words), message
    assert int(elapsed_us) / 1e6 < MAX_SECONDS
    if b"__asan_init" not in Path(session_probe).read_bytes():
        # its shadow memory counts as resident, and the figure would say nothing
        assert int(growth_kib) < MAX_GROWTH_KIB


def test_seeds_of_the_fuzzer_are_taken_without_fault(session_probe):
    paths = sorted(CORPUS.iterdir())
    rows = drive(session_probe, paths)

    assert len(rows) == len(paths) > 0
    assert [(path.name, row) for path, row in zip(paths, rows, strict=True) if row[5]] == []
