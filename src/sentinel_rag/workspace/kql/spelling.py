"""Column names that differ only in case, which KQL keeps apart and the engine folds into one.

When a query brings such names together (`IpAddress` of one table and `IPAddress` of another), all but one of them get
an invisible mark behind their name for the whole of the query, from the read of the table to the answer, where
`unmarked` takes it off. `translation` does so only for queries that need it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.errors import KqlError as LibraryError  # noqa: TID253
from duckdb_kql.translate.naming import expression_name  # noqa: TID253

_MARK = "\u2063"  # INVISIBLE SEPARATOR: no column of a log table has it

_SEES_NAMES = frozenset(("pack_all", "narrow"))

Spelling = Mapping[str, str]
"""Column name -> the name it has inside the query. Names that are not in it stay as they are."""


def spelling_of(names: Iterable[str]) -> dict[str, str]:
    """A spelling under which no two of `names` differ only in case; the first of a group keeps its own."""
    groups: dict[str, list[str]] = {}
    for name in names:
        group = groups.setdefault(name.casefold(), [])
        if name not in group:
            group.append(name)
    return {
        name: name + _MARK * position for group in groups.values() for position, name in enumerate(group) if position
    }


def unmarked(name: str) -> str:
    """The name as the query and the tables have it."""
    return name.replace(_MARK, "")


def reads_names(query: ir.Query) -> bool:
    """Whether names of columns become values somewhere, where a mark would show."""
    return any(
        isinstance(node, ir.GetSchema) or (isinstance(node, ir.FunctionCall) and node.name.lower() in _SEES_NAMES)
        for node in nodes(query)
    )


def respelled(node: Any, spelling: Spelling) -> Any:
    """`node` with each column named as `spelling` says. Paths into dynamic values are not columns."""

    def renamed(name: Any) -> Any:
        return spelling.get(name, name) if isinstance(name, str) else name

    def walk(current: Any) -> Any:
        if isinstance(current, (list, tuple)):
            items = [walk(item) for item in current]
            return tuple(items) if isinstance(current, tuple) else items
        if isinstance(current, ir.DataTable):
            columns = tuple((renamed(name), kind) for name, kind in current.columns)
            return dataclasses.replace(current, columns=columns, values=walk(current.values))
        if isinstance(current, ir.ProjectRename):
            return ir.ProjectRename(tuple((renamed(old), renamed(new)) for old, new in current.renames))
        if dataclasses.is_dataclass(current) and not isinstance(current, type):
            changes = {}
            for field in dataclasses.fields(current):
                value = getattr(current, field.name)
                named = field.name in _NAMING.get(_naming_class(current), ())
                if named and isinstance(value, tuple):
                    changes[field.name] = tuple(renamed(item) for item in value)
                else:
                    changes[field.name] = renamed(value) if named else walk(value)
            return dataclasses.replace(current, **changes)
        return current

    return walk(node)


_NAMING: dict[type, tuple[str, ...]] = {
    ir.ColumnRef: ("name",),
    ir.LetRef: ("name",),
    ir.NamedExpr: ("name",),
    ir.MvExpandTarget: ("column", "name"),
    ir.MvExpand: ("item_index",),
    ir.ParseSegment: ("name",),
    ir.RangeSource: ("name",),
    ir.Union: ("with_source",),
    ir.Count: ("name",),
    ir.JoinKey: ("left", "right"),
    ir.ProjectAway: ("columns",),
}


def _naming_class(node: Any) -> type:
    """The class that says which fields of `node` are columns; an added node says it by `column_fields`."""
    kind = type(node)
    fields = getattr(kind, "column_fields", None)
    if fields is not None:
        _NAMING.setdefault(kind, fields)
        return kind
    return next((base for base in kind.__mro__ if base in _NAMING), kind)


def nodes(node: Any) -> Iterator[Any]:
    """Every node of the query, itself included. A shared node is visited once."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (list, tuple)):
            stack.extend(current)
        elif dataclasses.is_dataclass(current) and not isinstance(current, type) and id(current) not in seen:
            seen.add(id(current))
            yield current
            stack.extend(getattr(current, field.name) for field in dataclasses.fields(current))


def names_made(node: Any) -> set[str]:
    """Column names that this node may give to something other than a table's own column."""
    if isinstance(node, ir.NamedExpr):
        if node.name is not None:
            # `arg_max(a, *)` and `x = x` keep their column, so a plain reference under its own name is no new column.
            return set() if isinstance(node.expr, ir.ColumnRef) and node.expr.name == node.name else {node.name}
        if isinstance(node.expr, ir.ColumnRef):
            return set()
        try:
            name = expression_name(node.expr)
        except LibraryError:
            return set()
        return {name} if name else set()
    if isinstance(node, ir.MvExpandTarget):
        return {node.column} | ({node.name} if node.name else set())
    if isinstance(node, ir.ParseSegment):
        return {node.name} if node.name else set()
    if isinstance(node, ir.DataTable):
        return {name for name, _ in node.columns}
    if isinstance(node, ir.ProjectRename):
        return {new for _, new in node.renames}
    if isinstance(node, ir.RangeSource):
        return {node.name}
    if isinstance(node, ir.MvExpand):
        return {node.item_index} if node.item_index else set()
    if isinstance(node, ir.Union):
        return {node.with_source} if node.with_source else set()
    if isinstance(node, ir.Count):
        return {node.name}
    return set()
