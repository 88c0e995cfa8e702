"""The tool get_incident_detail: one incident with its alerts, entities, comments, and what happened when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.sentinel import alerts, incidents, newest_alerts
from sentinel_rag.sentinel.alert_notes import reader_notes
from sentinel_rag.sentinel.alerts import Alert, row_budget
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.incident_entities import incident_entities
from sentinel_rag.sentinel.incident_links import IncidentLinks
from sentinel_rag.sentinel.incident_resolution import resolve_incident
from sentinel_rag.sentinel.incident_timeline import incident_durations, incident_timeline
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_tables import LogsTable, parse_dynamic
from sentinel_rag.sentinel.results import Stopwatch, build_result
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_DETAIL_COLUMNS = (
    *incidents.INCIDENT_COLUMNS,
    Column("open_duration_s", "real"),
    Column("first_response_s", "real"),
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
            "labels",
            "timeline",
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
    notes = list(resolution.notes)
    if resolution.records:
        versions, alert_rows = await view.logs.query_all(
            ((_versions_of(resolution.records), None), (_alerts_of(resolution.records), None))
        )
        answers += [versions, alert_rows]
        found = {alert.alert_id: alert for alert in map(Alert.from_record, alert_rows.records())}
        for record in resolution.records:
            row, told = _detail_row(record, versions, found)
            rows.append(row)
            notes += told
    notes += incidents.reopened_note(rows)
    return build_result(
        _DETAIL_COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=(incidents.INCIDENT_TABLE, newest_alerts.ALERT_TABLE),
        window=TimeWindow(),
        time_column=incidents.INCIDENT_TIME,
        rows_total=len(rows),
        answers=answers,
        statistics=statistics,
        stopwatch=stopwatch,
        summary={
            "matched_by": resolution.matched_by or None,
            "reference": arguments["incident"],
            "alert_count": rows[0]["alert_count"] if len(rows) == 1 else None,
            "ambiguous": len(rows) > 1,
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


def _alerts_of(records: Iterable[Mapping[str, Any]]) -> str:
    ids = dict.fromkeys(alert_id for record in records for alert_id in incidents.alert_ids_of(record))
    base = newest_alerts.newest_alerts((f"SystemAlertId in~ {list_literal(ids)}",))
    return f"{base}\n| order by StartTime asc, SystemAlertId asc\n| project {newest_alerts.PROJECTED}"


def _detail_row(
    record: Mapping[str, Any], versions: LogsTable, found: Mapping[str, Alert]
) -> tuple[dict[str, JsonValue], list[str]]:
    """One incident with everything, and the sentences that a reader needs about it."""
    number = record["IncidentNumber"]
    ids = incidents.alert_ids_of(record)
    with_row = [alert for alert_id, alert in found.items() if alert_id in ids]
    budget = row_budget(len(with_row))
    without_row = [alert_id for alert_id in ids if alert_id not in found]
    entities, entity_counts = incident_entities(with_row)
    comments = _comments(record["Comments"])
    additional = parse_dynamic(record["AdditionalData"])
    additional = additional if isinstance(additional, Mapping) else {}
    row = incidents.incident_row(record)
    row |= incident_durations(record)
    row |= {
        "alerts": [alert.row(number, budget) for alert in with_row],
        "alert_ids_without_row": without_row,
        "entities": entities,
        "entity_counts": entity_counts,
        "comments": comments,
        "tactics": _distinct((_texts(additional.get("tactics")), *(alert.tactics for alert in with_row))),
        "techniques": _distinct(
            (_texts(additional.get("techniques")), *(alerts.techniques_of(alert.record) for alert in with_row))
        ),
        "labels": [label["labelName"] for label in _mappings(record["Labels"]) if label.get("labelName")],
        "timeline": incident_timeline(
            record, [v for v in versions.records() if v["IncidentNumber"] == number], with_row, comments
        ),
    }
    links = IncidentLinks(dict.fromkeys(ids, (number,)), {number: record["Status"]})
    notes = reader_notes(with_row, links)
    if without_row:
        count = len(without_row)
        notes.append(
            f"Incident {number} names {count} alert{'s' if count != 1 else ''} that SecurityAlert has no row for "
            "(alert_ids_without_row)."
        )
    if not ids:
        notes.append(f"Incident {number} names no alert ids; alert_count is its own counter.")
    return row, notes


def _comments(cell: Any) -> list[JsonValue]:
    """Comments with their author; `author` is null where the service does not name one."""
    comments: list[JsonValue] = []
    for comment in _mappings(cell):
        author = comment.get("author")
        author = author if isinstance(author, Mapping) else {}
        comments.append(
            {
                "time": comment.get("createdTimeUtc"),
                "author": author.get("name") or author.get("userPrincipalName") or author.get("email"),
                "message": comment.get("message"),
            }
        )
    return comments


def _mappings(cell: Any) -> list[Mapping[str, Any]]:
    value = parse_dynamic(cell)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value if item] if isinstance(value, list) else []


def _distinct(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))
