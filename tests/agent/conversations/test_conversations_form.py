"""The offline analyst's memory as it is stored: every field of it survives, and a strange form is not read."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from sentinel_rag.agent.offline.conversation import (
    AskedChange,
    Conversation,
    conversation_from_dict,
    conversation_to_dict,
)
from sentinel_rag.agent.planner import Decision, DecisionKind, Talk, Unclear, View, frame_of, offer
from sentinel_rag.agent.planner.changes import Change
from sentinel_rag.agent.planner.decisions import Call
from sentinel_rag.agent.planner.knowledge import KnowledgeWish, Sought
from sentinel_rag.agent.things import ListItem

CALL_OF = ("query_incidents", {"status": "Open"}, View.INCIDENTS)
_STORED_CALL = {"tool": "query_alerts", "arguments": {}, "view": "alerts", "aspects": []}


def _talk() -> Talk:
    """A conversation in which every field says something."""
    talk = Talk()
    frame = frame_of("query_incidents", {"status": "Open", "time_window": "last_7d"})
    listed = Decision(DecisionKind.CALL, frame, (Call("query_incidents", {"status": "Open"}),), view=View.INCIDENTS)
    incidents = [ListItem("incident", "38", title="Phishing"), ListItem("incident", "39")]
    hosts = [ListItem("entity", "ws-01", entity_kind="host"), ListItem("entity", "ws-02", entity_kind="host")]
    talk.remember(listed, incidents, total=7, told=hosts, about=[ListItem("incident", "38")])
    compared = frame_of("get_incident_detail", {"incident": "38"})
    compared.tell("incident", "39")
    talk.remember(Decision(DecisionKind.CALL, compared, (Call("get_incident_detail", {"incident": "38"}),)))
    back = Decision(DecisionKind.ASK, frame, reason=Unclear.WHICH_OF_THESE, options=(offer("Show it", *CALL_OF),))
    talk.remember(back)
    talk.moment = {"start_time": "2024-07-17T00:00:00Z", "end_time": "2024-07-18T00:00:00Z"}
    wish = KnowledgeWish(sought=Sought.PAST, topic="phishing", filters={"severity": "High"})
    talk.decisions = (Decision(DecisionKind.CALL, frame, wish=wish), *talk.decisions)
    talk.dropped, talk.pointed_into, talk.unlisted = 1, 1, 1
    return talk


def test_what_the_next_sentence_may_lean_on_survives() -> None:
    talk = _talk()
    for each in fields(Talk):
        if each.name not in ("pointed", "pointing"):
            assert getattr(talk, each.name) != getattr(Talk(), each.name), f"{each.name} is not told here"
    read = Talk.from_dict(json.loads(json.dumps(talk.to_dict())))
    assert read.to_dict() == talk.to_dict()
    assert read.decisions[-1].frame.all("incident") == ["38", "39"]
    read.decisions[-1].frame.tell("attr", "owner")  # a frame that was read can be filled


def test_a_conversation_of_before_frames_opens_with_all_that_it_leaned_on() -> None:
    stored = conversation_to_dict(Conversation())
    del stored["talk"]
    old = {
        **stored,
        "references": {
            "version": 1,
            "turn": 2,
            "lists": [{"items": [{"kind": "incident", "value": "38"}], "turn": 1, "total": 1}],
            "focused": [{"item": {"kind": "incident", "value": "38"}, "turn": 2}],
        },
        "last": {"tool": "query_incidents", "arguments": {"status": "Open"}, "view": "incidents", "aspects": []},
        "listed_by": None,
        "listed_as": 1,
        "offers": [{"question": "Show it", "call": {**_STORED_CALL}}],
        "numbered": False,
        "shown": 1,
    }
    read = conversation_from_dict(json.loads(json.dumps(old)))
    assert read is not None
    talk = read.talk
    assert [item.value for item in talk.lists[0].items] == ["38"]
    assert talk.spoken[-1].item.value == "38"
    assert talk.before is not None
    assert talk.before.frame.has("status:Open", "kind:incident")
    assert [each.text for each in talk.offers] == ["Show it"]
    assert talk.shown == 1


def test_a_search_of_the_knowledge_base_that_was_stored_as_a_call_is_what_was_looked_for() -> None:
    search: dict[str, object] = {
        "query": "phishing",
        "collection": "sentinel_incidents",
        "status": "Closed",
        "limit": 20,
    }
    call = {"tool": "search_knowledge_base", "arguments": search, "view": "past", "aspects": []}
    read = conversation_from_dict({**conversation_to_dict(Conversation()), "last": None, "knowledge": call})
    assert read is not None
    wanted = KnowledgeWish(sought=Sought.PAST, topic="phishing", filters={"status": "Closed"})
    assert read.talk.documents == wanted


def _full() -> Conversation:
    return Conversation(
        talk=_talk(),
        turns=4,
        calls=5,
        change=AskedChange("update_incident", {"incident": "38", "labels": ["a"]}, 2, "id-1", done=True),
        changes=(AskedChange("add_incident_comment", {"incident": "39"}, 1, "id-2", unknown=True),),
        offered_changes=(Change("38", {"status": "Closed"}),),
        waiting_change=Change("38"),
        waiting_slot="classification",
        offered_turn=3,
        person="ana@example.com",
        requested_workspace="emea",
        workspace="apac",
        found_in={"38": "emea"},
    )


@pytest.mark.requirement("CHAT-6")
def test_every_field_survives_but_the_directory_of_names() -> None:
    full, empty = _full(), Conversation()
    for each in fields(Conversation):
        if each.name != "names":
            assert getattr(full, each.name) != getattr(empty, each.name), f"{each.name} is not told here"
    read = conversation_from_dict(json.loads(json.dumps(conversation_to_dict(full))))
    assert read is not None
    assert read == full or conversation_to_dict(read) == conversation_to_dict(full)


@pytest.mark.parametrize(
    "stored",
    [{}, {"references": 3}, {**conversation_to_dict(_full()), "a_field_of_tomorrow": 1}],
    ids=["empty", "wrong", "newer"],
)
def test_a_form_of_another_version_is_not_read(stored: dict[str, object]) -> None:
    assert conversation_from_dict(stored) is None
