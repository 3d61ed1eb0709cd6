"""Makes the tools importable and gives each test a small tree of its own to check."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


class Tree:
    """A git tree with the checks in tools/, and whatever a test writes into it."""

    def __init__(self, root):
        self.root = root
        (root / "tools").mkdir()
        for name in ("source_tree.py", "check_layers.py", "check_names.py"):
            shutil.copy(ROOT / "tools" / name, root / "tools" / name)
        subprocess.run(["git", "init", "-q", str(root)], check=True)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def check(self, tool):
        """Exit status and output of one check."""
        done = subprocess.run([sys.executable, str(self.root / "tools" / tool)],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)
