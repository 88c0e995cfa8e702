"""The tool get_alert_trend: alerts over time in equal buckets, without gaps.

KQL counts by hour or day; the wider buckets are folded here, so that a week begins on Monday and every bucket at
midnight UTC whatever the engine's idea of `bin(..., 7d)` is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow, format_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alert_filters import severity_conditions
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.results import Stopwatch, build_result, ordered
from sentinel_rag.sentinel.time_windows import window_from, within
from sentinel_rag.sentinel.workspace_view import WorkspaceView

INTERVALS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}
MOST_BUCKETS = 1000
_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)  # buckets of all widths are counted from here
_COLUMNS = (
    Column("time", "datetime"),
    *(Column(name, "long") for name in ("count", "high", "medium", "low", "informational")),
)


async def get_alert_trend(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """A row for each bucket of the window, of zero where there was nothing; an open side ends at the data's edge."""
    stopwatch = Stopwatch()
    now = view.clock()
    chosen = window_from(arguments, now)
    window = chosen.window
    base = newest_alerts.newest_alerts(severity_conditions(arguments))
    (answer, time_column, told), statistics = await together(
        lambda: newest_alerts.placed(
            lambda column: view.logs.query(_by_hour(base, window, column), newest_alerts.alert_span(window)), window
        ),
        lambda: view.statistics.read(newest_alerts.ALERT_TABLE, newest_alerts.ALERT_TIME),
    )
    hours = _counts_by_hour(answer)
    by_severity: dict[str, int] = defaultdict(int)
    for counts in hours.values():
        for severity, count in counts.items():
            by_severity[severity] += count
    edges = _edges(window, hours, now)
    rows: list[dict[str, JsonValue]] = []
    interval = arguments.get("interval")
    if edges is not None:
        interval = interval or chosen_interval(edges[1] - edges[0])
        rows = _buckets(hours, edges, interval)
    peak = max(rows, key=lambda row: int(str(row["count"])), default=None)
    return build_result(
        _COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=(newest_alerts.ALERT_TABLE,),
        window=window,
        time_column=time_column,
        rows_total=len(rows),
        answers=(answer,),
        statistics=statistics,
        stopwatch=stopwatch,
        summary={
            "total": sum(by_severity.values()),
            "interval": interval,
            "peak_time": peak["time"] if peak is not None and peak["count"] else None,
            "peak_count": peak["count"] if peak is not None else 0,
            "by_severity": ordered(by_severity, reversed(SEVERITIES)),
        },
        notes=(*chosen.notes, *told),
    )


def chosen_interval(length: timedelta) -> str:
    """The bucket for a window: hours for two days, quarters of a day for a week, days for two months, then weeks."""
    if length <= timedelta(days=2):
        return "1h"
    if length <= timedelta(days=7):
        return "6h"
    return "1d" if length <= timedelta(days=62) else "7d"


def _by_hour(base: str, window: TimeWindow, column: str) -> str:
    return "\n".join(
        (
            base,
            f"| where {within(column, window)}",
            f"| summarize Alerts = count() by Bucket = bin({column}, 1h), AlertSeverity",
            "| order by Bucket asc",
        )
    )


def _counts_by_hour(answer: LogsTable) -> dict[datetime, dict[str, int]]:
    hours: dict[datetime, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record in answer.records():
        hours[record["Bucket"]][record["AlertSeverity"] or "Unknown"] += record["Alerts"]
    return hours


def _edges(
    window: TimeWindow, hours: Mapping[datetime, Mapping[str, int]], now: datetime
) -> tuple[datetime, datetime] | None:
    """First moment and end of the buckets; None for an open window without rows."""
    start = window.start or min(hours, default=None)
    if start is None:
        return None
    if window.end is not None:
        return start, window.end
    newest = max(hours, default=None)
    if window.start is not None:
        return start, max(now, start + timedelta(hours=1), *hours)
    return start, (newest or start) + timedelta(hours=1)


def _buckets(
    hours: Mapping[datetime, Mapping[str, int]], edges: tuple[datetime, datetime], interval: str
) -> list[dict[str, JsonValue]]:
    """Raises QueryFailedError INVALID_ARGUMENT if the window holds more buckets than a reader can use."""
    width = INTERVALS[interval]
    first = _floor(edges[0], width)
    number = -((first - edges[1]) // width)
    if number > MOST_BUCKETS:
        wider = tuple(
            name for name, span in INTERVALS.items() if -((_floor(edges[0], span) - edges[1]) // span) <= MOST_BUCKETS
        )
        raise invalid_argument(
            "interval",
            f"Buckets of {interval} would be {number} for this window; at most {MOST_BUCKETS} are drawn.",
            allowed=wider,
            next_step="Take a wider interval or a shorter window.",
        )
    folded: dict[datetime, dict[str, int]] = {first + place * width: defaultdict(int) for place in range(number)}
    for hour, counts in hours.items():
        for severity, count in counts.items():
            folded[_floor(hour, width)][severity] += count
    return [
        {
            "time": format_time(moment),
            "count": sum(counts.values()),
            **{severity.lower(): counts.get(severity, 0) for severity in reversed(SEVERITIES)},
        }
        for moment, counts in folded.items()
    ]


def _floor(moment: datetime, width: timedelta) -> datetime:
    return moment - (moment - _MONDAY) % width
