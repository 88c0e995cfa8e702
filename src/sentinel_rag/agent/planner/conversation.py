"""One conversation: what becomes of its sentences, and the form in which it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from sentinel_rag.agent.planner import binding
from sentinel_rag.agent.planner.assistant import about_assistant
from sentinel_rag.agent.planner.context import Context, ShownList, Spoken
from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, View, with_options
from sentinel_rag.agent.planner.going_on import takes_off
from sentinel_rag.agent.planner.knowledge import Sought, read_wish, wish_after
from sentinel_rag.agent.planner.leaning import left_behind, on_open_ground, settled, with_effect
from sentinel_rag.agent.planner.merging import reasons_of
from sentinel_rag.agent.planner.planner import Planner, searched
from sentinel_rag.agent.planner.sentence import Done, FrameCompletion, Readings
from sentinel_rag.agent.things import INCIDENT, SECTION, ListItem
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.orders import Order, read_order

VERSION = 2


def _answerable(decision: Decision, planner: Planner, now: datetime) -> Decision:
    """The decision without the choices that nothing answers; all of them while the stored queries are not known."""
    if planner.queries.unknown or not decision.options:
        return decision
    kept = [
        each
        for each in decision.options
        if each.calls or planner.decide(each.frame, now).reason not in reasons_of("refusals")
    ]
    if len(kept) == len(decision.options):
        return decision
    return replace(decision, options=tuple(replace(each, number=place) for place, each in enumerate(kept, start=1)))


@dataclass
class Talk(Context):
    """What the next sentence may lean on, and what becomes of it."""

    def decide(self, planner: Planner, reader: Reader, text: str, now: datetime) -> Decision:
        """What becomes of one sentence of the conversation."""
        self.pointed, self.pointing = (), 0
        frame = binding.read(self, reader, text)
        ordered = self.ordered(frame, text, now)
        if isinstance(ordered, Order):
            return Decision(DecisionKind.CHANGE, frame, order=ordered)
        return self._decide_frame(planner, ordered, now)

    def ordered(self, frame: Frame, text: str, now: datetime) -> Order | Frame:
        """The order that a sentence is, or its frame where it is none."""
        order = read_order(text)
        asked = FrameCompletion(self, frame.copy(), now)
        if takes_off(asked):
            asked.frame.said = ""
            return asked.frame
        return frame if order is None else order

    def _decide_frame(self, planner: Planner, frame: Frame, now: datetime) -> Decision:
        wish, (section, points) = read_wish(frame, now), self._section(frame)
        further = wish_after(frame, wish, self.documents, section, now, pointed=points)
        if further is not None:
            return searched(frame, further)
        alone = about_assistant(frame) or (wish is not None and wish.stands_alone)
        if wish is not None and wish.of_focus and self.spoken and not frame.has("ref"):
            frame = frame.copy()
            frame.tell("ref", "it")  # "had one like that before" is about the incident that is spoken of
        done = frame if alone else binding.complete(self, frame, now)
        decision = self._decided(planner, done, now)
        if (asked := decision.wish) is not None and asked.of_focus and (current := self.current(INCIDENT)) is not None:
            sought = Sought.STEPS if asked.sought is Sought.PLAYBOOK else asked.sought
            return searched(decision.frame, replace(asked, sought=sought, incident=current.value))
        if isinstance(done, Option):
            return decision
        pointed = [item for each in self.pointed for item in each.items]
        return left_behind(frame, on_open_ground(frame, decision, self.waiting), self.before, pointed)

    def pick(self, planner: Planner, frame: Frame, now: datetime) -> Decision | None:
        """What was offered and is picked by the sentence; None if it picks nothing."""
        self.pointed, self.pointing = (), 0
        option = binding.picked(self, frame, now)
        return None if option is None else self._decided(planner, option, now)

    def _section(self, frame: Frame) -> tuple[str, bool]:
        """The section or playbook of the list on the screen that the sentence points at, and True; else the one that
        was told last, while the knowledge base is asked."""
        lines = self.lists[-1].items if self.lists and not frame.has("name", "incident") else ()
        said = [*(item.strip("[]") for item in frame.all("item")), *frame.all("ref"), *frame.all("digits")]
        places = [int(value) for value in said if value.lstrip("-").isdecimal()]
        at = places[0] - 1 if places and places[0] > 0 else sum(places)
        if len(places) == 1 and -len(lines) <= at < len(lines) and lines[at].kind == SECTION and lines[at].value:
            return lines[at].value, True
        focus = self.focus(SECTION) if self.documents is not None else None
        return "" if focus is None else focus.item.value, False

    def _decided(self, planner: Planner, done: Done, now: datetime) -> Decision:
        if isinstance(done, Option) and done.calls:
            return Decision(DecisionKind.CALL, done.frame, done.calls, view=done.view, aspects=done.aspects)
        return _answerable(self._made(planner, done, now), planner, now)

    def _made(self, planner: Planner, done: Done, now: datetime) -> Decision:
        if isinstance(done, Decision):
            return with_options(done, planner.names)
        if isinstance(done, Readings):
            same = (planner.decide(frame, now) for frame in done.same)
            taken = next((one for one in same if one.reason not in reasons_of("no_query")), None)
            made = [binding.for_each(planner.decide(frame, now)) for frame in (() if taken else done.frames)]
            decision = with_effect(done.said, taken, self.before) if taken else settled(done, made, self.before)
            return with_options(decision, planner.names)
        asked = done.frame if isinstance(done, Option) else done
        decision = binding.for_each(planner.decide(asked, now))
        if self.pointed and isinstance(done, Frame):
            decision = with_effect(done, decision, self.before)
        return with_options(decision, planner.names)

    def to_dict(self) -> dict[str, Any]:
        """The form in which a conversation is stored."""
        form = msgspec.to_builtins(replace(self, pointed=(), pointing=0))
        return {"version": VERSION, **_without_empty(form)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Talk:
        """Inverse of `to_dict`, also for the form of before 2026-12. Raises ValueError for another version or shape."""
        if data.get("version") == 1:
            return _from_first_version(data)
        if data.get("version") != VERSION:
            raise ValueError(f"The stored conversation is not of version {VERSION}, which this program reads.")
        talk = msgspec.convert({name: value for name, value in data.items() if name != "version"}, cls)
        for decision in (*talk.decisions, talk.waiting, *(shown.by for shown in talk.lists)):
            if decision is not None:
                decision.frame.features = decision.frame.copy().features
        for option in (*talk.offers, *(talk.waiting.options if talk.waiting else ())):
            option.frame.features = option.frame.copy().features
        return talk


def offer(text: str, tool: str, arguments: Mapping[str, Any], view: View, aspects: tuple[str, ...] = ()) -> Option:
    """Something that an answer proposes, with its call."""
    return Option(text, frame_of(tool, arguments), calls=(Call(tool, dict(arguments)),), view=view, aspects=aspects)


def _from_first_version(data: Mapping[str, Any]) -> Talk:
    """The lists and things of a conversation that was stored as references; what waited for a choice waits no more."""
    old = msgspec.convert(data, _First)
    lists = tuple(ShownList(each.items, each.turn, each.total, None, each.beside) for each in old.lists)
    return Talk(
        turn=old.turn,
        lists=lists,
        dropped=old.dropped,
        spoken=old.focused,
        told=old.mentioned,
        together=old.group,
        together_turn=old.group_turn,
    )


class _FirstList(msgspec.Struct):
    items: tuple[ListItem, ...]
    turn: int
    total: int | None = None
    beside: bool = False


class _First(msgspec.Struct):
    """The fields of version 1 that still mean something."""

    turn: int = 0
    lists: tuple[_FirstList, ...] = ()
    dropped: int = 0
    focused: tuple[Spoken, ...] = ()
    mentioned: tuple[Spoken, ...] = ()
    group: tuple[ListItem, ...] = ()
    group_turn: int = 0


_KINDS = {"query_incidents": "incident", "query_alerts": "alert"}
_FEATURES = {
    "severity": "severity", "min_severity": "min", "status": "status", "title_contains": "title", "owner": "owner",
    "name_contains": "title", "entity": "name", "entity_kind": "of_kind", "order": "order", "limit": "limit",
    "product": "product", "tactic": "tactic", "incident": "incident", "kind": "kind",
}  # fmt: skip
"""Arguments of calls, with the features that they stand for."""
_OF_THE_WINDOW = ("time_window", "start_time", "end_time")


def frame_of(tool: str, arguments: Mapping[str, Any]) -> Frame:
    """The frame that a call answers, for what the next sentence leaves out."""
    frame = Frame("")
    if tool in _KINDS:
        frame.tell("kind", _KINDS[tool])
    if tool == "get_top_entities":
        frame.tell("op", "top")
    for name, value in arguments.items():
        if name in _FEATURES and isinstance(value, str | int):
            frame.tell(_FEATURES[name], str(value))
    frame.window = {name: str(arguments[name]) for name in _OF_THE_WINDOW if name in arguments}
    return frame


_REQUIRED = frozenset({"text", "kind", "tool", "turn"})
"""Fields without a default."""


def _without_empty(value: Any) -> Any:
    """A JSON value whose objects lack the fields that say nothing."""
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if name in _REQUIRED or each not in ("", None, False, [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list | tuple) else value
