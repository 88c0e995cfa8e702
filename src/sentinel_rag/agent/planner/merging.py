"""Slots of a question: which belong together, what a fragment leaves out, and what it puts in their place."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.text import toml_beside

LISTED = frozenset({"incident", "alert"})
"""Kinds of things that lists are of."""
_FIELDS_OF_TIME = {"created", "updated", "closed_time"}
LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
_TOP = {"op", "order", "limit"}
FILTERS = ("severity", "status", "owner", "title", "tactic", "product", "rows")
"""Slots that narrow rows, or put them in order."""


def follow_ups() -> Mapping[str, Any]:
    """The slots, types and rules of `follow_ups.toml`."""
    return toml_beside(__package__, "follow_ups.toml")


def slots() -> dict[str, list[str]]:
    """The types that belong together, by the slot that they fill."""
    return dict(follow_ups()["slots"])


def types_of(name: str) -> tuple[str, ...]:
    """The types of words of one part that they play in a conversation."""
    return tuple(follow_ups()["types"][name])


def reasons_of(name: str) -> tuple[str, ...]:
    """Reasons to ask back after which a conversation goes on in the same way."""
    return tuple(follow_ups()["reasons"][name])


def is_fragment(frame: Frame) -> bool:
    """True for a sentence of filters, times, fields or names alone, that leaves out what it is about."""
    whole = frame.has("name", "incident", "op:top") and asks_of_a_thing(frame)
    whole |= frame.has("incident") and frame.has("op:list")  # "I would like to read incident 12"
    return not whole and not frame.has(*types_of("anew"))


def is_outside(frame: Frame) -> bool:
    """True for what is about the assistant, or about nothing that a workspace holds."""
    return frame.has(*types_of("outside")) and not frame.has("name", "incident")


def changes_an_answer(frame: Frame) -> bool:
    """True for filters, times and groups that a list takes, where nothing is asked of a thing."""
    told = frame.has(*types_of("of_an_answer")) or bool(frame.window)
    asks = frame.polar or (frame.has("ask") and not frame.has("group", "unit"))
    return (
        told
        and not asks
        and is_fragment(frame)
        and (not asks_of_a_thing(frame) or frame.has("op:trend"))
        and not frame.has("that", "do", "both")
    )


def asks_of_a_thing(frame: Frame) -> bool:
    """True where a field or the entities of one thing are asked for; a field of a time that was said is a filter."""
    filters = _told_by_time(frame) | {
        f"kind:{kind}"
        for noun, name in pairwise(frame.items)
        for type_, kind in noun.senses
        if type_ == "kind" and name.sense("name", frozenset({kind}))
    }  # "the domain evil.example"
    return frame.has(*(type_ for type_ in types_of("of_a_thing") if type_ not in filters))


def _told_by_time(frame: Frame) -> set[str]:
    """The type of fields that ask for none, since a time was said by which they narrow: "updated since Friday"."""
    return {"attr"} if frame.window and set(frame.all("attr")) <= _FIELDS_OF_TIME else set()


def is_list(frame: Frame) -> bool:
    """True for a question that rows answer, and not one thing."""
    if frame.has("incident") and not frame.has("kind:alert"):
        return False
    return frame.has(*types_of("list"))


def without(frame: Frame, dropped: Sequence[str]) -> Frame:
    """The frame without these slots."""
    kept = frame.copy()
    for slot in dropped:
        for type_ in slots().get(slot, ()):
            kept.features.pop(type_, None)
        if slot == "window":
            kept.window = {}
    return kept


def merged(before: Frame, said: Frame) -> Frame:
    """What `said` asks, with what it leaves out from the question before."""
    frame = _in_its_role(before, said)
    frame.kinds, frame.whole = before.kinds | said.kinds, before.whole | said.whole
    frame.window = dict(said.window or before.window)
    of_logs = frame.has("topic")
    other_subject = frame.has("name", "incident", "alert_id")
    told = {*types_of("told"), *_told_by_time(frame)}
    asks_else = frame.has(*(type_ for type_ in slots()["asked"] if type_ not in told))
    if not other_subject:
        _carry(frame, before, slots()["subject"])
    if before.has("rel:involve", "rel:naming") and before.has("name") and not said.has("owner", "whose"):
        frame.tell("rel", "involve")  # who is named is still no owner
    if not asks_else:
        kept_op = said.has("op") and not said.has("op:list", "op:exists")
        kept_op &= not (said.has("cmp:only") and before.has("op:top", "op:trend"))  # "only count the high ones"
        _carry(frame, before, [type_ for type_ in slots()["asked"] if type_ != "op" or not kept_op])
        _listed_again(frame, before, said)
        if said.has("kind:incident"):  # of those, and of no alerts
            frame.features["kind"] = [kind for kind in frame.all("kind") if kind not in LISTED]
    else:
        _carry_how(frame, before, said)
    if asks_else and said.has("kind:alert", "kind:incident") and before.has("op:summary", "op:top", "op:trend"):
        # "Only incidents" behind a report asks for the rows.
        only = said.has("cmp:only")
        frame.features["op"] = [op for op in said.all("op") if not (only and op == "summary")]
    of_one = asks_else and before.has("incident") and not other_subject and not said.has("unit", "group")
    for slot in FILTERS:
        types = slots()[slot]
        if not frame.has(*types) and not of_one and not of_logs:
            _carry(frame, before, types)
    if not frame.has(*slots()["bound"]) and {*frame.all("topic")} == {*before.all("topic")}:
        _carry(frame, before, slots()["bound"])
    if said.has("class", "when") and said.has("not", "when") and not said.has("status"):
        _carry(frame, before, ("status",))
    if said.has("class") and not said.has("when"):
        _carry(frame, before, ("when",))  # "and true positives?" behind what was closed last week
    if said.has("add"):
        _added(frame, before, said)
    if before.has("not", "without") and not said.has("not", "without") and _narrowing(frame) & _narrowing(before):
        _carry(frame, before, ("not", "without"))  # what was left out is never what is asked for
    if of_one:
        frame.window = dict(said.window)
    by_closing = said.has("when") and not said.has("status")
    if before.window and not said.window and not before.has("status:Closed", "when:closed", "class") and not by_closing:
        frame.features["when"] = ["created"]  # rows of a time that are closed by now, and not those closed then
    if said.has("all", "among:all"):
        frame.features["limit"] = []
    if said.has("whose") and frame.has("kind:incident") and not frame.has("kind:alert", "topic", "owner", "rel"):
        # "Only those of Ines" behind a list of incidents are those that she owns, as "the incidents of Ines".
        frame.features["owner"] = list(said.all("whose"))
        frame.features["name"] = [name for name in frame.all("name") if name not in said.all("whose")]
    return frame


def _in_its_role(before: Frame, said: Frame) -> Frame:
    """A name alone stands where one stood before: for an owner behind incidents of an owner."""
    frame = said.copy()
    if before.has("kind:alert", "kind:incident") and not before.has("topic") and not said.has("name"):
        # "The resolved ones" behind a list of alerts are in a state, and looked up nothing.
        states = {
            value for item in said.items if item.sense("status") for type_, value in item.senses if type_ == "topic"
        }
        frame.features["topic"] = [topic for topic in said.all("topic") if topic not in states]
    listed = before.has("kind:alert", "kind:incident") and not before.has("op:top", "group", "topic")
    if listed and {type_ for type_, values in said.features.items() if values} - {"plural", "follow"} == _TOP:
        frame.features["op"], frame.features["order"] = [], before.all("order")  # "top three" of a list are its first
    if said.all("kind") == ["thing"] and is_list(before) and not said.has("topic"):
        frame.features["kind"] = []  # "the low stuff", "the same thing for the users"
    if said.has("group:severity") and before.has("order") and not before.has("op:count"):
        frame.features["group"], frame.features["order"] = [], ["severity"]  # a list in order, by another field
    if said.has("whose") and before.has("kind:incident") and not said.has("owner", "kind:alert"):
        frame.features["owner"], frame.features["name"] = said.all("whose"), []  # incidents of a person are owned ones
    ranks = before.has("op:top", "op:trend") and not before.has("kind:incident")
    if ranks and said.has("cmp:only") and said.has("severity", "min") and said.all("kind") == ["alert"]:
        frame.features["kind"] = []  # what is ranked are alerts: "only high alerts"
    if counts_among(before, said):
        frame.features["kind"], frame.features["op"] = [], []
    if said.has("by") and said.has("name") and before.has("status:Closed") and before.has("kind:incident"):
        frame.features["closed_by"] = [said.whole.get(name, name) for name in said.all("name")]
        frame.features["name"] = []  # "by keller?", behind incidents that were closed
    owned = before.has("owner") and not before.has("owner:unassigned", "name", "incident")
    if owned and len(said.all("name")) == 1 and not said.has("owner", *types_of("anew"), *types_of("of_a_thing")):
        frame.features["owner"], frame.features["name"], frame.features["of_kind"] = said.all("name"), [], []
    return frame


def counts_among(before: Frame, said: Frame) -> bool:
    """True where a sentence begins with the rows among which a ranking or a trend counts: "of open incidents only"."""
    first = next((item for item in said.items if item.type not in ("pad", "cmp", "follow")), None)
    of_rows = first is not None and first.sense("of") is not None and before.has("op:top", "op:trend", "group")
    by_state, by_level = said.has("status"), said.has("severity", "min")  # levels are those of the alerts
    return of_rows and by_state != by_level and said.all("kind") == (["incident"] if by_state else ["alert"])


def _added(frame: Frame, before: Frame, said: Frame) -> None:
    """ "Medium too" asks for both; open ones and closed ones are all. What no query joins is asked back."""
    for slot in FILTERS[:-1]:
        types = slots()[slot]
        new = [value for type_ in types for value in said.all(type_) if value not in before.all(type_)]
        if not new or not before.has(*types):
            continue
        if slot == "severity" and not (said.has("min", "without") or before.has("min", "without")):
            frame.features["severity"] = [*before.all("severity"), *said.all("severity")]
        elif slot == "status" and {*before.all("status"), *said.all("status")} == {"Open", "Closed"}:
            frame.features["status"] = []
        else:
            frame.tell("problem", new[0])


def _listed_again(frame: Frame, before: Frame, said: Frame) -> None:
    """Rows that were counted are listed where they are asked for; those of a report are incidents."""
    if said.has("op:list", "op:exists") or (said.has("ask:what") and not said.has("op:count")):
        frame.features["op"] = [op for op in frame.all("op") if op != "count"]
    if before.has("op:summary") and said.has("owner", "status", "severity", "class", "order"):
        frame.features["op"] = [op for op in frame.all("op") if op != "summary"]
        frame.tell("kind", "incident")


def _carry_how(frame: Frame, before: Frame, said: Frame) -> None:
    """What stays of the last question where another field or kind is asked for: a ranking, a trend."""
    if before.has("op:top") and said.has("kind") and not said.has("kind:alert", "kind:incident", "op"):
        _carry(frame, before, ("op",))
    grouped = said.has("unit", "group") and set(said.all("attr")) <= set(said.all("group"))
    if (grouped or (said.has("by") and before.has("topic"))) and not said.has("kind", "topic"):
        _carry(frame, before, ("kind", "op", "topic"))
    if said.has("unit") and not said.has("group", "op") and set(before.all("group")) & LENGTHS.keys():
        frame.features["group"], frame.features["unit"] = said.all("unit"), []  # "back to days", of a curve by weeks
    if (
        before.has("topic")
        and said.has("kind")
        and not said.has("kind:alert", "kind:incident", "attr", "topic", "name")
    ):
        _carry(frame, before, ("topic",))  # "to which addresses", behind connections


def _narrowing(frame: Frame) -> set[tuple[str, str]]:
    """What narrows the rows."""
    types = ("name", *(type_ for slot in FILTERS for type_ in slots()[slot]))
    return {(type_, value) for type_ in types for value in frame.all(type_)}


def _carry(frame: Frame, before: Frame, types: Sequence[str]) -> None:
    for type_ in types:
        for value in before.all(type_):
            frame.tell(type_, value)


def moved(window: Mapping[str, str], now: datetime, *, back: bool, unit: str = "") -> dict[str, str]:
    """The stretch of time of the same length before or after; a calendar month moves to the next one."""
    if "time_window" in window:
        end, start = now, now - _length(window["time_window"])
    else:
        start = datetime.fromisoformat(window["start_time"]).astimezone(now.tzinfo) if "start_time" in window else now
        end = datetime.fromisoformat(window["end_time"]).astimezone(now.tzinfo) if "end_time" in window else now
    if start.day == end.day == 1 and start.time() == end.time() and (end - start).days >= 28:
        months = (end.year - start.year) * 12 + end.month - start.month
        step = -months if back else months
        return {"start_time": format_time(_month(start, step)), "end_time": format_time(_month(end, step))}
    length = LENGTHS.get(unit, end - start)
    step_ = -max(length, end - start) if back else max(length, end - start)
    return {"start_time": format_time(start + step_), "end_time": format_time(end + step_)}


def _length(told: str) -> timedelta:
    if told in TIME_WINDOWS:
        return timedelta(hours=TIME_WINDOWS[told])
    match = re.search(r"(\d+)([hd])$", told)
    return timedelta(hours=int(match[1]) * (24 if match[2] == "d" else 1)) if match else timedelta(days=1)


def _month(moment: datetime, step: int) -> datetime:
    month = moment.month - 1 + step
    year, month = moment.year + month // 12, month % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))
