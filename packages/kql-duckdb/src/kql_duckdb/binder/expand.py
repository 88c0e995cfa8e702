"""Rows and columns out of a value: `mv-expand`, `mv-apply`, `parse`, `parse-where` and `parse-kv`.

An array gives its elements, a bag a bag of one key each (or pairs, with kind=array), null and any other value one row;
an empty array gives no row. Several arrays are expanded side by side, the shorter ones filled with null. `mv-apply`
runs a query over the rows that one row became, so it is a lateral subquery of that row.

The whole pattern of `parse` is one regular expression with a group for each column. In the simple and relaxed modes
texts are matched as they are, columns take as little as they can and the pattern ends where the text ends; in the regex
mode texts are expressions, columns take as much as they can and nothing is tied to the end. Simple and regex are all or
nothing: where one column does not convert, all are empty; relaxed leaves each column alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kql_duckdb.algebra import Item, Relation, Source, extended_by, projected
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.naming import OF_ALL_COLUMNS, Namer, fresh
from kql_duckdb.binder.scope import Scope
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, column, literal, quote_name, quote_text
from kql_duckdb.syntax import ast
from kql_duckdb.types import BOOL, DATETIME, DECIMAL, DYNAMIC, GUID, INT, LONG, REAL, STRING, TIMESPAN, KustoType


def expanded(scope: Scope, node: ast.Construct) -> tuple[Relation, list[str]]:
    """The expanded relation, and the names of the columns that it put in the place of arrays."""
    binder, relation = scope.binder, scope.relation
    kind, index = node.parameter("kind", "bagexpansion"), node.parameter("with_itemindex")
    if kind not in ("", "bag", "array"):
        raise KqlError(f"'{kind}' is no kind of mv-expand.")
    limit = None if node.limit is None else int(bind_constant(scope.outside(), node.limit, "The limit"))
    names: list[str] = []
    lists: list[Typed] = []
    for place, one in enumerate(node.columns):
        value = bind_expression(scope, one.column.expression)
        if value.type not in (DYNAMIC, STRING):
            raise binder.fault(one.column, f"mv-expand needs a dynamic, not a {value.type}.")
        elements = _elements(scope.simple(scope.converted(value, DYNAMIC)).sql, pairs=kind == "array")
        elements = elements if limit is None else f"list_slice({elements}, 1, {max(limit, 0)})"
        lists.append(scope.hoist(Typed(elements, DYNAMIC)))
        names.append(Namer(first=place).of(one.column))
    items: list[Item] = [(binder.hidden(), f"unnest({one.sql})") for one in lists]
    if index:
        lengths = ", ".join(f"len({one.sql})" for one in lists)
        longest = f"greatest({lengths})" if len(lists) > 1 else lengths
        items.append((binder.hidden(), f"unnest(range({longest}))"))
    after = scope.over(replace(scope.relation.extended(tuple(items)), label=""))
    made: dict[str, Typed] = {}
    for name, one, (hidden, _) in zip(names, node.columns, items, strict=False):
        element = column(quote_name(hidden), DYNAMIC)
        kind = KustoType(one.type or DYNAMIC)
        present = Typed(f"nullif({element.sql}, CAST('null' AS JSON))", DYNAMIC)
        made[name] = present if kind is DYNAMIC else after.converted(element, kind)
    if index:
        name = fresh(index, [*names, *(one.name for one in relation.columns)])
        made[name] = column(quote_name(items[-1][0]), LONG, nullable=False)
    return extended_by(after.relation, made), names


def _elements(value: str, *, pairs: bool) -> str:
    """A list of JSON for a simple dynamic value."""
    member = f"json_extract({value}, '/' || replace(replace(k, '~', '~0'), '/', '~1'))"
    pair = f"json_array(k, {member})" if pairs else f"json_object(k, {member})"
    return (
        f"CASE json_type({value}) WHEN 'ARRAY' THEN CAST({value} AS JSON[]) "
        f"WHEN 'OBJECT' THEN list_transform(json_keys({value}), lambda k: CAST({pair} AS JSON)) "
        f"ELSE [CAST({value} AS JSON)] END"
    )


def mv_apply(scope: Scope, node: ast.Construct) -> Relation:
    """The relation of the inner query for each row, beside the row's other columns."""
    if node.id is not None:
        raise not_supported("mv-apply with id")
    binder, relation = scope.binder, scope.relation
    alias = quote_name(f"$row{binder.number()}")
    words = (getattr(one, "name", getattr(one, "value", "")) for one in ast.nodes((node.columns, node.body)))
    read = {one for one in words if isinstance(one, str)}  # texts too, for column_ifexists()
    calls = {one.name for one in ast.nodes(node.body) if isinstance(one, ast.Call)}
    seen = tuple(one for one in relation.columns if one.name in read or calls & OF_ALL_COLUMNS)
    listed = ", ".join(f"{alias}.{one.sql} AS {one.sql}" for one in seen)
    before, binder.around = binder.around, tuple(one.name for one in relation.columns)
    inside, names = expanded(scope.over(Source(seen, (f"(SELECT {listed or '1'}) AS o",))), node)
    inner = binder.lateral(scope.over(inside), node.body)
    binder.around = before
    result = quote_name(f"$applied{binder.number()}")
    in_place = {
        name
        for name, one in zip(names, node.columns, strict=True)
        if isinstance(one.column.expression, ast.Name) and one.column.expression.name == name
    }
    values = {one.name: replace(one.typed, sql=f"{alias}.{one.sql}") for one in relation.columns}
    values = {name: value for name, value in values.items() if name not in in_place}
    values |= {one.name: replace(one.typed, sql=f"{result}.{one.sql}") for one in inner.columns}
    return projected(Source((), (relation, f" AS {alias}, LATERAL ", inner, f" AS {result}")), values.values())


_WHOLE = r"\s*[-+]?\d+"
_DIGITS = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_DATETIME = (
    r"\s*(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{1,4})"
    r"(?:[Tt ]\s*\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)?(?:[Zz]|[-+]\d{1,2}(?::\d{1,2})?)?"
)
_TIMESPAN = r"\s*-?(?:\d+\.\d{1,2}:\d{1,2}:\d{1,2}|\d{1,2}:\d{1,2}(?::\d{1,2})?)(?:\.\d*)?"
_BEFORE_STAR = {
    **dict.fromkeys((LONG, INT), _WHOLE),
    **dict.fromkeys((REAL, DECIMAL), r"\s*[-+]?(?:\d+\.?\d*|\.\d+)"),
    BOOL: r"\s*(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[-+]?\d+)",
    GUID: rf"\s*(?:\{{{_DIGITS}\}}|{_DIGITS})",
    DATETIME: _DATETIME,
    TIMESPAN: _TIMESPAN,
}
"""What a typed column takes where a star follows and so nothing else ends it."""
_IN_REGEX = _BEFORE_STAR | {**dict.fromkeys((REAL, DECIMAL), r"\s*[-+]?\d+(?:\.\d+)?"), BOOL: r"\s*(?i:true|false)"}
_FLAGS = "ismU"


def parse(scope: Scope, node: ast.Construct) -> Relation:
    """The relation with the columns of a pattern, for `parse-where` only the rows that match."""
    kind, flags = node.parameter("kind") or "simple", node.parameter("flags")
    _check(node, kind, flags)
    taken = {one.name: one.type for one in scope.relation.columns}
    text = scope.simple(scope.converted(bind_expression(scope, node.expression), STRING))
    columns = [one for one in node.pattern if isinstance(one, ast.Column) and one.name != "*"]
    pattern = quote_text(_regex(node, kind, flags))
    matched = Typed(f"regexp_matches(coalesce({text.sql}, ''), {pattern})", BOOL, nullable=False)
    made: dict[str, Typed] = {}
    if columns:
        groups = ", ".join(f"'_{place}'" for place in range(len(columns)))
        found = scope.hoist(Typed(f"regexp_extract(coalesce({text.sql}, ''), {pattern}, [{groups}])", STRING))
        values = [_converted(scope, f"{found.sql}._{place}", _type_of(one)) for place, one in enumerate(columns)]
        if kind != "relaxed":
            tests = [matched.sql, *(f"{one.sql} IS NOT NULL" for one in values if one.type is not STRING)]
            matched = scope.hoist(Typed(f"({' AND '.join(tests)})", BOOL, nullable=False))
        for one, value in zip(columns, values, strict=True):
            # A column takes the place of one of its name and type; beside one of another type it takes a number.
            name = fresh(one.name, {name for name, known in taken.items() if known is not value.type})
            if kind != "relaxed":
                sql = f"CASE WHEN {matched.sql} THEN {value.sql} ELSE {literal(None, value.type).sql} END"
                value = Typed(sql, value.type, nullable=value.type is not STRING)
            made[name] = value
    before = scope.relation.filtered(matched.sql) if node.word == "parse-where" else scope.relation
    return extended_by(before, made) if made else before


def _type_of(one: ast.Column) -> KustoType:
    return KustoType(one.type) if one.type else STRING


def _check(node: ast.Construct, kind: str, flags: str) -> None:
    if kind not in ("simple", "relaxed", "regex") or (kind == "relaxed" and node.word == "parse-where"):
        raise KqlError(f"'{kind}' is no kind of {node.word}.", "SEM0477")
    if flags and (kind != "regex" or set(flags) - set(_FLAGS)):
        raise not_supported(f"flags={flags}", "i, s, m and U are flags of kind=regex")
    names = [one.name for one in node.pattern if isinstance(one, ast.Column) and one.name != "*"]
    if len(set(names)) < len(names):
        raise KqlError("A column is named twice in the pattern.", "SEM0034")
    for one, following in zip(node.pattern, (*node.pattern[1:], None), strict=True):
        if isinstance(one, ast.Literal):
            if not one.value:
                raise KqlError("A text of the pattern is empty.", "SEM0476")
        elif one.name != "*" and isinstance(following, ast.Column):
            if following.name != "*":
                raise KqlError("Between two columns of a pattern a text must stand.", "SEM0476")
            if _type_of(one) is STRING:
                raise KqlError(f"A star after the text column '{one.name}' is ambiguous.", "SEM0476")


def _regex(node: ast.Construct, kind: str, flags: str) -> str:
    parts = [f"(?{''.join(flag for flag in _FLAGS if flag in flags)})" if flags else ""]
    place = 0
    for one, *following in zip(node.pattern, (*node.pattern[1:], None), (*node.pattern[2:], None, None), strict=False):
        if isinstance(one, ast.Literal):
            parts.append(_without_groups(one.value) if kind == "regex" else _escaped(one.value))
        elif one.name == "*":
            parts.append(".*?")
        else:
            parts.append(f"(?P<_{place}>{_capture(_type_of(one), kind, *following)})")
            place += 1
    return "".join(parts) if kind == "regex" else f"{''.join(parts)}$"


def _capture(wanted: KustoType, kind: str, following: ast.Node | None, then: ast.Node | None) -> str:
    """What a column takes, by the two parts of the pattern behind it."""
    if kind == "regex":
        if wanted in (DATETIME, TIMESPAN) and following is None:
            construct = f"parse kind=regex with a {wanted}"
            raise not_supported(construct, "at the end of the pattern; put a text or a star there")
        return ".*" if wanted in (STRING, DYNAMIC) else _IN_REGEX[wanted]
    if not (isinstance(following, ast.Column) and following.name == "*"):
        return ".*?"
    shape = _BEFORE_STAR.get(wanted)
    if shape is None:
        raise not_supported(f"parse with a {wanted} before a star")
    return shape if then is not None else f"(?:{shape})?"


def _escaped(text: str) -> str:
    return re.sub(
        r"([^\w\s]|_)", lambda found: "\\" + found[0] if found[0].isascii() and found[0] != "_" else found[0], text
    )


def _without_groups(text: str) -> str:
    """A user's expression whose groups capture nothing, so that only columns do."""
    return re.sub(r"(\\.|\[(?:\\.|[^\]\\])*\])|\((?!\?)|\(\?P?<\w+>", lambda found: found[1] or "(?:", text)


def _converted(scope: Scope, group: str, kind: KustoType) -> Typed:
    """The text of a group as the type of its column; only whole numbers are numbers without a fraction."""
    text = column(group, STRING, nullable=False)
    if kind is STRING:
        return text
    if kind in (LONG, INT):
        whole = f"regexp_matches({group}, '^\\s*[-+]?\\d+\\s*$')"
        return scope.hoist(Typed(f"(CASE WHEN {whole} THEN TRY_CAST({group} AS {kind.held}) END)", kind))
    return scope.hoist(scope.converted(text, kind))


def parse_kv(scope: Scope, node: ast.Construct) -> Relation:
    """The relation with the columns of key and value pairs in a text."""
    options = {"pair_delimiter": " ", "kv_delimiter": "=", "quote": "", "escape": ""}
    for one in node.options:
        name = one.name or (one.value.name if isinstance(one.value, ast.Name) else "")
        if name == "regex":
            raise not_supported("parse-kv with regex", "give its delimiters")
        if name == "greedy":
            if not isinstance(one.value, ast.Literal) or one.value.value:
                options["greedy"] = "true"
        elif name in options:
            options[name] = str(bind_constant(scope.outside(), one.value, f"'{name}'"))
        else:
            raise not_supported(f"parse-kv with {name}")
    text = scope.simple(scope.converted(bind_expression(scope, node.expression), STRING))
    made: dict[str, Typed] = {}
    for column_type in node.columns:
        pattern = _pair(column_type.name, options)
        raw = Typed(f"regexp_extract({text.sql}, {quote_text(pattern)}, ['_v', '_q'])", STRING)
        found = scope.hoist(raw)
        value = f"CASE WHEN {found.sql}._q <> '' THEN {found.sql}._q ELSE trim({found.sql}._v) END"
        held = scope.hoist(Typed(f"({value})", STRING, nullable=False))
        made[column_type.name] = scope.converted(held, KustoType(column_type.type))
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
