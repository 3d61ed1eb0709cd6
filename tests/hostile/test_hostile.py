"""Hostile files: an answer as expected, in bounded time and memory, and never a signal."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import make_hostile  # noqa: E402

MAX_SECONDS = 1.0
MAX_GROWTH_KIB = 8 * 1024


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return make_hostile.make(tmp_path_factory.mktemp("hostile"))


def check(probe, path):
    """What the probe says of one file: status, seconds, growth, bytes left, node, message."""
    run = subprocess.run([probe, "check", path], capture_output=True, timeout=30)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    row = run.stdout.decode("utf-8").removesuffix("\n")  # messages are UTF-8 and one line
    assert "\n" not in row
    status, elapsed_us, growth_kib, left_bytes, node, message = row.split("\t")
    return status, int(elapsed_us) / 1e6, int(growth_kib), int(left_bytes), node, message


def is_sanitized(probe):
    return b"__asan_init" in Path(probe).read_bytes()


@pytest.mark.parametrize("name", sorted(make_hostile.CASES))
def test_file_is_answered(probe, corpus, name):
    path, statuses, words = corpus[name]
    status, seconds, growth_kib, left_bytes, node, message = check(probe, path)

    assert status in statuses, (status, node, message)
    assert left_bytes == 0
    assert seconds < MAX_SECONDS
    if not is_sanitized(probe):
        # its shadow memory counts as resident, and the figure would say nothing
        assert growth_kib < MAX_GROWTH_KIB
    if status != "OK":
        assert node, message
        assert any(word in message for word in words), (node, message)


def test_named_node_is_the_one_at_fault(probe, corpus):
    expected = {
        "node_feeds_itself": "self",
        "input_produced_nowhere": "adder",
        "inner_name_used_outside": "user",
        "output_made_twice": "again",
        "node_cycle_by_capture": "picker",
        "attribute_twice": "relu_1",
        "raw_too_short": "w",
        "sparse_index_outside": "s",
        "graph_input_without_type": "x",
        "function_calls_itself": "f",
        "missing_name_with_control_bytes": "bad?name",
    }
    seen = {name: check(probe, corpus[name][0])[4] for name in expected}

    assert seen == expected


def test_cycle_names_a_node_of_the_cycle(probe, corpus):
    assert check(probe, corpus["node_cycle"][0])[4] in ("left", "right")


def test_files_are_small(corpus):
    for name, (path, _, _) in corpus.items():
        big = name in (
            "file_over_4_gib",
            "million_empty_nodes",
            "messages_split_to_multiply",
            "subgraphs_1000_deep",
        )
        if path.is_file() and not big:
            assert path.stat().st_size < 16 * 1024, name
