"""One conversation as JSON values, and back.

The form follows the fields of `Conversation`. One with fields that this version does not know is not read. What an
earlier version kept as references, the last query and offers becomes what the next sentence may lean on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from sentinel_rag.agent.offline.conversation import AskedCall, AskedChange, Conversation
from sentinel_rag.agent.planner import Call, Decision, Kind, Talk, View, frame_of, offer
from sentinel_rag.agent.planner.changes import Change
from sentinel_rag.contracts.json_values import JsonObject

_RETIRED = frozenset({"references", "listed_by", "listed_as", "offers", "numbered", "shown", "told_bucket", "pending"})
"""Fields that earlier versions kept, and that are read into `talk`."""


def conversation_to_dict(conversation: Conversation) -> JsonObject:
    """All but the directory of names, which is fetched again when it is needed."""
    whole = replace(conversation, talk=Talk(), names=None)
    form: dict[str, Any] = msgspec.to_builtins(whole)
    return {**form, "talk": conversation.talk.to_dict()}


def conversation_from_dict(stored: Mapping[str, Any]) -> Conversation | None:
    """The conversation of a stored form; None if this version does not read it."""
    try:
        return Conversation(
            **{
                **{name: value for name, value in stored.items() if name not in _RETIRED},
                "last": None if stored["last"] is None else _asked(stored["last"]),
                "knowledge": None if stored.get("knowledge") is None else _asked(stored["knowledge"]),
                "change": _change(stored.get("change")),
                "changes": tuple(filter(None, map(_change, stored.get("changes", ())))),
                "offered_changes": _offered(stored.get("offered_changes", ())),
                "waiting_change": Change(**waits) if (waits := stored.get("waiting_change")) else None,
                "talk": Talk.from_dict(stored["talk"]) if "talk" in stored else _talk_of_before(stored),
                "names": None,
            }
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        return None


def _talk_of_before(stored: Mapping[str, Any]) -> Talk:
    """What a conversation of the form before frames leaned on."""
    talk = Talk.from_dict(stored["references"])
    if stored["last"] is not None:
        last = _asked(stored["last"])
        frame = frame_of(last.tool, last.arguments)
        calls = (Call(last.tool, dict(last.arguments)),)
        talk.decisions = (Decision(Kind.CALL, frame, calls, view=View(last.view), aspects=last.aspects),)
    talk.shown = int(stored.get("shown", 0))
    for each in stored.get("offers", ()):
        call = _asked(each["call"])
        talk.offers += (offer(each["question"], call.tool, call.arguments, View(call.view), call.aspects),)
    return talk


def _offered(stored: Sequence[Any]) -> tuple[Change, ...]:
    """Changes that were offered; earlier versions kept sentences, which nothing reads now."""
    return tuple(Change(**change) for change in stored if isinstance(change, Mapping))


def _change(stored: Mapping[str, Any] | None) -> AskedChange | None:
    return None if stored is None else AskedChange(**{**stored, "arguments": dict(stored["arguments"])})


def _asked(stored: Mapping[str, Any]) -> AskedCall:
    return AskedCall(stored["tool"], dict(stored["arguments"]), stored["view"], tuple(stored["aspects"]))
