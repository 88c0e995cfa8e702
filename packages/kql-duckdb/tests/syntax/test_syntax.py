"""Texts to trees and back, and where faults are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printer import print_tree
from texts import TEXTS

from kql_duckdb.errors import KqlError
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.parser import parse, parse_all


@pytest.mark.parametrize("text", TEXTS)
def test_a_printed_tree_reads_as_the_same_tree(text: str) -> None:
    tree = parse(text)
    assert parse(print_tree(tree)) == tree


@given(st.text(max_size=60))
def test_a_text_literal_holds_any_text(text: str) -> None:
    tree = ast.Script((ast.Query(ast.construct("print", columns=(ast.Named(ast.Literal("string", text), ("x",)),))),))
    found = parse(print_tree(tree))
    kept = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert found == ast.Script(
        (ast.Query(ast.construct("print", columns=(ast.Named(ast.Literal("string", kept), ("x",)),))),)
    )


@given(st.text(alphabet="T|where()[]{}'\"=<>!~,;.:*+-/ 123aband\n", max_size=80))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    tree, errors = parse_all(text)
    assert isinstance(tree, ast.Script)
    for error in errors:
        assert error.line is not None
        assert 1 <= error.line <= text.count("\n") + 1


@given(st.recursive(
    st.sampled_from(("a", "1", "'x'", "d.e", "f(b)", "c[0]")),
    lambda inner: st.builds(
        lambda left, operator, right, brackets: f"({left} {operator} {right})" if brackets else f"{left} {operator} {right}",
        inner, st.sampled_from(("+", "-", "*", "/", "%", "==", "<", "and", "or", "has", "=~", "matches regex")), inner, st.booleans(),
    ),
    max_leaves=12,
))  # fmt: skip
def test_brackets_are_printed_where_a_tree_needs_them(expression: str) -> None:
    tree, errors = parse_all(f"T | where {expression}")
    if not errors:  # an equality of an equality is none
        assert parse(print_tree(tree)) == tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", ast.Binary("+", ast.Literal("long", 1), ast.Binary("*", ast.Literal("long", 2), ast.Literal("long", 3)))),
        # A comparison of texts binds more tightly than arithmetic.
        ("a + b has c", ast.Binary("+", ast.Name("a"), ast.Binary("has", ast.Name("b"), ast.Name("c")))),
        ("-a.b", ast.Operation("unary-", (ast.Member(ast.Name("a"), "b"),))),
        ("a or b and c", ast.Operation("or", (ast.Name("a"), ast.Operation("and", (ast.Name("b"), ast.Name("c")))))),
        ("1.02:03:04", None),
        ("time(1.02:03:04.5)", ast.Literal("timespan", 937_845_000_000)),
        ("1.5h", ast.Literal("timespan", 54_000_000_000)),
        ("dynamic([1, 'a', {b: null}, 2d])", ast.Literal("dynamic", [1, "a", {"b": None}, "2.00:00:00"])),
    ],
)  # fmt: skip
def test_expressions_bind_as_in_kusto(text: str, expected: ast.Expression | None) -> None:
    tree, errors = parse_all(f"print x = {text}")
    if expected is None:
        assert errors
        return
    assert tree == ast.Script((ast.Query(ast.construct("print", columns=(ast.Named(expected, ("x",)),))),))


def test_every_fault_of_a_text_is_told_with_its_place() -> None:
    _, errors = parse_all("T | whre x\n| project a,, b;\nlet y = );\nU | take")
    assert [(error.line, error.column) for error in errors] == [(1, 5), (2, 13), (3, 9), (4, 9)]


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("", "empty", (1, 1)),
        (".show tables", "control command", (1, 1)),
        ("T | where a == 'x", "not closed", (1, 16)),
        ("T | extend x = datetime(soon)", "datetime", (1, 16)),
        ("print 9223372036854775808", "too large", (1, 7)),
        ("print int(2147483648)", "int literal", (1, 7)),
        ("print dynamic([f(1)])", "constants", (1, 16)),
        ("let f = (a:txt) { a }; print 1", "not a type", (1, 12)),
        ("T | summarize count() by bin(x, 1h", "')'", (1, 35)),
    ],
)
def test_a_fault_is_told_in_words(text: str, words: str, place: tuple[int, int]) -> None:
    with pytest.raises(KqlError) as refusal:
        parse(text)
    assert words in refusal.value.message
    assert (refusal.value.line, refusal.value.column) == place


def test_a_text_nested_without_end_is_refused() -> None:
    with pytest.raises(KqlError, match="nested too deeply"):
        parse("print " + "(" * 5_000 + "1" + ")" * 5_000)
