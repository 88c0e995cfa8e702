"""What an author is told about a text that is no condition: the column and the sentence, as data beside this file.

A row without `because` is a condition that is taken, at the edge of one that is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.gateway.policy.conditions import ConditionError, TypeName, ValueType, check, closest, text_of

PARAMETERS = {
    "path": ValueType(TypeName.STRING),
    "name": ValueType(TypeName.STRING),
    "limit": ValueType(TypeName.INTEGER),
    "score": ValueType(TypeName.NUMBER),
    "force": ValueType(TypeName.BOOLEAN),
    "tags": ValueType(TypeName.ARRAY, TypeName.STRING),
    "any": ValueType(TypeName.ARRAY),
    "extra": ValueType(TypeName.OBJECT),
}
ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "refused_conditions.json").read_text())


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["condition"][:40])
def test_a_text_is_taken_or_refused_with_its_place_and_reason(row: dict[str, Any]) -> None:
    if "because" not in row:
        tree = check(row["condition"], PARAMETERS)
        assert check(text_of(tree), PARAMETERS) == tree
        return
    with pytest.raises(ConditionError) as refused:
        check(row["condition"], PARAMETERS)
    assert (refused.value.column, str(refused.value)) == (row["column"], row["because"])


@pytest.mark.parametrize(
    ("text", "column"), [("path ==", 1), ("path == 'a", 9), ("force; force", 6), ("path == '\\d'", 9)]
)
def test_what_python_does_not_parse_is_a_fault_of_syntax(text: str, column: int) -> None:
    with pytest.raises(ConditionError, match="syntax: ") as refused:
        check(text, PARAMETERS)
    assert refused.value.column in (1, column)


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("not (force and path == 'a')", "not (force and (path == 'a'))"),
        ("true or false", "true or false"),
        ("path in ('a', 'b')", "path in ['a', 'b']"),
        ("path.startsWith(('a',))", "path.startswith(['a'])"),
        ("path is None", "path == null"),
        ("path != null", "has(path)"),
        ("not has(path)", "path == null"),
        ("1 < size(tags) <= 3", "1 < len(tags) <= 3"),
        ("(limit == 1) == force", "(limit == 1) == force"),
        ("path.trim().matches('^a')", "path.strip().matches('^a')"),
        ("(force or not force) and limit != -2", "(force or (not force)) and (limit != -2)"),
        ("score < 1.5", "score < 1.5"),
    ],
)
def test_a_condition_has_one_wording(text: str, wording: str) -> None:
    assert text_of(check(text, PARAMETERS)) == wording


def test_a_misspelt_name_is_answered_with_the_nearest_or_all() -> None:
    assert closest("pathh", ["path", "pathy", "name"]) == "; did you mean 'path'?"
    assert closest("qq", ["b", "a"]) == "; there are: a, b"
    assert closest("qq", []) == "; there are none"
