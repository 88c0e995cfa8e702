"""The tool get_incident_detail: one incident with its alerts, entities, comments, bookmarks, and what happened when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.sentinel import incidents, newest_alerts
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.incident_forms import COMPACT_BYTES, FULL_BYTES, left_out_note, richest
from sentinel_rag.sentinel.incident_links import MOST_IDS_IN_A_QUERY
from sentinel_rag.sentinel.incident_live import live_incident
from sentinel_rag.sentinel.incident_parts import IncidentParts
from sentinel_rag.sentinel.incident_resolution import resolve_incident
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.results import Stopwatch, build_result
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_DETAIL_COLUMNS = (
    *incidents.INCIDENT_COLUMNS,
    Column("merged_into", "long"),
    Column("defender_url", "string"),
    Column("open_duration_s", "real"),
    Column("first_response_s", "real"),
    Column("classification_reason", "string"),
    Column("classification_comment", "string"),
    *(
        Column(name, "dynamic")
        for name in (
            "alerts",
            "alert_ids_without_row",
            "entities",
            "entity_counts",
            "comments",
            "tactics",
            "techniques",
            "custom_details",
            "labels",
            "timeline",
            "bookmarks",
        )
    ),
)


async def get_incident_detail(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """A row for each incident that the reference may mean; none and several are results, not errors."""
    stopwatch = Stopwatch()
    resolution, statistics = await together(
        lambda: resolve_incident(view, arguments["incident"]),
        lambda: view.statistics.read(incidents.INCIDENT_TABLE, incidents.INCIDENT_TIME),
    )
    answers = list(resolution.answers)
    rows: list[dict[str, JsonValue]] = []
    notes = [*resolution.notes, *resolution.merge_notes()]
    if resolution.number:
        notes.append(f"Both are here: first the one with the Sentinel number {resolution.number}.")
    left_out: Counter[str] = Counter()
    whole = True
    if resolution.records:
        queries = [_versions_of(resolution.records), *_alerts_of(resolution.records)]
        (versions, *alert_rows), live = await together(
            lambda: view.logs.query_all([(kql, None) for kql in queries]),
            lambda: together(*(partial(live_incident, view, record) for record in resolution.records)),
        )
        answers += [versions, *alert_rows]
        read = sorted(
            (Alert.from_record(record) for answer in alert_rows for record in answer.records()), key=_by_start
        )
        found = {alert.alert_id: alert for alert in read}
        alerts_whole = not any(answer.partial for answer in alert_rows)
        room = COMPACT_BYTES if arguments["detail"] == "compact" else FULL_BYTES
        for each in live:
            record = each.record
            merge = resolution.merges.get(record["IncidentNumber"])
            into = merge.into if merge is not None else None
            parts = IncidentParts.of(
                record, versions, found, each.bookmarks, merged_into=into, alerts_whole=alerts_whole
            )
            notes += each.notes
            told = richest(parts.told, share=room // len(resolution.records))
            rows.append(told.row)
            left_out.update(told.left_out)
            notes += parts.notes()
            if not told.full:
                whole = False
                notes.append(left_out_note(record["IncidentNumber"], told.left_out, detail=arguments["detail"]))
    notes += incidents.reopened_note(rows)
    return build_result(
        _DETAIL_COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=(incidents.INCIDENT_TABLE, newest_alerts.ALERT_TABLE),
        window=TimeWindow(),
        time_column=incidents.INCIDENT_TIME,
        rows_total=len(rows) if resolution.whole else None,
        answers=answers,
        statistics=statistics,
        stopwatch=stopwatch,
        summary={
            "matched_by": resolution.matched_by or None,
            "reference": arguments["incident"],
            "alert_count": rows[0]["alert_count"] if len(rows) == 1 else None,
            "ambiguous": len(rows) > 1,
            "detail": "full" if whole else "compact",
            "left_out": dict(left_out),
        },
        notes=notes,
    )


def _versions_of(records: Iterable[Mapping[str, Any]]) -> str:
    numbers = list_literal(record["IncidentNumber"] for record in records if record["IncidentNumber"] is not None)
    return (
        f"{incidents.INCIDENT_TABLE}\n| where IncidentNumber in {numbers}\n"
        "| project IncidentNumber, TimeGenerated, Status, Severity, Title, Owner, ModifiedBy\n"
        "| order by IncidentNumber asc, TimeGenerated asc"
    )


def _alerts_of(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """One query for each MOST_IDS_IN_A_QUERY alerts that the incidents name; the text of a query is bounded."""
    ids = list(dict.fromkeys(alert_id for record in records for alert_id in incidents.alert_ids_of(record)))
    return [
        newest_alerts.newest_alerts((f"SystemAlertId in~ {list_literal(ids[start : start + MOST_IDS_IN_A_QUERY])}",))
        + f"\n| project {newest_alerts.PROJECTED}"
        for start in range(0, max(len(ids), 1), MOST_IDS_IN_A_QUERY)
    ]


def _by_start(alert: Alert) -> tuple[datetime, str]:
    return alert.record["StartTime"] or alert.record["TimeGenerated"], alert.alert_id
