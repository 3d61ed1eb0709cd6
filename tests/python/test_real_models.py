"""Real models from their packages: the same answers as onnxruntime, and a flat line over many runs.

Tolerance: 1e-3 of the largest expected value, at least 1e-5. Inputs are seeded.
"""

import gc
import pathlib
import sys

import numpy as np
import onnxruntime
import pytest
import tenure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import fetch_models  # noqa: E402

RATE = np.array(16000, np.int64)


def audio(rng, *shape):
    return (rng.standard_normal(shape) * 0.1).astype(np.float32)


def voice(rng, samples=512, rate=RATE):
    return {"input": audio(rng, 1, samples), "state": audio(rng, 2, 1, 128), "sr": rate}


def picture(rng, height, width):
    return {"x": audio(rng, 1, 3, height, width)}


# name: (package, end of the file's path, feeds for each case)
MODELS = {
    "magika": ("magika", "model.onnx",
               [lambda rng: {"bytes": rng.integers(0, 257, (1, 2048)).astype(np.int32)},
                lambda rng: {"bytes": rng.integers(0, 257, (3, 2048)).astype(np.int32)}]),
    "silero": ("silero-vad", "/silero_vad.onnx",
               [voice, lambda rng: voice(rng, 256, np.array(8000, np.int64))]),
    "silero_16k_op15": ("silero-vad", "16k_op15.onnx", [voice]),
    "silero_half": ("silero-vad", "vad_half.onnx",
                    [lambda rng: {k: v for k, v in voice(rng).items() if k != "sr"}]),
    "silero_ifless": ("silero-vad", "op18_ifless.onnx", [voice]),
    "silero_openvino": ("silero-vad", "openvino_16k.onnx",
                        [lambda rng: {"input": audio(rng, 1, 576), "state": audio(rng, 2, 1, 128)}]),
    "silero_sequence": ("silero-vad", "16k_sequence.onnx",
                        [lambda rng, n=n: {"input": audio(rng, n, 576), "h": audio(rng, 1, 1, 128),
                                           "c": audio(rng, 1, 1, 128)} for n in (1, 7, 40)]),
    "v6_det": ("rapidocr", "PP-OCRv6_det_small.onnx",
               [lambda rng, n=n: picture(rng, n, n) for n in (160, 224, 320)]),
    "v6_rec": ("rapidocr", "PP-OCRv6_rec_small.onnx",
               [lambda rng, n=n: picture(rng, 48, n) for n in range(64, 384, 32)]),
    "v6_cls": ("rapidocr", "cls_mobile.onnx", [lambda rng: picture(rng, 48, 192)]),
    "v4_det": ("rapidocr-onnxruntime", "det_infer.onnx",
               [lambda rng, n=n: picture(rng, n, n) for n in (160, 224, 320)]),
    "v4_rec": ("rapidocr-onnxruntime", "rec_infer.onnx",
               [lambda rng, n=n: picture(rng, 48, n) for n in range(64, 384, 32)]),
    "v4_cls": ("rapidocr-onnxruntime", "cls_infer.onnx", [lambda rng: picture(rng, 48, 192)]),
}
RUNS = 200
MIB = 1 << 20


def path_of(name):
    package, ending, _ = MODELS[name]
    return next(str(p) for p in fetch_models.models(package) if str(p).endswith(ending))


def feeds_of(name):
    return [make(np.random.default_rng(number)) for number, make in enumerate(MODELS[name][2])]


def peer(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


def assert_close(ours, theirs):
    assert len(ours) == len(theirs)
    for got, want in zip(ours, theirs):
        assert got.dtype == want.dtype
        largest = float(np.abs(want).max()) if want.size else 0.0
        np.testing.assert_allclose(got, want, rtol=0, atol=max(1e-3 * largest, 1e-5))


@pytest.mark.parametrize("name", MODELS)
def test_answers_equal_onnxruntime(name):
    path = path_of(name)
    reference = peer(path)
    with tenure.InferenceSession(path) as session:
        for feeds in feeds_of(name):
            assert_close(session.run(None, feeds), reference.run(None, feeds))


def resident_bytes():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.parametrize("name", MODELS)
def test_many_runs_are_a_flat_line(name):
    """Every case once, then the smallest ones in turn: nothing grows, and closing returns all."""
    cases = feeds_of(name)
    small = sorted(cases, key=lambda feeds: sum(v.nbytes for v in feeds.values()))[:3]
    session = tenure.InferenceSession(path_of(name))
    for feeds in cases + small:
        session.run(None, feeds)
    gc.collect()
    charged, resident = session.memory.stats()["charged"], resident_bytes()

    for number in range(RUNS):
        session.run(None, small[number % len(small)])

    gc.collect()
    assert session.memory.stats()["charged"] <= charged
    assert resident_bytes() <= resident + 2 * MIB
    session.close()


def test_stream_of_frames_carries_its_state():
    """Thirty frames, the state of each fed to the next: no drift from the peer."""
    path = path_of("silero")
    reference = peer(path)
    rng = np.random.default_rng(5)
    ours = theirs = np.zeros((2, 1, 128), np.float32)
    with tenure.InferenceSession(path) as session:
        for _ in range(30):
            frame = audio(rng, 1, 512)
            got = session.run(None, {"input": frame, "state": ours, "sr": RATE})
            want = reference.run(None, {"input": frame, "state": theirs, "sr": RATE})
            assert_close(got, want)
            ours, theirs = got[1], want[1]
