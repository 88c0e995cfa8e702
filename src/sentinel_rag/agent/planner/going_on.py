"""What a sentence does with the last answer: more of it, as before, another time, drawn, written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, Unclear, ask
from sentinel_rag.agent.planner.leaning import offering
from sentinel_rag.agent.planner.merging import (
    FILTERS,
    LENGTHS,
    LISTED,
    is_fragment,
    is_list,
    merged,
    moved,
    slots,
    types_of,
    without,
)
from sentinel_rag.agent.planner.sentence import LISTED_KINDS, Done, FrameCompletion, unmarked
from sentinel_rag.agent.things import ALERT, INCIDENT
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, MOST_SKIPPED, TIME_WINDOWS, TOOLS_BY_NAME
from sentinel_rag.language.frames import Frame

_PEAK = "peak_"
_SHORTEST_MONTH, _LONGEST_MONTH = timedelta(days=28), timedelta(days=31)
_SUMMER_TIME = timedelta(hours=1)
"""A day of the clock is an hour longer or shorter twice a year."""


def acted(asked: FrameCompletion) -> Done | None:
    """What is done with the last answer: more of it, as before, without a filter, drawn, written to a file."""
    frame = asked.frame
    if frame.has("talk:export") and not frame.has("kind:template", "know", "name", "ask:who"):
        return Decision(DecisionKind.EXPORT, frame)
    if frame.has("talk:more", "talk:rest") and asked.only(*types_of("of_more")):
        return _next_page(asked)
    if frame.has("talk:undo") and asked.only("talk", "ref", "relative"):
        return _earlier(asked, asked.talk.decisions[:-1])
    if frame.has("talk:first_page") and asked.only("talk", "ref", "op:list", "that", "kind", "meta"):
        return _earlier(asked, asked.talk.decisions)
    kinds = [kind for kind in (*frame.all("kind"), *frame.all("that")) if kind in LISTED]
    returns = frame.has("talk:back") or (frame.has("talk:again") and (kinds or frame.has("all")))
    if returns and frame.has("ref:previous"):
        return _thing_before(asked)
    if returns and not frame.has("incident", "digits") and asked.only(*types_of("of_a_list")):
        return _back(asked, kinds)
    if frame.has("talk:again") and asked.only("talk", "ref", "relative", "op:list"):
        return _earlier(asked, asked.talk.decisions)
    of_its_own = ("name", "incident", "digits", "kind", "topic", "attr:tactics", "attr:techniques")
    if frame.has("talk:draw", "attr:draw") and not frame.has(*of_its_own):
        return _drawn(asked)
    if frame.has("op:trend") and frame.has("ref", "that") and asked.only("op:trend", *_OF_A_PICTURE):
        return _drawn(asked)
    if frame.has("op:share") and asked.only("op:share", *_OF_A_PICTURE):
        return _drawn(asked)
    base = asked.base(lists=True)
    if base is not None and base.calls and base.calls[0].tool != "run_kql_query" and is_fragment(frame):
        of_rows = is_list(base.frame) and not frame.has("name", "incident", "attr")
        if frame.has("drop") or (frame.has("without") and of_rows):
            return unmarked(merged(without(base.frame, frame.all("drop")), frame))
    if frame.has("shift:earlier", "previous") and frame.has("num", "limit") and _newest_first(asked):
        return _next_page(asked)  # "the 5 before"
    if frame.has("shift") and not frame.window:
        fragment = is_fragment(without_compare(frame))
        return (moved_time(asked) if fragment else None) or _beside_a_moment(asked)
    return None


def takes_off(asked: FrameCompletion) -> bool:
    """Whether a sentence only narrows the last answer otherwise, so that "drop the owner" and "remove rundll32" order
    no change; the slots that it takes off are told."""
    frame, base = asked.frame, asked.base(lists=True)
    if base is None or not frame.has("drop", "without", "not:except", "act:change"):
        return False
    if frame.has("without"):
        return is_list(base.frame) and is_fragment(frame)
    said = frame.all("drop") or [slot for slot in (*FILTERS, "name") if frame.has(*slots()[slot])]
    stands = all(
        any(value in each for each in base.frame.all(type_) for value in values)
        for slot in said
        for type_ in slots()[slot]
        if (values := frame.all(type_))
    )
    stood = [slot for slot in said if (base.frame.window if slot == "window" else base.frame.has(*slots()[slot]))]
    if not said or not stands or stood != said or not asked.only(*types_of("taken_off")):
        return False
    asked.frame = unmarked(without(frame, said), ("not", "act"))
    asked.frame.features["drop"], asked.frame.items = said, ()
    return True


_OF_A_PICTURE = ("op:list", "ref", "that", "relative")
_WITH_COUNTS = ("query_incidents", "get_threat_summary", "get_alert_trend", "get_top_entities")
"""Tools whose answers hold what is drawn of them."""


def _drawn(asked: FrameCompletion) -> Done | None:
    """The last answer with its counts drawn; alerts over time; a thing as it is drawn itself."""
    frame, before = asked.frame, asked.talk.before
    tools = {call.tool for call in before.calls} if before is not None else set()
    if before is not None and tools and tools <= {*_WITH_COUNTS}:
        again = _from_the_top(before)
        drawn = {**again.frame.features, "talk": [*again.frame.all("talk"), "draw"]}
        return replace(again, frame=replace(again.frame, features=drawn))
    if before is None or not is_list(before.frame):
        frame.tell("attr", "draw")
        return None
    frame.features["op"], frame.features["attr"] = ["trend"], []
    return unmarked(merged(before.frame, unmarked(frame)))


def _next_page(asked: FrameCompletion) -> Done:
    before = asked.talk.before
    if before is None or not before.calls:
        return ask(asked.frame, Unclear.NOTHING_SHOWN)
    made = before.calls[0]
    total = asked.talk.lists[-1].total if asked.talk.lists else None
    whole = total is not None and asked.talk.shown >= total
    if len(before.calls) > 1 or "offset" not in TOOLS_BY_NAME[made.tool].parameter_schemas() or whole:
        return ask(asked.frame, Unclear.NO_MORE)
    if asked.frame.has("talk:rest") and (wider := _narrowed_from(asked.talk.decisions)) is not None:
        return offering(asked.frame, [wider], Unclear.SAME_OR_ALL)  # the rest of these, or those that were left out?
    shown = asked.talk.shown or int(str(made.arguments.get("limit", DEFAULT_LIMIT)))
    if shown > MOST_SKIPPED:
        return ask(asked.frame, Unclear.NO_MORE)
    arguments = {**made.arguments, "offset": shown}
    limit = next(iter(asked.frame.all("limit") or asked.frame.all("num")), None)
    if limit is not None or asked.frame.has("talk:rest"):
        arguments["limit"] = MAX_LIMIT if limit is None else int(limit)
    return replace(before, calls=(Call(made.tool, arguments),))


def _thing_before(asked: FrameCompletion) -> Done:
    """What was spoken of before the thing in focus: "back to the one before"."""
    spoken = [each.item for each in asked.talk.spoken]
    before = [item for item in spoken if item.of_kind == spoken[-1].of_kind][-2:-1]
    return (asked.bound(before) if before else None) or ask(asked.frame, Unclear.NOTHING_BEFORE)


def _newest_first(asked: FrameCompletion) -> bool:
    before = asked.talk.before
    return before is not None and before.frame.has("order:newest") and asked.talk.unlisted < asked.talk.turn


def _narrowed_from(decisions: Sequence[Decision]) -> Decision | None:
    """The decision before the last, where the last one only narrowed it."""
    if len(decisions) < 2 or not decisions[-2].calls:
        return None
    last, before = decisions[-1].calls[0], decisions[-2].calls[0]
    narrowed = last.tool == before.tool and last.arguments.items() > before.arguments.items()
    return decisions[-2] if narrowed and "offset" not in last.arguments else None


def _earlier(asked: FrameCompletion, decisions: Sequence[Decision]) -> Done:
    """The last of these decisions once more."""
    return _from_the_top(decisions[-1]) if decisions else ask(asked.frame, Unclear.NOTHING_BEFORE)


def _back(asked: FrameCompletion, kinds: Sequence[str]) -> Done:
    """The newest list of those kinds that holds the filters that were said; what it lacks of them is put on it."""
    frame, before = unmarked(asked.frame), asked.talk.before
    lists = [shown for shown in reversed(asked.talk.lists) if shown.by is not None]
    fitting = [shown for shown in lists if not kinds or shown.items[0].kind in kinds]
    own = [shown for shown in fitting if not shown.beside] or fitting
    opened = {value for item in frame.items if item.sense("op") for type_, value in item.senses if type_ == "status"}
    if not any(shown.by and opened & {*shown.by.frame.all("status")} for shown in own):
        # "Open the list again" opens it.
        frame.features["status"] = [status for status in frame.all("status") if status not in opened]
    told = {(type_, value) for type_ in types_of("tells_a_list") for value in frame.all(type_)}
    whole = [shown.by for shown in own if shown.by and told <= {(t, v) for t, _ in told for v in shown.by.frame.all(t)}]
    bases = whole or [shown.by for shown in own if shown.by]
    if not bases:
        return ask(asked.frame, Unclear.NOTHING_BEFORE)
    found = next((each for each in bases if told or each != before), bases[0])
    if whole:
        frame = without(frame, ("status", "severity", "owner", "tactic", "product"))
    if not frame.window and not frame.has("order", "limit", *types_of("tells_a_list")):
        return _from_the_top(found)
    for type_ in ("kind", "op", "singular"):  # "the alert list again, worst first" is a list
        frame.features[type_] = []
    return unmarked(merged(found.frame, frame))


def moved_time(asked: FrameCompletion) -> Done | None:
    """The last question for the stretch of time before or after its own."""
    base = asked.base(lists=True)
    if base is None or not base.frame.window:
        return None
    window = moved(base.frame.window, asked.now, back=asked.frame.has("shift:earlier"), unit=_unit(asked))
    if asked.frame.has("cmp:more", "cmp:less"):  # "is that more than the week before"
        beside = unmarked(merged(base.frame, asked.frame))
        beside.second_window = window
        beside.features["cmp"] = []
        beside.tell("op", "compare")
        return beside
    frame = merged(base.frame, without_compare(asked.frame))
    frame.window = window
    return unmarked(frame)


def _beside_a_moment(asked: FrameCompletion) -> Decision | None:
    """A question back about rows "before that", where what is spoken of is no stretch of time."""
    said = [item.text for item in asked.items if item.sense("shift")]
    beside = asked.frame.has("op:compare", "op:trend", "unit", "previous") or asked.talk.before is None
    return None if beside else ask(unmarked(asked.frame), Unclear.NOT_EXPRESSIBLE, *said)


def _unit(asked: FrameCompletion) -> str:
    return next((value for item in asked.items for type_, value in item.senses if type_ == "unit"), "")


# --- Corrections


def timed(asked: FrameCompletion) -> Done | None:
    """Bind "that day", "then" and "on the busiest day" to the time that the last answer told of."""
    frame = asked.frame
    if frame.has("not:except") and len(frame.window) == 1 and "time_window" not in frame.window and is_fragment(frame):
        # "Skip everything before the 10th": what is left out ends where the rest begins.
        ((edge, moment),) = frame.window.items()
        frame.window = {"end_time" if edge == "start_time" else "start_time": moment}
        frame.features["not"], frame.features["kind"] = [], []
    told = frame.one("moment")
    if told is None or frame.window or (told == "then" and not _asks_of_then(asked)):
        return None
    if frame.has("digits") and not frame.has("limit", "kind:incident"):
        return ask(unmarked(frame), Unclear.WHICH_MOMENT)  # "between 8 and 12 that day"
    rows = told == "then" and frame.has(*LISTED_KINDS)  # the incidents of the whole period that was asked about
    ranked, unit = told.startswith(_PEAK), "period" if rows else told.removeprefix(_PEAK)
    window = _told_time(asked, unit, ranked=ranked)
    plain = unmarked(frame, ("moment",))
    if window:
        plain.window = window
        asked.frame = plain
        return None
    back = ask(unmarked(frame), Unclear.WHICH_MOMENT)
    focus = asked.talk.focus(INCIDENT, ALERT)
    if unit not in ("day", "then") or ranked or focus is None or not focus.item.time:
        return back
    day = datetime.fromisoformat(focus.item.time).astimezone(asked.now.tzinfo).replace(hour=0, minute=0, second=0)
    dated = back.frame.copy()
    dated.window = {"start_time": format_time(day), "end_time": format_time(day + LENGTHS["day"])}
    return replace(back, options=(Option(f"{day:%Y-%m-%d}", dated, 1),))


def _asks_of_then(asked: FrameCompletion) -> bool:
    """True where "then" ends a question about what happened, in a conversation that told of a time."""
    talk, last = asked.talk, [item for item in asked.frame.items if item.type != "pad"][-1:]
    times = talk.moment or any(each is not None and each.frame.window for each in (talk.before, talk.waiting))
    waits = talk.waiting is not None and talk.waiting.reason is Unclear.WHICH_MOMENT
    around = bool(asked.frame.time_said)  # "around then"
    asks = asked.frame.has("topic", "when", *LISTED_KINDS) and bool(times or waits)
    return any(item.sense("moment") for item in last) and (asks or around)


def _told_time(asked: FrameCompletion, unit: str, *, ranked: bool) -> dict[str, str]:
    """The window of that unit that the last answer told of, else the one that it was about."""
    before, waiting = asked.talk.before, asked.talk.waiting
    last = before.frame.window if before is not None else {}
    if waiting is not None and (waiting.reason is Unclear.WHICH_MOMENT or waiting.frame.window not in ({}, last)):
        return {}
    windows = [dict(asked.talk.moment)]
    windows += [before.frame.window] if before is not None and not ranked and not asked.talk.moment else []
    for window in windows:
        if unit == "period" and window:
            return window
        length = timedelta(hours=TIME_WINDOWS.get(window.get("time_window", ""), 0))
        if len(window) == 2:
            length = datetime.fromisoformat(window["end_time"]) - datetime.fromisoformat(window["start_time"])
        if length:
            slack = _SUMMER_TIME if unit != "hour" else timedelta(0)
            if unit in LENGTHS and abs(length - LENGTHS[unit]) <= slack:
                return window
            if unit == "month" and _SHORTEST_MONTH <= length <= _LONGEST_MONTH + slack:
                return window
            if unit == "then" and length <= LENGTHS["day"] + slack:
                return window
    return {}


def without_compare(frame: Frame) -> Frame:
    """The frame without the comparison that the words of a shift may be, too."""
    shifts = [item for item in frame.items if item.sense("shift")]
    others = [item for item in frame.items if item.sense("op", frozenset({"compare"})) and item not in shifts]
    if not shifts or others:
        return frame
    plain = frame.copy()
    plain.features["op"] = [op for op in plain.all("op") if op != "compare"]
    for type_ in ("unit", "ref", "relative"):
        plain.features[type_] = []
    return plain


def _from_the_top(decision: Decision) -> Decision:
    calls = (
        Call(call.tool, {name: value for name, value in call.arguments.items() if name != "offset"})
        for call in decision.calls
    )
    return replace(decision, calls=tuple(calls))
