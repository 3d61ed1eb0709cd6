"""The generated pages hold every public declaration, with what its header says of it."""

import re

import make_docs
import pytest
from source_tree import read


def declared(text):
    return list(make_docs.declarations(text))


def test_declaration_keeps_its_comment():
    assert declared("/* Says hello.\n * Errors: none. */\nTN_API int tn_hello(void);\n") == [
        ("Says hello.\nErrors: none.", "TN_API int tn_hello(void);")]


def test_comment_behind_a_declaration_belongs_to_it():
    assert declared("TN_API void tn_a(void); /* about a */\nTN_API void tn_b(void);\n") == [
        ("about a", "TN_API void tn_a(void);"), ("", "TN_API void tn_b(void);")]


def test_semicolon_in_braces_or_comment_does_not_end_a_declaration():
    text = "typedef struct tn_x {\n    int a; /* one; two */\n} tn_x;\n"

    assert declared(text) == [("", text.strip())]


def test_section_comment_does_not_stick_to_the_next_declaration():
    assert declared("/* ---- handles ---- */\n\nTN_API void tn_a(void);\n") == [
        ("", "TN_API void tn_a(void);")]


def test_guards_and_attribute_macros_are_left_out():
    text = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n#define TN_API __attribute__((x))\n" \
           "#define TN_MAX 3\n"

    assert declared(text) == [("", "#define TN_MAX 3")]


@pytest.mark.parametrize("header", ["memory", "arena", "tensor", "model", "session"])
def test_every_exported_function_of_a_header_is_found(header):
    text = read(f"include/tenure/{header}.h")

    wanted = set(re.findall(r"^TN_API[^;(]*?(\w+)\(", text, re.M))
    found = {name for _, code in declared(text) if code.startswith("TN_API")
             for name in re.findall(r"(\w+)\(", code)[:1]}

    assert wanted <= found | {"TN_PRINTF"}
