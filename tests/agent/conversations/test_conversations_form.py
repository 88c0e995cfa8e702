"""The offline analyst's memory as it is stored: every field of it survives, and a strange form is not read."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from sentinel_rag.agent.offline.conversation import AskedCall, AskedChange, Conversation, ListItem, Offer
from sentinel_rag.agent.offline.conversation_form import conversation_from_dict, conversation_to_dict
from sentinel_rag.agent.references import References

CALL = AskedCall("query_incidents", {"status": "Open", "severity": ["High", None]}, "incidents", ("owner",))


def _full() -> Conversation:
    references = References()
    references.show_list((ListItem("incident", "38"), ListItem("entity", "ws-01", entity_kind="host")))
    return Conversation(
        references=references,
        last=CALL,
        listed_by=CALL,
        listed_as=1,
        knowledge=CALL,
        told_bucket="2024-07-17T00:00:00Z/2024-07-18T00:00:00Z",
        offers=(Offer("Show it", CALL),),
        shown=3,
        turns=4,
        calls=5,
        pending="which host?",
        change=AskedChange("update_incident", {"incident": "38", "labels": ["a"]}, 2, "id-1", done=True),
        changes=(AskedChange("add_incident_comment", {"incident": "39"}, 1, "id-2", unknown=True),),
        offered_changes=("Close incident 38",),
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
