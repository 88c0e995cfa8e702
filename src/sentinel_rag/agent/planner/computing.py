"""Questions that no tool answers alone: calls, and one calculation over how many rows they find or over the rows.

`answers.compute` carries a calculation out, for this planner as for a model. Where rows are read, every page is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Unclear, View, ask
from sentinel_rag.agent.planner.tools import NARROWING, to_tool
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT, SEVERITIES
from sentinel_rag.language.frames import Frame, part_of
from sentinel_rag.language.text import toml_beside

_IDENTITY = {"query_incidents": "number", "query_alerts": "alert_id"}
_CALCULATED = ("op", "group", "unit", "attr", "order", "limit", "alerts", "extreme", "most", "singular", "grouped")
_FILTERS = tuple(name for name in NARROWING if name not in ("not", "both", "without"))
_OPEN_FOR = "closed_time - created_time"
_SHORTEST = 0.9
"""A month beside a longer one, or a day in which a clock was put on, is still the same part of a calendar."""
_OPERATORS = {"more": ">", "min": ">=", "less": "<", "max": "<="}


def computed(name: str, frame: Frame, now: datetime) -> Decision | None:
    """The decision of the calculation `name` of `rows.toml`; None where the frame does not tell what it needs."""
    return _MADE[name](frame, now)


def _share(f: Frame, now: datetime) -> Decision | None:
    """How many percent of the rows have what is said behind their noun; else what is said of them at all."""
    noun = next((item for item in f.items if item.sense("kind", frozenset({"incident", "alert"}))), None)
    if noun is None:
        return None
    if not f.has(*_FILTERS):
        return _group(f, now)
    behind, whole = part_of(f, noun.end, len(f.text)), _plain(f)
    before = _plain(part_of(f, 0, noun.end)) if behind.has(*_FILTERS) else _plain(whole, _FILTERS)
    part = _merged(before, behind) if behind.has(*_FILTERS) else whole
    return _decided(f, _calls(before, part), {"op": "ratio", "a": "$2", "b": "$1"})


def _group(f: Frame, now: datetime) -> Decision | None:
    """How many rows there are for each value of a field, or each unit of time."""
    plain = _plain(f)
    said = (*f.all("group"), *f.all("attr"), *f.all("unit"), *(("day",) if f.has("op:trend") else ()))
    said += ("severity",) if f.has("op:share") else ()  # the parts that are meant where none are named
    column = _column(plain, said)
    if not column:
        return None
    by, _, of = column.partition(" of ")
    return _decided(f, _paged(plain), {"op": "group", "of": "$1", "by": by, **({"column": of} if of else {})})


def _extreme(f: Frame, now: datetime) -> Decision | None:
    """The rows that come first by a number of theirs: alerts, or the time that they were open."""
    plain = _plain(f)
    plain.features["kind"] = ["incident"]
    lasting = f.has("extreme", "attr:duration")
    if lasting:
        plain.features["status"] = ["Closed"]
    step = {"op": "order", "of": "$1", "column": _OPEN_FOR if lasting else "alert_count"}
    return _decided(f, _paged(plain), step, "few" if f.has("extreme:shortest") else "many", *f.all("limit")[:1])


def _mean(f: Frame, now: datetime) -> Decision | None:
    """The mean or median time from creation to closing of some incidents, or of how many alerts they have."""
    plain = _plain(f)
    plain.features["kind"] = ["incident"]
    counts = f.has("kind:alert")
    if not counts:
        plain.features["status"] = ["Closed"]
    op, by = "median" if f.has("op:median") else "average", _column(plain, f.all("group"))
    step = {"op": op, "of": "$1", "column": "alert_count" if counts else _OPEN_FOR} | ({"by": by} if by else {})
    return _decided(f, _paged(plain), step)


def _bounded(f: Frame, now: datetime) -> Decision | None:
    """Incidents with more or fewer alerts than a number."""
    plain = _plain(f)
    word, _, number = str(f.one("alerts")).partition(" ")
    plain.features["kind"] = ["incident"]
    where = f"alert_count {_OPERATORS[word]} {number}"
    return _decided(f, _paged(plain), _chosen(f, {"of": "$1", "column": "created_time", "where": where}), "newest")


def _classified(f: Frame, now: datetime) -> Decision | None:
    """Which share of all closed incidents were closed as one thing."""
    whole = f.copy()
    whole.features |= {"kind": ["incident"], "status": ["Closed"], "class": []}
    calls = _paged(whole)
    if not isinstance(calls, Decision) and (len(f.all("class")) != 1 or f.has("not")):
        return ask(f, Unclear.CANNOT_LEAVE_OUT)
    return _decided(f, calls, {"op": "share", "of": "$1", "where": f"classification = {f.one('class')}"})


def _without(f: Frame, now: datetime) -> Decision | None:
    """A list without those of its rows for which something holds."""
    gap = next((item for item in f.items if item.sense("not")), None)
    if gap is None:
        return None
    less = part_of(f, gap.end, len(f.text))
    less.features["title"] += less.features.pop("maybe_title", [])
    if not less.has(*_FILTERS) and less.has("num"):  # numbers behind the word that leaves out are incidents
        less.features["incident"] = f.all("incident")
    whole = _plain(part_of(f, 0, gap.start))
    if not whole.has("kind"):  # what a conversation spoke of, without what is left out now
        whole = _plain(f)
        for type_ in (*_FILTERS, "not", "without"):
            whole.features[type_] = [value for value in whole.all(type_) if value not in less.all(type_)]
        whole.features["not"] = whole.features["without"] = []
    if not whole.has("kind:incident", "kind:alert"):
        return None
    if not less.has(*_FILTERS) or less.unread:
        return None
    if all(name in _OF_ITS_ROW for name in _FILTERS if less.has(name)):
        return _other_rows(f, _plain(whole), less)
    person = less.has("name") and less.name_kinds(less.all("name")[0])[:1] == ("account",)
    if person and whole.has("kind:incident") and not f.has("rel:involve", "rel:naming"):
        if not whole.has("rel:owned_by", "attr:owner"):
            return ask(f, Unclear.OWNER_OR_INVOLVED, less.all("name")[0])
        less.features["owner"] = less.features.pop("name")
    step = {"op": "minus", "a": "$1", "b": "$2", "column": _IDENTITY[_tool(whole)]}
    return _decided(f, _paged(whole, _merged(whole, less)), step)


_OF_ITS_ROW = ("severity", "incident")
"""What is left out by a column of the row itself."""


def _other_rows(f: Frame, whole: Frame, less: Frame) -> Decision | None:
    """The rows whose own columns hold something else; without the lowest severities there is a threshold."""
    lowest = sorted({SEVERITIES.index(severity) for severity in less.all("severity")})
    if lowest and not less.has("incident") and lowest == list(range(len(lowest))) and len(lowest) < len(SEVERITIES):
        whole = whole.copy()
        whole.features["severity"], whole.features["min"] = [], [SEVERITIES[len(lowest)]]
        whole.features["op"], whole.features["order"] = f.all("op"), f.all("order")
        whole.features["limit"], whole.features["all"] = f.all("limit"), f.all("all")
        return to_tool(whole, _tool(whole))
    alerts = whole.has("kind:alert")
    columns = {"severity": "severity", "incident": "incident_number" if alerts else "number"}
    where: list[JsonValue] = [f"{columns[name]} != {value}" for name in _OF_ITS_ROW for value in less.all(name)]
    step = _chosen(f, {"of": "$1", "column": "time" if alerts else "created_time", "where": where})
    return _decided(f, _paged(whole), step, "oldest" if f.has("order:oldest") else "newest")


def _together(f: Frame, now: datetime) -> Decision | None:
    """The rows that name every one of several things."""
    names = f.all("name")
    parts = [f.copy() for _ in names]
    for part, name in zip(parts, names, strict=True):
        part.features["name"], part.features["both"] = [name], []
    calls = _paged(*map(_plain, parts))
    if not isinstance(calls, Decision) and len(names) != 2:
        return None
    return _decided(f, calls, {"op": "intersection", "a": "$1", "b": "$2", "column": _IDENTITY[_tool(f)]})


def _things_of_one(f: Frame, now: datetime) -> Decision | None:
    """Things of a kind that the first of two incidents names and the second does not."""
    kind = next((kind for kind in f.all("kind") if kind not in ("incident", "alert", "thing")), "")
    first, *others = (Call("get_incident_detail", {"incident": each}) for each in f.all("incident"))
    if not kind or len(others) != 1:
        return None
    kind = {"domain": "dns"}.get(kind, kind)
    step: dict[str, JsonValue] = {"op": "minus", "a": "$1", "b": "$2", "column": "name"}
    return _decided(f, (first, *others), step | ({} if kind == "entity" else {"kind": kind}), kind)


def _change(f: Frame, now: datetime) -> Decision | None:
    """How many rows one period has beside another: the one said second or the one before it comes first."""
    later, earlier = periods(f, now)
    if not later or not earlier:
        return ask(f, Unclear.COMPARED_WITH_WHAT)
    parts = []
    for window in (later, earlier):
        part = _plain(f)
        part.window = window
        parts.append(part)
    return _decided(f, _calls(*parts), {"op": "change", "a": "$2", "b": "$1"})


def periods(f: Frame, now: datetime) -> tuple[dict[str, str], dict[str, str]]:
    """The later and the earlier of two periods, both up to the same point where the later one is not over."""
    later, earlier = _whole_periods(f, now)
    sides = [one.get(side, "") for one in (later, earlier) for side in ("start_time", "end_time")]
    if not all(sides):
        return later, earlier
    start, end, first, last = map(datetime.fromisoformat, sides)
    alike = first < last and _SHORTEST <= (end - start) / (last - first) <= 1 / _SHORTEST
    if not alike or not start < now < end:
        return later, earlier
    f.features["compared"] = ["part"]
    return {**later, "end_time": format_time(now)}, {**earlier, "end_time": format_time(first + (now - start))}


def _whole_periods(f: Frame, now: datetime) -> tuple[dict[str, str], dict[str, str]]:
    """The two periods; of one that is said alone, the other is the one beside it."""
    if f.later_window:
        return f.later_window, {**f.window, "end_time": f.later_window["start_time"]}
    if f.second_window:
        both = sorted((f.window, f.second_window), key=lambda one: str(one.get("start_time", "~")))
        return both[1], both[0]
    start, end = (f.window.get(side, "") for side in ("start_time", "end_time"))
    if not start or not end:
        return {}, {}
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    if last < now and not f.has("previous"):
        return {"start_time": end, "end_time": format_time(last + (last - first))}, f.window
    return f.window, {"start_time": format_time(first - (last - first)), "end_time": start}


def _chosen(f: Frame, over: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The rows that fulfil a condition, or how many they are."""
    if f.has("op:count") and not f.has("limit"):
        return {"op": "count", **{name: value for name, value in over.items() if name != "column"}}
    return {"op": "order", **over}


def _plain(f: Frame, less: Iterable[str] = _CALCULATED) -> Frame:
    """The frame as a list: without what is calculated of it, or without other types."""
    plain = f.copy()
    plain.features["title"] += plain.features.pop("maybe_title", [])
    for type_ in less:
        plain.features.pop(type_, None)
    return plain


def _merged(whole: Frame, part: Frame) -> Frame:
    """`whole` with what is said in `part` on top."""
    merged = whole.copy()
    for type_ in (*_FILTERS, "of_kind"):
        if part.all(type_):
            merged.features[type_] = list(part.all(type_))
    return merged


def _tool(frame: Frame) -> str:
    return "query_alerts" if frame.has("kind:alert") else "query_incidents"


def _calls(*frames: Frame) -> tuple[Call, ...] | Decision:
    """A call for each frame, or the question back that one of them raises."""
    made = [to_tool(frame, _tool(frame)) for frame in frames]
    asked = next((one for one in made if not one.calls), None)
    return asked or tuple(one.calls[0] for one in made)


def _paged(*frames: Frame) -> tuple[Call, ...] | Decision:
    """The same for every page of the rows."""
    calls = _calls(*frames)
    if isinstance(calls, Decision):
        return calls
    return tuple(Call(each.tool, {**each.arguments, "limit": MAX_LIMIT}) for each in calls)


def _column(frame: Frame, said: Iterable[str]) -> str:
    """The column of a frame's rows that the first of the features means which means one; empty if none does."""
    columns = toml_beside(__package__, "computing.toml")[_tool(frame)]
    return next((columns[one] for one in said if one in columns), "")


def _decided(f: Frame, calls: tuple[Call, ...] | Decision, step: Mapping[str, Any], *aspects: str) -> Decision:
    if isinstance(calls, Decision):
        return calls
    return Decision(DecisionKind.CALL, f, calls, view=View.COMPUTED, aspects=aspects, then=(step,))


_MADE: Mapping[str, Callable[[Frame, datetime], Decision | None]] = {
    "share": _share, "group": _group, "extreme": _extreme, "mean": _mean, "bounded": _bounded, "change": _change,
    "classified": _classified, "without": _without, "together": _together, "minus": _things_of_one,
}  # fmt: skip
