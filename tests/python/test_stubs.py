"""The type stubs name what exists, and all of it."""

import ast
import importlib
import pathlib

import pytest
import tenure

FOLDER = pathlib.Path(tenure.__file__).parent
STUBS = sorted(path.stem for path in FOLDER.glob("*.pyi"))


def declared(body):
    """Public names of a module's or class's body."""
    names = set()
    for item in body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            names.add(item.name)
        elif isinstance(item, ast.AnnAssign):
            names.add(item.target.id)
        elif isinstance(item, ast.Assign):
            names.update(target.id for target in item.targets)
    return {name for name in names if not name.startswith("_")}


def actual(kind):
    return {n for n in vars(kind) if not n.startswith("_") and n not in ("code", "node", "detail")}


@pytest.mark.parametrize("stub", STUBS)
def test_stub_names_what_exists(stub):
    module = importlib.import_module(f"tenure.{stub}")
    tree = ast.parse((FOLDER / f"{stub}.pyi").read_text())

    for name in declared(tree.body):
        assert hasattr(module, name), name
    for item in tree.body:
        if not isinstance(item, ast.ClassDef) or item.name.startswith("_"):
            continue
        kind = getattr(module, item.name)
        bases = [b for b in tree.body if isinstance(b, ast.ClassDef)
                 and b.name in {getattr(x, "id", None) for x in item.bases} and b.name == "_Arena"]
        names = declared(item.body).union(*(declared(b.body) for b in bases))
        if not issubclass(kind, Exception):
            missing = actual(kind) - names
            assert missing == set(), f"{item.name} lacks {missing}"


def test_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()
    assert {"_tenure", "session", "options"} <= set(STUBS)
