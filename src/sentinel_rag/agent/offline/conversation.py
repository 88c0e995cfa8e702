"""What a conversation with the offline analyst remembers: its references, the last query, an offer, the workspace.

Only references are kept, no facts: a question about a state always queries again. Memory is bounded in both directions,
so that neither a long session nor many sessions grow without end. The stored form follows the fields of `Conversation`;
one with fields that this version does not know is not read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sentinel_rag.agent.planner import Decision, DecisionKind, Option, Talk, View, offer
from sentinel_rag.agent.planner.changes import Change
from sentinel_rag.agent.planner.knowledge import KnowledgeWish, Sought
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.text import word_list

MAX_SESSIONS = 500
MAX_CHANGES = 20


@dataclass(frozen=True, slots=True)
class AskedChange:
    """A change as it was asked of the gateway, so that it can be asked again exactly. `turn` counts as `turns` does;
    `approval_id` is empty where none was asked for; `done` once the call has run, `unknown` if nobody knows
    whether it has."""

    tool: str
    arguments: Mapping[str, JsonValue]
    turn: int
    approval_id: str = ""
    done: bool = False
    unknown: bool = False


@dataclass(slots=True)
class Places:
    """Where the questions of a session go, and how many calls it has made."""

    calls: int = 0
    requested_workspace: str = ""
    """The workspace that the surface asked for; empty for the default one."""
    workspace: str = ""
    """The one that questions go to: as requested, or as the person's words named it since."""
    found_in: dict[str, str] = field(default_factory=dict)
    """Reference -> workspace, of things that a list over all workspaces showed."""

    def request_workspace(self, name: str) -> None:
        """What the surface asks for; only a change of it overrides what the person's words said."""
        if name != self.requested_workspace:
            self.requested_workspace = name
            self.go_to(name)

    def go_to(self, name: str) -> None:
        """Send the questions from here on to that workspace."""
        self.workspace = name

    def next_call_id(self) -> str:
        """`c1`, `c2`, ...: unique in the session."""
        self.calls += 1
        return f"c{self.calls}"


@dataclass(slots=True)
class Conversation(Places):
    """One session."""

    talk: Talk = field(default_factory=Talk)
    """What the next sentence may lean on."""
    turns: int = 0
    change: AskedChange | None = None
    """The change that was asked for last."""
    changes: tuple[AskedChange, ...] = ()
    """Every change that was asked for, each call once with what became of it last, the newest last; bounded."""
    offered_changes: tuple[Change, ...] = ()
    """The changes that the last answer offered; nothing else that is picked asks for a change."""
    waiting_change: Change | None = None
    """The change that the last answer asked one value for, which is that of `waiting_slot`."""
    waiting_slot: str = ""
    offered_turn: int = 0
    person: str = ""
    """Who the person says to be, as an owner of incidents: a user principal name, an address or an object id."""
    names: dict[str, tuple[str, ...]] | None = field(default=None)
    """Directory of hosts and accounts, by kind, once it was needed."""

    def note_change(self, change: AskedChange) -> None:
        """What became of a change that was asked for."""
        self.change = change
        same = (change.tool, dict(change.arguments))
        others = tuple(each for each in self.changes if each.done or (each.tool, dict(each.arguments)) != same)
        self.changes = (*others, change)[-MAX_CHANGES:]

    def go_to(self, name: str) -> None:
        """Send the questions from here on to that workspace; names known of another one are forgotten."""
        if name != self.workspace:
            self.workspace = name
            self.names = None


class Conversations:
    """Every open session; the one that was silent longest goes first when there are too many."""

    def __init__(self, limit: int = MAX_SESSIONS) -> None:
        self._limit = limit
        self._open: OrderedDict[str, Conversation] = OrderedDict()

    def of(self, session_id: str) -> Conversation:
        """The conversation of `session_id`, opened if it is new."""
        conversation = self._open.setdefault(session_id, Conversation())
        self._open.move_to_end(session_id)
        while len(self._open) > self._limit:
            self._open.popitem(last=False)
        return conversation

    def find(self, session_id: str) -> Conversation | None:
        """The conversation of `session_id`, if it is open."""
        return self._open.get(session_id)

    def take(self, session_id: str, conversation: Conversation) -> None:
        """Open `session_id` with a conversation that was stored."""
        self._open[session_id] = conversation
        self.of(session_id)

    def forget(self, session_id: str) -> None:
        """Drop all; call ids go on counting, so that old footnotes stay unique."""
        before = self._open.pop(session_id, None)
        if before is not None:
            self._open[session_id] = Conversation(calls=before.calls, turns=before.turns)

    def clear(self, session_id: str) -> None:
        """Drop the last query and what is open. Numbers on the screen go on meaning what they mean, questions go where
        they went, and call ids go on counting, so that old footnotes stay unique."""
        before = self._open.get(session_id)
        if before is not None:
            before.talk.clear()
            self._open[session_id] = replace(
                before,
                change=None,
                offered_changes=(),
                waiting_change=None,
            )


_RETIRED = frozenset(
    word_list("references listed_by listed_as offers numbered shown told_bucket pending last knowledge")
)
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
                "change": _change(stored.get("change")),
                "changes": tuple(filter(None, map(_change, stored.get("changes", ())))),
                "offered_changes": _offered(stored.get("offered_changes", ())),
                "waiting_change": Change(**waits) if (waits := stored.get("waiting_change")) else None,
                "talk": _talk(stored),
                "names": None,
            }
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        return None


def _talk(stored: Mapping[str, Any]) -> Talk:
    """What a conversation leans on, also of the forms before frames and before `documents`."""
    talk = Talk.from_dict(stored["talk"] if "talk" in stored else stored["references"])
    if (last := stored.get("last")) and "talk" not in stored:
        (option,) = _offers([{"question": "", "call": last}])
        talk.decisions = (
            Decision(DecisionKind.CALL, option.frame, option.calls, view=option.view, aspects=option.aspects),
        )
        talk.shown = int(stored.get("shown", 0))
        talk.offers = _offers(stored.get("offers", ()))
    if knowledge := stored.get("knowledge"):
        told = {name: value for name, value in knowledge["arguments"].items() if isinstance(value, str)}
        topic, like = told.pop("query", ""), told.pop("like_incident", "").partition("@")[0]
        filters = {name: value for name, value in told.items() if name not in ("collection", "document", "section")}
        wish = KnowledgeWish(sought=Sought(knowledge["view"]), topic=topic, incident=like, filters=filters)
        talk.decisions = (Decision(DecisionKind.CALL, Frame(""), wish=wish),)
    return talk


def _offers(stored: Sequence[Mapping[str, Any]]) -> tuple[Option, ...]:
    """Calls that earlier versions offered in a form of their own."""
    calls = [(each["question"], each["call"]) for each in stored]
    return tuple(
        offer(text, call["tool"], dict(call["arguments"]), View(call["view"]), tuple(call["aspects"]))
        for text, call in calls
    )


def _offered(stored: Sequence[Any]) -> tuple[Change, ...]:
    """Changes that were offered; earlier versions kept sentences, which nothing reads now."""
    return tuple(Change(**change) for change in stored if isinstance(change, Mapping))


def _change(stored: Mapping[str, Any] | None) -> AskedChange | None:
    return None if stored is None else AskedChange(**{**stored, "arguments": dict(stored["arguments"])})
