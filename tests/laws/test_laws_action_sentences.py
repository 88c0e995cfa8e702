"""The sentence of every change that is offered reads as exactly that change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.planner import Talk
from sentinel_rag.agent.planner.changes import Change, change_of, plan_change
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS, INCIDENT_STATUSES, SEVERITIES
from sentinel_rag.language.frames.orders import Act, read_order

INCIDENTS = st.one_of(st.integers(1, 999_999_999).map(str), st.uuids(version=4).map(str))
TEXTS = (
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=60)
    .map(str.strip)
    .filter(lambda text: bool(text) and text[0] not in "\"'“:=")
    .filter(lambda text: not text.lower().startswith(("saying", "that says", "stating")))
)
OWNERS = st.one_of(
    st.just("unassigned"),
    st.uuids(version=4).map(str),
    st.from_regex(r"[a-z]{2,8}\.[a-z]{2,8}@[a-z]{3,8}\.example", fullmatch=True),
)


@st.composite
def updates(draw: st.DrawFn) -> dict[str, str]:
    arguments: dict[str, str] = {}
    if draw(st.booleans()):
        kind = draw(st.sampled_from(sorted(CLASSIFICATION_REASONS)))
        arguments["classification"] = kind
        if CLASSIFICATION_REASONS[kind]:
            arguments["classification_reason"] = draw(st.sampled_from(CLASSIFICATION_REASONS[kind]))
        if draw(st.booleans()):
            arguments["status"] = "Closed"
        if draw(st.booleans()):
            arguments["classification_comment"] = draw(TEXTS)
    elif draw(st.booleans()):
        arguments["status"] = draw(st.sampled_from([status for status in INCIDENT_STATUSES if status != "Closed"]))
    if draw(st.booleans()):
        arguments["severity"] = draw(st.sampled_from(SEVERITIES))
    if not arguments or draw(st.booleans()):
        arguments["owner"] = draw(OWNERS)
    return arguments


WORKSPACES = st.sampled_from(["", "emea", "eu-west_2", "prod"])


def planned(sentence: str) -> dict[str, Any]:
    order = read_order(sentence)
    assert order is not None, sentence
    change = plan_change(order, Talk())
    assert isinstance(change, Change), (sentence, change, order)
    return {"tool": change.call.tool, "workspace": change.workspace, **change.call.arguments}


@pytest.mark.requirement("DATA-4")
@settings(max_examples=70)
@given(INCIDENTS, updates(), WORKSPACES)
def test_an_update_reads_as_itself(incident: str, arguments: dict[str, str], workspace: str) -> None:
    changes = {name: value for name, value in arguments.items() if name != "classification_comment"}
    change = Change(incident, changes, note=arguments.get("classification_comment", ""), workspace=workspace)
    told = {"tool": "update_incident", "workspace": workspace, "incident": incident, **arguments}
    assert planned(change.sentence) == told
    assert change_of("update_incident", {"incident": incident, **arguments, "workspace": workspace}) == change


@settings(max_examples=70)
@given(INCIDENTS, TEXTS, WORKSPACES)
def test_a_comment_reads_as_itself(incident: str, message: str, workspace: str) -> None:
    sentence = Change(incident, message=message, comments=True, workspace=workspace).sentence
    told = {"tool": "add_incident_comment", "workspace": workspace, "incident": incident, "message": message}
    assert planned(sentence) == told


ELSEWHERE = ("13", "#13", "[2]", "18,", "not", "unless", "if", "except", "all", "them", "tomorrow")
HARMLESS = ("and", "it", "please", "now", "to", "low", "with", "x@y.example", "owner", "the", "one", "incident", "for")
WORDS = st.lists(st.sampled_from(ELSEWHERE + HARMLESS), max_size=4)


@settings(max_examples=100)
@given(st.sampled_from(["", "please", "can you", "ok then", "so"]), WORDS, WORDS)
def test_words_around_a_wish_never_move_it_to_another_incident(
    before: str, between: list[str], behind: list[str]
) -> None:
    order = read_order(f"{before} close incident 12 {' '.join(between)} as undetermined {' '.join(behind)}")
    change = plan_change(order, Talk()) if order is not None and order.act is Act.CHANGE else None
    if isinstance(change, Change):
        assert change.call.arguments["incident"] == "12"
        assert not set(ELSEWHERE) & {*between, *behind}
