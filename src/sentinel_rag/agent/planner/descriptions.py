"""Lines of a list that are told by what they say: "the high one", "the one assigned to m.keller", "the oldest"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sentinel_rag.agent.planner.decisions import Unclear, ask
from sentinel_rag.agent.planner.merging import LISTED
from sentinel_rag.agent.planner.sentence import Done, FrameCompletion, ask_which, keys
from sentinel_rag.agent.things import ListItem
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.lexicon import fold


def described(asked: FrameCompletion) -> Done | None:
    """Bind one line by what it says: "the high one", "the one assigned to m.keller", "the phishing incident"."""
    found = _description(asked)
    if found is None:
        return None
    kind, forced = found
    lines: list[ListItem] = []
    fitting: list[ListItem] = []
    like = kind or (asked.talk.lists[-1].items[0].of_kind if asked.talk.lists[-1].items else "")
    for shown in (each for each in reversed(asked.talk.lists) if each.items and each.items[0].of_kind == like):
        lines = [line for line in shown.items if line.value]
        fitting = [line for line in lines if fits(asked, line)]
        if fitting:
            break
    extreme = asked.frame.one("order")
    if extreme in ("newest", "oldest") and fitting and all(line.time for line in fitting):
        best = (max if extreme == "newest" else min)(line.time for line in fitting)
        fitting = [line for line in fitting if line.time == best]
    if not forced and len(fitting) != 1:
        return None
    if not lines:
        return ask(asked.frame, Unclear.WHICH_THING)
    for type_ in ("severity", "status", "title", "guess", "maybe_title", "owner", "order", "singular", "min"):
        asked.frame.features[type_] = []
    asked.frame.features["kind"] = [each for each in asked.frame.all("kind") if each != kind]
    asked.frame.window, asked.frame.unread = {}, []
    if len(fitting) == 1:
        return asked.bound(fitting)
    return ask_which(asked.frame, fitting or lines, asked.talk)


def _description(asked: FrameCompletion) -> tuple[str, bool] | None:
    """The kind of the line that is described, and whether nothing else can be meant; None if none is."""
    frame = asked.frame
    tells = frame.has("severity", "status", "title", "maybe_title", "owner", "order") or frame.window or frame.unread
    if not tells or not asked.talk.lists:
        return None
    items = frame.items
    for place, item in enumerate(items):
        opened = any(before.sense("definite") or before.sense("ask") for before in items[max(0, place - 6) : place])
        if item.sense("one") is not None and opened:
            return "", True
        kind = item.sense("kind", LISTED)
        between = items[place - 1] if place else None
        if kind is None or between is None or item.sense("plural") is not None or between.sense("definite"):
            continue
        told = between.sense("severity") or between.sense("threat") or between.sense("owner") or between.type == "text"
        if told and opened and not frame.has("order") and not frame.window:
            return kind[1], False
    return None


def fits(asked: FrameCompletion, line: ListItem) -> bool:
    """Whether a line is what the frame describes."""
    f = asked.frame
    words = [word for text in (*f.all("title"), *f.all("maybe_title"), *f.unread) for word in fold(text).split()]
    severities = {*f.all("severity"), *_at_least(f.one("min"))}
    owners = [fold(owner) for owner in f.all("owner")]
    status = f.one("status")
    tells = words or severities or owners or status or f.window
    return (
        bool(tells or f.has("order"))
        and all(word in fold(line.title) for word in words)
        and (not severities or line.severity in severities)
        and (not status or line.status == status or (status == "Open" and line.status in ("New", "Active")))
        and all((owner == "unassigned" and not line.owner) or owner in fold(line.owner) for owner in owners)
        and (not f.window or _within(line.time, f.window))
    )


def chosen(asked: FrameCompletion) -> Done | None:
    """Bind the first or last of the lines that were shown: "which one is the oldest?", "the newer of the two"."""
    frame = asked.frame
    order = frame.one("pick") or frame.one("order")
    points = frame.has("ref:them", "ref:ones") or any(item.sense("one") for item in frame.items)
    asks = frame.has("ask:what") and (points or asked.only("ask", "order", "follow")) and not frame.has("kind")
    alone = asked.only("order", "follow") and _definite(asked) and asked.last_list() is not None
    alone |= frame.has("attr:detail") and asked.only("order", "follow", "attr:detail") and asked.last_list() is not None
    if order not in ("newest", "oldest") or not (frame.has("pick") or asks or alone or _of_them(asked)):
        return None
    noun = frame.one("that") or ""
    shown = next((each for each in reversed(asked.talk.lists) if len(each.items) > 1), None)
    pair = asked.talk.together if shown is None or asked.talk.together_turn >= shown.turn else ()
    listed = () if shown is None else tuple(line for line in shown.items if line.value)
    lines = listed if keys(pair) <= keys(listed) else pair
    if not lines or (noun and noun != lines[0].of_kind and not frame.has("pick") and not _of_them(asked)):
        return ask(frame, Unclear.WHICH_THING)
    for type_ in ("order", "singular", "attr", "window") if asks else ("order", "singular"):
        frame.features.pop(type_, None)
    frame.features["kind"] = [kind for kind in frame.all("kind") if kind != lines[0].of_kind]
    if not all(line.time for line in lines):
        return ask_which(frame, lines, asked.talk)
    best = (max if order == "newest" else min)(lines, key=lambda line: line.time)
    frame.tell("among", "shown")
    return asked.bound([best])


def _definite(asked: FrameCompletion) -> bool:
    """True for "the newest", and not for "newest"."""
    return any(item.sense("definite") and behind.sense("order") for item, behind in pairwise(asked.frame.items))


def _of_them(asked: FrameCompletion) -> bool:
    """True for "the newest of them", and not for "show them newest first"."""
    return any(
        item.sense("order") is not None and behind.sense("ref", frozenset({"them"})) is not None
        for item, behind in pairwise(asked.frame.items)
    )


def _at_least(severity: str | None) -> Sequence[str]:
    return SEVERITIES[SEVERITIES.index(severity) :] if severity in SEVERITIES else ()


def _within(time: str, window: dict[str, str]) -> bool:
    start, end = window.get("start_time", ""), window.get("end_time", "~")
    return bool(time) and bool(start or "end_time" in window) and start <= time < end
