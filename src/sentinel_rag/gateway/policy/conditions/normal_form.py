"""A condition as alternatives, each a set of small tests that must all hold; the form in which reachability is judged.

The size is bounded: a condition that would need more is left alone, and nothing is said about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.evaluation import evaluate

MOST_ALTERNATIVES = 128
MOST_TESTS = 24

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in", "not in": "in"}


@dataclass(frozen=True, slots=True)
class Test:
    """One part of a condition that has no `and`, `or` or `not` inside; `wanted` is False where its negation stands."""

    node: tree.Expression
    wanted: bool = True

    def expression(self) -> tree.Expression:
        return self.node if self.wanted else tree.Not(self.node)

    def holds(self, subject: tree.Expression, value: tree.Scalar) -> bool | None:
        """Whether the test holds where `subject` has that value; None if that depends on something else."""
        verdict = evaluate(_replaced(self.node, subject, value), {})
        return None if verdict is None else verdict is self.wanted


Alternative = frozenset[Test]


def alternatives_of(condition: tree.Expression) -> list[Alternative] | None:
    """The condition is true exactly where all tests of one alternative are; none for a condition that never is. None
    if there would be too many. A comparison is turned so that its literal stands right, a chain into its steps."""
    try:
        return list(dict.fromkeys(_alternatives(condition, True)))
    except _TooLarge:
        return None


def subject_of(test: tree.Expression) -> tree.Expression | None:
    """What a test looks at, where it compares it with literals alone."""
    match test:
        case tree.StringTest(_, subject, tree.Literal()) | tree.Matches(subject, _, _):
            return subject
        case tree.Comparison(subject, ((_, tree.Literal() | tree.Choices()),)):
            return subject
        case _:
            return None


class _TooLarge(Exception):
    pass


def _alternatives(node: tree.Expression, wanted: bool) -> Iterable[Alternative]:
    if not tree.reads(node):
        return [frozenset()] if evaluate(node, {}) is wanted else []
    match node:
        case tree.Not(operand):
            return _alternatives(operand, not wanted)
        case tree.Every(operands):
            return _all(operands, wanted) if wanted else _any(operands, wanted)
        case tree.Some(operands):
            return _any(operands, wanted) if wanted else _all(operands, wanted)
        case tree.Comparison(first, rest) if len(rest) > 1:
            pairs = zip((first, *(operand for _, operand in rest)), rest, strict=False)
            steps = tuple(tree.Comparison(left, (step,)) for left, step in pairs)
            return _all(steps, wanted) if wanted else _any(steps, wanted)
        case tree.StringTest(method, subject, tree.Choices(values)):
            tests = tuple(tree.StringTest(method, subject, tree.Literal(value)) for value in values)
            return _any(tests, wanted) if wanted else _all(tests, wanted)
        case tree.Comparison(subject, ((("in" | "not in") as operator, tree.Choices(values)),)):
            equals = [tree.Comparison(subject, (("==", tree.Literal(value)),)) for value in dict.fromkeys(values)]
            inside = (operator == "in") is wanted
            return _any(equals, True) if inside else _all(equals, False)
        case tree.Comparison(subject, ((operator, operand),)):
            return [frozenset({_turned(subject, operator, operand, wanted)})]
        case tree.Argument(name):  # a parameter of type boolean that stands alone
            return [frozenset({Test(tree.Comparison(tree.Argument(name), (("==", tree.Literal(wanted)),)))})]
        case _:
            return [frozenset({Test(node, wanted)})]


def _turned(subject: tree.Expression, operator: str, operand: tree.Expression, wanted: bool) -> Test:
    if isinstance(subject, tree.Literal) and operator in _MIRRORED:
        subject, operator, operand = operand, _MIRRORED[operator], subject
    if isinstance(operand, tree.Literal) and isinstance(operand.value, bool) and operator in ("==", "!="):
        value = operand.value if (operator == "==") is wanted else not operand.value
        return Test(tree.Comparison(subject, (("==", tree.Literal(value)),)))
    operator = operator if wanted else _OPPOSITE[operator]
    return Test(tree.Comparison(subject, ((operator, operand),)))


def _any(operands: Iterable[tree.Expression], wanted: bool) -> list[Alternative]:
    found: list[Alternative] = []
    for operand in operands:
        found += _alternatives(operand, wanted)
        if len(found) > MOST_ALTERNATIVES:
            raise _TooLarge
    return found


def _all(operands: Iterable[tree.Expression], wanted: bool) -> list[Alternative]:
    found: list[Alternative] = [frozenset()]
    for operand in operands:
        found = [one | other for one, other in product(found, _alternatives(operand, wanted))]
        if len(found) > MOST_ALTERNATIVES or any(len(alternative) > MOST_TESTS for alternative in found):
            raise _TooLarge
    return found


def _replaced(node: tree.Expression, subject: tree.Expression, value: tree.Scalar) -> tree.Expression:
    if node == subject:
        return tree.Literal(value)
    match node:
        case tree.Comparison(first, ((operator, operand),)):
            return tree.Comparison(_replaced(first, subject, value), ((operator, _replaced(operand, subject, value)),))
        case tree.StringTest(method, inner, operand):
            return tree.StringTest(method, _replaced(inner, subject, value), _replaced(operand, subject, value))
        case tree.Matches(inner, pattern, regex):
            return tree.Matches(_replaced(inner, subject, value), pattern, regex)
        case tree.CaseMapping(method, inner):
            return tree.CaseMapping(method, _replaced(inner, subject, value))
        case tree.Length(inner):
            return tree.Length(_replaced(inner, subject, value))
        case _:
            return node
