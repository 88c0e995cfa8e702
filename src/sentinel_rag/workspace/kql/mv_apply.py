"""`mv-apply`: a query of its own over the elements of each row's array.

Kusto's page "mv-apply operator". The elements of one row, expanded as `mv-expand` does, are a table with the row's
columns beside them; the inner query runs over that table, once a row, so `summarize` over no element still gives one
row. Here it is a lateral subquery. A column of the inner result takes the place of the row's column of that name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from duckdb_kql import ir, lower, schema  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253

from sentinel_rag.workspace.kql.column_types import query_frame
from sentinel_rag.workspace.kql.extension import (
    AddedOperator,
    AddedSource,
    Frame,
    LibrarySchema,
    Place,
    PlacedOperator,
    fresh_name,
    query_sql,
    quoted,
    visible_tables,
)


@dataclasses.dataclass(frozen=True)
class OuterRow(AddedSource):
    """The one row of the relation `alias` around a lateral subquery."""

    alias: str
    names: tuple[str, ...]
    types: tuple[str, ...] = ()

    def columns(self) -> list[str]:
        return list(self.names)

    def sql(self) -> str:
        return "SELECT " + ", ".join(f"{quoted(self.alias)}.{quoted(name)} AS {quoted(name)}" for name in self.names)


@dataclasses.dataclass(frozen=True)
class MvApply(PlacedOperator):
    """As written. `consumed` are columns expanded in place, which then are no longer columns of the row."""

    column_fields = ("consumed",)
    consumed: tuple[str, ...]
    inner: tuple[ir.Operator, ...]
    kind = "mv-apply"

    def resolve(self, place: Place) -> list[ir.Operator]:
        row = OuterRow("row", tuple(place.frame), tuple(place.frame.values()))
        return [AppliedQuery(self.consumed, ir.Query(row, list(self.inner)))]


@dataclasses.dataclass(frozen=True)
class AppliedQuery(AddedOperator):
    """At its place: `inner` starts from the row around it."""

    consumed: tuple[str, ...]
    inner: ir.Query

    def columns(self, before: list[str], tables: LibrarySchema) -> list[str]:
        kept = [name for name in before if name not in self.consumed]
        produced = schema.output_columns(self.inner, tables)
        return kept + [name for name in produced if name not in kept]

    def frame(self, before: Frame, tables: Mapping[str, Frame]) -> Frame | None:
        produced = query_frame(self.inner, tables)
        if produced is None:
            return None
        kept = {name: kind for name, kind in before.items() if name not in self.consumed}
        return kept | produced

    def sql(self, previous: str, before: list[str]) -> str:
        alias, result = fresh_name("row"), fresh_name("applied")
        source = self.inner.source
        assert isinstance(source, OuterRow)
        inside = ir.Query(OuterRow(alias, source.names), list(self.inner.operators), list(self.inner.lets))
        produced = schema.output_columns(inside, visible_tables())
        kept = [name for name in before if name not in self.consumed]
        columns = [
            f"{quoted(result if name in produced else alias)}.{quoted(name)} AS {quoted(name)}"
            for name in kept + [name for name in produced if name not in kept]
        ]
        lateral = f"LATERAL ({query_sql(inside)}) AS {quoted(result)}"
        return f"SELECT {', '.join(columns)} FROM {previous} AS {quoted(alias)}, {lateral}"  # noqa: S608


def lower_mv_apply(node: Any) -> list[ir.Operator]:
    """The operator for one `mv-apply`."""
    expansion: list[Any] = []
    inner_node = None
    for child in lower._rule_children(node):
        kind = lower._cls(child)
        if kind == "MvapplyOperatorIdClause":
            raise KqlUnsupportedError("mv-apply id", span=lower._span(node))
        if kind == "ContextualSubExpression":
            inner_node = child
        else:
            expansion.append(child)
    if inner_node is None:
        raise KqlUnsupportedError("mv-apply", span=lower._span(node), hint="it has no inner query")
    expanded = lower._lower_mv_expand(node, expansion)
    operators: list[Any] = expanded if isinstance(expanded, list) else [expanded]
    consumed = tuple(
        target.column
        for target in operators[-1].targets
        if target.name in (None, target.column) and not _is_computed(target.column, operators[:-1])
    )
    inner = lower_sub_query(inner_node)
    return [MvApply(consumed, (*operators, *inner))]


def _is_computed(column: str, before: list[ir.Operator]) -> bool:
    return any(
        isinstance(operator, ir.Extend) and any(named.name == column for named in operator.expressions)
        for operator in before
    )


def lower_sub_query(node: Any) -> list[ir.Operator]:
    """The operators of `(where ... | summarize ...)`, a pipe without its source."""
    while lower._cls(node) == "ContextualSubExpression" and len(lower._rule_children(node)) == 1:
        node = lower._rule_children(node)[0]
    node = lower._collapse(node)
    parts = lower._rule_children(node) if lower._cls(node) == "PipeSubExpression" else [node]
    operators: list[ir.Operator] = lower._lower_operators(parts)
    return operators
