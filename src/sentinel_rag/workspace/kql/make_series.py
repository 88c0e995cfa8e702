"""`make-series` as operators that duckdb-kql has: count by bucket, collect the buckets, fill the gaps.

Part of `dialect`. Only the form with `from`, `to` and `step` over time is run; without bounds Kusto takes them from the
data, which is refused here rather than guessed. The helper functions are rows of `added_functions`.
"""

from __future__ import annotations

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

_BUCKET, _BUCKETS = "series bucket", "series buckets"


def lower_make_series(node: Any) -> list[Operator]:
    """The operators for one `make-series`. Raises KqlUnsupportedError for the forms that are not run."""
    clauses: dict[str, list[Any]] = {}
    for child in lower._rule_children(node):
        clauses.setdefault(lower._cls(child), []).append(child)
    bounds = [
        lower._lower_named(part).expr
        for clause in clauses.get("MakeSeriesOperatorFromToStepClause", ())
        for part in lower._rule_children(clause)
    ]
    axis = lower._lower_named(lower._rule_children(clauses["MakeSeriesOperatorOnClause"][0])[0])
    if len(bounds) != 3 or not isinstance(axis.expr, ColumnRef):
        raise KqlUnsupportedError(
            "make-series", span=lower._span(node), hint="write on Column from ... to ... step ..."
        )
    start, end, step = bounds
    keys = [
        _named(part, position)
        for clause in clauses.get("MakeSeriesOperatorByClause", ())
        for position, part in enumerate(lower._rule_children(clause), start=1)
    ]
    series = [_aggregation(part, position) for position, part in enumerate(clauses["MakeSeriesOperatorAggregation"], 1)]
    time = axis.expr
    by = tuple(NamedExpr(ColumnRef(str(key.name)), key.name) for key in keys)
    names = [str(aggregate.name) for aggregate, _ in series]

    def collected(column: str) -> Expr:
        return FunctionCall("series_collect", (ColumnRef(column),))

    def filled(name: str, default: Expr) -> Expr:
        return FunctionCall("series_fill", (ColumnRef(_BUCKETS), ColumnRef(name), start, end, step, default))

    return [
        Where(BinaryOp("and", BinaryOp(">=", time, start), BinaryOp("<", time, end))),
        Summarize(
            tuple(aggregate for aggregate, _ in series),
            (*keys, NamedExpr(FunctionCall("series_bucket", (time, start, step)), _BUCKET)),
        ),
        Summarize(
            (
                NamedExpr(collected(_BUCKET), _BUCKETS),
                *(NamedExpr(collected(name), name) for name in names),
            ),
            by,
        ),
        Where(FunctionCall("isnotnull", (ColumnRef(_BUCKETS),))),
        Extend(
            (
                *(NamedExpr(filled(name, default), name) for name, (_, default) in zip(names, series, strict=True)),
                NamedExpr(FunctionCall("series_axis", (start, end, step)), axis.name or time.name),
            )
        ),
        Project(
            tuple(
                NamedExpr(ColumnRef(column))
                for column in [*(str(key.name) for key in keys), *names, axis.name or time.name]
            )
        ),
    ]


def _aggregation(node: Any, position: int) -> tuple[NamedExpr, Expr]:
    """The aggregate under its name, and what stands in an empty bucket (0 unless the query says otherwise)."""
    default: Expr = Literal(0, "long")
    for child in lower._rule_children(node):
        if lower._cls(child) == "MakeSeriesOperatorExpressionDefaultClause":
            default = lower._lower_named(lower._rule_children(child)[0]).expr
    return _named(lower._rule_children(node)[0], position), default


def _named(node: Any, position: int) -> NamedExpr:
    named = lower._lower_named(node)
    return NamedExpr(named.expr, named.name or naming.expression_name(named.expr) or f"Column{position}")
