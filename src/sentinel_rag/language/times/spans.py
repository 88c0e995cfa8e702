"""Spans of the calendar in a time zone: days of 23, 24 or 25 hours, weeks that start on Monday, months.

Every span is half open and in UTC. Arithmetic is on calendar dates and only then turned into moments, which is what
keeps the days on which clocks change right.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """`[start, end)` in UTC. `whole_days` is True where both ends are midnights of the session's zone."""

    start: datetime
    end: datetime
    whole_days: bool = False


def midnight(day: date, zone: tzinfo) -> datetime:
    """The first moment of `day` in `zone`, in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def days(first: date, last: date, zone: tzinfo) -> TimeSpan:
    """From the start of `first` to the end of `last`, both included."""
    return TimeSpan(midnight(first, zone), midnight(last + timedelta(days=1), zone), whole_days=True)


def week(day: date, zone: tzinfo, *, back: int = 0) -> TimeSpan:
    """The week, Monday to Sunday, `back` weeks before the one that holds `day`."""
    monday = day - timedelta(days=day.weekday(), weeks=back)
    return days(monday, monday + timedelta(days=6), zone)


def month(year: int, number: int, zone: tzinfo) -> TimeSpan:
    """A calendar month; `number` may run past the year on either side (0 is December of the year before)."""
    year, number = year + (number - 1) // 12, (number - 1) % 12 + 1
    following = date(year + number // 12, number % 12 + 1, 1)
    return days(date(year, number, 1), following - timedelta(days=1), zone)


def year(number: int, zone: tzinfo) -> TimeSpan:
    """A calendar year."""
    return days(date(number, 1, 1), date(number, 12, 31), zone)


def weekend(day: date, zone: tzinfo) -> TimeSpan:
    """The latest Saturday and Sunday that have begun on `day`."""
    saturday = day - timedelta(days=(day.weekday() - 5) % 7)
    return days(saturday, saturday + timedelta(days=1), zone)


def at(day: date, clock: time, zone: tzinfo, width: timedelta) -> TimeSpan:
    """The moment `clock` on `day`, as a span as wide as it was written (a minute, a second)."""
    moment = datetime.combine(day, clock, zone).astimezone(UTC)
    return TimeSpan(moment, moment + width)
