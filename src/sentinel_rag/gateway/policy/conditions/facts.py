"""What one alternative of a condition says about each thing it looks at, and what follows from that.

Everything here errs on one side: `contradiction` names a pair only if no call can pass both, `implies` is True only if
every call that passes the alternative passes the test. What is not seen is not said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.normal_form import Alternative, Test, subject_of

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(slots=True)
class Facts:
    """The tests of one alternative by subject. `present` are parameters that a call must give to pass."""

    tests: Alternative
    by_subject: dict[tree.Expression, list[Test]] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, alternative: Alternative) -> Facts:
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
        case tree.Comparison(subject, ((sign, operand),)) if sign in _OPPOSITE and not isinstance(
            operand, tree.Choices
        ):
            return Test(tree.Comparison(subject, ((_OPPOSITE[sign], operand),)), test.wanted)
        case _:
            return Test(test.node, not test.wanted)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _never(test: Test) -> bool:
    """Whether a test asks a lower-cased text for capital letters, or the like."""
    if not test.wanted:
        return False
    match test.node:
        case tree.StringTest(method, tree.CaseMapping(mapping, _), tree.Literal(str(text))):
            pass
        case tree.Comparison(tree.CaseMapping(mapping, _), (("==", tree.Literal(str(text))),)):
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
        case tree.Comparison(_, ((sign, tree.Literal(left)),)), True, tree.Comparison(
            _, ((sign_2, tree.Literal(right)),)
        ), True if sign in _ORDER and sign_2 in _ORDER:
            return _bounds_exclude(sign, left, sign_2, right)
        case tree.StringTest(method, _, tree.Literal(str(left))), True, tree.StringTest(
            method_2, _, tree.Literal(str(right))
        ), True if method == method_2:
            return _ends_exclude(method, left, right)
        case tree.StringTest(method, _, tree.Literal(str(left))), True, tree.StringTest(
            method_2, _, tree.Literal(str(right))
        ), False:
            return _holds_within(method, left, method_2, right)
        case tree.StringTest(method, _, tree.Literal(str(left))), False, tree.StringTest(
            method_2, _, tree.Literal(str(right))
        ), True:
            return _holds_within(method_2, right, method, left)
        case _:
            return False


def _only_value(test: Test) -> tuple[tree.Scalar] | None:
    match test.node:
        case tree.Comparison(_, (("==", tree.Literal(value)),)) if test.wanted:
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
