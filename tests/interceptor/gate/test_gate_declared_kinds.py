"""Arguments that say the same in another kind of JSON: taken as declared, and never by what a hidden value holds."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.interceptor.arguments import ArgumentFault, declared, fit
from sentinel_rag.interceptor.policy import parse_policy

TOOL = parse_policy(
    """
tools:
  - name: find
    effect: read
    parameters:
      - {name: count, type: integer}
      - {name: share, type: number}
      - {name: text, type: string}
      - {name: flag, type: boolean}
    taint_rules: [{rule_id: find_any, condition: "true", taint_level: LOW}]
"""
).tools["find"]


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ({"count": "5"}, {"count": 5}),
        ({"count": 5.0}, {"count": 5}),
        ({"count": "-12"}, {"count": -12}),
        ({"share": "0.25"}, {"share": 0.25}),
        ({"text": 4624}, {"text": "4624"}),
        ({"count": 2, "text": None, "flag": None}, {"count": 2}),
    ],
    ids=str,
)
def test_what_loses_nothing_is_taken(sent: dict[str, Any], taken: dict[str, Any]) -> None:
    fitted = fit(TOOL, declared(TOOL, sent))
    assert not isinstance(fitted, ArgumentFault)
    assert fitted.value == taken
    assert [type(value) for value in fitted.value.values()] == [type(value) for value in taken.values()]


@pytest.mark.parametrize(
    "sent",
    [{"count": text} for text in ("05", "5.5", "5e0", " 5", "٥", "five", "1" * 16, True, 5.5)]
    + [{"share": "1e3"}, {"text": True}, {"text": 5.5}, {"flag": "true"}, {"flag": 1}, {"other": None}],
    ids=str,
)
def test_anything_else_is_refused(sent: dict[str, Any]) -> None:
    assert isinstance(fit(TOOL, declared(TOOL, sent)), ArgumentFault)


def test_a_value_behind_a_handle_is_not_converted() -> None:
    sent = {"count": {"$ref": "r1#/a"}}
    assert declared(TOOL, sent) == sent
    assert isinstance(fit(TOOL, {"count": "5"}), ArgumentFault)  # what a handle stands for comes here as it is
