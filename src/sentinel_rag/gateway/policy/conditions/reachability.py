"""Which rules of a tool can never decide: because their own condition is never true, or because earlier rules always
decide before them. Said only where it is certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.facts import Facts
from sentinel_rag.gateway.policy.conditions.normal_form import Alternative, Test, alternatives_of, subject_of
from sentinel_rag.gateway.policy.conditions.wording import text_of

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
        possible: list[Facts] = []
        because: tuple[Test, ...] = ()
        for alternative in alternatives:
            facts = Facts.of(alternative)
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
            case Test(tree.StringTest("startswith", subject, tree.Literal(str(prefix))), True):
                self._by_prefix.setdefault(subject, {}).setdefault(prefix, []).append((rule, alternative))
            case _ if _cost(key) == 0:
                self._by_test.setdefault(key, []).append((rule, alternative))
            case _:
                self._others.setdefault(subject_of(key.node), []).append((rule, alternative))

    def covering(self, facts: Facts) -> int | None:
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

    def _candidates(self, facts: Facts) -> Iterator[tuple[int, Alternative]]:
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
        case tree.Comparison(_, (("==", tree.Literal()),)) | tree.Matches() if test.wanted:
            return 0
        case tree.StringTest("startswith", _, tree.Literal()) if test.wanted:
            return 1
        case _:
            return 2


def _beginnings(tests: Sequence[Test]) -> Iterator[str]:
    """Texts that the subject is known to begin with, or to be."""
    for test in tests:
        match test.node:
            case tree.StringTest("startswith", _, tree.Literal(str(text))) if test.wanted:
                yield text
            case tree.Comparison(_, (("==", tree.Literal(str(text))),)) if test.wanted:
                yield text
