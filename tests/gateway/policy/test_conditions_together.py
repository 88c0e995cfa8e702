"""Many conditions of one tool as one function: it decides as each alone, and looks at little where none can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sentinel_rag.gateway.policy.conditions import TypeName, ValueType, check, compile_rules, evaluate
from sentinel_rag.gateway.policy.conditions.evaluation import CHUNK, MOST_NEEDS

PARAMETERS = {
    "path": ValueType(TypeName.STRING),
    "name": ValueType(TypeName.STRING),
    "limit": ValueType(TypeName.INTEGER),
    "force": ValueType(TypeName.BOOLEAN),
    "tags": ValueType(TypeName.ARRAY, TypeName.STRING),
}


class Counted(Mapping[str, Any]):
    """Arguments that count how often one of them is looked at."""

    def __init__(self, **values: Any) -> None:
        self._values = values
        self.looks = 0

    def __getitem__(self, name: str) -> Any:
        self.looks += 1
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


CASES: dict[str, tuple[str, dict[str, Any], dict[int, dict[str, Any]]]] = {
    # a template with N, arguments that no rule takes, and for some N arguments that exactly this rule takes first
    "equal": ("path == 'p-N-'", {"path": "other"}, {0: {"path": "p-0-"}, 39: {"path": "p-39-"}}),
    "equal, mirrored": ("'p-N-' == path", {"path": "other"}, {7: {"path": "p-7-"}}),
    "begins": ("path.startswith('p-N-')", {"path": "other"}, {0: {"path": "p-0-x"}, 39: {"path": "p-39-"}}),
    "begins with one of": ("path.startswith(['p-N-', 'q-N-'])", {"path": "r"}, {3: {"path": "q-3-x"}}),
    "ends": ("path.endswith('-N')", {"path": "other"}, {0: {"path": "x-0"}, 39: {"path": "x-39"}}),
    "holds": ("path.contains('(N)')", {"path": "other"}, {0: {"path": "a(0)b"}, 39: {"path": "(39)"}}),
    "matches": ("path.matches('^N[ab]$')", {"path": "other"}, {0: {"path": "0a"}, 39: {"path": "39b"}}),
    "one of": ("path in ['p-N-', 'q-N-']", {"path": "other"}, {5: {"path": "q-5-"}, 39: {"path": "p-39-"}}),
    "above": ("limit > 100N", {"limit": 100}, {0: {"limit": 1001}}),
    "at least": ("limit >= 100N", {"limit": 999}, {0: {"limit": 1000}}),
    "below": ("limit < -100N", {"limit": -1000}, {0: {"limit": -1001}}),
    "at most": ("limit <= -100N", {"limit": -999}, {0: {"limit": -1000}}),
    "above, mirrored": ("100N < limit", {"limit": 100}, {0: {"limit": 1001}}),
    "at least, mirrored": ("100N <= limit", {"limit": 999}, {0: {"limit": 1000}}),
    "below, mirrored": ("-100N > limit", {"limit": -1000}, {0: {"limit": -1001}}),
    "at most, mirrored": ("-100N >= limit", {"limit": -999}, {0: {"limit": -1000}}),
    "lower case": ("path.lower() == 'p-N-'", {"path": "other"}, {8: {"path": "P-8-"}}),
    "length": ("len(path) == 1N", {"path": "abc"}, {2: {"path": "a" * 12}}),
    "guarded": ("has(path) and path == 'p-N-'", {"limit": 1}, {4: {"path": "p-4-"}}),
    "and": ("path == 'p-N-' and limit < 5", {"path": "o", "limit": 1}, {4: {"path": "p-4-", "limit": 1}}),
    "or": ("path == 'p-N-' or path == 'q-N-'", {"path": "other"}, {4: {"path": "q-4-"}, 6: {"path": "p-6-"}}),
    "or of two": (
        "path == 'p-N-' or name.startswith('n-N-')",
        {"path": "o", "name": "o"},
        {4: {"path": "p-4-", "name": "o"}, 6: {"path": "o", "name": "n-6-x"}},
    ),
}
NUMBER = 40


def rules(template: str, count: int = NUMBER) -> list[Any]:
    return [check(template.replace("N", str(number)), PARAMETERS) for number in range(count)]


@pytest.mark.parametrize("case", CASES)
def test_the_first_that_holds_decides_wherever_it_stands(case: str) -> None:
    template, none, hits = CASES[case]
    trees = rules(template)
    decide = compile_rules(trees)
    assert decide(none) == -1
    for index, arguments in hits.items():
        assert evaluate(trees[index], arguments) is True
        assert decide(arguments) == index


@pytest.mark.parametrize("case", CASES)
def test_where_none_can_hold_the_arguments_are_looked_at_once_or_twice(case: str) -> None:
    template, none, _ = CASES[case]
    arguments = Counted(**none)
    assert compile_rules(rules(template))(arguments) == -1
    assert arguments.looks <= 2


@pytest.mark.parametrize("case", [case for case in CASES if case != "guarded"])
def test_where_a_parameter_is_left_out_the_answer_is_not_guessed(case: str) -> None:
    template, none, _ = CASES[case]
    for left_out in none:
        partial = {name: value for name, value in none.items() if name != left_out}
        trees = rules(template)
        verdicts = [evaluate(tree, partial) for tree in trees]
        if None in verdicts:
            with pytest.raises(KeyError):
                compile_rules(trees)(partial)
        else:
            assert compile_rules(trees)(partial) == -1


def test_a_guarded_condition_is_false_where_its_parameter_is_left_out() -> None:
    trees = [*rules("has(path) and path == 'p-N-'"), check("limit == 1", PARAMETERS)]
    assert compile_rules(trees)({"limit": 1}) == NUMBER
    with pytest.raises(KeyError):
        compile_rules([check("has(path) and name == 'a'", PARAMETERS)] * 8)({"path": "x"})


def test_a_guard_for_one_parameter_is_none_for_another() -> None:
    trees = rules("has(limit) and path == 'p-N-'")
    with pytest.raises(KeyError):
        compile_rules(trees)({"limit": 1})
    assert compile_rules(trees)({"limit": 1, "path": "p-3-"}) == 3


def test_two_kinds_of_guard_in_one_chunk() -> None:
    trees = [*rules("has(path) and path == 'p-N-'", 10), *rules("path == 'q-N-'", 10)]
    decide = compile_rules(trees)
    assert decide({"path": "q-4-"}) == 14
    assert decide({"path": "p-4-"}) == 4
    with pytest.raises(KeyError):
        decide({})


def test_an_odd_condition_among_many_of_a_kind_is_still_asked() -> None:
    trees = [*rules("path == 'p-N-'"), check("path == name", PARAMETERS), *rules("path == 'q-N-'")]
    decide = compile_rules(trees)
    assert decide({"path": "same", "name": "same"}) == NUMBER
    assert decide({"path": "q-0-", "name": "x"}) == NUMBER + 1
    assert decide({"path": "z", "name": "x"}) == -1


def test_rules_of_many_chunks_keep_their_order() -> None:
    trees = rules("path == 'p-N-'", CHUNK + 60)
    decide = compile_rules(trees)
    for index in (0, CHUNK - 1, CHUNK, CHUNK + 59):
        assert decide({"path": f"p-{index}-"}) == index
    arguments = Counted(path="none")
    assert decide(arguments) == -1
    assert arguments.looks == 2  # once for each chunk


@pytest.mark.parametrize(("count", "looks"), [(MOST_NEEDS, 1), (MOST_NEEDS + 1, 40)])
def test_a_long_list_of_choices_is_asked_by_itself(count: int, looks: int) -> None:
    choices = ", ".join(f"'c-{number}-N'" for number in range(count))
    arguments = Counted(path="none")
    assert compile_rules(rules(f"path in [{choices}]"))(arguments) == -1
    assert arguments.looks == looks


def test_few_rules_are_asked_one_by_one() -> None:
    arguments = Counted(path="none")
    assert compile_rules(rules("path == 'p-N-'", 3))(arguments) == -1
    assert arguments.looks == 3
    arguments = Counted(path="none")
    assert compile_rules(rules("path == 'p-N-'", 4))(arguments) == -1
    assert arguments.looks == 1


def test_membership_in_an_argument_tells_true_from_1() -> None:
    anything = {
        "tags": ValueType(TypeName.ARRAY),
        "limit": ValueType(TypeName.INTEGER),
        "path": ValueType(TypeName.STRING),
    }
    for text, arguments, expected in [
        ("limit in tags", {"limit": 1, "tags": [True, 1]}, 0),
        ("limit in tags", {"limit": 1, "tags": [True]}, -1),
        ("limit not in tags", {"limit": 1, "tags": [True]}, 0),
        ("limit not in tags", {"limit": 1, "tags": [1]}, -1),
        ("'a' in path", {"path": "cat"}, 0),
        ("'a' not in path", {"path": "dog"}, 0),
    ]:
        assert compile_rules([check(text, anything)])(arguments) == expected
