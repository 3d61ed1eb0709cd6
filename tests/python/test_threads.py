"""Scenarios 72 to 76 as Python sees them."""

import gc
import queue
import threading
import weakref

import numpy as np
import pytest
import session_models as models
import tenure


def run_threads(count, work):
    """Runs work(i) on `count` threads and raises what any of them raised."""
    failures = []

    def guarded(index):
        try:
            work(index)
        except BaseException as error:  # reported below, on the test's thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def full(value, count=2000):
    return np.full(count, value, np.float32)


def test_72_eight_threads_free_outputs_while_the_session_runs():
    session = tenure.InferenceSession(models.unary())
    outputs = queue.Queue()

    def free(_):
        while (item := outputs.get()) is not None:
            value, array = item
            assert array[0] == array[-1] == value
            del item, array

    def feed():
        for i in range(800):
            outputs.put((i, session.run(None, {"x": full(i)})[0]))
        for _ in range(8):
            outputs.put(None)

    run_threads(9, lambda i: feed() if i == 8 else free(i))

    stats = session._session.io_arena.stats()
    assert stats["live"] == 0 and stats["leased_count"] == 0
    assert session.memory.counters()["runs"] == 800


def test_73_two_sessions_share_an_io_arena():
    arena = tenure.IOArena()
    sessions = [tenure.InferenceSession(models.unary(op), io_arena=arena) for op in ("Relu", "Neg")]

    def work(i):
        sign = 1 if i == 0 else -1
        for n in range(200):
            (y,) = sessions[i].run(None, {"x": full(n)})
            np.testing.assert_array_equal(y, sign * full(n))

    run_threads(2, work)

    assert arena.live_bytes == 0
    assert arena.retained_bytes > 0


def test_74_concurrent_runs_are_independent():
    session = tenure.InferenceSession(models.dense())
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((i + 1, 64), np.float32) for i in range(4)]
    wanted = [session.run(None, {"x": x})[0] for x in inputs]

    def work(i):
        for _ in range(50):
            (y,) = session.run(None, {"x": inputs[i]})
            np.testing.assert_array_equal(y, wanted[i])

    run_threads(4, work)


def test_74_bound_runs_are_one_at_a_time():
    session = tenure.InferenceSession(models.dense(inner=256, layers=8))
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ones((256, 256), np.float32))
    binding.bind_output("y")
    binding.run()
    wanted = binding.copy_outputs_to_cpu()[0].copy()
    busy = []

    def work(_):
        for _ in range(20):
            try:
                binding.run()
            except tenure.BusyError as error:
                busy.append(error.code)

    run_threads(4, work)

    assert set(busy) <= {"BUSY"}
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], wanted)


def test_76_finalizer_that_runs_the_session_does_not_deadlock():
    session = tenure.InferenceSession(models.unary())
    seen = []

    class Holder:
        pass

    def finish(value):
        seen.append(float(session.run(None, {"x": full(value)})[0][0]))

    def work(i):
        for n in range(50):
            holder = Holder()
            holder.array = session.run(None, {"x": full(n)})[0]
            holder.cycle = holder
            weakref.finalize(holder, finish, n)
            del holder
            if n % 10 == 0:
                gc.collect()

    run_threads(4, work)
    gc.collect()

    assert len(seen) == 200
    assert session._session.io_arena.stats()["leased_count"] == 0


def test_lock_is_let_go_during_a_run():
    session = tenure.InferenceSession(models.dense(inner=512, layers=6))
    x = np.ones((512, 512), np.float32)
    session.run(None, {"x": x})
    stop, ticks = threading.Event(), []

    def tick(i):
        if i == 0:
            for _ in range(20):
                session.run(None, {"x": x})
            stop.set()
        else:
            while not stop.wait(0.0005):
                ticks.append(1)

    run_threads(2, tick)

    assert len(ticks) >= 5


def test_close_while_others_run_gives_results_or_closed_error():
    session = tenure.InferenceSession(models.dense())
    x = np.ones((64, 64), np.float32)
    (wanted,) = session.run(None, {"x": x})
    started = threading.Barrier(5)

    def work(i):
        started.wait()
        if i == 4:
            session.close()
            return
        for _ in range(100):
            try:
                (y,) = session.run(None, {"x": x})
            except tenure.ClosedError:
                return
            np.testing.assert_array_equal(y, wanted)

    run_threads(5, work)

    with pytest.raises(tenure.ClosedError):
        session.run(None, {"x": x})


def test_callers_execution_arena_serves_one_run_at_a_time():
    arena = tenure.ExecutionArena()

    with pytest.raises(tenure.InvalidArgumentError, match="one run at a time"):
        tenure.InferenceSession(models.unary(), execution_arena=arena, max_concurrent_runs=2)

    session = tenure.InferenceSession(models.dense(), execution_arena=arena)
    x = np.ones((64, 64), np.float32)
    (wanted,) = session.run(None, {"x": x})

    def work(_):
        for _ in range(20):
            try:
                (y,) = session.run(None, {"x": x})
            except tenure.BusyError:
                continue
            np.testing.assert_array_equal(y, wanted)

    run_threads(3, work)
