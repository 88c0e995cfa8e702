"""The tool get_threat_summary: the state of a window on one page, with the change against the window before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.sentinel import alerts, incidents, newest_alerts
from sentinel_rag.sentinel.alert_totals import AlertTotals
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.entity_tally import EntityTally
from sentinel_rag.sentinel.incident_list import IncidentTotals, conditions, incident_totals, merged_note
from sentinel_rag.sentinel.ingestion_delay import delay_notes
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.results import Stopwatch, build_result, lower_bound, ordered, shortened
from sentinel_rag.sentinel.time_windows import previous_window, window_from
from sentinel_rag.sentinel.top_entities import EntityReading, read_entities
from sentinel_rag.sentinel.workspace_view import WorkspaceView

MOST_OPEN_INCIDENTS = 10
LONGEST_TOP_LIST = 5


async def get_threat_summary(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Totals of incidents and alerts, newest open incidents, commonest names, accounts, hosts and addresses."""
    stopwatch = Stopwatch()
    chosen = window_from(arguments, view.clock())
    window = chosen.window
    (now, before), (open_answer, reading), statistics = await together(
        lambda: _totals_now_and_before(view, window),
        lambda: together(lambda: _open_incidents(view, window), lambda: read_entities(view, window)),
        lambda: view.statistics.read(incidents.INCIDENT_TABLE, incidents.INCIDENT_TIME),
    )
    rows = [incidents.incident_row(record) for record in open_answer.records()]
    tally = reading.tally(("account", "host", "ip"))
    alert_totals = now.alerts(reading.time_column)
    answers = [open_answer, now.incident_answer, now.alert_answer, reading.answer]
    merged: tuple[str, ...] = ()
    if now.incidents.merged:
        note, merge_answers = await merged_note(view, incidents.newest_versions(window), window, now.incidents.merged)
        merged = (note,)
        answers += merge_answers
    previous: JsonValue = None
    if before is not None and (before.incident_answer.partial or before.alert_answer.partial):
        answers += [before.incident_answer, before.alert_answer]
    elif before is not None:
        previous = {"incidents": before.incidents.total, "alerts": before.alerts(reading.time_column).total}
        answers += [before.incident_answer, before.alert_answer]
    return build_result(
        incidents.INCIDENT_COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=(incidents.INCIDENT_TABLE, newest_alerts.ALERT_TABLE),
        window=window,
        time_column=incidents.INCIDENT_TIME,
        rows_total=None if now.incident_answer.partial else now.incidents.open,
        answers=answers,
        statistics=statistics,
        stopwatch=stopwatch,
        summary={
            "incidents": {
                "total": now.incidents.total,
                "open": now.incidents.open,
                "by_severity": now.incidents.by_severity,
                "by_status": now.incidents.by_status,
                "updated_in_window": now.incidents.updated,
                **({"merged": now.incidents.merged} if now.incidents.merged else {}),
            }
            if not now.incident_answer.partial
            else lower_bound(now.incidents.total, len(rows)),
            "alerts": {"total": alert_totals.total, "by_severity": alert_totals.by_severity()}
            if not now.alert_answer.partial
            else lower_bound(alert_totals.total, len(reading.records)),
            "previous": previous,
            "top_alert_names": [
                {"name": name, "count": count}
                for name, count in alert_totals.by_name().most_common(LONGEST_TOP_LIST)
                if not now.alert_answer.partial
            ],
            "top_accounts": _top(tally, "account"),
            "top_hosts": _top(tally, "host"),
            "top_ips": _top(tally, "ip"),
            "tactics": _tactics(reading),
        },
        notes=(
            *chosen.notes,
            *await delay_notes(view, newest_alerts.ALERT_TABLE, window),
            *reading.notes,
            *incidents.reopened_note(rows),
            *merged,
            "Incidents are placed by CreatedTime, alerts by the TimeGenerated of their first row.",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Totals:
    """Incidents of one window and the answers about incidents and alerts."""

    incidents: IncidentTotals
    incident_answer: LogsTable
    alert_answer: LogsTable

    def alerts(self, time_column: str) -> AlertTotals:
        """Alerts placed by `time_column`, as the entities of the same summary are."""
        return AlertTotals.from_counts(self.alert_answer, "Begun" if time_column == "StartTime" else "Recorded")


async def _totals(view: WorkspaceView, window: TimeWindow) -> _Totals:
    (incident_counts, incident_answer), alert_answer = await together(
        lambda: incident_totals(view, window),
        lambda: view.logs.query(
            newest_alerts.counted(newest_alerts.newest_alerts(), window), newest_alerts.alert_span(window)
        ),
    )
    return _Totals(incident_counts, incident_answer, alert_answer)


async def _totals_now_and_before(view: WorkspaceView, window: TimeWindow) -> tuple[_Totals, _Totals | None]:
    earlier = previous_window(window)
    if earlier is None:
        return await _totals(view, window), None
    return await together(lambda: _totals(view, window), lambda: _totals(view, earlier))


async def _open_incidents(view: WorkspaceView, window: TimeWindow) -> LogsTable:
    base = incidents.newest_versions(window, conditions({"status": "Open"}))
    kql = incidents.listed(base, window, "severity", MOST_OPEN_INCIDENTS)
    return await view.logs.query(kql, incidents.incident_span(window))


def _top(tally: EntityTally, kind: str) -> list[JsonValue]:
    return [
        {"name": shortened(entity.name), "alerts": len(entity.alerts)}
        for entity in tally.ranked(kind)[:LONGEST_TOP_LIST]
    ]


def _tactics(reading: EntityReading) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for record in reading.records.values():
        counts.update(alerts.comma_list(record["Tactics"]))
    return ordered(counts, [name for name, _ in counts.most_common()])
