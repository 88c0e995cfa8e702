"""Endorsements by rows: a record whose own text the user named gives its id or its participants."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Label
from sentinel_rag.gateway.flow.endorsement import endorsed_values
from sentinel_rag.gateway.flow.judging import CallFacts, judge
from sentinel_rag.gateway.flow.named_values import NamedValue, named_in
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import NoteKind

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy(r"""
kinds:
  - {name: file_name, pattern: '[a-z-]{1,40}\.[a-z]{2,4}'}
  - {name: file, pattern: '[0-9]{1,9}', beside: [file]}
  - {name: channel, pattern: '[a-z]{2,20}', beside: [channel]}
tools:
  - name: find
    effect: read
    parameters: [{name: query, type: string, attest: [words, quoted]}]
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
  - name: read
    effect: read
    parameters: [{name: channel, type: string, attest: channel}]
    taint_rules: [{rule_id: any_read, condition: "true", taint_level: LOW}]
endorsement:
  - {name: ids, tool: find, rows: /rows, match: /name, match_kind: file_name, path: /id, kind: file}
  - {name: told, tool: find, rows: /rows, match: /told, match_kind: words, path: /id, kind: file}
  - {name: people, tool: find, rows: /rows, match: /title, match_kind: quoted, path: /guests/*, kind: email}
  - {name: links, tool: read, parameter: channel, path: /rows/*/text, kind: url, inside: true}
""")


def derived(
    words: str, value: Any, tool: str = "find", context: Label = BOTTOM, **arguments: Any
) -> dict[str, set[tuple[str, str]]]:
    named = dict.fromkeys(named_in(words, POLICY), "user")
    judgement = judge(POLICY, POLICY.tools[tool], arguments or {"query": "x"}, CallFacts(context=context, named=named))
    found = endorsed_values(POLICY, POLICY.tools[tool], judgement, value, named)
    return {
        name: {(each.kind, each.text) for each in values if each.kind != NoteKind.ANSWER}
        for name, values in found.items()
    }


ROWS = {"rows": [{"name": "plan.docx", "id": "3"}, {"name": "other.docx", "id": "13"}]}


def test_only_the_row_that_the_user_named_gives_its_id() -> None:
    assert derived("add it to plan.docx", ROWS) == {"ids": {("file", "3")}}
    assert derived("add it on June 13 to the plan", ROWS) == {}
    assert derived("do not touch plan.docx", ROWS) == {}
    assert derived("add it to plan.docx and other.docx", ROWS)["ids"] == {("file", "3"), ("file", "13")}


def test_two_rows_of_one_name_are_nobodys_choice() -> None:
    twins = {"rows": [*ROWS["rows"], {"name": "plan.docx", "id": "99"}]}
    assert derived("add it to plan.docx and other.docx", twins) == {"ids": {("file", "13")}}


def test_the_participants_of_a_quoted_record() -> None:
    rows = {"rows": [{"title": "Kick-off", "guests": ["a@example.org", "b@example.org", 5]}, {"title": "the"}]}
    assert derived("invite those of 'Kick-off'", rows) == {
        "people": {("email", "a@example.org"), ("email", "b@example.org")}
    }
    assert derived("invite those of the Kick-off", rows) == {}
    assert (
        derived("invite those of 'Kick-off {number}'", {"rows": [{"title": "Kick-off 2", "guests": ["x@y.example"]}]})
        == {}
    )


def test_one_record_that_is_no_list_is_a_row() -> None:
    assert derived("make plan.docx", {"rows": {"name": "plan.docx", "id": 26}}) == {"ids": {("file", "26")}}


def test_values_inside_a_text_of_a_place_that_the_user_named() -> None:
    rows = {"rows": [{"text": "see www.example.org/a and https://b.example/x."}, {"text": 7}, {}]}
    assert derived("what is in the news channel", rows, "read", channel="news") == {
        "links": {("url", "https://www.example.org/a"), ("url", "https://b.example/x")}
    }
    assert derived("what is new", rows, "read", channel="news") == {}


def test_what_an_endorsement_derived_names_no_row() -> None:
    named = {NamedValue("file_name", "plan.docx"): "ids"}
    judgement = judge(POLICY, POLICY.tools["find"], {"query": "x"}, CallFacts(named=named))
    assert endorsed_values(POLICY, POLICY.tools["find"], judgement, ROWS, named) == {}


def test_rows_that_an_agent_looked_for_with_words_of_its_own_name_nothing() -> None:
    words = "add it to plan.docx"
    assert derived(words, ROWS, context=TOP, query="made up by what was read") == {}
    assert derived(words, ROWS, context=TOP, query="plan.docx") == {"ids": {("file", "3")}}
    # A spelling of the agent's is a choice of the agent's.
    assert derived(words, ROWS, context=TOP, query="plan.docx  ") == {}


@pytest.mark.parametrize("title", ["the", "lunch", "to the", "of it"])
def test_a_common_passage_names_no_row(title: str) -> None:
    rows = {"rows": [{"told": title, "id": "9"}]}
    words = "Move the lunch with Mary to the end of it, please."
    assert derived(words, rows) == {}
    assert derived(words, {"rows": [{"told": "Lunch with Mary", "id": "4"}]}) == {"told": {("file", "4")}}


def test_one_word_names_a_row_if_it_is_set_apart() -> None:
    assert derived("Move 'lunch' to 3 pm.", {"rows": [{"told": "lunch", "id": "4"}]}) == {"told": {("file", "4")}}


def test_a_second_answer_to_one_text_is_refused() -> None:
    named = dict.fromkeys(named_in("add it to plan.docx", POLICY), "user")

    def ask(of: str) -> set[str]:
        tool = POLICY.tools["find"]
        judgement = judge(POLICY, tool, {"query": "x"}, CallFacts(named=named))
        rows = {"rows": [{"name": "plan.docx", "id": of}]}
        found = endorsed_values(POLICY, tool, judgement, rows, named)
        for source, values in found.items():
            named.update(dict.fromkeys(values - named.keys(), source))
        return {each.text for values in found.values() for each in values if each.kind == "file"}

    assert ask("3") == {"3"}
    assert ask("99") == set()
    assert ask("3") == {"3"}
    assert NamedValue("file", "99") not in named
