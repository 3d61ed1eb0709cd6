"""Finds the tool that loads models for these tests."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def probe():
    named = os.environ.get("TENURE_MODEL_PROBE")
    found = [pathlib.Path(named)] if named else ROOT.glob("build/*/tests/model_probe")
    newest = sorted((p for p in found if p.exists()), key=lambda p: p.stat().st_mtime)
    if not newest:
        pytest.fail("model_probe is not built (TENURE_MODEL_PROBE names it when it lies elsewhere)")
    return newest[-1]
