"""What is said about rules that can never decide is true: no call ever reaches such a rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.gateway.policy.conditions import (
    Reachability,
    TypeName,
    Unsatisfiable,
    ValueType,
    check,
    evaluate,
)
from sentinel_rag.gateway.policy.conditions.reachability import AlternativeFacts, alternatives_of
from sentinel_rag.gateway.policy.conditions.reachability import Test as SmallTest

PARAMETERS = {
    "s": ValueType(TypeName.STRING),
    "n": ValueType(TypeName.NUMBER),
    "b": ValueType(TypeName.BOOLEAN),
}
TEXTS = ["a", "ab", "abc", "b", "ba", "Ab", ""]
CALLS: list[dict[str, Any]] = [
    {name: value for name, value in (("s", s), ("n", n), ("b", b)) if value is not None}
    for s, n, b in product([*TEXTS, "cab", "x", None], [-1, 0, 0.5, 1, 2, 3, None], [True, False, None])
]
text = st.sampled_from(TEXTS).map(repr)
number = st.sampled_from(["0", "1", "2"])
subject = st.sampled_from(["s", "s", "s.lower()", "s.upper()"])
atoms = st.one_of(
    st.builds("{}.{}({})".format, subject, st.sampled_from(["startswith", "endswith", "contains"]), text),
    st.builds("{}.startswith(({}, {}))".format, subject, text, text),
    st.builds("{} {} {}".format, subject, st.sampled_from(["==", "!=", "<", ">="]), text),
    st.builds("{} {} [{}, {}]".format, subject, st.sampled_from(["in", "not in"]), text, text),
    st.builds("n {} {}".format, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), number),
    st.builds("{} {} n <= {}".format, number, st.sampled_from(["<", "=="]), number),
    st.builds("s.matches('{}')".format, st.sampled_from(["^a", "b$", "[ab]c"])),
    st.builds("len(s) {} {}".format, st.sampled_from(["==", "<", ">"]), number),
    st.sampled_from(["b", "b == true", "b != true", "has(s)", "has(b)", "s == null", "true", "false"]),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=examples(400, 100), deadline=None)
@given(st.lists(conditions, min_size=1, max_size=6))
def test_no_call_reaches_a_rule_that_is_said_to_be_unreachable(texts: list[str]) -> None:
    trees = [check(one, PARAMETERS) for one in texts]
    reachability = Reachability()
    findings = [reachability.add(tree) for tree in trees]
    assume(any(findings))
    event("unsatisfiable" if any(isinstance(found, Unsatisfiable) for found in findings) else "shadowed")
    for call in CALLS:
        verdicts = [evaluate(tree, call) for tree in trees]
        deciding = next((index for index, verdict in enumerate(verdicts) if verdict is not False), None)
        if deciding is not None and verdicts[deciding] is True:
            assert findings[deciding] is None, call


@settings(max_examples=examples(400, 100), deadline=None)
@given(conditions)
def test_the_alternatives_of_a_condition_say_the_same(text: str) -> None:
    tree = check(text, PARAMETERS)
    alternatives = alternatives_of(tree)
    assert alternatives is not None
    for call in CALLS:
        holds = any(all(evaluate(test.expression(), call) is True for test in one) for one in alternatives)
        assert holds is (evaluate(tree, call) is True), call


STRING_ATOMS = [
    *(f"s.{method}({text!r})" for method in ("startswith", "endswith", "contains") for text in ("a", "ab", "abc", "b")),
    *(f"s {sign} {text!r}" for sign in ("==", "!=", "<", ">=") for text in ("a", "ab", "b")),
    *("s.matches('^a')", "s.matches('b$')", "has(s)"),
]
NUMBER_ATOMS = [f"n {sign} {number}" for sign in ("==", "!=", "<", "<=", ">", ">=") for number in (0, 1, 2)]
VALUES: list[dict[str, Any]] = [
    {},
    *({"s": s} for s in ("", "a", "ab", "abc", "b", "ba", "bab", "cab", "x")),
    *({"n": n} for n in (-1, 0, 0.5, 1, 1.5, 2, 3)),
]


@pytest.mark.parametrize("atoms", [STRING_ATOMS, NUMBER_ATOMS], ids=["text", "number"])
def test_what_is_said_about_every_pair_of_tests_is_true(atoms: list[str]) -> None:
    tests = [test for text in atoms for wanted in (text, f"not ({text})") for test in only_alternative(wanted)]
    said = 0
    for one, other in product(tests, tests):
        both = [all(evaluate(test.expression(), call) is True for test in (one, other)) for call in VALUES]
        facts = AlternativeFacts.of(frozenset({one, other}))
        if facts.contradiction():
            said += 1
            assert not any(both), (one, other)
        if AlternativeFacts.of(frozenset({one})).implies(other):
            said += 1
            assert all(
                evaluate(other.expression(), call) is True
                for call in VALUES
                if evaluate(one.expression(), call) is True
            ), (one, other)
    assert said > len(tests)


def only_alternative(text: str) -> list[SmallTest]:
    alternatives = alternatives_of(check(text, PARAMETERS))
    assert alternatives is not None
    [alternative] = alternatives
    return list(alternative)
