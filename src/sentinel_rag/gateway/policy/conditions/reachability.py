"""Which rules of a tool can never decide: their own condition is never true, or earlier rules always decide first.

A condition is judged as alternatives, each a set of small tests that must all hold, up to a bound of their number.
Everything here errs on one side: what is not certain is not said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.evaluation import evaluate
from sentinel_rag.gateway.policy.conditions.tree import text_of

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
        case tree.StringTest(_, subject, tree.Constant()) | tree.Matches(subject, _, _):
            return subject
        case tree.Compare(subject, ((_, tree.Constant() | tree.Choices()),)):
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
        case tree.Compare(first, rest) if len(rest) > 1:
            pairs = zip((first, *(operand for _, operand in rest)), rest, strict=False)
            steps = tuple(tree.Compare(left, (step,)) for left, step in pairs)
            return _all(steps, wanted) if wanted else _any(steps, wanted)
        case tree.StringTest(method, subject, tree.Choices(values)):
            tests = tuple(tree.StringTest(method, subject, tree.Constant(value)) for value in values)
            return _any(tests, wanted) if wanted else _all(tests, wanted)
        case tree.Compare(subject, ((("in" | "not in") as operator, tree.Choices(values)),)):
            equals = [tree.Compare(subject, (("==", tree.Constant(value)),)) for value in dict.fromkeys(values)]
            inside = (operator == "in") is wanted
            return _any(equals, True) if inside else _all(equals, False)
        case tree.Compare(subject, ((operator, operand),)):
            return [frozenset({_turned(subject, operator, operand, wanted)})]
        case tree.Argument(name):  # a parameter of type boolean that stands alone
            return [frozenset({Test(tree.Compare(tree.Argument(name), (("==", tree.Constant(wanted)),)))})]
        case _:
            return [frozenset({Test(node, wanted)})]


def _turned(subject: tree.Expression, operator: str, operand: tree.Expression, wanted: bool) -> Test:
    if isinstance(subject, tree.Constant) and operator in _MIRRORED:
        subject, operator, operand = operand, _MIRRORED[operator], subject
    if isinstance(operand, tree.Constant) and isinstance(operand.value, bool) and operator in ("==", "!="):
        value = operand.value if (operator == "==") is wanted else not operand.value
        return Test(tree.Compare(subject, (("==", tree.Constant(value)),)))
    operator = operator if wanted else _OPPOSITE[operator]
    return Test(tree.Compare(subject, ((operator, operand),)))


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
        return tree.Constant(value)
    match node:
        case tree.Compare(first, ((operator, operand),)):
            return tree.Compare(_replaced(first, subject, value), ((operator, _replaced(operand, subject, value)),))
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


_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(slots=True)
class AlternativeFacts:
    """The tests of one alternative by subject. `present` are parameters that a call must give to pass."""

    tests: Alternative
    by_subject: dict[tree.Expression, list[Test]] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, alternative: Alternative) -> AlternativeFacts:
        facts = cls(alternative)
        for test in alternative:
            if not isinstance(test.node, tree.Present):
                facts.present |= tree.reads(test.node)
            elif test.wanted:
                facts.present.add(test.node.name)
            subject = subject_of(test.node)
            if subject is not None:
                facts.by_subject.setdefault(subject, []).append(test)
        return facts

    def contradiction(self) -> tuple[Test, ...]:
        """Tests that no call passes together (one, if it never holds by itself); empty if none were found."""
        for test in self.tests:
            if Test(test.node, not test.wanted) in self.tests:
                return (Test(test.node), Test(test.node, False))
            if isinstance(test.node, tree.Present) and not test.wanted and test.node.name in self.present:
                other = next(one for one in self.tests if one != test and test.node.name in tree.reads(one.node))
                return (test, other)
            if _never(test):
                return (test,)
        for subject, tests in self.by_subject.items():
            for index, one in enumerate(tests):
                for other in tests[index + 1 :]:
                    if _exclude(subject, one, other):
                        return (one, other)
        return ()

    def implies(self, test: Test) -> bool:
        """Whether every call that passes all tests of this alternative passes `test`."""
        if test in self.tests:
            return True
        if isinstance(test.node, tree.Present):
            return test.wanted and test.node.name in self.present
        subject = subject_of(test.node)
        if subject is None:
            return False
        known = self.by_subject.get(subject, ())
        negation = _negated(test)
        return any(_exclude(subject, one, negation) for one in known)


def _negated(test: Test) -> Test:
    match test.node:
        case tree.Compare(subject, ((sign, operand),)) if sign in _OPPOSITE_ORDER and not isinstance(
            operand, tree.Choices
        ):
            return Test(tree.Compare(subject, ((_OPPOSITE_ORDER[sign], operand),)), test.wanted)
        case _:
            return Test(test.node, not test.wanted)


_OPPOSITE_ORDER = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _never(test: Test) -> bool:
    """Whether a test asks a lower-cased text for capital letters, or the like."""
    if not test.wanted:
        return False
    match test.node:
        case tree.StringTest(method, tree.CaseMapping(mapping, _), tree.Constant(str(text))):
            pass
        case tree.Compare(tree.CaseMapping(mapping, _), (("==", tree.Constant(str(text))),)):
            method = "=="
        case _:
            return False
    if mapping in ("lower", "casefold"):
        return any("A" <= letter <= "Z" for letter in text)
    if mapping == "upper":
        return any("a" <= letter <= "z" for letter in text)
    begins_blank = method in ("==", "startswith") and text != text.lstrip()
    ends_blank = method in ("==", "endswith") and text != text.rstrip()
    return begins_blank or ends_blank


def _exclude(subject: tree.Expression, one: Test, other: Test) -> bool:
    """Whether no value of `subject` passes both."""
    for first, second in ((one, other), (other, one)):
        value = _only_value(first)
        if value is not None and second.holds(subject, value[0]) is False:
            return True
    match (one.node, one.wanted, other.node, other.wanted):
        case tree.Compare(_, ((sign, tree.Constant(left)),)), True, tree.Compare(
            _, ((sign_2, tree.Constant(right)),)
        ), True if sign in _ORDER and sign_2 in _ORDER:
            return _bounds_exclude(sign, left, sign_2, right)
        case tree.StringTest(method, _, tree.Constant(str(left))), True, tree.StringTest(
            method_2, _, tree.Constant(str(right))
        ), True if method == method_2:
            return _ends_exclude(method, left, right)
        case tree.StringTest(method, _, tree.Constant(str(left))), True, tree.StringTest(
            method_2, _, tree.Constant(str(right))
        ), False:
            return _holds_within(method, left, method_2, right)
        case tree.StringTest(method, _, tree.Constant(str(left))), False, tree.StringTest(
            method_2, _, tree.Constant(str(right))
        ), True:
            return _holds_within(method_2, right, method, left)
        case _:
            return False


def _only_value(test: Test) -> tuple[tree.Scalar] | None:
    match test.node:
        case tree.Compare(_, (("==", tree.Constant(value)),)) if test.wanted:
            return (value,)
        case _:
            return None


def _bounds_exclude(sign: str, left: Any, sign_2: str, right: Any) -> bool:
    """`x sign left` and `x sign_2 right` for one x, over a dense order (so `n > 3 and n < 4` is left alone)."""
    if sign[0] == "<" and sign_2[0] == ">":
        return bool(left < right or (left == right and (sign, sign_2) != ("<=", ">=")))
    if sign[0] == ">" and sign_2[0] == "<":
        return _bounds_exclude(sign_2, right, sign, left)
    return False


def _ends_exclude(method: str, left: str, right: str) -> bool:
    """Whether no text begins (ends) with both."""
    if method == "startswith":
        return not left.startswith(right) and not right.startswith(left)
    if method == "endswith":
        return not left.endswith(right) and not right.endswith(left)
    return False


def _holds_within(method: str, text: str, method_2: str, part: str) -> bool:
    """Whether a text that passes the first test always passes the second."""
    if method_2 == "contains":
        return part in text
    return method == method_2 and (text.startswith(part) if method == "startswith" else text.endswith(part))


MOST_COMPARISONS = 100_000
"""Alternatives of earlier rules that are compared in all; beyond, later rules are taken as reachable."""


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """No call makes the condition true. `because` are the tests that exclude each other, as text; may be empty."""

    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shadowed:
    """Whenever the condition is true, one of the earlier rules with these indexes is true or cannot be decided."""

    by: tuple[int, ...]


@dataclass(slots=True)
class Reachability:
    """Takes the conditions of one tool in their order."""

    _earlier: _Index = field(default_factory=lambda: _Index())
    _count: int = 0

    def add(self, condition: tree.Expression) -> Unsatisfiable | Shadowed | None:
        """What is wrong with the next condition; None if it may decide a call."""
        index, self._count = self._count, self._count + 1
        alternatives = alternatives_of(condition)
        if alternatives is None:
            return None
        possible: list[AlternativeFacts] = []
        because: tuple[Test, ...] = ()
        for alternative in alternatives:
            facts = AlternativeFacts.of(alternative)
            excluded = facts.contradiction()
            if excluded:
                because = excluded
            else:
                possible.append(facts)
        if not possible:
            return Unsatisfiable(tuple(sorted(text_of(test.expression()) for test in because)))
        shadows = [self._earlier.covering(facts) for facts in possible]
        for facts in possible:
            self._earlier.add(index, facts.tests)
        if None in shadows:
            return None
        return Shadowed(tuple(sorted({shadow for shadow in shadows if shadow is not None})))


class _Index:
    """The alternatives of earlier rules, found by the one of their tests that is cheapest to look up."""

    def __init__(self) -> None:
        self._always: list[int] = []
        self._by_test: dict[Test, list[tuple[int, Alternative]]] = {}
        self._by_prefix: dict[tree.Expression, dict[str, list[tuple[int, Alternative]]]] = {}
        self._others: dict[tree.Expression | None, list[tuple[int, Alternative]]] = {}
        self._left = MOST_COMPARISONS

    def add(self, rule: int, alternative: Alternative) -> None:
        if not alternative:
            self._always.append(rule)
            return
        key = min(alternative, key=_cost)
        match key:
            case Test(tree.StringTest("startswith", subject, tree.Constant(str(prefix))), True):
                self._by_prefix.setdefault(subject, {}).setdefault(prefix, []).append((rule, alternative))
            case _ if _cost(key) == 0:
                self._by_test.setdefault(key, []).append((rule, alternative))
            case _:
                self._others.setdefault(subject_of(key.node), []).append((rule, alternative))

    def covering(self, facts: AlternativeFacts) -> int | None:
        """The first earlier rule that one alternative of is implied by `facts`."""
        best = self._always[0] if self._always else None
        for rule, alternative in self._candidates(facts):
            if best is not None and rule >= best:
                continue
            if self._left <= 0:
                break
            self._left -= 1
            if all(facts.implies(test) for test in alternative):
                best = rule
        return best

    def _candidates(self, facts: AlternativeFacts) -> Iterator[tuple[int, Alternative]]:
        for test in facts.tests:
            yield from self._by_test.get(test, ())
        for subject, tests in facts.by_subject.items():
            prefixes = self._by_prefix.get(subject)
            if prefixes is not None:
                for text in _beginnings(tests):
                    for length in range(len(text) + 1):
                        yield from prefixes.get(text[:length], ())
            yield from self._others.get(subject, ())
        yield from self._others.get(None, ())


def _cost(test: Test) -> int:
    match test.node:
        case tree.Compare(_, (("==", tree.Constant()),)) | tree.Matches() if test.wanted:
            return 0
        case tree.StringTest("startswith", _, tree.Constant()) if test.wanted:
            return 1
        case _:
            return 2


def _beginnings(tests: Sequence[Test]) -> Iterator[str]:
    """Texts that the subject is known to begin with, or to be."""
    for test in tests:
        match test.node:
            case tree.StringTest("startswith", _, tree.Constant(str(text))) if test.wanted:
                yield text
            case tree.Compare(_, (("==", tree.Constant(str(text))),)) if test.wanted:
                yield text
