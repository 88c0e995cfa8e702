"""`has`, `contains` and their kind, written so that DuckDB answers them from its dictionaries.

Source: the Kusto page "String operators". A term is a run of letters and digits; every other character ends it, the
underscore too. duckdb-kql's SQL is right and slow: it makes a pattern for each row, and uses LIKE with an escape, which
DuckDB runs without its fast substring search. What is not a constant ASCII text here is left to the library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from duckdb_kql import ir, translate  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.translate import quote_string, render_expr  # noqa: TID253
from duckdb_kql.translate.functions import is_term_char, term_match_sql  # noqa: TID253

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound_all, json_array, scalar

_TERM_OPERATORS = {"has": (True, True), "hasprefix": (True, False), "hassuffix": (False, True)}
"""Operator -> whether a term must begin and end where the text that is looked for does."""

_SUBSTRING = {
    "contains": "contains(lower({0}), lower({1}))",
    "contains_cs": "contains({0}, {1})",
    "startswith": "starts_with(lower({0}), lower({1}))",
    "endswith": "ends_with(lower({0}), lower({1}))",
}
_LIKE = {"contains": "%{0}%", "startswith": "{0}%", "endswith": "%{0}"}
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_FEW = 3
"""Up to so many texts are looked for one by one; of more, one pattern is cheaper."""


def register(operators: dict[str, Any]) -> None:
    """Replace the templates of the substring operators and their negations."""
    for name, template in _SUBSTRING.items():
        operators[name] = replace(operators[name], template=template)
        operators[f"!{name}"] = replace(operators[f"!{name}"], template=f"NOT {template}")


def search_operator(node: ir.BinaryOp, sides: Sequence[str]) -> str | None:
    """SQL for one of these operators with a constant on its right, or None."""
    text = _ascii_constant(node.right)
    if text is None:
        return None
    name = node.op.removeprefix("!")
    case_sensitive = name.endswith("_cs")
    name = name.removesuffix("_cs")
    if name in _TERM_OPERATORS:
        found = _term(sides[0], text, *_TERM_OPERATORS[name], case_sensitive=case_sensitive)
    elif name in _LIKE and not case_sensitive:
        found = _like(sides[0], text, name)
    else:
        return None
    return f"NOT {found}" if node.op.startswith("!") else found


def search_list(node: ir.HasList, haystack: str) -> str | None:
    """SQL for `has_any` and `has_all` over constants, or None."""
    if node.subquery is None and not all(isinstance(item, (ir.Literal, ir.ToScalar)) for item in node.items):
        return _search_values(node, haystack)
    texts = _constants(node)
    if not texts:
        return None
    if node.require_all:
        present = " AND ".join(_substring(haystack, text) for text in texts)
        matched = " AND ".join(_matches(haystack, _pattern(text, True, True)) for text in texts)
        return f"(CASE WHEN {present} THEN {matched} ELSE FALSE END)"
    if len(texts) <= _FEW:
        return "(" + " OR ".join(_term(haystack, text, True, True, case_sensitive=False) for text in texts) + ")"
    edges: dict[tuple[bool, bool], list[str]] = {}
    for text in texts:
        edges.setdefault((is_term_char(text[:1]), is_term_char(text[-1:])), []).append(text)
    # Texts with the same edges share one pattern; with edges of their own it outgrows RE2's fast automaton.
    patterns = (_around("|".join(map(_escaped, group)), *edge) for edge, group in edges.items())
    return "(" + " OR ".join(_matches(haystack, pattern) for pattern in patterns) + ")"


def _search_values(node: ir.HasList, haystack: str) -> str:
    """Of values of the row: one that is a dynamic array stands for its elements."""
    tests = [
        term_match_sql(haystack, quote_string(str(item.value)), needle_text=str(item.value))
        if isinstance(item, ir.Literal) and item.kind == "string"
        else translate._has_toscalar(node, haystack, render_expr(item))
        for item in node.items
    ]
    return "(" + (" AND " if node.require_all else " OR ").join(tests) + ")"


def member_of_values(node: ir.InList, value: str, render_list: Callable[[ir.InList, str], str]) -> str | None:
    """SQL for `in` where a value of the row may be a dynamic array, which stands for its elements; None if none is."""
    if node.subquery is not None or (len(node.items) == 1 and isinstance(node.items[0], ir.Literal)):
        return None
    dynamics = [item for item in node.items if translate._is_dynamic_expr(item) or _is_dynamic_column(item)]
    if not dynamics:
        return None
    tests = [f"coalesce({translate._in_toscalar(node, value, render_expr(item))}, FALSE)" for item in dynamics]
    rest = tuple(item for item in node.items if item not in dynamics)
    if rest:
        tests.append(render_list(replace(node, items=rest, negated=False), value))
    return str(translate._in_result(f"({' OR '.join(tests)})", node, value))


def _is_dynamic_column(node: ir.Expr) -> bool:
    return isinstance(node, ir.ColumnRef) and getattr(node, "kind", "") == "dynamic"


def _constants(node: ir.HasList) -> list[str]:
    """All the texts that are looked for; none if one of them is no constant ASCII text."""
    if node.subquery is not None:
        return []
    texts: list[str] = []
    for item in node.items:
        values: Any = [item.value] if isinstance(item, ir.Literal) and item.kind == "string" else None
        if isinstance(item, ir.Literal) and item.kind == "dynamic" and item.value is not None:
            values = json.loads(str(item.value))
        if not isinstance(values, list) or not all(isinstance(value, str) and value.isascii() for value in values):
            return []
        texts.extend(values)
    return texts


def _ascii_constant(node: ir.Expr) -> str | None:
    if isinstance(node, ir.Literal) and node.kind == "string" and str(node.value).isascii():
        return str(node.value)
    return None


def _term(haystack: str, text: str, begins: bool, ends: bool, *, case_sensitive: bool) -> str:
    """The substring is looked for first, which costs a quarter of the pattern."""
    if case_sensitive:
        present = f"contains({haystack}, {quote_string(text)})"
        matched = f"regexp_matches({haystack}, {quote_string(_pattern(text, begins, ends))})"
    else:
        present = _substring(haystack, text)
        matched = _matches(haystack, _pattern(text, begins, ends))
    return f"(CASE WHEN {present} THEN {matched} ELSE FALSE END)"


def _substring(haystack: str, text: str) -> str:
    """ILIKE without an escape finds at least every text that has this one: `_` and `%` only widen it."""
    return f"{haystack} ILIKE {quote_string(f'%{text}%')}"


def _matches(haystack: str, pattern: str) -> str:
    return f"regexp_matches({haystack}, {quote_string('(?i)' + pattern)})"


def _pattern(text: str, begins: bool, ends: bool) -> str:
    """The regular expression for `text`: where it begins or ends with no letter or digit it may stand anywhere.

    Made here and not by SQL functions, since DuckDB compiles a pattern once only if it is a plain constant.
    """
    return _around(_escaped(text), begins and is_term_char(text[:1]), ends and is_term_char(text[-1:]))


def _around(pattern: str, begins: bool, ends: bool) -> str:
    start = r"(?:^|[^\pL\pN])" if begins else ""
    end = r"(?:$|[^\pL\pN])" if ends else ""
    return f"{start}(?:{pattern}){end}"


def _escaped(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)


def _like(haystack: str, text: str, operator: str) -> str:
    present = f"{haystack} ILIKE {quote_string(_LIKE[operator].format(text))}"
    if "%" not in text and "_" not in text:
        return f"({present})"
    exact = _SUBSTRING[operator].format(haystack, quote_string(text))
    return f"(CASE WHEN {present} THEN {exact} ELSE FALSE END)"


def _has_any_index(text: str, values: str) -> str:
    """The place of the first value that the text has as a term, -1 if none."""
    value = "coalesce(_h.v[_i + 1] ->> '$', '')"
    start = f"CASE WHEN regexp_matches({value}, '^[\\pL\\pN]') THEN '(?:^|[^\\pL\\pN])' ELSE '' END"
    end = f"CASE WHEN regexp_matches({value}, '[\\pL\\pN]$') THEN '(?:$|[^\\pL\\pN])' ELSE '' END"
    found = f"regexp_matches(_h.t, '(?i)' || {start} || regexp_escape({value}) || {end})"
    return bound_all(
        "_h",
        f"coalesce(list_filter(range(len(_h.v)), lambda _i: {found})[1], -1)",
        t=f"CAST({text} AS VARCHAR)",
        v=json_array(values),
    )


FUNCTIONS: tuple[WrittenFunction, ...] = (scalar("has_any_index", _has_any_index, 2),)
