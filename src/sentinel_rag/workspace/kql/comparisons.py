"""Equality between values of two types, such as `ResultType == 0` on a column of text.

Kusto compares for equality across types that have no order in common; the engine would cast the text of every row and
fail at the first that is no number. Here the constant becomes a value of the column's type where it can, and else both
sides are compared as text, so no row can fail the query.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form

_NUMBERS = frozenset(("int", "long", "real", "decimal"))
_FROM_TEXT = {"datetime": "todatetime", "timespan": "totimespan", "guid": "toguid", "bool": "tobool"}

TypeOf = Callable[[Any], str]


def comparable(node: ir.BinaryOp | ir.InList, type_of: TypeOf) -> ir.Expr:
    """`node` with operands of one type, or as it is where their types agree, are dynamic or are not known."""
    if isinstance(node, ir.BinaryOp):
        if node.op not in ("==", "!=", "<>", "=~", "!~"):
            return node
        left, right = _pair(node.left, node.right, type_of)
        if left is node.left and right is node.right:
            return node
        return dataclasses.replace(node, left=left, right=right)
    if node.subquery is not None or not node.items:
        return node
    kind = type_of(node.value)
    if kind in ("", "dynamic"):
        return node
    kinds = {type_of(item) for item in node.items}
    if kinds <= {kind, "", "dynamic"} or (kind in _NUMBERS and kinds <= _NUMBERS):
        return node
    pairs = [_pair(node.value, item, type_of) for item in node.items]
    if any(value is not node.value for value, _ in pairs):
        if any(type_of(item) in ("", "dynamic") for item in node.items):
            return node
        return dataclasses.replace(node, value=_text(node.value, kind), items=tuple(_text(i, "") for i in node.items))
    return dataclasses.replace(node, items=tuple(item for _, item in pairs))


def of_one_type(node: ir.FunctionCall, type_of: TypeOf) -> ir.FunctionCall:
    """`iff` and `case` with branches of two types that Kusto brings together.

    Text and a dynamic are text, whole numbers and reals are reals.
    """
    name = node.name.lower()
    if name in ("iff", "iif") and len(node.args) == 3:
        places = [1, 2]
    elif name == "case" and len(node.args) >= 3:
        places = [*range(1, len(node.args) - 1, 2), len(node.args) - 1]
    else:
        return node
    kinds = {type_of(node.args[place]) for place in places}
    if kinds == {"string", "dynamic"}:
        narrow, conversion = {"dynamic"}, "tostring"
    elif "real" in kinds and {"real"} < kinds <= {"int", "long", "real"}:
        narrow, conversion = {"int", "long"}, "toreal"
    else:
        return node
    args = [
        ir.FunctionCall(conversion, (arg,)) if place in places and type_of(arg) in narrow else arg
        for place, arg in enumerate(node.args)
    ]
    return dataclasses.replace(node, args=tuple(args))


def _pair(left: ir.Expr, right: ir.Expr, type_of: TypeOf) -> tuple[ir.Expr, ir.Expr]:
    kinds = type_of(left), type_of(right)
    if set(kinds) == {"string", "dynamic"} and not isinstance(left, ir.Literal) and not isinstance(right, ir.Literal):
        return _text(left, kinds[0]), _text(right, kinds[1])
    if "" in kinds or "dynamic" in kinds or kinds[0] == kinds[1] or set(kinds) <= _NUMBERS:
        return left, right
    if isinstance(right, ir.Literal):
        return _with_constant(left, kinds[0], right)
    if isinstance(left, ir.Literal):
        swapped = _with_constant(right, kinds[1], left)
        return swapped[1], swapped[0]
    if "string" in kinds:
        return _text(left, kinds[0]), _text(right, kinds[1])
    return left, right


def _with_constant(value: ir.Expr, kind: str, constant: ir.Literal) -> tuple[ir.Expr, ir.Expr]:
    if kind == "string":
        return value, _text(constant, constant.kind)
    if constant.kind != "string":
        return value, constant
    text = str(constant.value)
    if kind in ("int", "long") and re.fullmatch(r"-?(0|[1-9]\d{0,17})", text):
        return value, ir.Literal(int(text), "long")
    if kind in _FROM_TEXT:
        return value, ir.FunctionCall(_FROM_TEXT[kind], (constant,))
    return _text(value, kind), constant


def _text(node: ir.Expr, kind: str) -> ir.Expr:
    if kind == "string" or (isinstance(node, ir.Literal) and node.kind == "string"):
        return node
    if isinstance(node, ir.Literal) and node.kind in ("int", "long") and node.value is not None:
        return ir.Literal(str(node.value), "string")
    return ir.FunctionCall("tostring", (node,))
