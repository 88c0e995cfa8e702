"""Rules that can never decide: what is said, with the tests that exclude each other and the rules that come before."""

from __future__ import annotations

import pytest

from sentinel_rag.gateway.policy.conditions import (
    Reachability,
    Shadowed,
    TypeName,
    Unsatisfiable,
    ValueType,
    check,
    reachability,
)

PARAMETERS = {
    "s": ValueType(TypeName.STRING),
    "t": ValueType(TypeName.STRING),
    "n": ValueType(TypeName.NUMBER),
    "b": ValueType(TypeName.BOOLEAN),
    "l": ValueType(TypeName.ARRAY, TypeName.STRING),
}


def findings(*texts: str) -> list[Unsatisfiable | Shadowed | None]:
    seen = Reachability()
    return [seen.add(check(text, PARAMETERS)) for text in texts]


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("false", ()),
        ("1 > 2", ()),
        ("s == 'a' and s == 'b'", ("s == 'a'", "s == 'b'")),
        ("s == 'a' and s != 'a'", None),
        ("not (s == 'a' or true)", ()),
        ("s.startswith('a') and s.startswith('b')", ("s.startswith('a')", "s.startswith('b')")),
        ("s.endswith('a') and s.endswith('b')", ("s.endswith('a')", "s.endswith('b')")),
        ("s == 'abc' and not s.startswith('ab')", ("not s.startswith('ab')", "s == 'abc'")),
        ("s == 'abc' and s.startswith('b')", ("s == 'abc'", "s.startswith('b')")),
        ("s == 'abc' and s.matches('^x')", ("s == 'abc'", "s.matches('^x')")),
        ("s.startswith('abc') and not s.startswith('ab')", ("not s.startswith('ab')", "s.startswith('abc')")),
        ("s.endswith('abc') and not s.endswith('bc')", ("not s.endswith('bc')", "s.endswith('abc')")),
        ("s.startswith('abc') and not s.contains('b')", ("not s.contains('b')", "s.startswith('abc')")),
        ("not s.contains('b') and s.contains('abc')", ("not s.contains('b')", "s.contains('abc')")),
        ("n < 1 and n > 2", ("n < 1", "n > 2")),
        ("n < 1 and n > 1", ("n < 1", "n > 1")),
        ("n <= 1 and n > 1", ("n <= 1", "n > 1")),
        ("n < 1 and n >= 1", ("n < 1", "n >= 1")),
        ("n > 2 and n < 1", ("n < 1", "n > 2")),
        ("n == 5 and n < 5", ("n < 5", "n == 5")),
        ("2 < n < 1", ("n < 1", "n > 2")),
        ("b and not b", None),
        ("b == true and b != true", None),
        ("has(s) and s == null", ("has(s)", "s == null")),
        ("s == null and s == 'a'", None),
        ("s.lower() == 'Abc'", ("s.lower() == 'Abc'",)),
        ("s.casefold().startswith('aB')", ("s.casefold().startswith('aB')",)),
        ("s.upper().contains('b')", ("s.upper().contains('b')",)),
        ("s.strip() == ' a'", ("s.strip() == ' a'",)),
        ("s.strip().endswith('a ')", ("s.strip().endswith('a ')",)),
        ("s.strip().startswith(' a')", ("s.strip().startswith(' a')",)),
        ("s in ['a', 'b'] and s not in ['b', 'a', 'c']", None),
        ("len(s) > 3 and len(s) < 2", ("len(s) < 2", "len(s) > 3")),
        ("s.startswith(('a', 'b')) and s == 'c'", None),
        ("s < 'b' and s > 'c'", ("s < 'b'", "s > 'c'")),
    ],
)
def test_a_condition_that_never_holds_is_found_with_what_excludes_itself(
    text: str, because: tuple[str, ...] | None
) -> None:
    [found] = findings(text)
    assert isinstance(found, Unsatisfiable)
    if because is not None:
        assert found.because == because


@pytest.mark.parametrize(
    "text",
    [
        *("true", "s == 'a' or s == 'b'", "s == 'a' and t == 'b'", "s.startswith('a') and s.startswith('ab')"),
        *("s.startswith('ab') and not s.startswith('abc')", "n <= 1 and n >= 1", "n > 3 and n < 4", "n < 2 and n > 1"),
        *(
            "s.lower() == 'abc'",
            "s.upper() == 'ABC'",
            "s.strip() == 'a b'",
            "s.strip().contains(' a ')",
            "s.lower() != 'A'",
        ),
        *("s.endswith('bc') and s.startswith('a')", "s.contains('a') and not s.contains('ab')", "n == 5 and n <= 5"),
        *("s.upper() == 'SS' and s == 'ß'", "not s.startswith('a') and not s.startswith('b')", "n > 1 and n > 2"),
        *(
            "s.matches('a') and s == 'cat'",
            "has(s)",
            "s == null",
            "s == t",
            "s in l",
            "'a' in l",
            "s in t",
            "b",
            "not b",
        ),
        *(
            "not (s == 'a' and t == 'b')",
            "s not in ['a']",
            "s.startswith('a') and not s.endswith('a')",
            "n != 1 and n != 2",
        ),
        *(
            "s.strip().startswith('a ')",
            "s.strip().endswith(' a')",
            "s.lower().contains('é')",
            "len(l) == 1 and len(s) == 2",
        ),
    ],
)
def test_a_condition_that_may_hold_is_left_alone(text: str) -> None:
    assert findings(text) == [None]


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("earlier", "later", "by"),
    [
        (["true"], "s == 'a'", (0,)),
        (["s == 'a'"], "s == 'a'", (0,)),
        (["t == 'x'", "s == 'a'"], "s == 'a' and t == 'b'", (1,)),
        (["s.startswith('a')"], "s == 'abc'", (0,)),
        (["s.startswith('a')"], "s.startswith('ab')", (0,)),
        (["s.endswith('c')"], "s.endswith('bc')", (0,)),
        (["s.contains('b')"], "s.startswith('abc')", (0,)),
        (["s.contains('b')"], "s == 'abc'", (0,)),
        (["n > 1"], "n > 2", (0,)),
        (["n >= 1"], "n == 1", (0,)),
        (["n < 3"], "n <= 2", (0,)),
        (["n != 1"], "n > 1", (0,)),
        (["has(s)"], "s == 'a'", (0,)),
        (["s in ['a', 'b']"], "s == 'b'", (0,)),
        (["s == 'a'", "s == 'b'"], "s in ['a', 'b']", (0, 1)),
        (["b"], "b == true", (0,)),
        (["not b"], "b != true and s == 'a'", (0,)),
        (["s not in ['a']"], "s == 'c'", (0,)),
        (["s == 'x' or s == 'a'"], "s == 'a'", (0,)),
        (["s.startswith(('x', 'a'))"], "s.startswith('ab')", (0,)),
        (["s == 'q'", "s.startswith('a')", "s.startswith('ab')"], "s == 'abc'", (1,)),
        (["s == 'q'", "s.startswith('')"], "s == 'abc'", (1,)),
        (["s.startswith('a')", "true"], "s.startswith('ab')", (0,)),
        (["s == 'a' and has(t)"], "s == 'a' and t == 'b'", (0,)),
        (["'x' == s"], "s == 'x'", (0,)),
        (["2 < n"], "n > 3", (0,)),
        (["s in l"], "s in l and b", (0,)),
        (["not s.contains('x')"], "s == 'abc'", (0,)),
        (["s.lower() == 'a'"], "s.lower() == 'a' and n == 1", (0,)),
        (["len(s) > 1"], "len(s) > 2", (0,)),
    ],
)
def test_a_rule_behind_earlier_ones_is_found_with_them(earlier: list[str], later: str, by: tuple[int, ...]) -> None:
    assert findings(*earlier, later)[-1] == Shadowed(by)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (["s == 'a'"], "s == 'b'"),
        (["s.startswith('ab')"], "s.startswith('a')"),
        (["s.endswith('ab')"], "s.endswith('b')"),
        (["n > 2"], "n > 1"),
        (["n > 1"], "n >= 1"),
        (["s == 'a'"], "t == 'a'"),
        (["s == 'a' and t == 'b'"], "s == 'a'"),
        (["s == 'a'"], "s in ['a', 'b']"),
        (["has(s)"], "t == 'a'"),
        (["s == 'a'"], "true"),
        (["b"], "not b"),
        (["s.lower() == 'a'"], "s == 'A'"),
        (["false"], "s == 'a'"),
        (["s.matches('^a')"], "s.startswith('a')"),
        (["s.startswith('x')"], "s.contains('x')"),
        (["n < 3"], "n != 1"),
    ],
)
def test_a_rule_that_may_still_decide_is_left_alone(earlier: list[str], later: str) -> None:
    assert findings(*earlier, later)[-1] is None


def test_beyond_a_bound_of_work_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "MOST_COMPARISONS", 3)
    seen = Reachability()
    found = [seen.add(check("s.contains('a')", PARAMETERS)) for _ in range(8)]
    assert found[0] is None
    assert found[1] == Shadowed((0,))
    assert found[-1] is None


def test_a_condition_with_very_many_alternatives_is_left_alone() -> None:
    many = " or ".join(f"s == 'a{number}'" for number in range(12))
    assert findings(f"({many}) and ({many.replace('s', 't')})", "false")[0] is None
