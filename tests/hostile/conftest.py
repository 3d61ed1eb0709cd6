"""Finds the tools that load models for these tests."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_tool(name, variable):
    named = os.environ.get(variable)
    found = [pathlib.Path(named)] if named else ROOT.glob(f"build/*/tests/{name}")
    newest = sorted((p for p in found if p.exists()), key=lambda p: p.stat().st_mtime)
    if not newest:
        pytest.fail(f"{name} is not built ({variable} names it when it lies elsewhere)")
    return newest[-1]


@pytest.fixture(scope="session")
def probe():
    return find_tool("model_probe", "TENURE_MODEL_PROBE")


@pytest.fixture(scope="session")
def session_probe():
    return find_tool("session_probe", "TENURE_SESSION_PROBE")
