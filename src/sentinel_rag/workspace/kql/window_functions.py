"""`serialize`, and the functions over neighbouring rows: row_number, prev, next, row_cumsum.

Kusto's pages "Window functions" and "serialize operator". They need rows in an order that counts, which `sort`, `top`,
`range` and `serialize` make; without it Kusto refuses them and so do we. The rows get a hidden number by which the
functions look and which keeps their order.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library
from duckdb_kql.translate import naming  # noqa: TID253
from duckdb_kql.translate.functions import FunctionSpec  # noqa: TID253

from sentinel_rag.workspace.kql.column_types import expression_type
from sentinel_rag.workspace.kql.errors import KqlError, not_supported
from sentinel_rag.workspace.kql.extension import Place, PlacedOperator

FUNCTIONS = frozenset(("row_number", "prev", "next", "row_cumsum"))

_ORDINAL = "number of row"
_BY_ORDINAL = f'ORDER BY "{_ORDINAL}"'
_RUNNING = f"{_BY_ORDINAL} ROWS UNBOUNDED PRECEDING"

SPECS = (
    FunctionSpec("rows numbered", "template", "row_number() OVER ()", (0,)),
    FunctionSpec("restarts so far", "template", f"sum(CASE WHEN {{0}} THEN 1 ELSE 0 END) OVER ({_RUNNING})", (1,)),
    FunctionSpec("number in group", "template", f"row_number() OVER (PARTITION BY {{0}} {_BY_ORDINAL})", (1,)),
    FunctionSpec("sum in group", "template", f"sum({{0}}) OVER (PARTITION BY {{1}} {_RUNNING})", (2,)),
    FunctionSpec("row before", "template", f"lag({{0}}, CAST({{1}} AS BIGINT), {{2}}) OVER ({_BY_ORDINAL})", (3,)),
    FunctionSpec("row after", "template", f"lead({{0}}, CAST({{1}} AS BIGINT), {{2}}) OVER ({_BY_ORDINAL})", (3,)),
)
"""The SQL of the parts; no query can call them, since their names have spaces."""


@dataclasses.dataclass(frozen=True)
class Windowed(PlacedOperator):
    """`operator` with calls of window functions in its expressions."""

    operator: ir.Operator
    kind = "window functions"

    def resolve(self, place: Place) -> list[ir.Operator]:
        calls = window_calls(self.operator)
        if not place.serialized:
            raise KqlError(
                f"Function '{calls[0].name}' cannot be invoked in current context. Details: the row set must be "
                "serialized.",
                kql_code="SEM0001",
                token=calls[0].name,
                next_step="Put sort by ... or serialize before it.",
            )
        operator = _with_names(self.operator)
        steps: list[ir.Operator] = [ir.Extend((ir.NamedExpr(ir.FunctionCall("rows numbered"), _ORDINAL),))]
        hidden, frame = [_ORDINAL], dict(place.frame)
        while calls := window_calls(operator):
            call, name = calls[0], f"window {len(hidden)}"
            groups: list[ir.NamedExpr] = []
            place = dataclasses.replace(place, frame=frame)
            value = _expression(call, f"group of {name}", groups, place)
            made = [*groups, ir.NamedExpr(value, name)]
            steps += [ir.Extend((one,)) for one in made]
            hidden += [str(one.name) for one in made]
            frame[name] = expression_type(call, frame, place.tables)
            operator = _replaced(operator, call, ir.ColumnRef(name))
        steps += [ir.Sort((ir.SortKey(ir.ColumnRef(_ORDINAL), True),)), operator]
        return steps if isinstance(operator, ir.Project) else [*steps, ir.ProjectAway(tuple(hidden))]


def windowed(operator: Any) -> Any:
    """`operator`, wrapped if it calls window functions where they are understood."""
    if not isinstance(operator, (ir.Extend, ir.Project, ir.Where)):
        return operator
    return Windowed(operator) if window_calls(operator) else operator


def window_calls(node: Any) -> list[ir.FunctionCall]:
    """The calls of window functions in an operator's own expressions, one that stands inside another before it."""
    if isinstance(node, ir.Query):
        return []
    if isinstance(node, (list, tuple)):
        return [call for one in node for call in window_calls(one)]
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return []
    found = [call for field in dataclasses.fields(node) for call in window_calls(getattr(node, field.name))]
    if isinstance(node, ir.FunctionCall) and node.name.lower() in FUNCTIONS:
        found.append(node)
    return found


def _expression(call: ir.FunctionCall, group: str, groups: list[ir.NamedExpr], place: Place) -> ir.Expr:
    name, args = call.name.lower(), call.args
    if name in ("prev", "next") and 1 <= len(args) <= 3:
        kind = expression_type(args[0], place.frame, place.tables)
        absent: ir.Expr = ir.Literal("", "string") if kind == "string" else ir.Literal(None, "null")
        offset = args[1] if len(args) > 1 else ir.Literal(1, "long")
        return ir.FunctionCall(
            "row before" if name == "prev" else "row after", (args[0], offset, args[2] if len(args) > 2 else absent)
        )
    if name == "row_number" and len(args) <= 2:
        numbered = ir.FunctionCall("number in group", (_group(args[1:], group, groups),))
        start = args[0] if args else ir.Literal(1, "long")
        if isinstance(start, ir.Literal) and start.value == 1:
            return numbered
        return ir.BinaryOp("-", ir.BinaryOp("+", numbered, start), ir.Literal(1, "long"))
    if name == "row_cumsum" and 1 <= len(args) <= 2:
        summed = ir.FunctionCall("sum in group", (args[0], _group(args[1:], group, groups)))
        kind = expression_type(args[0], place.frame, place.tables)
        return ir.FunctionCall("tolong", (summed,)) if kind in ("int", "long") else summed
    raise not_supported(call.name, hint="with these arguments")


def _group(restart: tuple[ir.Expr, ...], group: str, groups: list[ir.NamedExpr]) -> ir.Expr:
    if not restart:
        return ir.Literal(0, "long")
    groups.append(ir.NamedExpr(ir.FunctionCall("restarts so far", (restart[0],)), group))
    return ir.ColumnRef(group)


def _with_names(operator: ir.Operator) -> ir.Operator:
    """An expression without a name is named as if its window functions still stood there."""
    if not isinstance(operator, (ir.Extend, ir.Project)):
        return operator
    named, position = [], 0
    for one in operator.expressions:
        name = one.name or naming.expression_name(one.expr)
        if name is None:
            position += 1
            name = f"Column{position}"
        named.append(dataclasses.replace(one, name=name) if window_calls(one) else one)
    return dataclasses.replace(operator, expressions=tuple(named))


def _replaced(node: Any, call: ir.FunctionCall, column: ir.ColumnRef) -> Any:
    if node == call and isinstance(node, ir.FunctionCall):
        return column
    if isinstance(node, ir.Query):
        return node
    if isinstance(node, (list, tuple)):
        items = [_replaced(one, call, column) for one in node]
        return tuple(items) if isinstance(node, tuple) else items
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        changes = {field.name: _replaced(getattr(node, field.name), call, column) for field in dataclasses.fields(node)}
        return dataclasses.replace(node, **changes)
    return node


def lower_serialize(node: Any) -> list[Any]:
    """`serialize` itself changes nothing; with expressions it is `extend` over rows whose order counts."""
    expressions = tuple(lower._lower_named(child) for child in lower._rule_children(node))
    return [Serialize(), windowed(ir.Extend(expressions))] if expressions else [Serialize()]


@dataclasses.dataclass(frozen=True)
class Serialize(PlacedOperator):
    """Marks the rows as being in an order that counts."""

    kind = "serialize"
    keeps_label = True

    def resolve(self, place: Place) -> list[ir.Operator]:
        return []


def serialized_after(operator: Any, before: bool) -> bool:
    """Whether the order of rows counts after `operator`."""
    if isinstance(operator, (ir.Sort, ir.Top, ir.GetSchema, Serialize)):
        return True
    keeping = (ir.Where, ir.Extend, ir.Project, ir.ProjectAway, ir.ProjectRename, ir.Take, ir.MvExpand, ir.Parse)
    return before and isinstance(operator, (*keeping, PlacedOperator))
