"""`partition by Column (query)`: the query over the rows of each value of the column, and all answers together.

Kusto's page "partition operator". Hints say how a cluster shall do it and are ignored. Here it is a lateral subquery.
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
    Frame,
    LibrarySchema,
    Place,
    PlacedOperator,
    fresh_name,
    query_sql,
    quoted,
)
from sentinel_rag.workspace.kql.mv_apply import lower_sub_query
from sentinel_rag.workspace.kql.subtables import Rows


@dataclasses.dataclass(frozen=True)
class Partition(PlacedOperator):
    """`partition by K (query)`: the query over the rows of each value of K."""

    key: str
    inner: tuple[ir.Operator, ...]
    column_fields = ("key",)
    kind = "partition"

    def resolve(self, place: Place) -> list[ir.Operator]:
        rows = Rows("", tuple(place.frame), tuple(place.frame.values()), "", self.key)
        return [PartitionedQuery(self.key, ir.Query(rows, list(self.inner)))]


@dataclasses.dataclass(frozen=True)
class PartitionedQuery(AddedOperator):
    """At its place: `inner` starts from the rows of one group."""

    keyword = "partition"
    key: str
    inner: ir.Query

    def columns(self, before: list[str], tables: LibrarySchema) -> list[str]:
        names: list[str] = schema.output_columns(self.inner, tables)
        return names

    def frame(self, before: Frame, tables: Mapping[str, Frame]) -> Frame | None:
        return query_frame(self.inner, tables)

    def sql(self, previous: str, before: list[str]) -> str:
        group, result = fresh_name("group"), fresh_name("part")
        source = self.inner.source
        assert isinstance(source, Rows)
        rows = dataclasses.replace(source, relation=previous, group=group)
        inside = query_sql(ir.Query(rows, list(self.inner.operators), list(self.inner.lets)))
        key = quoted(self.key)
        groups = f"(SELECT DISTINCT {key} FROM {previous}) AS {quoted(group)}"  # noqa: S608
        return f"SELECT {quoted(result)}.* FROM {groups}, LATERAL ({inside}) AS {quoted(result)}"  # noqa: S608


def lower_partition(node: Any) -> Partition:
    """The operator; the forms with a source of its own inside are refused."""
    key, body = None, None
    for child in lower._rule_children(node):
        kind = lower._cls(child)
        if "Parameter" in kind:
            if not child.getText().startswith("hint."):
                raise KqlUnsupportedError("partition", span=lower._span(child))
        elif kind == "PartitionOperatorSubExpressionBody":
            body = child
        elif kind.startswith("PartitionOperator"):
            raise KqlUnsupportedError("partition", span=lower._span(child), hint="write partition by Column (query)")
        else:
            key = lower._lower_expr(child)
    if body is None or not isinstance(key, ir.ColumnRef):
        raise KqlUnsupportedError("partition", span=lower._span(node), hint="write partition by Column (query)")
    return Partition(key.name, tuple(lower_sub_query(lower._rule_children(body)[-1])))
