"""`parse`, `parse-where` and `parse-kv`: columns out of a text.

The whole pattern of `parse` is one regular expression with a group for each column. In the simple and relaxed modes
texts are matched as they are, columns take as little as they can and the pattern ends where the text ends; in the regex
mode texts are expressions, columns take as much as they can and nothing is tied to the end. Simple and regex are all or
nothing: where one column does not convert, all are empty; relaxed leaves each column alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Filter, Relation
from kql_duckdb.binder.columns import extended_by
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import converted
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, column, literal, quote_text
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

_WHOLE = r"\s*[-+]?\d+"
_GUID = (
    r"\s*(?:\{[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\}"
    r"|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12})"
)
_DATETIME = (
    r"\s*(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{1,4})"
    r"(?:[Tt ]\s*\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?(?:[Zz]|[-+]\d{1,2}(?::\d{1,2})?)?"
)
_TIMESPAN = r"\s*-?(?:\d+\.\d{1,2}:\d{1,2}:\d{1,2}|\d{1,2}:\d{1,2}(?::\d{1,2})?)(?:\.\d*)?"
_BEFORE_STAR = {
    KustoType.LONG: _WHOLE,
    KustoType.INT: _WHOLE,
    KustoType.REAL: r"\s*[-+]?(?:\d+\.?\d*|\.\d+)",
    KustoType.DECIMAL: r"\s*[-+]?(?:\d+\.?\d*|\.\d+)",
    KustoType.BOOL: r"\s*(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[-+]?\d+)",
    KustoType.GUID: _GUID,
    KustoType.DATETIME: _DATETIME,
    KustoType.TIMESPAN: _TIMESPAN,
}
"""What a typed column takes where a star follows and so nothing else ends it."""
_IN_REGEX = {
    KustoType.LONG: _WHOLE,
    KustoType.INT: _WHOLE,
    KustoType.REAL: r"\s*[-+]?\d+(?:\.\d+)?",
    KustoType.DECIMAL: r"\s*[-+]?\d+(?:\.\d+)?",
    KustoType.BOOL: r"\s*(?i:true|false)",
    KustoType.GUID: _GUID,
    KustoType.DATETIME: _DATETIME,
    KustoType.TIMESPAN: _TIMESPAN,
}
_FLAGS = "ismU"


def parse(binder: Binder, relation: Relation, node: ast.Parse, environment: Environment) -> Relation:
    """The relation with the columns of a pattern, for `parse-where` only the rows that match."""
    kind, flags = "simple", ""
    for one in node.parameters:
        value = one.value.name if isinstance(one.value, ast.Name) else str(getattr(one.value, "value", ""))
        kind, flags = (value, flags) if one.name == "kind" else (kind, value)
    _check(node, kind, flags)
    scope = Scope(binder, relation, environment)
    text = converted(scope, bind_expression(scope, node.expression), KustoType.STRING)
    if not text.simple:
        text = scope.hoist(text)
    columns = [one for one in node.pattern if isinstance(one, ast.ParseColumn) and one.name != "*"]
    pattern = quote_text(_regex(node, kind, flags))
    matched = Typed(f"regexp_matches(coalesce({text.sql}, ''), {pattern})", KustoType.BOOL, nullable=False)
    made: dict[str, Typed] = {}
    if columns:
        groups = ", ".join(f"'_{place}'" for place in range(len(columns)))
        extracted = Typed(f"regexp_extract(coalesce({text.sql}, ''), {pattern}, [{groups}])", KustoType.STRING)
        found = scope.hoist(extracted)
        values = [_converted(scope, found, place, one) for place, one in enumerate(columns)]
        if kind != "relaxed":
            tests = [matched.sql]
            tests += [f"{value.sql} IS NOT NULL" for value in values if value.type is not KustoType.STRING]
            matched = scope.hoist(Typed(f"({' AND '.join(tests)})", KustoType.BOOL, nullable=False))
        names = _names(relation, columns, values)
        made = {name: _kept(value, matched, kind) for name, value in zip(names, values, strict=True)}
    before = scope.relation
    if node.keyword == "parse-where":
        before = Filter(relation.columns, before, matched.sql, serialized=before.serialized, order=before.order)
    return extended_by(before, made) if made else before


def _names(relation: Relation, columns: list[ast.ParseColumn], values: list[Typed]) -> list[str]:
    """A column takes the place of one of its name and type; beside one of another type it takes a number."""
    taken = {one.name: one.type for one in relation.columns}
    names = []
    for one, value in zip(columns, values, strict=True):
        name, number = one.name, 0
        while taken.get(name, value.type) is not value.type:
            number += 1
            name = f"{one.name}{number}"
        names.append(name)
    return names


def _check(node: ast.Parse, kind: str, flags: str) -> None:
    if kind not in ("simple", "relaxed", "regex") or (kind == "relaxed" and node.keyword == "parse-where"):
        raise KqlError(f"'{kind}' is no kind of {node.keyword}.", "SEM0477")
    if flags and (kind != "regex" or set(flags) - set(_FLAGS)):
        raise not_supported(f"flags={flags}", "i, s, m and U are flags of kind=regex")
    names = [one.name for one in node.pattern if isinstance(one, ast.ParseColumn) and one.name != "*"]
    if len(set(names)) < len(names):
        raise KqlError("A column is named twice in the pattern.", "SEM0034")
    for one, following in zip(node.pattern, (*node.pattern[1:], None), strict=True):
        if isinstance(one, ast.Literal):
            if not one.value:
                raise KqlError("A text of the pattern is empty.", "SEM0476")
        elif one.name != "*" and isinstance(following, ast.ParseColumn):
            if following.name != "*":
                raise KqlError("Between two columns of a pattern a text must stand.", "SEM0476")
            if one.type in ("", "string"):
                raise KqlError(f"A star after the text column '{one.name}' is ambiguous.", "SEM0476")


def _regex(node: ast.Parse, kind: str, flags: str) -> str:
    parts = [f"(?{''.join(flag for flag in _FLAGS if flag in flags)})" if flags else ""]
    place = 0
    last = len(node.pattern) - 1
    for index, one in enumerate(node.pattern):
        if isinstance(one, ast.Literal):
            text = str(one.value)
            parts.append(_without_groups(text) if kind == "regex" else _escaped(text))
        elif one.name == "*":
            parts.append(".*?")
        else:
            following = node.pattern[index + 1] if index < last else None
            parts.append(f"(?P<_{place}>{_capture(one, kind, following, index + 1 == last)})")
            place += 1
    if kind != "regex":
        parts.append("$")
    return "".join(parts)


def _capture(one: ast.ParseColumn, kind: str, following: ast.Literal | ast.ParseColumn | None, at_end: bool) -> str:
    wanted = KustoType(one.type) if one.type else KustoType.STRING
    if kind == "regex":
        if wanted in (KustoType.STRING, KustoType.DYNAMIC):
            return ".*"
        if wanted in (KustoType.DATETIME, KustoType.TIMESPAN) and following is None:
            raise not_supported(
                f"parse kind=regex with a {wanted}", "at the end of the pattern; put a text or a star there"
            )
        return _IN_REGEX[wanted]
    if not (isinstance(following, ast.ParseColumn) and following.name == "*"):
        return ".*?"
    shape = _BEFORE_STAR.get(wanted)
    if shape is None:
        raise not_supported(f"parse with a {wanted} before a star")
    return f"(?:{shape})?" if at_end else shape


def _escaped(text: str) -> str:
    return re.sub(
        r"([^\w\s]|_)", lambda found: "\\" + found[0] if found[0].isascii() and found[0] != "_" else found[0], text
    )


def _without_groups(text: str) -> str:
    """A user's expression whose groups capture nothing, so that only columns do."""
    return re.sub(r"(\\.|\[(?:\\.|[^\]\\])*\])|\((?!\?)|\(\?P?<\w+>", lambda found: found[1] or "(?:", text)


def _converted(scope: Scope, found: Typed, place: int, one: ast.ParseColumn) -> Typed:
    """The text of a group as the type of its column; only whole numbers are numbers without a fraction."""
    kind = KustoType(one.type) if one.type else KustoType.STRING
    text = column(f"{found.sql}._{place}", KustoType.STRING, nullable=False)
    if kind is KustoType.STRING:
        return text
    if kind in (KustoType.LONG, KustoType.INT):
        sql = (
            f"CASE WHEN regexp_matches({text.sql}, '^\\s*[-+]?\\d+\\s*$') THEN TRY_CAST({text.sql} AS {kind.held}) END"
        )
        return scope.hoist(Typed(f"({sql})", kind))
    return scope.hoist(converted(scope, text, kind))


def _kept(value: Typed, matched: Typed, kind: str) -> Typed:
    if kind == "relaxed":
        return value
    nothing = literal(None, value.type).sql
    nullable = value.type is not KustoType.STRING
    return Typed(f"CASE WHEN {matched.sql} THEN {value.sql} ELSE {nothing} END", value.type, nullable=nullable)


# --------------------------------------------------------------------------------------------- parse-kv


def parse_kv(binder: Binder, relation: Relation, node: ast.ParseKv, environment: Environment) -> Relation:
    """The relation with the columns of key and value pairs in a text."""
    options = {"pair_delimiter": " ", "kv_delimiter": "=", "quote": "", "escape": ""}
    empty = binder.empty_scope(environment)
    for one in node.options:
        name = one.name or (one.value.name if isinstance(one.value, ast.Name) else "")
        if name == "regex":
            raise not_supported("parse-kv with regex", "give its delimiters")
        if name == "greedy":
            if not isinstance(one.value, ast.Literal) or one.value.value:
                options["greedy"] = "true"
        elif name in options:
            options[name] = str(bind_constant(empty, one.value, f"'{name}'"))
        else:
            raise not_supported(f"parse-kv with {name}")
    scope = Scope(binder, relation, environment)
    text = converted(scope, bind_expression(scope, node.expression), KustoType.STRING)
    if not text.simple:
        text = scope.hoist(text)
    made: dict[str, Typed] = {}
    for column_type in node.columns:
        pattern = _pair(column_type.name, options)
        raw = Typed(f"regexp_extract({text.sql}, {quote_text(pattern)}, ['_v', '_q'])", KustoType.STRING)
        found = scope.hoist(raw)
        value = f"CASE WHEN {found.sql}._q <> '' THEN {found.sql}._q ELSE trim({found.sql}._v) END"
        held = scope.hoist(Typed(f"({value})", KustoType.STRING, nullable=False))
        made[column_type.name] = converted(scope, held, KustoType(column_type.type))
    return extended_by(scope.relation, made)


def _pair(key: str, options: dict[str, str]) -> str:
    """A pair with the key: at the beginning or behind a delimiter, its value in quotes or up to the next delimiter."""
    pair, between = _escaped(options["pair_delimiter"]), _escaped(options["kv_delimiter"])
    quotes = options["quote"]
    opening, closing = (_escaped(quotes[0]), _escaped(quotes[-1])) if quotes else ("", "")
    escape = _escaped(options["escape"]) if options["escape"] else ""
    inside = f"(?:{escape}.|[^{closing}])*?" if escape else f"[^{closing}]*"
    quoted = f"{opening}(?P<_q>{inside}){closing}|" if quotes else ""
    end = f"(?:{pair}[^{between}]*{between}|$)" if options.get("greedy") and pair else f"(?:{pair}|$)"
    named = "" if quotes else "(?P<_q>)"
    quote = (f"{opening}?", f"{closing}?") if quotes else ("", "")
    head = f"(?s)(?:^|{pair})\\s*{quote[0]}{_escaped(key)}{quote[1]}\\s*{between}\\s*"
    return f"{head}(?:{quoted}{named}(?P<_v>.*?)){end}"
