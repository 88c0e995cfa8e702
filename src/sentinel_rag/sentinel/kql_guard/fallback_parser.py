"""Reading KQL without Microsoft's parser: duckdb-kql's, in this process, into the same analysis, and stricter.

It fails closed. The syntax tree must hold no statement but let and one query; what the library lowers to its small
tree is translated class by class, and a class, function or name that is not known here becomes an error. Places are
those of the first mention of a name, since the lowered tree has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentinel_rag.sentinel.kql_guard.allowed_names import AGGREGATES, FUNCTIONS
from sentinel_rag.sentinel.kql_guard.analysis import Analysis, Diagnostic, FunctionUse, NameUse, Place, Statement
from sentinel_rag.sentinel.kql_guard.diagnostics import SYNTAX, UNCHECKED, UNKNOWN_FUNCTION, UNKNOWN_NAME, UNKNOWN_TABLE
from sentinel_rag.sentinel.kql_guard.fallback_binding import UnknownColumn, unknown_columns
from sentinel_rag.sentinel.kql_guard.fallback_translation import Translation, UnreadableError
from sentinel_rag.sentinel.kql_guard.text_rules import TextLimits

FALLBACK_LIMITS = TextLimits(characters=6_000, depth=24)
"""What the slower parser, which recurses in Python, is given at most."""

_STATEMENTS = {
    "LetStatement": "LetStatement",
    "QueryStatement": "ExpressionStatement",
    "SetStatement": "SetOptionStatement",
    "AliasDatabaseStatement": "AliasStatement",
    "DeclarePatternStatement": "PatternStatement",
    "DeclareQueryParametersStatement": "QueryParametersStatement",
    "RestrictAccessStatement": "RestrictStatement",
}

Schema = Mapping[str, Mapping[str, str]]


def fallback_analysis(kql: str, schema: Schema) -> Analysis:
    """The analysis of `kql`; whatever cannot be read for certain is an error in its diagnostics."""
    from duckdb_kql.errors import KqlSyntaxError
    from duckdb_kql.lower import lower
    from duckdb_kql.parser import parse

    # So that the library's places, which count characters, are those of UTF-16: what is replaced is in quotes or wrong.
    kql = "".join(each if each <= "\uffff" else "\ufffd\ufffd" for each in kql)
    whole: Place = (0, 0)
    try:
        tree = parse(kql).tree
    except KqlSyntaxError as error:
        return _unread(_syntax_errors(kql, error))
    except Exception as error:  # the same
        return _unread((_error(UNCHECKED, f"The query cannot be read: {_first_line(error)}", whole),))
    if tree is None:
        return Analysis("Command", (), {}, (), (), (), (), None, "fallback")
    mentions = _Mentions(tree)
    statements = tuple(Statement(kind, at) for kind, at in _statements(tree))
    functions = tuple(_functions(tree, mentions.declared))
    if any(each.kind not in ("LetStatement", "ExpressionStatement") for each in statements):
        kinds = {each.kind: each.at for each in statements}
        return Analysis("Query", (), kinds, functions, (), (), statements, None, "fallback")
    try:
        translation = Translation(lower(kql), schema, mentions.first, prints=mentions.prints)
        read = translation.statements()
    except UnreadableError as error:
        return _unread((_error(UNCHECKED, str(error), mentions.first(error.name)),), functions)
    except Exception as error:  # the library is young: whatever it trips over is a query that it cannot vouch for
        return _unread((_unsupported(kql, error),), functions)
    diagnostics = (
        *(_unknown_table(name, mentions.first(name)) for name in translation.unknown_tables),
        *(_unknown_function(use) for use in functions if use.origin == "unknown"),
        *(_unknown_column(each, mentions.first(each.name)) for each in unknown_columns(translation.query, schema)),
    )
    return Analysis(
        kind="Query",
        diagnostics=diagnostics,
        kinds={},
        functions=functions,
        references=tuple(NameUse(name, *mentions.first(name)) for name in translation.tables),
        wildcards=tuple(NameUse(name, *mentions.first(name), "UnionOperator") for name in translation.wildcards),
        statements=read,
        result=None,
        parser="fallback",
    )


def _unread(diagnostics: tuple[Diagnostic, ...], functions: tuple[FunctionUse, ...] = ()) -> Analysis:
    return Analysis("Query", diagnostics, {}, functions, (), (), (), None, "fallback")


def _error(code: str, message: str, at: Place) -> Diagnostic:
    return Diagnostic(code, "Error", message, at)


def _unknown_table(name: str, at: Place) -> Diagnostic:
    return _error(UNKNOWN_TABLE, f"The name '{name}' is no known table.", at)


def _unknown_function(use: FunctionUse) -> Diagnostic:
    return _error(UNKNOWN_FUNCTION, f"The name '{use.name}' is no known function.", (use.start, use.length))


def _unknown_column(found: UnknownColumn, at: Place) -> Diagnostic:
    return Diagnostic(UNKNOWN_NAME, "Error", f"The name '{found.name}' is no known column.", at, found.in_scope)


def _unsupported(kql: str, error: BaseException) -> Diagnostic:
    construct = str(getattr(error, "construct", "")).removeprefix("source:")
    span = getattr(error, "span", None)
    at = (0, 0) if span is None else _place_of(kql, span.line, span.column)
    what = f"`{construct}`" if construct else "This query"
    return _error(UNCHECKED, f"{what} cannot be checked without Microsoft's parser.", at)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _syntax_errors(kql: str, error: Any) -> tuple[Diagnostic, ...]:
    found = []
    for each in error.diagnostics[:20]:
        message = str(each.message).split(" expecting ")[0][:200]
        found.append(_error(SYNTAX, f"Syntax: {message}.", _place_of(kql, each.span.line, each.span.column)))
    return tuple(found) or (_error(SYNTAX, f"Syntax: {_first_line(error)}.", (0, 0)),)


def _place_of(kql: str, line: int, column: int) -> Place:
    """Of a line from 1 and a column from 0."""
    before = kql.split("\n")[: line - 1]
    return sum(len(each) + 1 for each in before) + column, 1


def _rule(node: Any) -> str:
    return type(node).__name__.removesuffix("Context")


def _children(node: Any) -> list[Any]:
    return list(getattr(node, "children", None) or ())


def _walk(tree: Any) -> Iterator[Any]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_children(node))


def _node_place(node: Any) -> Place:
    start = node.start.start
    return start, max(node.stop.stop + 1 - start, 0) if node.stop is not None else 0


def _statements(tree: Any) -> Iterator[tuple[str, Place]]:
    for node in _walk(tree):
        if _rule(node) == "Statement":
            for child in _children(node):
                if hasattr(child, "start"):
                    yield _STATEMENTS.get(_rule(child), _rule(child)), _node_place(child)


def _functions(tree: Any, declared: frozenset[str]) -> Iterator[FunctionUse]:
    for node in _walk(tree):
        rule = _rule(node)
        if not rule.endswith("FunctionCallExpression") or rule in ("DotCompositeFunctionCallExpression",):
            continue
        head = _children(node)[0]
        if rule == "FunctionCallExpression" and hasattr(head, "start"):
            continue  # its child names the function
        name = head.getText().strip("[]'\"")
        start = head.start.start if hasattr(head, "start") else head.symbol.start
        origin = (
            "let"
            if name in declared
            else "aggregate"
            if name in AGGREGATES
            else "function"
            if name in FUNCTIONS
            else "unknown"
        )
        yield FunctionUse(name, origin, start, len(name))  # type: ignore[arg-type]


class _Mentions:
    """Where each identifier first stands, which names let statements declare, and whether `print` is used."""

    def __init__(self, tree: Any) -> None:
        self._first: dict[str, Place] = {}
        self.prints = False
        declared: set[str] = set()
        for node in _walk(tree):
            rule = _rule(node)
            self.prints = self.prints or rule == "PrintOperator"
            if rule == "IdentifierName" or rule.endswith("EscapedName"):
                text = node.getText().strip("[]'\"")
                self._first.setdefault(text, _node_place(node))
            if rule.startswith("Let") and rule.endswith("Declaration"):
                name = _children(node)[1].getText() if _children(node)[0].getText() == "let" else ""
                declared.add(name.strip("[]'\""))
        self.declared = frozenset(declared - {""})

    def first(self, name: str) -> Place:
        return self._first.get(name, (0, 0))
