"""The references of one conversation as JSON values, and back.

The form follows the fields of `Conversation`. One that was written by a version with other fields is not read, and the
conversation starts without its references: they are shown again by the next list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from sentinel_rag.agent.offline.conversation import AskedCall, AskedChange, Conversation, Offer
from sentinel_rag.agent.planner import Talk
from sentinel_rag.agent.planner.changes import Change
from sentinel_rag.agent.references import References
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.language.frames import Frame


def conversation_to_dict(conversation: Conversation) -> JsonObject:
    """All but the directory of names, which is fetched again when it is needed."""
    whole = replace(conversation, references=References(), talk=Talk(), names=None)
    form: dict[str, Any] = msgspec.to_builtins(whole)
    return {**form, "references": conversation.references.to_dict(), "talk": _talk_to_dict(conversation.talk)}


def conversation_from_dict(stored: Mapping[str, Any]) -> Conversation | None:
    """The conversation of a stored form; None if this version does not read it."""
    try:
        return Conversation(
            **{
                **stored,
                "references": References.from_dict(stored["references"]),
                "last": None if stored["last"] is None else _asked(stored["last"]),
                "listed_by": None if stored.get("listed_by") is None else _asked(stored["listed_by"]),
                "knowledge": None if stored.get("knowledge") is None else _asked(stored["knowledge"]),
                "offers": tuple(Offer(offer["question"], _asked(offer["call"])) for offer in stored["offers"]),
                "change": _change(stored.get("change")),
                "changes": tuple(filter(None, map(_change, stored.get("changes", ())))),
                "offered_changes": tuple(Change(**change) for change in stored.get("offered_changes", ())),
                "waiting_change": Change(**waits) if (waits := stored.get("waiting_change")) else None,
                "talk": _talk(stored.get("talk")),
                "names": None,
            }
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        return None


def _talk_to_dict(talk: Talk) -> JsonObject:
    """The frame before without what was read as what; the rows are those of the list on the screen."""
    before = None if talk.before is None else replace(talk.before, items=())
    return {"before": msgspec.to_builtins(before), "subject": list(talk.subject)}


def _talk(stored: Mapping[str, Any] | None) -> Talk:
    if stored is None:
        return Talk()
    before = None if stored["before"] is None else msgspec.convert(stored["before"], Frame).copy()
    kind, name = stored["subject"]
    return Talk(before, subject=(str(kind), str(name)))


def _change(stored: Mapping[str, Any] | None) -> AskedChange | None:
    return None if stored is None else AskedChange(**{**stored, "arguments": dict(stored["arguments"])})


def _asked(stored: Mapping[str, Any]) -> AskedCall:
    return AskedCall(stored["tool"], dict(stored["arguments"]), stored["view"], tuple(stored["aspects"]))
