"""Operators and sources of our own inside duckdb-kql's query form.

The library dispatches on a closed set of node types in five places: scalar `let` substitution, `in (T)` resolution,
output columns of sources and of operators, and SQL. A node that derives from `AddedOperator` or `AddedSource` answers
these questions itself; `install` puts the question in front of each dispatch. What the nodes mean is in their modules.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from duckdb_kql import ir, lower, schema, translate  # noqa: TID253 - this module is about that library

from sentinel_rag.workspace.kql.errors import not_supported
from sentinel_rag.workspace.kql.tabular_names import AsName

Frame = dict[str, str]
"""The columns at one place of a pipeline: name -> KQL type, in order; "" is a type that is not known."""

LibrarySchema = dict[str, list[str]] | None
"""The library's schema: table -> column names."""


@dataclasses.dataclass(frozen=True)
class AddedOperator(ir.Operator, ABC):
    """One stage of a pipeline that the library does not know."""

    keyword = "operator"

    @abstractmethod
    def columns(self, before: list[str], tables: LibrarySchema) -> list[str]:
        """Names of the columns after it, given those before it."""

    @abstractmethod
    def sql(self, previous: str, before: list[str]) -> str:
        """One SELECT over the relation `previous`."""


@dataclasses.dataclass(frozen=True)
class AddedSource(ir.Source, ABC):
    """What a pipeline starts from, when the library does not know it."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Names of its columns."""

    @abstractmethod
    def sql(self) -> str:
        """One SELECT that yields its rows."""


NO_COLUMN = "no column"
"""The one column of a result that has none in KQL, which the engine cannot express; execution leaves it out."""


def _nothing_known(steps: list[ir.Operator]) -> list[tuple[str, ...]]:
    raise not_supported("a plugin", hint="it stands where its input cannot be looked at first")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an operator stands: the columns before it, and the tables and tabular bindings that it may name."""

    frame: Frame
    tables: Mapping[str, Frame]
    label: str = ""
    """The table whose rows these are, as long as nothing but filters stands between."""
    discover: Callable[[list[ir.Operator]], list[tuple[str, ...]]] = _nothing_known
    """The rows, all texts, of what stands before with these operators after it."""
    serialized: bool = False
    """Whether the order of the rows counts here."""


@dataclasses.dataclass(frozen=True)
class PlacedOperator(ir.Operator, ABC):
    """An operator whose meaning depends on the columns at its place; `scope` resolves it before there is SQL."""

    @abstractmethod
    def resolve(self, place: Place) -> list[ir.Operator]:
        """The operators that do the same at `place`."""


@dataclasses.dataclass(frozen=True)
class Column(ir.ColumnRef):
    """A column with its KQL type, "" if not known, and where the query names it (line from 1, position from 0)."""

    kind: str = ""
    line: int | None = dataclasses.field(default=None, compare=False)
    position: int | None = dataclasses.field(default=None, compare=False)


def quoted(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    identifier: str = translate.quote_ident(name)
    return identifier


def query_sql(query: ir.Query) -> str:
    """The SQL of a nested query, which sees the bindings around it."""
    return str(translate.to_sql(query, translate._nested_schema()))


def visible_tables() -> LibrarySchema:
    """The library's schema where a stage is rendered: tables and the bindings in scope."""
    tables: LibrarySchema = translate._nested_schema()
    return tables


def fresh_name(stem: str) -> str:
    """A name that no table or other generated name of this statement has."""
    names = translate._NAMES_STATE.get()
    assert names is not None, "asked while a statement is rendered"
    generated: str = names.binding_name(stem)
    return generated


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """`node` with `change` applied to each expression or query that is directly or through tuples a field of it."""
    if isinstance(node, (ir.Expr, ir.Query)):
        return change(node)
    if isinstance(node, (tuple, list)):
        items = [mapped(item, change) for item in node]
        return tuple(items) if isinstance(node, tuple) else items
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return dataclasses.replace(
            node,
            **{
                field.name: mapped(getattr(node, field.name), change)
                for field in dataclasses.fields(node)
                if field.init
            },
        )
    return node


def install(replace: Callable[[Any, str, Any], Any]) -> None:
    """Put the added nodes before each dispatch; `replace(module, name, function)` returns what stood there."""

    def substitute_operator(operator: Any, scalars: Any) -> Any:
        if isinstance(operator, (AddedOperator, PlacedOperator, ir.Top, ir.Parse)):
            return mapped(
                operator,
                lambda node: (
                    lower._substitute_query(node, scalars)
                    if isinstance(node, ir.Query)
                    else lower._substitute(node, scalars)
                ),
            )
        return original_substitute(operator, scalars)

    def substitute_query(query: Any, scalars: Any) -> Any:
        substituted = original_substitute_query(query, scalars)
        if scalars and isinstance(substituted.source, AddedSource):
            substituted.source = mapped(
                substituted.source,
                lambda node: (
                    lower._substitute_query(node, scalars)
                    if isinstance(node, ir.Query)
                    else lower._substitute(node, scalars)
                ),
            )
        # A binding that stands inside the query, by `as`, reads the same values; others have them already.
        substituted.lets = [
            (name, lower._substitute_query(bound, scalars) if isinstance(name, AsName) else bound)
            for name, bound in substituted.lets
        ]
        return substituted

    def resolve_in(query: Any, names: Any) -> Any:
        resolved = original_resolve(query, names)

        def inside(node: Any) -> Any:
            if isinstance(node, ir.Query):
                return lower._resolve_in_subqueries(node, names)
            probe = original_resolve(ir.Query(ir.PrintSource((ir.NamedExpr(node),))), names)
            return probe.source.expressions[0].expr

        if names:
            resolved.operators = [
                mapped(operator, inside) if isinstance(operator, (AddedOperator, PlacedOperator)) else operator
                for operator in resolved.operators
            ]
            if isinstance(resolved.source, AddedSource):
                resolved.source = mapped(resolved.source, inside)
        return resolved

    def source_columns(source: Any, tables: Any) -> Any:
        return source.columns() if isinstance(source, AddedSource) else original_source_columns(source, tables)

    def operator_columns(operator: Any, before: Any, tables: Any) -> Any:
        if isinstance(operator, AddedOperator):
            return operator.columns(before, tables)
        return original_operator_columns(operator, before, tables)

    def render_source(source: Any, tables: Any = None) -> Any:
        return source.sql() if isinstance(source, AddedSource) else original_render_source(source, tables)

    def render_operator(operator: Any, previous: str, before: Any = None) -> Any:
        if isinstance(operator, AddedOperator):
            return operator.sql(previous, before or [])
        return original_render_operator(operator, previous, before)

    def lower_expression(node: Any) -> Any:
        lowered = original_lower_expression(node)
        if type(lowered) is ir.ColumnRef:
            span = lower._span(node)
            return Column(lowered.name, "", span.line if span else None, span.column if span else None)
        return lowered

    original_lower_expression = replace(lower, "_lower_expr", lower_expression)
    original_substitute = replace(lower, "_substitute_operator", substitute_operator)
    original_substitute_query = replace(lower, "_substitute_query", substitute_query)
    original_resolve = replace(lower, "_resolve_in_subqueries", resolve_in)
    original_source_columns = replace(schema, "_source_columns_unchecked", source_columns)
    original_operator_columns = replace(schema, "_operator_columns_unchecked", operator_columns)
    original_render_source = replace(translate, "render_source", render_source)
    original_render_operator = replace(translate, "render_operator", render_operator)
