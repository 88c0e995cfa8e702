"""Buckets of time on the clock of a zone: hours, quarters of a day, days from midnight to midnight, weeks from Monday.

A day on which the clocks change has 23 or 25 hours (in some places another number), and so has its bucket; edges are
made from calendar dates and only then turned into moments. Above is `alert_trend`; nothing here knows an alert.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.sentinel.failures import invalid_argument

INTERVALS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}
MOST_BUCKETS = 1000
_DAY = timedelta(days=1)


def zone_named(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises QueryFailedError INVALID_ARGUMENT for a name that is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise invalid_argument(
            "timezone",
            f"{name[:80]!r} is not a time zone.",
            next_step="Give an IANA name such as Europe/Berlin or UTC.",
        ) from None


def chosen_interval(length: timedelta) -> str:
    """The bucket for a window: hours for two days, quarters of a day for a week, days for two months, then weeks."""
    if length <= timedelta(days=2, hours=1):  # two days on which the clocks go back are 49 hours
        return "1h"
    if length <= timedelta(days=7, hours=1):
        return "6h"
    return "1d" if length <= timedelta(days=62, hours=1) else "7d"


def bucket_edges(start: datetime, end: datetime, interval: str, zone: tzinfo) -> list[datetime]:
    """Where buckets begin, in UTC and rising, from the one that holds `start`; the last edge closes the last bucket.

    Raises QueryFailedError INVALID_ARGUMENT if there would be more than MOST_BUCKETS, or if the window reaches to where
    the calendar ends.
    """
    number = -((start - end) // INTERVALS[interval])
    if number > MOST_BUCKETS:
        wider = tuple(name for name, width in INTERVALS.items() if -((start - end) // width) <= MOST_BUCKETS)
        raise invalid_argument(
            "interval",
            f"Buckets of {interval} would be {number} for this window; at most {MOST_BUCKETS} are drawn.",
            allowed=wider,
            next_step="Take a wider interval or a shorter window.",
        )
    try:
        first = start.astimezone(zone).date()
        if interval == "7d":
            first -= timedelta(days=first.weekday())
        edges: list[datetime] = []
        for edge in _edges_from(first, interval, zone):
            if edge <= start:
                edges = [edge]
            elif not edges or edge > edges[-1]:
                edges.append(edge)
            if edge >= end and len(edges) > 1:
                return edges
        raise OverflowError
    except (OverflowError, ValueError):
        raise invalid_argument(
            "start_time",
            "The window reaches to where the calendar ends.",
            next_step="Give a window that people live in.",
        ) from None


def _edges_from(first: date, interval: str, zone: tzinfo) -> Iterator[datetime]:
    """Edges from the start of `first` on; a place of the clock that a change skips gives the edge before it again."""
    day = first
    while True:
        midnight, following = _moment(day, time.min, zone), _moment(day + _DAY, time.min, zone)
        match interval:
            case "1h":
                edge = midnight
                while edge < following:
                    yield edge
                    edge += INTERVALS["1h"]
            case "6h":
                for hour in (0, 6, 12, 18):
                    yield _moment(day, time(hour), zone)
            case _:
                yield midnight
        day += timedelta(days=7) if interval == "7d" else _DAY


def _moment(day: date, clock: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, clock, zone).astimezone(UTC)


def bucket_of(moment: datetime, edges: list[datetime]) -> int:
    """The place of the bucket that holds `moment`; the first or the last for one that lies outside."""
    return min(max(bisect_right(edges, moment) - 1, 0), len(edges) - 2)


def odd_days(edges: list[datetime], zone: tzinfo) -> list[tuple[date, float]]:
    """Days among the buckets of `1d` edges that are not 24 hours long, with their hours."""
    return [
        (edge.astimezone(zone).date(), (following - edge) / timedelta(hours=1))
        for edge, following in pairwise(edges)
        if following - edge != _DAY
    ]
