"""Each rule of the checks is shown to bite: a tree that breaks it is refused, one that keeps it is not."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_clean_tree_passes_every_check(tree):
    tree.write("src/base/one.c", '#include "base/one.h"\n\nint tn_one(void) {\n    return 1;\n}\n')
    tree.write("src/base/one.h", "int tn_one(void);\n")

    assert tree.check("check_layers.py")[0] == 0
    assert tree.check("check_names.py")[0] == 0


@pytest.mark.parametrize("path, line, words", [
    ("src/base/low.c", '#include "plan/plan.h"', "higher layer"),
    ("src/memory/low.c", '#include "cli/table.h"', "of a face"),
    ("src/cli/face.c", '#include "base/error.h"', "private"),
    ("src/python/face.c", '#include "cli/table.h"', "outside"),
    ("include/tenure/new.h", '#include "base/error.h"', "in quotes"),
    ("src/base/low.c", '#include "base/other.c"', "source file"),
    ("src/base/low.c", '#include "harness.h"', "not named from src/"),
    ("src/odd/low.c", "#include <stdio.h>", "no layer"),
])
def test_include_against_the_order_is_refused(tree, path, line, words):
    tree.write(path, f"{line}\n")

    status, said = tree.check("check_layers.py")

    assert status == 1
    assert words in said and f"{path}:1" in said


@pytest.mark.parametrize("path, line", [
    ("src/plan/high.c", '#include "base/error.h"'),
    ("src/plan/high_test.c", '#include "harness.h"'),
    ("src/cli/face.c", '#include <tenure/tenure.h>'),
    ("src/cli/face.c", '#include "cli/table.h"'),
])
def test_include_along_the_order_is_accepted(tree, path, line):
    tree.write("tests/harness.h", "")
    tree.write(path, f"{line}\n")

    assert tree.check("check_layers.py")[0] == 0


def test_compare_with_an_operator_name_is_refused(tree):
    tree.write("src/kernels/rows.c", 'static const row rows[] = {{.name = "Relu"}};\n')
    tree.write("src/plan/pass.c", 'int f(const char *n) {\n    return strcmp(n, "Relu") == 0;\n}\n')
    tree.write("src/plan/fuse_x.c", 'int g(const char *n) {\n    return strcmp(n, "Relu") == 0;\n}\n')

    status, said = tree.check("check_names.py")

    assert status == 1
    assert "src/plan/pass.c:2" in said and "fuse_x.c" not in said


def test_function_past_seventy_lines_is_refused_and_past_sixty_is_listed(tree):
    def body(lines):
        return "(int a) {\n" + "    a++;\n" * (lines - 3) + "    return a;\n}\n"
    tree.write("src/base/long.c", "int tn_long" + body(71))
    tree.write("src/base/listed.c", "int tn_listed" + body(61))
    tree.write("src/base/fits.c", "int tn_fits" + body(60))

    status, said = tree.check("check_names.py")

    assert status == 1
    assert "long.c:1: 71 lines" in said and "note: src/base/listed.c:1: 61 lines" in said
    assert "fits.c" not in said


@pytest.mark.parametrize("text, words", [
    ("int a; /* TO" + "DO: more */\n", "left-over mark"),
    ('static const char *p = "/ro' + 'ot/x";\n', "path of one machine"),
])
def test_mark_or_machine_path_is_refused(tree, text, words):
    tree.write("src/base/a.c", text.replace('"/', '" /'))

    status, said = tree.check("check_names.py")

    assert status == 1 and words in said


def test_file_name_taken_twice_is_refused(tree):
    tree.write("src/base/same.c", "int tn_a;\n")
    tree.write("src/plan/same.c", "int tn_b;\n")

    status, said = tree.check("check_names.py")

    assert status == 1 and "same.c: the name is taken" in said


def test_header_that_needs_another_first_is_refused(tree):
    tree.write("src/base/needy.h", "uint32_t tn_needy(void);\n")

    status, said = tree.check("check_names.py")

    assert status == 1 and "needy.h: does not compile alone" in said


@pytest.mark.parametrize("source, words", [
    ("int helper(void) { return 1; }", "exports helper"),
    ("int *tn_f(void) { static int counter; return &counter; }", "mutable variable"),
    ("int *tn_g(void) { static int start = 3; return &start; }", "mutable variable"),
])
def test_foreign_symbol_or_variable_in_the_library_is_refused(tmp_path, source, words):
    status, said = check_library(tmp_path, source)

    assert status == 1 and words in said


def test_constant_with_addresses_is_no_variable(tmp_path):
    status, said = check_library(
        tmp_path, 'static const char *const names[] = {"a", "b"};\n'
                  "const char *const *tn_names(void) { return names; }")

    assert status == 0, said


def check_library(folder, source):
    (folder / "a.c").write_text(source + "\n")
    def run(*command):
        subprocess.run(command, cwd=folder, check=True)
    run("gcc", "-fPIC", "-c", "a.c")
    run("ar", "rc", "libtenure.a", "a.o")
    run("gcc", "-shared", "-o", "libtenure.so.0", "a.o")
    done = subprocess.run([sys.executable, str(ROOT / "tools/check_symbols.py"), str(folder)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_format_check_refuses_what_the_formatter_would_change(tmp_path):
    formatter = pathlib.Path(sys.executable).parent / "clang-format"
    assert formatter.exists() or shutil.which("clang-format")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/check_format.sh", tmp_path / "tools")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.c").write_text("int  a ;\n")
    run = [str(tmp_path / "tools/check_format.sh")]
    environment = {"VENV": str(pathlib.Path(sys.executable).parents[1]), "PATH": "/usr/bin:/bin"}

    assert subprocess.run(run, env=environment, capture_output=True).returncode != 0

    assert subprocess.run([*run, "--fix"], env=environment, capture_output=True).returncode == 0
    assert (tmp_path / "a.c").read_text() == "int a;\n"
    assert subprocess.run(run, env=environment, capture_output=True).returncode == 0
