"""Scenarios 49 to 61: how long outputs live, and what keeps them."""

import gc
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import session_models as models
import tenure
from session_models import address


@pytest.fixture
def session():
    with tenure.InferenceSession(models.unary()) as made:
        yield made


def ones(count=4096, value=1.0):
    return np.full(count, value, np.float32)


def test_49_clearing_a_context_leaves_outputs(session):
    context = tenure.RuntimeContext()
    context.set("x", ones(value=3))
    context.run(session)
    y = context.get("y")

    context.clear()

    assert "y" not in context
    np.testing.assert_array_equal(y, ones(value=3))
    context.set("x", ones(value=4))
    context.run(session)
    np.testing.assert_array_equal(y, ones(value=3))


def test_50_next_run_uses_other_memory_while_an_output_is_held(session):
    (first,) = session.run(None, {"x": ones(value=1)})

    (second,) = session.run(None, {"x": ones(value=2)})

    assert address(first) != address(second)
    np.testing.assert_array_equal(first, ones(value=1))
    np.testing.assert_array_equal(second, ones(value=2))


def test_51_dropped_output_is_reused_without_the_system(session):
    (y,) = session.run(None, {"x": ones()})
    where = address(y)
    before = session._session.io_arena.stats()["sys_allocs"]

    del y
    (y,) = session.run(None, {"x": ones()})

    assert address(y) == where
    assert session._session.io_arena.stats()["sys_allocs"] == before


def test_52_a_hundred_held_outputs_are_right_and_counted(session):
    kept = [session.run(None, {"x": ones(value=i)})[0] for i in range(100)]

    stats = session._session.io_arena.stats()
    assert stats["leased_count"] == 100
    assert stats["live"] == stats["leased"] == sum(a.nbytes for a in kept)
    for i, array in enumerate(kept):
        np.testing.assert_array_equal(array, ones(value=i))

    kept.clear()
    del array
    assert session._session.io_arena.stats()["live"] == 0


def test_53_output_outlives_everything_and_frees_it_last():
    root = tenure.Allocator("mine")
    arena = tenure.IOArena(allocator=root)
    session = tenure.InferenceSession(models.unary(), allocator=root, io_arena=arena)
    (y,) = session.run(None, {"x": ones(value=7)})

    session.close()
    del session, arena
    gc.collect()

    np.testing.assert_array_equal(y, ones(value=7))
    assert root.charged >= y.nbytes
    del y
    gc.collect()
    assert root.charged == 0
    root.close()


def test_53_output_of_the_sessions_own_arena_frees_the_orphaned_node():
    root = tenure.Allocator("mine")
    session = tenure.InferenceSession(models.unary(), allocator=root)
    (y,) = session.run(None, {"x": ones(value=7)})

    session.close()
    del session
    gc.collect()

    np.testing.assert_array_equal(y, ones(value=7))
    with pytest.raises(tenure.BusyError):
        root.close()
    del y
    gc.collect()
    assert root.charged == 0
    root.close()


def test_55_export_moves_no_byte(session):
    (tensor,) = session._session.run(None, {"x": ones()}, None, session._stage)

    array = np.asarray(tensor)

    assert address(array) == tensor.address
    assert session.memory.counters()["copied_bytes"] == 0


def test_56_two_exports_of_one_output_return_its_block_once(session):
    (tensor,) = session._session.run(None, {"x": ones(value=5)}, None, session._stage)
    first, second = np.asarray(tensor), np.asarray(tensor)
    del tensor

    del first
    assert session._session.io_arena.stats()["leased_count"] == 1
    np.testing.assert_array_equal(second, ones(value=5))
    del second
    stats = session._session.io_arena.stats()
    assert stats["leased_count"] == 0 and stats["retained_count"] == 1


@pytest.mark.parametrize(
    "view_of",
    [
        lambda y: y[10:20],
        lambda y: y.reshape(64, 64).T,
        lambda y: y.view(np.int32),
        memoryview,
        lambda y: np.frombuffer(y, np.uint8),
    ],
    ids=["slice", "transpose", "other type", "memoryview", "frombuffer"],
)
def test_57_a_view_pins_the_block(session, view_of):
    (y,) = session.run(None, {"x": ones(value=9)})
    view = view_of(y)
    copy = bytes(np.ascontiguousarray(view).view(np.uint8))
    del y

    (other,) = session.run(None, {"x": ones(value=1)})

    assert bytes(np.ascontiguousarray(view).view(np.uint8)) == copy
    assert session._session.io_arena.stats()["leased_count"] == 2
    del view
    assert session._session.io_arena.stats()["leased_count"] == 1
    del other


def test_58_reference_cycle_is_collected(session):
    (y,) = session.run(None, {"x": ones()})
    cycle = {"y": y}
    cycle["self"] = cycle
    del y, cycle

    gc.collect()

    assert session._session.io_arena.stats()["leased_count"] == 0


def test_59_output_freed_on_another_thread(session):
    held = [session.run(None, {"x": ones(value=i)})[0] for i in range(20)]

    worker = threading.Thread(target=held.clear)
    worker.start()
    worker.join()

    stats = session._session.io_arena.stats()
    assert stats["leased_count"] == 0 and stats["live"] == 0


@pytest.mark.parametrize("ending", ["pass", "session.close()", "del session, tenure", "sys.exit(3)"])
def test_59_interpreter_ends_with_live_arrays(ending, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(models.unary())
    program = textwrap.dedent(
        f"""
        import sys, numpy, tenure
        session = tenure.InferenceSession({str(path)!r})
        kept = [session.run(None, {{"x": numpy.ones(1000, numpy.float32)}})[0] for _ in range(4)]
        class Holder:
            def __del__(self):
                assert memoryview(self.array)[999] == 1.0
                print("readable")
        holder = Holder()
        holder.array = kept[0]
        holder.cycle = holder
        {ending}
        """
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.returncode == (3 if "exit" in ending else 0), done.stderr
    assert done.stderr == "" and done.stdout in ("", "readable\n")


def test_61_outputs_are_writable_and_writing_changes_nothing_else(session):
    x = ones(value=2)
    (first,) = session.run(None, {"x": x})
    assert first.flags.writeable and first.flags.c_contiguous

    first[:] = -1
    (second,) = session.run(None, {"x": x})

    np.testing.assert_array_equal(second, ones(value=2))
    np.testing.assert_array_equal(x, ones(value=2))


def test_61_writing_to_an_output_that_passes_an_input_through_spares_it():
    session = tenure.InferenceSession(models.identity())
    x = ones(value=2)

    (y,) = session.run(None, {"x": x})
    y[:] = 0

    np.testing.assert_array_equal(x, ones(value=2))


def test_61_writing_to_an_output_that_is_a_weight_spares_it():
    from onnx import helper

    node = helper.make_node("Identity", ["w"], ["y"])
    session = tenure.InferenceSession(
        models.build([node], {"x": (1, ["n"])}, {"y": (1, [3])}, {"w": ones(3, 5)})
    )

    (y,) = session.run(None, {"x": ones(1)})
    y[:] = 0
    (again,) = session.run(None, {"x": ones(1)})

    np.testing.assert_array_equal(again, ones(3, 5))


def test_session_is_closed_for_every_call(session):
    binding = session.io_binding()
    session.close()
    calls = [
        lambda: session.run(None, {"x": ones()}),
        session.get_inputs,
        session.get_outputs,
        session.get_modelmeta,
        session.io_binding,
        session.plan,
        lambda: session.memory.stats(),
        lambda: session.memory.trim(),
        lambda: session.memory.limit,
        binding.run,
    ]
    for call in calls:
        with pytest.raises(tenure.ClosedError):
            call()
    session.close()  # a second time is nothing


def test_model_is_unloaded_with_its_last_session():
    root = tenure.Allocator("mine")
    with tenure.InferenceSession(models.dense(), allocator=root) as session:
        session.run(None, {"x": np.ones((4, 64), np.float32)})
        assert root.charged > 0

    gc.collect()

    assert root.charged == 0
    root.close()
