"""Scenarios 44 to 48: what happens to inputs, and to arrays that outputs are written into."""

import numpy as np
import pytest
import session_models as models
import tenure
from onnx import TensorProto


@pytest.fixture
def session():
    with tenure.InferenceSession(models.unary()) as made:
        yield made


def requests_of(session):
    stats = session._session.io_arena.stats()
    return stats["hits"] + stats["misses"]


def test_44_contiguous_input_is_borrowed(session):
    x = np.arange(-50, 50, dtype=np.float32)
    session.run(None, {"x": x})
    before = requests_of(session)

    (y,) = session.run(None, {"x": x})

    assert requests_of(session) == before + 1  # the output and nothing else
    assert session.memory.counters()["payload_copies"] == 0
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_44_read_only_input_is_borrowed(session):
    x = np.arange(-50, 50, dtype=np.float32)
    x.flags.writeable = False

    (y,) = session.run(None, {"x": x})

    assert session.memory.counters()["payload_copies"] == 0
    np.testing.assert_array_equal(y, np.maximum(x, 0))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(-50, 50, dtype=np.float32)[::2],
        np.arange(-50, 50, dtype=np.float32)[::-1],
        np.arange(-50, 50, dtype=np.float64),
        np.arange(-50, 50, dtype=np.int32),
        np.arange(-50, 50, dtype=">f4"),
        [-1, 2, -3.5],
    ],
    ids=["strided", "reversed", "float64", "int32", "big endian", "list"],
)
def test_45_other_inputs_take_one_staging_block_that_is_returned(session, value):
    for _ in range(3):
        (y,) = session.run(None, {"x": value})
    before = session._session.io_arena.stats()

    for _ in range(10):
        (y,) = session.run(None, {"x": value})

    after = session._session.io_arena.stats()
    requests = after["hits"] + after["misses"] - before["hits"] - before["misses"]
    assert requests == 2 * 10  # the output and the staged input
    assert after["sys_allocs"] == before["sys_allocs"]
    assert after["leased_count"] + after["allocated_count"] == 1  # y alone
    np.testing.assert_array_equal(y, np.maximum(np.asarray(value, np.float32), 0))


@pytest.mark.parametrize("value", [3.5, np.float32(3.5), np.array(3.5, np.float32)])
def test_45_scalars_become_rank_zero(value):
    session = tenure.InferenceSession(models.unary(shape=()))

    (y,) = session.run(None, {"x": value})

    assert y.shape == () and y == np.float32(3.5)


def test_46_input_memory_is_never_kept_or_changed(session):
    x = np.linspace(-1, 1, 4096, dtype=np.float32)
    copy = x.copy()
    (y,) = session.run(None, {"x": x})

    session.close()
    del y
    others = tenure.InferenceSession(models.unary())
    kept = [others.run(None, {"x": np.full(4096, i, np.float32)})[0] for i in range(8)]

    np.testing.assert_array_equal(x, copy)
    assert models.address(x) not in {models.address(a) for a in kept}


def test_46_input_is_let_go_after_the_run(session):
    import sys

    x = np.zeros(16, np.float32)
    before = sys.getrefcount(x)

    session.run(None, {"x": x})
    with pytest.raises(tenure.InvalidArgumentError):
        session.run(None, {"x": x, "none": x})

    assert sys.getrefcount(x) == before
    x.resize(32)  # refused while a buffer is exported


def test_47_changed_input_is_seen_and_earlier_outputs_stay(session):
    x = np.arange(100, dtype=np.float32)
    (first,) = session.run(None, {"x": x})
    copy = first.copy()

    x *= 2
    (second,) = session.run(None, {"x": x})

    np.testing.assert_array_equal(first, copy)
    np.testing.assert_array_equal(second, x)


def test_48_result_is_written_into_the_array_given(session):
    x = np.arange(-5, 5, dtype=np.float32)
    out = np.full(10, -7, np.float32)
    session.run(None, {"x": x})
    before = session._session.io_arena.stats()

    (y,) = session.run(None, {"x": x}, out=[out])
    session.run(["y"], {"x": x}, out={"y": out})

    after = session._session.io_arena.stats()
    assert y is out
    assert after["hits"] + after["misses"] == before["hits"] + before["misses"]
    assert after["live"] == before["live"]
    np.testing.assert_array_equal(out, np.maximum(x, 0))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(9, np.float32),
        np.zeros(11, np.float32),
        np.zeros((10, 1), np.float32),
        np.zeros(10, np.float64),
        np.zeros(20, np.float32)[::2],
        np.broadcast_to(np.float32(0), (10,)),
    ],
    ids=["too small", "too large", "wrong rank", "wrong type", "strided", "read-only"],
)
def test_48_array_that_does_not_fit_is_refused(session, out):
    x = np.arange(10, dtype=np.float32)
    before = out.copy()

    with pytest.raises(tenure.InvalidArgumentError, match="'y'"):
        session.run(None, {"x": x}, out=[out])

    np.testing.assert_array_equal(out, before)


def test_48_array_that_overlaps_the_input_gets_the_right_result(session):
    memory = np.arange(-6, 6, dtype=np.float32)
    wanted = np.maximum(memory[:10], 0)

    session.run(None, {"x": memory[:10]}, out=[memory[2:]])

    np.testing.assert_array_equal(memory[2:], wanted)


def test_missing_input_is_named(session):
    with pytest.raises(tenure.InvalidArgumentError, match="'x'"):
        session.run(None, {})


def test_wrong_type_names_input_wanted_and_given():
    session = tenure.InferenceSession(models.unary("Neg", TensorProto.INT64))

    with pytest.raises(tenure.InvalidArgumentError, match="'x'.*int64.*float32") as caught:
        session.run(None, {"x": np.zeros(3, np.float32)})

    assert caught.value.code == "INVALID_ARGUMENT"


def test_wrong_shape_names_input_wanted_and_given():
    session = tenure.InferenceSession(models.unary(shape=(2, 3)))

    with pytest.raises(tenure.InvalidArgumentError, match=r"'x'.*\[2, 3\].*\[3, 2\]"):
        session.run(None, {"x": np.zeros((3, 2), np.float32)})


def test_failed_run_leaves_the_session_usable(session):
    with pytest.raises(ValueError):
        session.run(None, {"x": np.zeros((2, 2, 2), np.float32)})
    with pytest.raises(ValueError):
        session.run(["nothing"], {"x": np.zeros(2, np.float32)})

    (y,) = session.run(None, {"x": np.ones(2, np.float32)})

    np.testing.assert_array_equal(y, [1, 1])


def test_none_is_an_input_left_out(session):
    with pytest.raises(tenure.InvalidArgumentError, match="not fed"):
        session.run(None, {"x": None})


def test_ragged_list_is_refused(session):
    with pytest.raises(tenure.InvalidArgumentError, match="'x'"):
        session.run(None, {"x": [[1, 2], [3]]})
