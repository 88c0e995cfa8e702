"""The tool get_alert_trend: alerts over time in equal buckets, without gaps.

KQL counts by quarters of an hour; the buckets are folded here, on the clock of the caller's zone, so that
a day begins at local midnight and a week on Monday whatever the engine's idea of `bin(..., 7d)` is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow, format_time, invalid_argument
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts import newest_alerts
from sentinel_rag.sentinel.alerts.alerts import severity_conditions
from sentinel_rag.sentinel.arguments import window_from, within
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import WorkspaceView, build_result, delay_notes, lower_bound, ordered

# A day on which the clocks change has 23 or 25 hours (in some places another number), and so has its bucket; edges are
# made from calendar dates and only then turned into moments.
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


_FINEST = timedelta(minutes=15)  # the offsets of all zones of today are multiples of it
_COLUMNS = (
    Column("time", "datetime"),
    *(Column(name, "long") for name in ("count", "high", "medium", "low", "informational")),
)


async def get_alert_trend(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """A row for each bucket of the window, of zero where there was nothing; an open side ends at the data's edge."""
    now = view.clock()
    zone = zone_named(arguments["timezone"])
    chosen = window_from(arguments, now)
    window = chosen.window
    base = newest_alerts.newest_alerts(severity_conditions(arguments))
    (answer, time_column, told), statistics = await together(
        lambda: newest_alerts.placed(
            lambda column: view.logs.query(_by_quarter(base, window, column), newest_alerts.alert_span(window)), window
        ),
        lambda: view.statistics.read(newest_alerts.ALERT_TABLE, newest_alerts.ALERT_TIME),
    )
    quarters = _counts_by_quarter(answer)
    by_severity: dict[str, int] = defaultdict(int)
    for counts in quarters.values():
        for severity, count in counts.items():
            by_severity[severity] += count
    bounds = _bounds(window, quarters, now)
    rows: list[dict[str, JsonValue]] = []
    interval = arguments.get("interval")
    notes = [*chosen.notes, *told, *await delay_notes(view, newest_alerts.ALERT_TABLE, window)]
    if bounds is not None:
        interval = interval or chosen_interval(bounds[1] - bounds[0])
        edges = bucket_edges(*bounds, interval, zone)
        rows = _buckets(quarters, edges)
        if answer.partial:  # an empty bucket may be one whose alerts were cut
            rows = [row for row in rows if row["count"]]
        notes += _clock_changes(edges, interval, zone)
    total = sum(by_severity.values())
    peak = max(rows, key=lambda row: int(str(row["count"])), default=None)
    return build_result(
        _COLUMNS,
        rows,
        tables=(newest_alerts.ALERT_TABLE,),
        window=window,
        time_column=time_column,
        rows_total=None if answer.partial else len(rows),
        answers=(answer,),
        statistics=statistics,
        summary={
            "interval": interval,
            "timezone": zone.key,
            **(
                lower_bound(total, 0)
                if answer.partial
                else {
                    "total": total,
                    "peak_time": peak["time"] if peak is not None and peak["count"] else None,
                    "peak_count": peak["count"] if peak is not None else 0,
                    "by_severity": ordered(by_severity, reversed(SEVERITIES)),
                }
            ),
        },
        notes=notes,
    )


def _by_quarter(base: str, window: TimeWindow, column: str) -> str:
    return "\n".join(
        (
            base,
            f"| where {within(column, window)}",
            f"| summarize Alerts = count() by Bucket = bin({column}, 15m), AlertSeverity",
            "| order by Bucket asc",
        )
    )


def _counts_by_quarter(answer: LogsTable) -> dict[datetime, dict[str, int]]:
    quarters: dict[datetime, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record in answer.records():
        quarters[record["Bucket"]][record["AlertSeverity"] or "Unknown"] += record["Alerts"]
    return quarters


def _bounds(
    window: TimeWindow, quarters: Mapping[datetime, Mapping[str, int]], now: datetime
) -> tuple[datetime, datetime] | None:
    """First moment and end of the buckets, of which none lies in the future; None for an open window without rows."""
    start = window.start or min(quarters, default=None)
    if start is None:
        return None
    newest = max(quarters, default=start) + _FINEST
    until = newest if window == TimeWindow() else max(now, start + _FINEST, newest)
    return start, until if window.end is None else min(until, window.end)


def _buckets(quarters: Mapping[datetime, Mapping[str, int]], edges: list[datetime]) -> list[dict[str, JsonValue]]:
    folded: list[dict[str, int]] = [defaultdict(int) for _ in edges[1:]]
    for quarter, counts in quarters.items():
        for severity, count in counts.items():
            folded[bucket_of(quarter, edges)][severity] += count
    return [
        {
            "time": format_time(edge),
            "count": sum(counts.values()),
            **{severity.lower(): counts.get(severity, 0) for severity in reversed(SEVERITIES)},
        }
        for edge, counts in zip(edges, folded, strict=False)
    ]


def _clock_changes(edges: list[datetime], interval: str, zone: tzinfo) -> list[CodedNote]:
    if interval != "1d":
        return []
    return [
        note("clocks_change", day=day.isoformat(), hours=hours, zone=str(zone)) for day, hours in odd_days(edges, zone)
    ]
