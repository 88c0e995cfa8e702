"""More or less than before: "more incidents than last week?", "fewer high alerts than yesterday", "more than the week
before?" after an answer about a week.

Only one of the two periods is said; the other is the one that runs now, or that of the last answer. Situation reports
are compared, or counts where filters were said. What has no count by period is asked back, never answered with the one
period that was said.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import alert_filters, incident_filters, unused_words
from sentinel_rag.agent.offline.conversation import AskedCall, Conversation
from sentinel_rag.agent.offline.query_plans import summary_plan
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.language.times import spans
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.windows import WindowSlot

_THAN = re.compile(
    r"\b(?:than|vs\.?|versus|compared\s+(?:to|with)|against)\s+(?:in\s+|on\s+|for\s+)?(?P<then>"
    r"(?:the\s+)?(?:last|previous|prev)\s+(?P<unit>day|week|month|year)|yesterday|"
    r"(?:the\s+|a\s+)?(?P<before>day|week|month)\s+(?:before|earlier))\s*\W*$",
    re.IGNORECASE,
)
_NOT_OVER = "The present {} is not over yet, so its counts are of a part of it."
_NO_COUNTS = (
    "I compare counts of incidents and of alerts over two periods, nothing else. For rows of the logs ask the "
    "same query once for each period."
)


def period_comparison(reading: Reading, conversation: Conversation, now: Now) -> Plan | Ask | None:
    """The plan for a comparison of which one period is said; a question back where nothing counts it; None for any
    other question."""
    match = _THAN.search(reading.text)
    if match is None or reading.other_window is not None:
        return None
    unit = (match["unit"] or match["before"] or "day").lower()
    last = conversation.last
    of_the_last = match["before"] is not None and last is not None and not reading.has(f"{cues.INCIDENT}|{cues.ALERT}")
    if of_the_last and last is not None:
        return _of_the_last(reading, last)
    if reading.has(f"{cues.LOGS}|{cues.RAW}") or cues.kinds_named(reading) or reading.incidents or reading.things:
        return Ask(_NO_COUNTS, (f"Compare this {unit} with last {unit}",) if unit != "day" else ())
    present, before = _periods(unit, now)
    both = replace(reading, window=present, other_window=before, other_time="", limit=None, order=None)
    opening = (_NOT_OVER.format(unit),)
    alerts = reading.has(cues.ALERT) and not reading.has(cues.INCIDENT)
    filters = dict(alert_filters(both) if alerts else incident_filters(both))
    said = {name: value for name, value in filters.items() if name not in ("start_time", "end_time", "order")}
    if unused_words(reading, str(said)):
        return None
    if not said:
        return replace(summary_plan(both), opening=opening)
    tool = "query_alerts" if alerts else "query_incidents"
    return _counts(reading, tool, filters, (present, before), opening)


def _of_the_last(reading: Reading, last: AskedCall) -> Plan | Ask:
    """The count of the last answer beside that of the period of the same length before it."""
    sides = (last.arguments.get("start_time"), last.arguments.get("end_time"))
    if last.tool not in ("query_incidents", "query_alerts") or not all(isinstance(side, str) for side in sides):
        return Ask("Before what? Name the two periods, such as this week and last week.")
    start, end = (parse_time(str(side)) for side in sides)
    window, before = WindowSlot(start, end), WindowSlot(start - (end - start), start)
    kept = {name: value for name, value in last.arguments.items() if name not in ("limit", "offset", "order")}
    return _counts(reading, last.tool, kept, (window, before), ())


def _counts(
    reading: Reading,
    tool: str,
    filters: dict[str, JsonValue],
    windows: tuple[WindowSlot, WindowSlot],
    opening: tuple[str, ...],
) -> Plan:
    kept = {name: value for name, value in filters.items() if name not in ("time_window", "start_time", "end_time")}
    calls = tuple(PlannedCall(tool, {**kept, **window.arguments()}) for window in windows)
    view = View.ALERT_COUNT if tool == "query_alerts" else View.INCIDENT_COUNT
    return Plan(view=view, calls=calls, reading=replace(reading, window=windows[0], other_time=""), opening=opening)


def _periods(unit: str, now: Now) -> tuple[WindowSlot, WindowSlot]:
    """The day, week, month or year that runs now, and the one before."""
    today = now.today
    if unit == "day":
        before = today - timedelta(days=1)
        both = spans.days(today, today, now.zone), spans.days(before, before, now.zone)
    elif unit == "week":
        both = spans.week(today, now.zone, back=0), spans.week(today, now.zone, back=1)
    elif unit == "month":
        both = spans.month(today.year, today.month, now.zone), spans.month(today.year, today.month - 1, now.zone)
    else:
        both = spans.year(today.year, now.zone), spans.year(today.year - 1, now.zone)
    present, before_it = both
    return WindowSlot(present.start, present.end), WindowSlot(before_it.start, before_it.end)
