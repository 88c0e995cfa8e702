"""Times that point at an answer before: "that day", "the same hour", "on the busiest day".

They become the window that they stand for, in the words of the question, or a question back: a time that is dropped
without a word widens the answer to everything. Times that a question gives itself are read by `time_windows`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.planner.plan import Ask, Plan, View
from sentinel_rag.agent.references.wording import mask
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.zone_words import read_time_in_its_zone

_UNIT = r"(?P<unit>day|hour|week|weekend|month|night|morning|afternoon|evening)\b"
_IN = r"\b(?:of|on|from|during|in|for|at|within|over|throughout)\s+"
_POINTS = re.compile(
    rf"(?:{_IN})?\b(?:that|the\s+same|that\s+(?:very|same))\s+{_UNIT}"
    r"(?!\s+(?:before|after|earlier|later|ago))",
    re.IGNORECASE,
)
_RANKED = re.compile(
    rf"{_IN}(?:the|that)\s+(?:busiest|quietest|peak|worst|noisiest|calmest)\s+"
    r"(?P<unit>day|hour|week)\b(?!\s+(?:was|is|of)\b)",
    re.IGNORECASE,
)
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
_SUMMER_TIME = timedelta(hours=1)
"""A day of the clock is an hour longer or shorter twice a year."""
_BUCKETS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class SpokenTime:
    """`text` with the window in the place of the words for it, or the question back."""

    text: str
    ask: Ask | None = None


def with_spoken_time(text: str, conversation: Conversation, now: Now) -> SpokenTime:
    """The question with the time that it points at; as it stands if it points at none or gives one itself."""
    masked = mask(text)
    match = _RANKED.search(masked) or _POINTS.search(masked)
    if match is None or read_time_in_its_zone(text, now).window is not None:
        return SpokenTime(text)
    unit = match["unit"].lower()
    window = _meant(unit, conversation, ranked=match.re is _RANKED)
    if window is not None:
        begin, end = (format_time(side) for side in window)
        return SpokenTime(f"{text[: match.start()]}between {begin} and {end}{text[match.end() :]}")
    return SpokenTime(text, _asked_back(text, match, unit, conversation, now))


def _meant(unit: str, conversation: Conversation, *, ranked: bool) -> tuple[datetime, datetime] | None:
    """The window of that unit in the last answer: the bucket that it told of, else the window that it was about."""
    last = conversation.last
    told = conversation.told_bucket.split("/") if conversation.told_bucket else []
    if last is not None and not told and not ranked:
        sides = (last.arguments.get("start_time"), last.arguments.get("end_time"))
        told = [side for side in sides if isinstance(side, str)]
    if len(told) != 2 or unit not in _LENGTHS:
        return None
    begin, end = parse_time(told[0]), parse_time(told[1])
    return (begin, end) if abs((end - begin) - _LENGTHS[unit]) <= _slack(unit) else None


def _slack(unit: str) -> timedelta:
    return timedelta(0) if unit == "hour" else _SUMMER_TIME


def _asked_back(text: str, match: re.Match[str], unit: str, conversation: Conversation, now: Now) -> Ask:
    focus = conversation.references.focus("incident", "alert")
    options: tuple[str, ...] = ()
    if unit == "day" and match.re is _POINTS and focus is not None and focus.item.time:
        day = parse_time(focus.item.time).astimezone(now.zone).date().isoformat()
        options = (f"{text[: match.start()]}on {day}{text[match.end() :]}",)
    if match.re is _RANKED:
        return Ask(f"Which {unit} is that? Ask for the alerts per {unit} first, or give its date.")
    return Ask(f"Which {unit} do you mean? Give its date in the question.", options)


def told_bucket(plan: Plan, runs: list[ToolRun]) -> str:
    """The bucket that a trend told of, as an ISO 8601 interval; empty for other answers."""
    if plan.view is not View.TREND or len(runs) != 1:
        return ""
    run = runs[0]
    rows = list(run.rows)
    place = next((at for at, row in enumerate(rows) if row.get("time") == run.at("/summary/peak_time")), None)
    if plan.frame.has("calm") and rows:
        place = min(range(len(rows)), key=lambda each: _count(rows[each]))
    length = _BUCKETS.get(str(run.at("/summary/interval") or ""))
    if place is None or length is None:
        return ""
    begin = str(rows[place]["time"])
    end = parse_time(begin) + length
    following = parse_time(str(rows[place + 1]["time"])) if place + 1 < len(rows) else end
    # Where the clocks change, the next bucket says how long this one is; a bucket without rows may be left out.
    return f"{begin}/{format_time(following if abs(following - end) <= _SUMMER_TIME < length else end)}"


def _count(row: Mapping[str, object]) -> int:
    return int(str(row.get("count") or 0))
