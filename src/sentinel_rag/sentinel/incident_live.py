"""What Sentinel's REST API knows of an incident that its row in the log does not: the state of this moment, bookmarks.

SecurityIncident follows a change by minutes, and has of a bookmark no more than its id. Read where REST is configured;
where it gives no answer, the log's row stands and a note says so: a detail that can be told is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode, format_time
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.incidents import owner_name
from sentinel_rag.sentinel.log_tables import parse_datetime, parse_dynamic
from sentinel_rag.sentinel.rest import Incident
from sentinel_rag.sentinel.results import one_line
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_COLUMNS = {
    "status": "Status",
    "severity": "Severity",
    "title": "Title",
    "classification": "Classification",
    "classificationReason": "ClassificationReason",
    "classificationComment": "ClassificationComment",
    "owner": "Owner",
    "labels": "Labels",
}


@dataclass(frozen=True, slots=True)
class LiveIncident:
    """The record with the state of this moment, its bookmarks as the service lists them, and what to say of it."""

    record: Mapping[str, Any]
    bookmarks: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


async def live_incident(view: WorkspaceView, record: Mapping[str, Any]) -> LiveIncident:
    """The newest version of the log, brought up to date. Never raises for REST."""
    name, number = str(record["IncidentName"] or ""), record["IncidentNumber"]
    held = _bookmark_count(record)
    if view.rest is None:
        return LiveIncident(record, notes=_unread(number, held, "REST is not configured for this workspace"))
    if not name:
        return LiveIncident(record, notes=_unread(number, held, "the incident has no GUID in the log"))
    try:
        incident = await view.rest.get_incident(name)
    except QueryFailedError as failure:
        if failure.error.code is QueryErrorCode.INVALID_ARGUMENT and not held:
            return LiveIncident(record)  # the log keeps incidents that Sentinel has no more
        note = f"Incident {number} is told as the log has it: {failure.error.message}"
        return LiveIncident(record, notes=(note,))
    record, notes = _up_to_date(record, incident)
    additional = incident.properties.get("additionalData")
    counted = additional.get("bookmarksCount") if isinstance(additional, Mapping) else None
    held = counted if isinstance(counted, int) else held
    if not held:
        return LiveIncident(record, notes=notes)
    try:
        return LiveIncident(record, await view.rest.bookmarks(incident), notes)
    except QueryFailedError as failure:
        return LiveIncident(record, notes=(*notes, *_unread(number, held, failure.error.message)))


def bookmark_row(entity: Mapping[str, Any], longest: int) -> dict[str, JsonValue]:
    """A bookmark as a reader sees it; texts are cut at `longest` characters."""
    properties = entity.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    author = properties.get("createdBy")
    author = author if isinstance(author, Mapping) else {}
    labels = properties.get("labels")

    def text(key: str) -> str | None:
        value = properties.get(key)
        return one_line(str(value), longest) if value else None

    return {
        "bookmark_id": str(entity.get("name") or ""),
        "name": text("displayName") or text("friendlyName"),
        "notes": text("notes"),
        "query": text("query"),
        "query_result": text("queryResult"),
        "event_time": _time(properties.get("eventTime")),
        "created_time": _time(properties.get("created")),
        "created_by": author.get("name") or author.get("email"),
        "labels": [str(label) for label in labels] if isinstance(labels, list) else [],
    }


def _time(value: Any) -> str | None:
    try:
        return format_time(parse_datetime(str(value))) if value else None
    except ValueError:
        return None


def _up_to_date(record: Mapping[str, Any], incident: Incident) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The record with what changed since it was logged; unchanged where the log is as new as the service."""
    modified = incident.properties.get("lastModifiedTimeUtc")
    try:
        moment = parse_datetime(str(modified))
    except ValueError:
        return record, ()
    logged = record["LastModifiedTime"] or record["TimeGenerated"]
    if logged is not None and moment <= logged:
        return record, ()
    now: dict[str, Any] = {column: incident.properties.get(key) for key, column in _COLUMNS.items()}
    changed = [
        f"{key} {_shown(column, now[column])}"
        for key, column in _COLUMNS.items()
        if _shown(column, now[column]) != _shown(column, record.get(column))
    ]
    if not changed:
        return record, ()
    note = (
        f"The log has not caught up with incident {record['IncidentNumber']}: Microsoft Sentinel shows "
        f"{', '.join(changed)} since {format_time(moment)}."
    )
    return {**record, **now, "LastModifiedTime": moment}, (note,)


def _shown(column: str, value: Any) -> str:
    if column == "Labels":
        labels = parse_dynamic(value)
        names = [label.get("labelName") for label in labels or () if isinstance(label, Mapping)]
        return ", ".join(sorted(str(name) for name in names if name)) or "none"
    shown = owner_name(value) if column == "Owner" else value
    return str(shown) if shown else "none"


def _bookmark_count(record: Mapping[str, Any]) -> int:
    ids = parse_dynamic(record.get("BookmarkIds"))
    return len(ids) if isinstance(ids, list) else 0


def _unread(number: Any, held: int, why: str) -> tuple[str, ...]:
    if not held:
        return ()
    return (f"Incident {number} has {held} bookmark{'s' if held != 1 else ''} that could not be read: {why}",)
