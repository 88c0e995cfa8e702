"""Functions and aggregates that make several columns, as one expression for each column.

`percentiles(x, 5, 95)`, `take_any(a, b)`, `(first, second) = arg_min(...)`, `series_stats(s)`, `series_fit_line(s)` and
`array_sort_asc(a, b)`. Works on duckdb-kql's query form, before SQL; the names are those of Kusto's own binder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import naming  # noqa: TID253

_STATISTICS = (
    ("min", "toreal"),
    ("min_idx", "tolong"),
    ("max", "toreal"),
    ("max_idx", "tolong"),
    ("avg", "toreal"),
    ("stdev", "toreal"),
    ("variance", "toreal"),
)
_LINE = (
    ("rsquare", "toreal"),
    ("slope", "toreal"),
    ("variance", "toreal"),
    ("rvariance", "toreal"),
    ("interception", "toreal"),
    ("line_fit", ""),
)
_FROM_BAG = {"series_stats": _STATISTICS, "series_fit_line": _LINE}
_SORTS = ("array_sort_asc", "array_sort_desc")


@dataclasses.dataclass(frozen=True)
class ExpandedFunctions:
    """Names of the functions that exist only as several columns, and so are in no registry."""

    scalars: frozenset[str]
    aggregates: frozenset[str]


def expanded_functions() -> ExpandedFunctions:
    return ExpandedFunctions(frozenset(_FROM_BAG), frozenset({"percentiles"}))


@dataclasses.dataclass(frozen=True)
class NamedTuple(ir.NamedExpr):
    """`(a, b) = expression`; `name` is the first of `names`."""

    names: tuple[str, ...] = ()


def named_tuple(node: Any, named: ir.NamedExpr) -> ir.NamedExpr:
    """`named`, as the library lowered it from `node`, with all the names that the text gives it."""
    collapsed = lower._collapse(node)
    if lower._cls(collapsed) not in ("NamedExpression", "ArgumentExpression"):
        return named
    children = lower._rule_children(collapsed)
    if len(children) != 2 or lower._cls(children[0]) != "NamedExpressionNameClause":
        return named
    names = tuple(lower._find_names(children[0]))
    return NamedTuple(named.expr, named.name, names) if len(names) > 1 else named


def expanded(operator: Any) -> Any:
    """`operator`, or the operators that stand for it, with one named expression for each column."""
    if isinstance(operator, ir.Summarize):
        return _summarize(operator)
    if isinstance(operator, (ir.Extend, ir.Project)):
        many = tuple(one for column in operator.expressions for one in _columns(column))
        return operator if many == operator.expressions else dataclasses.replace(operator, expressions=many)
    return operator


def _names(column: ir.NamedExpr) -> tuple[str, ...]:
    if isinstance(column, NamedTuple):
        return column.names
    return (column.name,) if column.name else ()


def _columns(column: ir.NamedExpr) -> Iterator[ir.NamedExpr]:
    """The columns of one expression of `extend` or `project`. Given names choose the first ones."""
    given = _names(column)
    call = column.expr
    if not isinstance(call, ir.FunctionCall):
        yield _single(column, given)
        return
    function = call.name.lower()
    if function in _FROM_BAG and len(given) != 1:
        bag = ir.FunctionCall(f"{function}_dynamic", call.args)
        prefix = f"{function}_{naming.expression_name(call.args[0]) or ''}" if call.args else function
        for place, (part, conversion) in enumerate(_FROM_BAG[function]):
            if given and place >= len(given):
                return
            value: ir.Expr = ir.PathAccess(bag, (ir.PathStep(name=part),))
            yield ir.NamedExpr(
                ir.FunctionCall(conversion, (value,)) if conversion else value,
                given[place] if given else f"{prefix}_{part}",
            )
    elif function in _SORTS and len(given) > 1:
        for place, name in enumerate(given[: len(call.args)]):
            whole = ir.FunctionCall(f"{function}_together", call.args)
            yield ir.NamedExpr(ir.PathAccess(whole, (ir.PathStep(index=ir.Literal(place, "long")),)), name)
    else:
        yield _single(column, given)


def _single(column: ir.NamedExpr, given: tuple[str, ...]) -> ir.NamedExpr:
    if len(given) > 1:
        raise KqlUnsupportedError(f"({', '.join(given)}) =", hint="the expression has one value")
    return column


def _summarize(operator: ir.Summarize) -> Any:
    aggregates: list[ir.NamedExpr] = []
    renames: list[tuple[str, str]] = []
    keys = {naming.expression_name(key.expr) if key.name is None else key.name for key in operator.by}
    for column in operator.aggregates:
        given = _names(column)
        call = column.expr
        function = call.name.lower() if isinstance(call, ir.FunctionCall) else ""
        arguments = call.args if isinstance(call, ir.FunctionCall) else ()
        if function == "percentiles":
            aggregates.extend(_percentiles(arguments, given))
        elif function in ("take_any", "any") and len(arguments) > 1:
            for place, argument in enumerate(arguments):
                one = ir.FunctionCall("take_any", (argument,))
                aggregates.append(ir.NamedExpr(one, given[place] if place < len(given) else None))
        elif len(given) > 1 and function in ("arg_max", "arg_min"):
            targets = [argument.name for argument in arguments[1:] if isinstance(argument, ir.ColumnRef)]
            if len(targets) != len(arguments) - 1 or len(given) > len(arguments) or keys & set(targets):
                raise KqlUnsupportedError(f"({', '.join(given)}) =", hint="name columns that are no keys")
            renames.extend(zip(targets, given[1:], strict=False))
            aggregates.append(ir.NamedExpr(call, given[0]))
        else:
            aggregates.append(_single(column, given))
    if tuple(aggregates) == tuple(operator.aggregates) and not renames:
        return operator
    summarized = dataclasses.replace(operator, aggregates=tuple(aggregates))
    changed = tuple((old, new) for old, new in renames if old != new)
    return [summarized, ir.ProjectRename(changed)] if changed else summarized


def _percentiles(arguments: tuple[ir.Expr, ...], given: tuple[str, ...]) -> Iterator[ir.NamedExpr]:
    value, *percents = arguments
    for place, percent in enumerate(percents):
        name = given[place] if place < len(given) else None
        if name is None and isinstance(percent, ir.Literal) and not float(percent.value or 0).is_integer():
            name = f"percentile_{naming.expression_name(value) or ''}_{percent.value}".replace(".", "_")
        yield ir.NamedExpr(ir.FunctionCall("percentile", (value, percent)), name)
