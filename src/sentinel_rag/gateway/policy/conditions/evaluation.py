"""The meaning of a condition, in Kleene's strong three-valued logic: True, False, or None for unknown.

This is the definition; `emission` is a faster way to the same answer for calls that give every parameter asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.patterns import found


def evaluate(node: tree.Expression, arguments: Mapping[str, Any]) -> bool | None:
    """Decide a condition for arguments of the declared types; None where a left-out parameter leaves it open."""
    value = _value(node, arguments)
    assert value is None or isinstance(value, bool)
    return value


def _value(node: tree.Expression, arguments: Mapping[str, Any]) -> Any:
    match node:
        case tree.Literal(value):
            return value
        case tree.Choices(values):
            return values
        case tree.Argument(name):
            return arguments.get(name)  # no argument is null: the argument check refuses it
        case tree.Present(name):
            return name in arguments
        case tree.Not(operand):
            value = _value(operand, arguments)
            return None if value is None else not value
        case tree.Every(operands):
            return _every(_value(operand, arguments) for operand in operands)
        case tree.Some(operands):
            return _negated(_every(_negated(_value(operand, arguments)) for operand in operands))
        case tree.Comparison():
            return _chain(node, arguments)
        case tree.StringTest(method, subject, operand):
            left, right = _value(subject, arguments), _value(operand, arguments)
            if left is None or right is None:
                return None
            return right in left if method == "contains" else getattr(left, method)(right)
        case tree.Matches(subject, _, regex):
            value = _value(subject, arguments)
            return None if value is None else found(regex, value)
        case tree.CaseMapping(method, subject):
            value = _value(subject, arguments)
            return None if value is None else getattr(value, method)()
        case tree.Length(subject):
            value = _value(subject, arguments)
            return None if value is None else len(value)


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _every(values: Any) -> bool | None:
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _chain(node: tree.Comparison, arguments: Mapping[str, Any]) -> bool | None:
    left = _value(node.first, arguments)
    steps: list[bool | None] = []
    for operator, operand in node.rest:
        right = _value(operand, arguments)
        steps.append(None if left is None or right is None else compare(left, operator, right))
        left = right
    return _every(steps)


def compare(left: Any, operator: str, right: Any) -> bool:
    """One comparison of two known values of fitting types."""
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "in":
            return holds(right, left)
        case "not in":
            return not holds(right, left)
        case _:
            raise AssertionError(operator)


def holds(container: Any, item: Any) -> bool:
    """Membership. In a list, true and 1 are different values, as they are in JSON and not in Python."""
    if isinstance(container, list | tuple):
        return any(isinstance(element, bool) is isinstance(item, bool) and element == item for element in container)
    return item in container
