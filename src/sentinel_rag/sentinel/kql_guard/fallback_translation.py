"""From duckdb-kql's lowered tree to the guard's own tree, class by class; a class that is not listed is refused.

The library inlines let scalars and scalar functions, so what it gives is what would run. It keeps tabular lets by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sentinel_rag.sentinel.kql_guard.allowed_names import AGGREGATES, FUNCTIONS
from sentinel_rag.sentinel.kql_guard.analysis import (
    Let,
    Node,
    Operator,
    Other,
    Pipe,
    Place,
    Reference,
    Statement,
    Table,
    Value,
)
from sentinel_rag.sentinel.kql_guard.fallback_binding import class_name
from sentinel_rag.sentinel.kql_guard.names import words

_KINDS = {
    "Where": "FilterOperator",
    "Project": "ProjectOperator",
    "Extend": "ExtendOperator",
    "Take": "TakeOperator",
    "Sort": "SortOperator",
    "Top": "TopOperator",
    "GetSchema": "GetSchemaOperator",
    "Count": "CountOperator",
    "Distinct": "DistinctOperator",
    "Parse": "ParseOperator",
    "MvExpand": "MvExpandOperator",
    "Join": "JoinOperator",
    "Lookup": "LookupOperator",
    "Union": "UnionOperator",
    "ProjectAway": "ProjectAwayOperator",
    "ProjectRename": "ProjectRenameOperator",
    "Summarize": "SummarizeOperator",
}
_PARTS = words("""
    Literal ColumnRef LetRef BinaryOp UnaryOp FunctionCall NamedExpr SortKey InList Wildcard Between HasList PathStep
    PathAccess ParseSegment MvExpandTarget JoinKey ToScalar RowContext
    """)
_VALUES = (str, int, float, bool, type(None))
_TIME_COLUMNS = ("TimeGenerated", "Timestamp")


class UnreadableError(Exception):
    """A construct that the fallback does not know for certain; `name` is what it is called in the text."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Translation:
    """The statements of one lowered query, and the tables that it names; `prints` says whether `print` stands in it."""

    def __init__(
        self, query: Any, schema: Mapping[str, Mapping[str, str]], place: Callable[[str], Place], *, prints: bool
    ) -> None:
        self.query = query
        self._prints = prints
        self.tables: list[str] = []
        self.unknown_tables: list[str] = []
        self.wildcards: list[str] = []
        self._schema = schema
        self._place = place
        self._lets: set[str] = set()

    def statements(self) -> tuple[Statement, ...]:
        """The tabular lets in order, then the query. Raises UnreadableError."""
        if self.query.parameters:
            raise UnreadableError("Query parameters are not allowed.")
        told = []
        for name, bound in self.query.lets:
            if class_name(bound) != "Query":
                raise UnreadableError(f"The let statement {name!r} cannot be checked without Microsoft's parser.", name)
            let = Let(name, self._place(name), Value(node=self._tabular(bound)))
            self._lets.add(name)
            told.append(Statement("LetStatement", self._place(name), let=let))
        told.append(Statement("ExpressionStatement", (0, 0), value=Value(node=self._tabular(self.query))))
        return tuple(told)

    def _tabular(self, query: Any) -> Node:
        if query is not self.query and (query.lets or query.parameters):
            raise UnreadableError("Let statements inside a function cannot be checked without Microsoft's parser.")
        source = self._source(query.source)
        operators = tuple(self._operator(each) for each in query.operators)
        return Pipe(source, operators) if operators or source is None else source

    def _source(self, source: Any) -> Node:
        name = class_name(source)
        if name == "TableRef":
            if source.database is not None or source.cluster is not None:
                raise UnreadableError(f"{source.qualified} is in another database, which is not allowed.", source.name)
            return self._table(source.name)
        if name == "WildcardTableRef":
            self.wildcards.append(source.pattern)
            return Other("WildcardedName", (), (0, 0))
        if name == "DataTable":
            return Other("DataTableExpression", self._subs(source.values), (0, 0))
        if name == "PrintSource":
            if not self._prints:  # the library reads a bare value as if `print` stood before it
                raise UnreadableError("The query yields no rows: start with a table, or use print.")
            return Pipe(None, (Operator("PrintOperator", (0, 0), subs=self._subs(source.expressions)),))
        if name == "RangeSource":
            return Other("RangeOperator", self._subs((source.start, source.stop, source.step)), (0, 0))
        raise UnreadableError(f"A query cannot start with {name} without Microsoft's parser.")

    def _table(self, name: str) -> Node:
        at = self._place(name)
        if name in self._lets:
            return Reference(name, at)
        if name in self._schema:
            self.tables.append(name)
        else:
            self.unknown_tables.append(name)
        return Table(name, at)

    def _operator(self, operator: Any) -> Operator:
        name = class_name(operator)
        kind = _KINDS.get(name)
        if kind is None:
            raise UnreadableError(f"The operator {name} cannot be checked without Microsoft's parser.")
        if name == "Union":
            return Operator(kind, (0, 0), inputs=tuple(self._tabular(each) for each in operator.branches))
        defines = tuple(_defined(operator))
        bounds = tuple(_lower_bounds(operator.predicate)) if name == "Where" else ()
        subs: tuple[Node, ...]
        if name in ("Join", "Lookup"):
            subs = (self._tabular(operator.right),)
        else:
            subs = self._subs(tuple(getattr(operator, field.name) for field in dataclasses.fields(operator)))
        rows = float(operator.count) if name in ("Take", "Top") else None
        kept = _kept(operator)
        lacks = () if kept is None else tuple(each for each in _TIME_COLUMNS if each not in kept)
        join = operator.kind if name in ("Join", "Lookup") else ""
        return Operator(kind, (0, 0), bounds, defines, lacks, (), subs, rows, join)

    def _subs(self, part: Any) -> tuple[Node, ...]:
        """The tabular expressions in a part of an operator, however deep. Raises UnreadableError for unknown parts."""
        if isinstance(part, _VALUES):
            return ()
        if isinstance(part, tuple | list):
            return tuple(node for each in part for node in self._subs(each))
        name = class_name(part)
        if name == "Query":
            return (self._tabular(part),)
        if name not in _PARTS:
            raise UnreadableError(f"{name} cannot be checked without Microsoft's parser.")
        if name == "FunctionCall" and part.name not in FUNCTIONS | AGGREGATES:
            raise UnreadableError(f"The function `{part.name}` is not allowed.", part.name)
        return tuple(node for each in dataclasses.fields(part) for node in self._subs(getattr(part, each.name)))


def _defined(operator: Any) -> Iterator[str]:
    name = class_name(operator)
    if name in ("Project", "Extend"):
        yield from (each.name for each in operator.expressions if each.name is not None)
    if name == "Parse":
        yield from (each.name for each in operator.segments if each.name is not None)
    if name == "MvExpand":
        yield from (each.name or each.column for each in operator.targets)
    if name == "ProjectRename":
        yield from (each for pair in operator.renames for each in pair)


def _kept(operator: Any) -> frozenset[str] | None:
    """The columns of the result where an operator names them all; None where it keeps what it gets."""
    if class_name(operator) == "Project":
        named = (each.name or getattr(each.expr, "name", "") for each in operator.expressions)
        return frozenset(named)
    if class_name(operator) == "ProjectAway":
        return frozenset(_TIME_COLUMNS) - set(operator.columns)
    return None


def _lower_bounds(predicate: Any) -> Iterator[tuple[str, str]]:
    name = class_name(predicate)
    if name == "BinaryOp":
        if predicate.op == "and":
            yield from _lower_bounds(predicate.left)
            yield from _lower_bounds(predicate.right)
        if predicate.op in (">", ">=", "=="):
            yield from _bound(predicate.left, predicate.right)
        if predicate.op in ("<", "<=", "=="):
            yield from _bound(predicate.right, predicate.left)
    elif name == "Between" and not predicate.negated:
        yield from _bound(predicate.value, predicate.low)


def _bound(column: Any, low: Any) -> Iterator[tuple[str, str]]:
    if class_name(column) == "ColumnRef" and _same_for_every_row(low):
        yield column.name, _text(low)


def _same_for_every_row(part: Any) -> bool:
    if isinstance(part, _VALUES):
        return True
    if isinstance(part, tuple):
        return all(_same_for_every_row(each) for each in part)
    name = class_name(part)
    if name == "ToScalar":
        return True
    if name not in ("Literal", "LetRef", "BinaryOp", "UnaryOp", "FunctionCall"):
        return False
    return all(_same_for_every_row(getattr(part, each.name)) for each in dataclasses.fields(part))


def _text(low: Any) -> str:
    name = class_name(low)
    if name == "LetRef":
        return _text(low.value)
    if name == "FunctionCall":
        return f"{low.name}({', '.join(_text(each) for each in low.args)})"
    if name == "BinaryOp":
        return f"{_text(low.left)} {low.op} {_text(low.right)}"
    if name == "Literal":
        return f"datetime({low.value})" if low.kind == "datetime" else str(low.value)
    return name
