"""Whether the columns that a query names are there, for the fallback: its tree walked with the columns in scope.

A name that an operator gives itself in a way that is not followed exactly (`count_`, `dcount_x`) is taken for one that
may be there; what is in no table and made by no operator is unknown. The names of functions and tables are not its
matter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Mapping[str, str]]
_Names = dict[str, None]
_SCHEMA_COLUMNS = ("ColumnName", "ColumnOrdinal", "DataType", "ColumnType")
_ONE_SIDED = frozenset({"leftsemi", "leftanti", "anti", "leftantisemi"})
_RIGHT_SIDED = frozenset({"rightsemi", "rightanti", "rightantisemi"})


def class_name(node: Any) -> str:
    """The class of a node of the lowered tree, by which it is told apart.

    Where the embedded workspace has taught the library classes of its own, its columns are columns with their place;
    whatever else it added is not known here, and so refused.
    """
    kind = type(node)
    return "ColumnRef" if kind.__name__ == "Column" and kind.__mro__[1].__name__ == "ColumnRef" else kind.__name__


@dataclasses.dataclass(frozen=True, slots=True)
class UnknownColumn:
    """A column that is not there, with those that are."""

    name: str
    in_scope: tuple[str, ...]


def unknown_columns(query: Any, schema: Schema) -> tuple[UnknownColumn, ...]:
    """Every column of a lowered query that nothing brings, each once."""
    binder = _Binder(schema)
    for name, bound in query.lets:
        binder.lets[name] = binder.columns(bound)
    binder.columns(query)
    return tuple({each.name: each for each in binder.unknown}.values())


class _Binder:
    def __init__(self, schema: Schema) -> None:
        self.lets: dict[str, _Names] = {}
        self.unknown: list[UnknownColumn] = []
        self._schema = schema

    def columns(self, query: Any) -> _Names:
        scope = self._source(query.source)
        for operator in query.operators:
            scope = self._after(operator, scope)
        return scope

    def _source(self, source: Any) -> _Names:
        name = class_name(source)
        if name == "TableRef":
            return dict(self.lets.get(source.name) or dict.fromkeys(self._schema.get(source.name, ())))
        if name == "DataTable":
            return dict.fromkeys(column for column, _ in source.columns)
        if name == "PrintSource":
            self._check(source.expressions, {})
            return dict.fromkeys(_named(source.expressions, prefix="print_"))
        if name == "RangeSource":
            return {source.name: None}
        return {}

    def _after(self, operator: Any, scope: _Names) -> _Names:
        name = class_name(operator)
        if name in ("Join", "Lookup"):
            return self._joined(operator, scope)
        if name == "Union":
            merged = dict(scope)
            for branch in operator.branches:
                merged |= self.columns(branch)
            return merged | ({operator.with_source: None} if operator.with_source else {})
        if name == "MvExpand":
            for target in operator.targets:
                self._need(target.column, scope)
            given = [each.name for each in operator.targets if each.name is not None]
            return scope | dict.fromkeys([*given, *([operator.item_index] if operator.item_index else [])])
        if name == "ProjectAway":
            for column in operator.columns:
                self._need(column, scope)
            return {each: None for each in scope if each not in operator.columns}
        if name == "ProjectRename":
            for _, old in operator.renames:
                self._need_either(operator.renames, old, scope)
            return scope | dict.fromkeys(each for pair in operator.renames for each in pair)
        for field in dataclasses.fields(operator):
            self._check(getattr(operator, field.name), scope)
        if name == "Extend":
            return scope | dict.fromkeys(_named(operator.expressions))
        if name == "Project":
            return dict.fromkeys(_named(operator.expressions))
        if name == "Distinct":
            return scope if _has_wildcard(operator.expressions) else dict.fromkeys(_named(operator.expressions))
        if name == "Summarize":
            own = dict.fromkeys((*_named(operator.by), *_named(operator.aggregates)))
            return scope | own if _has_wildcard(operator.aggregates) else own
        if name == "Count":
            return {operator.name: None}
        if name == "GetSchema":
            return dict.fromkeys(_SCHEMA_COLUMNS)
        if name == "Parse":
            return scope | dict.fromkeys(each.name for each in operator.segments if each.name is not None)
        return scope

    def _joined(self, operator: Any, scope: _Names) -> _Names:
        right = self.columns(operator.right)
        for key in operator.keys:
            self._need(key.left, scope)
            self._need(key.right, right)
        if operator.kind in _ONE_SIDED:
            return scope
        if operator.kind in _RIGHT_SIDED:
            return right
        return scope | right | dict.fromkeys(f"{each}1" for each in right if each in scope)

    def _check(self, part: Any, scope: _Names) -> None:
        if isinstance(part, tuple | list):
            for each in part:
                self._check(each, scope)
            return
        name = class_name(part)
        if name == "Query":
            self.columns(part)
        elif name == "ColumnRef":
            self._need(part.name, scope)
        elif dataclasses.is_dataclass(part) and not isinstance(part, type):
            for field in dataclasses.fields(part):
                self._check(getattr(part, field.name), scope)

    def _need(self, name: str, scope: _Names) -> None:
        if name not in scope:
            self.unknown.append(UnknownColumn(name, tuple(scope)))

    def _need_either(self, renames: tuple[tuple[str, str], ...], old: str, scope: _Names) -> None:
        # The library's pairs are (new, old) or (old, new) by version; one of each pair must be there.
        pair = next(each for each in renames if old in each)
        if not any(each in scope for each in pair):
            self.unknown.append(UnknownColumn(old, tuple(scope)))


def _named(expressions: tuple[Any, ...], prefix: str = "Column") -> Iterator[str]:
    """The names of expressions: those given, else every one that Kusto may derive."""
    for index, each in enumerate(expressions):
        if each.name is not None:
            yield each.name
            continue
        expression = each.expr
        kind = class_name(expression)
        if kind == "ColumnRef":
            yield expression.name
            continue
        yield f"{prefix}{index + 1}"
        yield f"{prefix}{index}"
        columns = list(_columns_in(expression))
        yield from columns
        if kind == "FunctionCall":
            yield f"{expression.name}_"
            for column in columns:
                short = expression.name.removeprefix("make_")
                yield f"{expression.name}_{column}"
                yield f"{short}_{column}"
        if kind == "PathAccess":
            names = [getattr(expression.base, "name", ""), *(step.name or "" for step in expression.steps)]
            yield "_".join(names)


def _columns_in(part: Any) -> Iterator[str]:
    if isinstance(part, tuple | list):
        for each in part:
            yield from _columns_in(each)
    elif class_name(part) == "ColumnRef":
        yield part.name
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for field in dataclasses.fields(part):
            yield from _columns_in(getattr(part, field.name))


def _has_wildcard(part: Any) -> bool:
    if isinstance(part, tuple | list):
        return any(_has_wildcard(each) for each in part)
    if class_name(part) == "Wildcard":
        return True
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return any(_has_wildcard(getattr(part, field.name)) for field in dataclasses.fields(part))
    return False
