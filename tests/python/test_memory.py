"""The accounting tree, buffers, arenas and limits as Python sees them."""

import numpy as np
import pytest
import session_models as models
import tenure


def test_root_counts_buffers_and_closes_empty():
    root = tenure.Allocator("root", limit=1 << 20)
    buffer = root.buffer(1000)

    assert root.charged == root.used == 1000
    assert buffer.size == len(buffer) == 1000 and buffer.address % 64 == 0
    with pytest.raises(tenure.BusyError) as caught:
        root.close()
    assert caught.value.code == "BUSY"

    buffer.release()
    assert root.charged == 0 and root.peak >= 1000
    root.verify()
    root.close()
    assert root.closed
    with pytest.raises(tenure.ClosedError):
        root.buffer(1)


def test_limit_refuses_with_all_numbers_and_changes_nothing():
    root = tenure.Allocator("root", limit=4096)
    held = root.buffer(4000)

    with pytest.raises(tenure.MemoryLimitError) as caught:
        root.buffer(200)

    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, tenure.TenureError)
    assert caught.value.code == "LIMIT"
    detail = caught.value.detail
    assert (detail["requested"], detail["used"], detail["limit"]) == (200, 4000, 4096)
    assert "root" in detail["allocator"]
    assert root.charged == 4000
    held.release()


def test_child_holds_its_reservation_and_knows_its_parent():
    root = tenure.Allocator("root", limit=10000)
    child = root.child("child", limit=5000, reservation=3000)

    assert root.charged == 3000 and child.charged == 0
    assert child.parent.name == "root" and child.limit == 5000
    with pytest.raises(tenure.MemoryLimitError):
        root.buffer(7001)
    child.close()
    assert root.charged == 0
    root.close()


def test_stats_are_nested_and_add_up():
    root = tenure.Allocator("root")
    child = root.child("child")
    grandchild = child.child("grandchild")
    held = [root.buffer(100), child.buffer(20), grandchild.buffer(3)]

    tree = root.stats()

    assert tree["name"] == "root" and tree["charged"] == tree["used"] == 123
    assert tree["children"][0]["charged"] == 23
    assert tree["children"][0]["children"][0]["own"] == 3
    for key in ("limit", "reservation", "slack", "live", "live_capacity", "retained", "leased",
                "mapped", "peak", "shared"):
        assert key in tree
    assert "grandchild" in root.report()
    del held


def test_buffer_is_bytes_that_are_shared_and_counted():
    root = tenure.Allocator("root")
    buffer = root.buffer(64)
    view = np.frombuffer(buffer, np.float32)
    view[:] = np.arange(16)
    part = buffer.slice(4, 8)

    with pytest.raises(tenure.BusyError):
        buffer.release()
    np.testing.assert_array_equal(np.frombuffer(part, np.float32), [1, 2])
    with pytest.raises(tenure.InvalidArgumentError):
        buffer.slice(60, 8)

    del view
    buffer.release()
    assert root.charged == 64  # the slice holds the block
    with pytest.raises(tenure.ClosedError):
        memoryview(buffer)
    part.release()
    assert root.charged == 0


@pytest.mark.parametrize("make", [tenure.ExecutionArena, tenure.IOArena])
def test_arena_keeps_what_comes_back_until_trimmed(make):
    arena = make()
    buffer = arena.allocate(10000)
    where = buffer.address
    assert (arena.live_bytes, arena.retained_bytes) == (10000, 0)
    assert arena.live_capacity >= 10000

    buffer.release()
    assert arena.live_bytes == 0 and arena.retained_bytes >= 10000
    buffer = arena.allocate(9000)
    assert buffer.address == where
    buffer.release()

    retained = arena.retained_bytes
    assert arena.trim() == retained
    assert arena.trim() == 0 and arena.retained_bytes == 0
    assert arena.peak_bytes == 10000
    arena.reset_peak()
    assert arena.peak_bytes == 0


@pytest.mark.parametrize("make", [tenure.ExecutionArena, tenure.IOArena])
def test_arena_cap_can_be_read_and_set(make):
    root = tenure.Allocator("root")
    arena = make(retention_cap=1 << 16, allocator=root)
    assert arena.retention_cap == 1 << 16
    assert make().retention_cap is None
    held = [arena.allocate(20000) for _ in range(3)]
    for buffer in held:
        buffer.release()
    assert arena.retained_bytes <= 1 << 16

    arena.retention_cap = 0
    assert arena.retained_bytes == 0
    arena.retention_cap = None
    assert arena.retention_cap is None
    del held, buffer, arena
    assert root.charged == 0


def test_wrong_trim_level_is_refused():
    with pytest.raises(tenure.InvalidArgumentError, match="'gently'"):
        tenure.IOArena().trim("gently")


def test_session_memory_shows_tree_report_and_trim():
    session = tenure.InferenceSession(models.dense())
    session.run(None, {"x": np.ones((64, 64), np.float32)})

    tree = session.memory.stats()
    assert {child["name"] for child in tree["children"]} >= {"weights", "execution", "io", "plan"}
    assert tree["shared"] > 0
    assert tree["charged"] == tree["own"] + sum(c["charged"] for c in tree["children"])
    assert "execution" in session.memory.report()

    before = session._session.io_arena.retained_bytes
    assert before > 0
    assert session.memory.trim() >= before
    assert session._session.io_arena.retained_bytes == 0


def test_session_limit_is_enforced_before_anything_runs():
    x = np.ones((256, 64), np.float32)
    session = tenure.InferenceSession(models.dense(), memory_limit=200 << 10)

    with pytest.raises(tenure.MemoryLimitError) as caught:
        session.run(None, {"x": x})

    assert caught.value.detail["limit"] > 0
    session.memory.limit = 64 << 20
    assert session.memory.limit == 64 << 20
    (y,) = session.run(None, {"x": x})
    assert y.shape == (256, 32)


def test_single_arena_mode_uses_the_io_arena_for_both():
    arena = tenure.IOArena()
    session = tenure.InferenceSession(models.dense(), execution_arena=arena, io_arena=arena)
    x = np.ones((64, 64), np.float32)

    (y,) = session.run(None, {"x": x})

    (wanted,) = tenure.InferenceSession(models.dense()).run(None, {"x": x})
    np.testing.assert_array_equal(y, wanted)
    assert arena.leased_bytes == y.nbytes
    assert arena.peak_bytes > y.nbytes  # intermediates were here too


def test_execution_arena_cannot_serve_outputs():
    with pytest.raises(tenure.InvalidArgumentError, match="cannot serve outputs"):
        tenure.InferenceSession(models.dense(), io_arena=tenure.ExecutionArena())


def test_callers_arenas_are_used():
    execution, io = tenure.ExecutionArena(), tenure.IOArena()
    session = tenure.InferenceSession(models.dense(), execution_arena=execution, io_arena=io)

    (y,) = session.run(None, {"x": np.ones((64, 64), np.float32)})

    assert io.leased_bytes == y.nbytes
    assert execution.peak_bytes > 0


def test_plan_says_what_a_run_will_need():
    session = tenure.InferenceSession(models.dense())

    plan = session.plan({"x": (128, 64)})

    assert plan.is_complete and plan.peak_bytes > 0
    assert 0 < plan.lower_bound_bytes <= plan.execution_bytes
    by_name = {value.name: value for value in plan.values}
    assert by_name["y"].arena == "io" and by_name["y"].size == 128 * 32 * 4
    assert by_name["h0"].arena == "execution" and by_name["h0"].shape == (128, 64)
    assert "h0" in str(plan) and plan.csv.startswith("id,lower,upper,size,offset")
    with pytest.raises(tenure.InvalidArgumentError, match="'x'"):
        session.plan()
    with pytest.raises(tenure.InvalidArgumentError, match="'none'"):
        session.plan({"none": (1,)})


def test_roles_of_a_node_with_two_outputs_are_told():
    session = tenure.InferenceSession(models.mixed())
    session.run(None, {"x": np.ones((8, 4), np.float32)})

    roles = [session.allocator_for_output("split", slot) for slot in (0, 1)]

    assert roles[0] == "io" and roles[1] != "io"
    assert session.allocator_for_output("mm") == "io"
    with pytest.raises(tenure.InvalidArgumentError):
        session.allocator_for_output("nobody")


def test_reservation_is_refused_by_name():
    with pytest.raises(tenure.NotSupportedError):
        tenure.Reservation(tenure.Allocator("root"), 100)
