"""The window of a call from its arguments, against a clock that is passed in.

`time_window` ends now; `start_time` and `end_time` are absolute and win. With none of them the window is open on both
sides. Everything is UTC and half open. A schema names six windows; any other length is taken as well, however it is
written, because a model or a person who asks for four hours must not get none or twenty-four.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow, format_time, parse_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.sentinel.durations import HOW_TO_WRITE, read_duration
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.kql_literals import datetime_literal

_LIKE_A_DURATION = re.compile(r"P[0-9TWDHMSY.]+", re.IGNORECASE)


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
        return ChosenWindow(TimeWindow() if name is None else TimeWindow(_back(now, length_of(name)), now))
    if start is not None and end is not None and start >= end:
        raise invalid_argument(
            "end_time",
            f"The window ends ({format_time(end)}) at or before its start ({format_time(start)}).",
            next_step="Give an end_time after start_time.",
        )
    notes = (f"start_time and end_time were used; time_window {name} was not.",) if name else ()
    return ChosenWindow(TimeWindow(start, end), notes)


def read_time_window(text: str) -> str:
    """A `time_window` in the form that it is kept in: a name of the schema where there is one for its length, else the
    text itself. Raises QueryFailedError INVALID_ARGUMENT."""
    span = length_of(text)
    return next((name for name, hours in TIME_WINDOWS.items() if span == timedelta(hours=hours)), text)


def length_of(time_window: str) -> timedelta:
    """The length of a `time_window`. Raises QueryFailedError INVALID_ARGUMENT for a text that is none."""
    try:
        return read_duration(time_window)
    except ValueError as error:
        raise invalid_argument(
            "time_window",
            f"time_window cannot be {time_window[:60]!r}: {error}",
            allowed=tuple(TIME_WINDOWS),
            next_step=f"{HOW_TO_WRITE} For a window that does not end now give start_time and end_time.",
        ) from None


def _back(now: datetime, span: timedelta) -> datetime:
    try:
        return now - span
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)


def _time(arguments: Mapping[str, Any], field: str) -> datetime | None:
    text = arguments.get(field)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        pass
    message = f"{field} {text!r} is not an ISO 8601 time with a zone."
    if _LIKE_A_DURATION.fullmatch(text):
        try:
            read_duration(text)
            message = f"{field} {text!r} is a duration, not a time; time_window takes durations."
        except ValueError as error:
            message = f"{field} {text!r} is a duration, not a time, and a wrong one: {error}"
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
