"""`make-series` as operators that duckdb-kql has: count by bucket, collect the buckets, fill the gaps.

Part of `dialect`, after Kusto's page "make-series operator". Without `from` or `to` each series begins at its first and
ends after its last bin that has data, and bins are those of `bin()`. Only an axis of time is run. The helper functions
are rows of `added_functions`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.ir import (  # noqa: TID253
    BinaryOp,
    ColumnRef,
    Expr,
    Extend,
    FunctionCall,
    Literal,
    NamedExpr,
    Operator,
    Project,
    Summarize,
    Where,
)
from duckdb_kql.translate import naming  # noqa: TID253

from sentinel_rag.workspace.kql.errors import not_supported
from sentinel_rag.workspace.kql.extension import Place, PlacedOperator

_BUCKET, _BUCKETS = "series bucket", "series buckets"


@dataclasses.dataclass(frozen=True)
class TimeSeries(PlacedOperator):
    """The operators that make the series, once `axis` is known to be a time."""

    axis: str
    steps: tuple[Operator, ...]
    column_fields = ("axis",)
    kind = "make-series"

    def resolve(self, place: Place) -> list[Operator]:
        if place.frame.get(self.axis) not in ("datetime", ""):
            raise not_supported("make-series", hint=f"over {self.axis}, which is no time")
        return list(self.steps)


def lower_make_series(node: Any) -> list[Operator]:
    """The operators for one `make-series`. Raises KqlUnsupportedError for the forms that are not run."""
    clauses: dict[str, list[Any]] = {}
    for child in lower._rule_children(node):
        clauses.setdefault(lower._cls(child), []).append(child)
    bounds = _bounds(clauses.get("MakeSeriesOperatorFromToStepClause", ()))
    axis = lower._lower_named(lower._rule_children(clauses["MakeSeriesOperatorOnClause"][0])[0])
    step = bounds.get("step")
    if step is None or not isinstance(axis.expr, ColumnRef):
        raise KqlUnsupportedError(
            "make-series", span=lower._span(node), hint="write on Column from ... to ... step ..."
        )
    first, last = ColumnRef("first bucket"), ColumnRef("last bucket")
    start, end = bounds.get("from"), bounds.get("to")
    keys = [
        _named(part, position)
        for clause in clauses.get("MakeSeriesOperatorByClause", ())
        for position, part in enumerate(lower._rule_children(clause), start=1)
    ]
    swallowed = _swallowed_call(node, clauses.get("RelaxedQueryOperatorParameter", ()))
    aggregations = clauses["MakeSeriesOperatorAggregation"]
    series = [_aggregation(aggregations[0], 1, swallowed)]
    series += [_aggregation(part, position, None) for position, part in enumerate(aggregations[1:], start=2)]
    time = axis.expr
    by = tuple(NamedExpr(ColumnRef(str(key.name)), key.name) for key in keys)
    names = [str(aggregate.name) for aggregate, _ in series]

    def collected(column: str) -> Expr:
        return FunctionCall("series_collect", (ColumnRef(column),))

    def filled(name: str, default: Expr) -> Expr:
        bounded = (start or first, end or BinaryOp("+", last, step))
        return FunctionCall("series_fill", (ColumnRef(_BUCKETS), ColumnRef(name), *bounded, step, default))

    inside: Expr = FunctionCall("isnotnull", (time,))
    inside = BinaryOp("and", inside, BinaryOp(">=", time, start)) if start is not None else inside
    inside = BinaryOp("and", inside, BinaryOp("<", time, end)) if end is not None else inside
    bucket = FunctionCall("series_bucket", (time, start, step)) if start else FunctionCall("bin", (time, step))
    steps: list[Operator] = [
        Where(inside),
        Summarize(tuple(aggregate for aggregate, _ in series), (*keys, NamedExpr(bucket, _BUCKET))),
        Summarize(
            (
                NamedExpr(collected(_BUCKET), _BUCKETS),
                NamedExpr(FunctionCall("min", (ColumnRef(_BUCKET),)), first.name),
                NamedExpr(FunctionCall("max", (ColumnRef(_BUCKET),)), last.name),
                *(NamedExpr(collected(name), name) for name in names),
            ),
            by,
        ),
        Where(FunctionCall("isnotnull", (ColumnRef(_BUCKETS),))),
        Extend(
            (
                *(NamedExpr(filled(name, default), name) for name, (_, default) in zip(names, series, strict=True)),
                NamedExpr(
                    FunctionCall("series_axis", (start or first, end or BinaryOp("+", last, step), step)),
                    axis.name or time.name,
                ),
            )
        ),
        Project(
            tuple(
                NamedExpr(ColumnRef(column))
                for column in [*(str(key.name) for key in keys), *names, axis.name or time.name]
            )
        ),
    ]
    return [TimeSeries(time.name, tuple(steps))]


def _bounds(clauses: Any) -> dict[str, Expr]:
    """The expressions after `from`, `to` and `step`."""
    found: dict[str, Expr] = {}
    for clause in clauses:
        word = ""
        for child in lower._children(clause):
            if type(child).__name__.endswith("Context"):
                found[word] = lower._lower_named(child).expr
            else:
                word = child.getText().lower()
    return found


def _swallowed_call(node: Any, parameters: Any) -> tuple[str, str] | None:
    """`n=sum` of `make-series n=sum(v)`, which the library's grammar takes for a parameter of the operator."""
    found = [child.getText().partition("=") for child in parameters]
    for name, _, _ in found:
        if name.startswith(("hint.", "kind")):
            raise KqlUnsupportedError(f"make-series {name}", span=lower._span(node))
    return (found[-1][0], found[-1][2]) if found else None


def _aggregation(node: Any, position: int, swallowed: tuple[str, str] | None) -> tuple[NamedExpr, Expr]:
    """The aggregate under its name, and what stands in an empty bucket (0 unless the query says otherwise)."""
    default: Expr = Literal(0, "long")
    first, *others = lower._rule_children(node)
    for child in others:
        if lower._cls(child) == "MakeSeriesOperatorExpressionDefaultClause":
            default = lower._lower_named(lower._rule_children(child)[0]).expr
    if swallowed is not None:
        name, function = swallowed
        return NamedExpr(FunctionCall(function, (lower._lower_expr(first),)), name), default
    return _named(first, position), default


def _named(node: Any, position: int) -> NamedExpr:
    named = lower._lower_named(node)
    return NamedExpr(named.expr, named.name or naming.expression_name(named.expr) or f"Column{position}")
