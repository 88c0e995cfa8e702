"""Slots of a question: which belong together, what a fragment leaves out, and what it puts in their place."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.frames import Frame

LISTED = frozenset({"incident", "alert"})
"""Kinds of things that lists are of."""
_SUBJECT = ("name", "of_kind", "incident", "alert_id")
_ASKED = ("kind", "attr", "op", "topic", "group", "unit", "prop", "grouped", "most", "meta", "know", "columns", "table")
_COUNTED = ("op", "plural", "ask")
"""Types that only say how rows are told: counted, listed, drawn."""
_FILTERS = (
    ("severity", "min", "without"), ("status", "class", "when"), ("owner",), ("title", "guess", "maybe_title"),
    ("tactic",), ("product",), ("order", "limit", "singular", "counted"),
)  # fmt: skip
"""Types of which one takes the place of the others."""
_DROPPED = {
    "severity": ("severity", "min", "without"), "status": ("status", "class", "when"), "owner": ("owner",),
    "name": ("name", "of_kind"), "window": (),
}  # fmt: skip
_ANEW = (
    "kind:alert", "kind:incident", "kind:template", "kind:table", "kind:data", "op:summary", "op:priority",
    "op:compare", "op:average", "topic", "know", "meta", "table", "template", "title", "tactic",
)  # fmt: skip
"""What makes a sentence a question of its own."""
_OF_A_THING = ("attr", "prop", "kind:account", "kind:host", "kind:ip", "kind:url", "kind:file", "kind:process",
               "kind:mailbox", "kind:filehash", "kind:malware", "kind:entity", "kind:domain")  # fmt: skip
_RANKED = ("op:top",)


def is_fragment(frame: Frame) -> bool:
    """True for a sentence of filters, times, fields or names alone, that leaves out what it is about."""
    whole = frame.has("name", "incident", "op:top") and asks_of_a_thing(frame)
    return not whole and not frame.has(*_ANEW)


def asks_of_a_thing(frame: Frame) -> bool:
    """True where a field or the entities of one thing are asked for."""
    return frame.has(*_OF_A_THING)


def is_list(frame: Frame) -> bool:
    """True for a question that rows answer, and not one thing."""
    if frame.has("incident") and not frame.has("kind:alert"):
        return False
    return frame.has("kind:alert", "kind:incident", "op:top", "op:trend", "op:summary", "topic", "template", "status",
                     "severity", "owner", "title", "op:count")  # fmt: skip


def without(frame: Frame, slots: Sequence[str]) -> Frame:
    """The frame without these slots."""
    kept = frame.copy()
    for slot in slots:
        for type_ in _DROPPED[slot]:
            kept.features.pop(type_, None)
        if slot == "window":
            kept.window = {}
    return kept


def merged(before: Frame, said: Frame) -> Frame:
    """What `said` asks, with what it leaves out from the question before."""
    frame = said.copy()
    frame.kinds, frame.whole = before.kinds | said.kinds, before.whole | said.whole
    frame.window = dict(said.window or before.window)
    other_subject = said.has("name", "incident", "alert_id")
    asks_else = said.has(*(type_ for type_ in _ASKED if type_ not in _COUNTED))
    if not other_subject:
        _carry(frame, before, _SUBJECT)
    if not asks_else:
        kept_op = said.has("op") and not said.has("op:list", "op:exists")
        _carry(frame, before, [type_ for type_ in _ASKED if type_ != "op" or not kept_op])
        _listed_again(frame, before, said)
    else:
        _carry_how(frame, before, said)
    if asks_else and said.has("kind:alert", "kind:incident") and before.has("op:summary", "op:top", "op:trend"):
        # "Only incidents" behind a report asks for the rows.
        frame.features["op"] = list(said.all("op"))
    fresh = asks_else and before.has("incident") and not other_subject and not said.has("unit", "group")
    for group in _FILTERS:
        if not said.has(*group) and not fresh:
            _carry(frame, before, group)
    if before.has("not", "without") and not said.has("not", "without") and _narrowing(frame) & _narrowing(before):
        _carry(frame, before, ("not", "without"))  # what was left out is never what is asked for
    if fresh:
        frame.window = dict(said.window)
    if said.has("all", "among:all"):
        frame.features["limit"] = []
    if said.has("whose") and frame.has("kind:incident") and not frame.has("kind:alert", "topic", "owner", "rel"):
        # "Only those of Ines" behind a list of incidents are those that she owns, as "the incidents of Ines".
        frame.features["owner"] = list(said.all("whose"))
        frame.features["name"] = [name for name in frame.all("name") if name not in said.all("whose")]
    return frame


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
    if said.has("unit", "group") and not said.has("attr", "kind", "topic"):
        _carry(frame, before, ("kind", "op", "topic"))


def _narrowing(frame: Frame) -> set[tuple[str, str]]:
    """What narrows the rows."""
    types = ("name", *(type_ for group in _FILTERS for type_ in group))
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
    length = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}.get(unit, end - start)
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
