"""`top-nested`, `top-hitters` and `sample-distinct`.

Kusto's pages of these names. `top-nested` finds the first values of one expression, then within each of them the first
of the next; each level has its value and its aggregate in the result. `with others` is refused: what stands for
the others on the levels below is not pinned down by the page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import naming  # noqa: TID253

from sentinel_rag.workspace.kql.column_types import expression_type
from sentinel_rag.workspace.kql.extension import (
    AddedOperator,
    Frame,
    LibrarySchema,
    fresh_name,
    query_sql,
    quoted,
)
from sentinel_rag.workspace.kql.subtables import Rows
from sentinel_rag.workspace.kql.tabular_names import constant


@dataclasses.dataclass(frozen=True)
class Level:
    """The first `count` values (all, if None) of `value` by `aggregate`."""

    count: int | None
    value: ir.NamedExpr
    aggregate: ir.NamedExpr
    ascending: bool = False


@dataclasses.dataclass(frozen=True)
class TopNested(AddedOperator):
    """All levels, outermost first. Every name is given."""

    keyword = "top-nested"
    levels: tuple[Level, ...]

    def columns(self, before: list[str], tables: LibrarySchema) -> list[str]:
        return [str(name) for level in self.levels for name in (level.value.name, level.aggregate.name)]

    def frame(self, before: Frame, tables: Mapping[str, Frame]) -> Frame:
        parts = [part for level in self.levels for part in (level.value, level.aggregate)]
        return {str(part.name): expression_type(part.expr, before, tables) for part in parts}

    def sql(self, previous: str, before: list[str]) -> str:
        rows = Rows(previous, tuple(before), ("",) * len(before))
        joined, above, selected = "", "", []
        for depth, level in enumerate(self.levels):
            names = [str(outer.value.name) for outer in self.levels[: depth + 1]]
            keys = tuple(outer.value for outer in self.levels[: depth + 1])
            summarized = query_sql(ir.Query(rows, [ir.Summarize((level.aggregate,), keys)]))
            alias = quoted(fresh_name("level"))
            parents = ", ".join(quoted(name) for name in names[:-1])
            order = "ASC NULLS FIRST" if level.ascending else "DESC NULLS LAST"
            within = f"PARTITION BY {parents} " if parents else ""
            over = f"{within}ORDER BY {quoted(str(level.aggregate.name))} {order}"
            kept = f"QUALIFY row_number() OVER ({over}) <= {level.count}" if level.count is not None else ""
            table = f"(SELECT * FROM ({summarized}) AS _groups {kept}) AS {alias}"  # noqa: S608
            if depth:
                matches = [f"{alias}.{quoted(name)} IS NOT DISTINCT FROM {above}.{quoted(name)}" for name in names[:-1]]
                table = f"JOIN {table} ON {' AND '.join(matches)}"
            joined += " " + table
            selected += [f"{alias}.{quoted(names[-1])}", f"{alias}.{quoted(str(level.aggregate.name))}"]
            above = alias
        return f"SELECT {', '.join(selected)} FROM{joined}"


def lower_top_nested(node: Any) -> TopNested:
    """The operator with the names that Kusto gives: `aggregated_` and the value's, unless the query names it."""
    levels: list[Level] = []
    alone = lower._cls(node) == "TopNestedOperatorPart"
    for part in [node] if alone else lower._rule_children(node):
        children = lower._rule_children(part)
        if any(lower._cls(child) == "TopNestedOperatorWithOthersClause" for child in children):
            raise KqlUnsupportedError("top-nested with others", span=lower._span(part))
        *before, ordered = children
        count = constant(before[0]) if len(before) == 2 else None
        limit = count.value if isinstance(count, ir.Literal) else None
        if count is not None and not isinstance(limit, int):
            raise KqlUnsupportedError("top-nested", span=lower._span(part), hint="its number must be a constant")
        value = lower._lower_named(before[-1])
        name = value.name or naming.expression_name(value.expr) or f"Column{len(levels) + 1}"
        inner = lower._rule_children(ordered) if lower._cls(ordered) == "OrderedExpression" else [ordered]
        aggregate = lower._lower_named(inner[0])
        ordering = "".join(child.getText() for child in inner[1:])
        levels.append(
            Level(
                max(limit, 0) if isinstance(limit, int) else None,
                ir.NamedExpr(value.expr, name),
                ir.NamedExpr(aggregate.expr, aggregate.name or f"aggregated_{name}"),
                ordering.startswith("asc"),
            )
        )
    return TopNested(tuple(levels))


def lower_top_hitters(node: Any) -> list[ir.Operator]:
    """`top-hitters N of V [by S]`: Kusto estimates, here the counts are exact."""
    children = lower._rule_children(node)
    count, value = constant(children[0]), lower._lower_expr(children[1])
    if not isinstance(count, ir.Literal) or not isinstance(count.value, int) or not isinstance(value, ir.ColumnRef):
        raise KqlUnsupportedError("top-hitters", span=lower._span(node), hint="write top-hitters 3 of Column")
    weights = lower._find_all(node, "TopHittersOperatorByClause")
    if weights:
        by = lower._lower_sort_key(lower._rule_children(weights[0])[0]).expr
        name, aggregate = f"approximate_sum_{value.name}", ir.FunctionCall("sum", (by,))
    else:
        name, aggregate = f"approximate_count_{value.name}", ir.FunctionCall("count")
    summarized = ir.Summarize((ir.NamedExpr(aggregate, name),), (ir.NamedExpr(value),))
    return [summarized, ir.Top(max(count.value, 0), (ir.SortKey(ir.ColumnRef(name)),))]


def lower_sample_distinct(node: Any) -> list[ir.Operator]:
    """`sample-distinct N of V`: some N of the distinct values; which ones, Kusto leaves open."""
    children = lower._rule_children(node)
    count = constant(children[0])
    if not isinstance(count, ir.Literal) or not isinstance(count.value, int):
        raise KqlUnsupportedError("sample-distinct", span=lower._span(node), hint="its number must be a constant")
    return [ir.Distinct((lower._lower_named(children[1]),)), ir.Take(max(count.value, 0))]
