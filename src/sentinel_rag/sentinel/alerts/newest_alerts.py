"""KQL for alerts as they are now: several rows of SecurityAlert may tell of one SystemAlertId, and the newest wins.

An alert belongs to a window by the time of its *first* row, so that an alert of last night which was resolved today
stays an alert of last night; its values are those of the newest row. Lists are in the order of the events themselves
(StartTime), because one product records within minutes and another days later. What a row means is the business of
`alerts`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.arguments import since_before, within
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY, list_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable

ALERT_TABLE = "SecurityAlert"
ALERT_TIME = "TimeGenerated"
FIRST_ROW = "FirstRow"
LOOK_BACK = timedelta(days=90)
"""How long before a window the first row of an alert that was updated in it is looked for: as long as Sentinel retains
rows unless it is told otherwise."""

PROJECTED = (
    "SystemAlertId, AlertName, DisplayName, AlertSeverity, Status, FirstRow, TimeGenerated, StartTime, EndTime, "
    "ProcessingEndTime, ProductName, ProviderName, Tactics, Techniques, SubTechniques, CompromisedEntity, Description, "
    "Entities, ExtendedProperties, RemediationSteps, VendorOriginalId, AlertLink"
)
SEVERITY_RANK = (
    'case({0} =~ "High", 3, {0} =~ "Medium", 2, {0} =~ "Low", 1, 0)'  # Sentinel's order is not the alphabet's
)
ORDERS = {
    "newest": "EventTime desc, SystemAlertId desc",
    "oldest": "EventTime asc, SystemAlertId asc",
    "severity": "Rank desc, EventTime desc, SystemAlertId desc",
}
"""The id settles ties, so that no alert stands on two pages, and that the oldest are the newest from behind."""


def alert_span(window: TimeWindow) -> TimeWindow:
    """The TimeGenerated span to read for alerts of `window`: earlier for first rows, open for newest rows."""
    return since_before(window, LOOK_BACK)


def newest_alerts(conditions: tuple[str, ...] = ()) -> str:
    """KQL for the newest row of each alert that meets `conditions`, with the time of its first row as FirstRow."""
    lines = [
        ALERT_TABLE,
        f"| summarize arg_max(TimeGenerated, *), {FIRST_ROW} = min(TimeGenerated) by SystemAlertId",
        *(f"| where {condition}" for condition in conditions),
    ]
    return "\n".join(lines)


def listed(base: str, window: TimeWindow, column: str, order: str, limit: int) -> str:
    """KQL for the first `limit` alerts whose `column` (FirstRow or StartTime) lies in `window`; ordered by the time of
    the event, which is that of the first row where an alert has no StartTime."""
    return "\n".join(
        (
            base,
            f"| where {within(column, window)}",
            f"| extend Rank = {SEVERITY_RANK.format('AlertSeverity')}, EventTime = coalesce(StartTime, {FIRST_ROW})",
            f"| order by {ORDERS[order]}",
            f"| take {limit}",
            f"| project {PROJECTED}",
        )
    )


def chosen(base: str, window: TimeWindow, column: str) -> str:
    """KQL for all alerts that `listed` takes a page of: what a person runs to find the number that was told."""
    columns = "SystemAlertId, AlertName, AlertSeverity, Status, FirstRow, StartTime, CompromisedEntity"
    return "\n".join((base, f"| where {within(column, window)}", f"| project {columns}"))


def named(alert_ids: Sequence[str]) -> tuple[str, ...]:
    """The condition that only these alerts meet, for a query shown of what code has chosen; none where they are too
    many for the text of a query."""
    if not alert_ids:
        return ("false",)
    return (f"SystemAlertId in~ {list_literal(alert_ids)}",) if len(alert_ids) <= MOST_IDS_IN_A_QUERY else ()


def counted(base: str, window: TimeWindow) -> str:
    """KQL for counts by severity, status, name and product: recorded in `window`, and begun in it."""
    return "\n".join(
        (
            base,
            f"| summarize Recorded = countif({within(FIRST_ROW, window)}), "
            f"Begun = countif({within('StartTime', window)}) "
            "by AlertSeverity, Status, AlertName, DisplayName, ProductName",
        )
    )


async def placed(
    read: Callable[[str], Awaitable[LogsTable]], window: TimeWindow
) -> tuple[LogsTable, str, tuple[CodedNote, ...]]:
    """`read` with FirstRow, or with StartTime if a bounded window holds no first row; the time column, and why.

    An analyst who names a minute means the activity, and providers may record it days later.
    """
    answer = await read(FIRST_ROW)
    if answer.rows or window == TimeWindow():
        return answer, ALERT_TIME, ()
    begun = await read("StartTime")
    return (begun, "StartTime", (note("alerts_placed_by_start"),)) if begun.rows else (answer, ALERT_TIME, ())
