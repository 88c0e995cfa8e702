"""The window of a call from its arguments, against a clock that is passed in.

`time_window` ends now; `start_time` and `end_time` are absolute and win. With none of them the window is open on both
sides. Everything is UTC and half open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow, format_time, parse_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.kql_literals import datetime_literal

_DURATION_WITHOUT_T = re.compile(r"P\d+[HS]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChosenWindow:
    """A window with the sentences that a reader should know about how it was chosen."""

    window: TimeWindow
    notes: tuple[str, ...] = ()


def window_from(arguments: Mapping[str, Any], now: datetime) -> ChosenWindow:
    """Raises QueryFailedError INVALID_ARGUMENT for a time that does not parse or a window without length."""
    start = _time(arguments, "start_time")
    end = _time(arguments, "end_time")
    name = arguments.get("time_window")
    if start is None and end is None:
        return ChosenWindow(
            TimeWindow() if name is None else TimeWindow(now - timedelta(hours=TIME_WINDOWS[name]), now)
        )
    if start is not None and end is not None and start >= end:
        raise invalid_argument(
            "end_time",
            f"The window ends ({format_time(end)}) at or before its start ({format_time(start)}).",
            next_step="Give an end_time after start_time.",
        )
    notes = (f"start_time and end_time were used; time_window {name} was not.",) if name else ()
    return ChosenWindow(TimeWindow(start, end), notes)


def _time(arguments: Mapping[str, Any], field: str) -> datetime | None:
    text = arguments.get(field)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        pass
    message = f"{field} {text!r} is not an ISO 8601 time with a zone."
    if _DURATION_WITHOUT_T.fullmatch(text):
        message = f"{field} {text!r} is a duration (and hours need a T, as in PT1H), not a time."
    raise invalid_argument(field, message, next_step="Write it like 2024-07-02T09:45:00Z.")


def within(column: str, window: TimeWindow) -> str:
    """A KQL predicate, `true` for an open window. `column` is a name of our own text, never a value."""
    bounds = []
    if window.start is not None:
        bounds.append(f"{column} >= {datetime_literal(window.start)}")
    if window.end is not None:
        bounds.append(f"{column} < {datetime_literal(window.end)}")
    return " and ".join(bounds) or "true"


def since_before(window: TimeWindow, by: timedelta) -> TimeWindow:
    """From `by` before the start of `window` on, without an end; all that there is if that lies before the year 1."""
    try:
        return TimeWindow(None if window.start is None else window.start - by)
    except OverflowError:
        return TimeWindow()


def previous_window(window: TimeWindow) -> TimeWindow | None:
    """The window of the same length that ends where this one starts; None if a side is open or it would begin before
    the year 1."""
    if window.start is None or window.end is None:
        return None
    try:
        return TimeWindow(window.start - (window.end - window.start), window.start)
    except OverflowError:
        return None
