"""One engine on one model for a while, in a process of its own; prints one JSON object.

usage: engine.py ENGINE MODEL SECONDS THREADS SHAPES

SHAPES is JSON: {"input": [dims]}. Contents come from a fixed seed, so engines see the same numbers.
"""

import json
import resource
import statistics
import sys
import time

import numpy

TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64,
         "tensor(int32)": numpy.int32, "tensor(double)": numpy.float64,
         "tensor(bool)": numpy.bool_}


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_session(engine, model, threads):
    if engine == "tenure":
        import tenure as module
    else:
        import onnxruntime as module
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    before = peak_bytes()
    start = time.perf_counter_ns()
    session = module.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter_ns() - start, before


def make_feeds(session, shapes):
    random = numpy.random.RandomState(1)
    feeds = {}
    for value in session.get_inputs():
        dims = shapes.get(value.name, [d if isinstance(d, int) else 1 for d in value.shape])
        kind = TYPES[value.type]
        if kind in (numpy.int64, numpy.int32):
            feeds[value.name] = numpy.full(dims, 16000 if value.name == "sr" else 1, kind)
        else:
            feeds[value.name] = random.random_sample(dims).astype(kind)
    return feeds


def main():
    engine, model, seconds, threads, shapes = sys.argv[1:6]
    session, load_ns, before = open_session(engine, model, int(threads))
    feeds = make_feeds(session, json.loads(shapes))
    first = time.perf_counter_ns()
    result = session.run(None, feeds)
    first = time.perf_counter_ns() - first
    for _ in range(2):
        session.run(None, feeds)
    times, faults = [], resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    end = time.perf_counter() + float(seconds)
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter_ns()
        session.run(None, feeds)
        times.append(time.perf_counter_ns() - start)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    print(json.dumps({"engine": engine, "median_ns": int(statistics.median(times)),
                      "best_ns": min(times), "runs": len(times), "load_ns": load_ns,
                      "first_run_ns": first, "minor_faults": faults,
                      "peak_bytes": peak_bytes() - before,
                      "checksum": float(numpy.asarray(result[0], numpy.float64).sum())}))


if __name__ == "__main__":
    main()
