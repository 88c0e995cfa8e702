"""A dynamic compared with a number, a time or a span is first converted, as Kusto does; what cannot be is null.

DuckDB would convert the JSON to the other side's type itself: 2.4 becomes the number 2, and a text stops the query.
"""

from __future__ import annotations

from dataclasses import replace

from duckdb_kql import ir, translate  # noqa: TID253 - this module changes that library's query form
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253

from sentinel_rag.workspace.kql.time_arithmetic import is_datetime, is_timespan

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "<>"))
_WHOLE = frozenset(("long", "int", "decimal"))
_WHOLE_FUNCTIONS = frozenset(
    ["tolong", "toint", "todecimal", "strlen", "array_length", "countof", "indexof", "datetime_diff", "count"]
)


def converted(node: ir.BinaryOp | ir.Between | ir.InList) -> ir.Expr:
    """`node` with its dynamic side converted to the type of the other, or as it is."""
    if isinstance(node, ir.InList):
        if node.subquery is not None or not node.items or not is_dynamic(node.value):
            return node
        if not all(map(_number_kind, node.items)):
            return node
        return replace(node, value=_as_type_of(node.value, node.items[0]))
    if isinstance(node, ir.Between):
        if not is_dynamic(node.value):
            return node
        return replace(node, value=_as_type_of(node.value, node.low))
    if node.op not in _COMPARISONS:
        return node
    if is_dynamic(node.left) and not is_dynamic(node.right):
        return replace(node, left=_as_type_of(node.left, node.right))
    if is_dynamic(node.right) and not is_dynamic(node.left):
        return replace(node, right=_as_type_of(node.right, node.left))
    return node


def refuse_order(construct: str, node: ir.Expr) -> None:
    """Dynamics have no order: as JSON text 9 would stand after 10. Raises KqlUnsupportedError for one."""
    if is_dynamic(node):
        raise KqlUnsupportedError(construct, hint="a dynamic has no order; convert it with tolong(), todatetime(), ...")


def is_dynamic(node: ir.Expr) -> bool:
    """Whether `node` is known to be a dynamic."""
    if isinstance(node, ir.ColumnRef):
        return getattr(node, "kind", "") == "dynamic"
    return bool(translate._is_dynamic_expr(node))


def _as_type_of(value: ir.Expr, other: ir.Expr) -> ir.Expr:
    if is_datetime(other):
        return ir.FunctionCall("todatetime", (value,))
    if is_timespan(other):
        return ir.FunctionCall("totimespan", (value,))
    number = _number_kind(other)
    if number:
        text = f"(to_json({translate.render_expr(value)}) ->> '$')"
        return ir.RenderedAggregate(f"TRY_CAST({text} AS {'DECIMAL(38, 10)' if number == 'whole' else 'DOUBLE'})")
    return value


def _number_kind(node: ir.Expr) -> str:
    """`whole` or `real` for what is surely a number, else empty."""
    if isinstance(node, ir.UnaryOp) and node.op == "-":
        return _number_kind(node.operand)
    if isinstance(node, ir.FunctionCall):
        name = node.name.lower()
        return "whole" if name in _WHOLE_FUNCTIONS else "real" if name in ("todouble", "toreal") else ""
    kind = str(getattr(node, "kind", "")) if isinstance(node, (ir.Literal, ir.Parameter, ir.ColumnRef)) else ""
    return "whole" if kind in _WHOLE else "real" if kind == "real" else ""
