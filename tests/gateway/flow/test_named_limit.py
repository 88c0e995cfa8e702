"""What the attacker controls: the agent, and which of the values that one thing named stands for it takes, how often.
"June 13" names that day of any year, and a message all its passages: whichever is taken, `named_limit` counts it as
what was named, or each would be a letter of an alphabet."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, judge
from sentinel_rag.gateway.flow.named_values import NamedValue, named_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy("""
tools:
  - name: book
    effect: external
    named_limit: 2
    parameters:
      - {name: day, type: string, attest: day}
      - {name: days, type: array, items: string, attest: day}
      - {name: text, type: string, attest: words}
      - {name: texts, type: array, items: string, attest: words}
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
  - name: note
    effect: write
    named_limit: 1
    parameters: [{name: text, type: string, attest: words}, {name: body, type: string, attest: quoted}]
    taint_rules: [{rule_id: note_any, condition: "true", taint_level: LOW}]
""")


class Session:
    """What was named and has passed, as the gate notes it."""

    def __init__(self, words: str) -> None:
        self.named: dict[NamedValue, str] = dict.fromkeys(named_in(words, POLICY), "user")

    def call(self, tool: str = "book", **arguments: Any) -> Judgement:
        judgement = judge(POLICY, POLICY.tools[tool], arguments, CallFacts(context=TOP, named=self.named))
        if isinstance(judgement.decision, Allow):
            self.named.update(dict.fromkeys(judgement.passes, "passed"))
        return judgement

    def passes(self, tool: str = "book", **arguments: Any) -> bool:
        decision = self.call(tool, **arguments).decision
        if isinstance(decision, Deny):
            assert decision.reason is Reason.SINK_LABEL
        return isinstance(decision, Allow)


def test_a_day_without_its_year_is_one_value_whatever_year_and_minute_it_is_given() -> None:
    session = Session("book something on June 13")
    tried = [f"{year}-06-13T{minute:02}:37Z" for year, minute in zip(range(1990, 2002), range(12), strict=True)]
    assert [session.passes(day=day) for day in tried] == [True, True, *[False] * 10]
    assert not session.passes(day="2025-06-13")
    assert not session.passes(day="2025-06-14")


def test_each_day_that_was_named_passes_as_often() -> None:
    session = Session("book June 13 and June 14 of any year, and 2025-07-01")
    for day in ("2025-06-13", "2024-06-14", "2025-07-01"):
        assert [session.passes(day=day) for _ in range(3)] == [True, True, False]


def test_a_list_of_one_days_years_counts_each_and_is_not_what_was_named() -> None:
    session = Session("book something on June 13")
    assert not session.passes(days=["2024-06-13", "2025-06-13"]), "which years, and in which order, is the agent's"
    assert session.passes(days=["2024-06-13"])
    assert session.passes(days=["2025-06-13"])
    assert not session.passes(days=["2026-06-13"])


def test_the_passages_of_a_message_are_one_value() -> None:
    session = Session("tell them the printer works again and lunch is at noon")
    passages = ["the printer works", "printer works again", "lunch is at noon", "works again and lunch"]
    assert [session.passes(text=text) for text in passages] == [True, True, False, False]


def test_passages_in_one_list_count_each() -> None:
    session = Session("tell them the printer works again and lunch is at noon")
    assert not session.passes(texts=["the printer", "printer works", "works again"]), "three of two"
    assert session.passes(texts=["the printer", "printer works"])
    assert not session.passes(texts=["lunch"])


@pytest.mark.parametrize(
    ("words", "parameter", "first", "second"),
    [
        ("tell them the printer works again", "text", "THE printer WORKS", "printer works AGAIN"),
        ("tell them the printer works again", "text", "the printer works", "PRINTER works again"),
        ("write 'Dinner at {place} today'", "body", "Dinner at Ritz today", "Dinner at Savoy today"),
    ],
)
def test_what_is_the_persons_by_its_form_alone_counts_as_what_they_said(
    words: str, parameter: str, first: str, second: str
) -> None:
    """A writing tool takes what is secret but not what is strange, so a spelling or a filling of the agent's passes."""
    session = Session(words)
    assert session.passes("note", **{parameter: first})
    assert not session.passes("note", **{parameter: second})
    assert not session.passes("note", **{parameter: first})
