"""What Sentinel's REST API knows of an incident that its row in the log does not: the state of this moment, bookmarks.

SecurityIncident follows a change by minutes, and has of a bookmark no more than its id. Read where REST is configured;
where it gives no answer, the log's row stands and a note says so: a detail that can be told is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError, format_time
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts.alerts import RowBudget, row_budget
from sentinel_rag.sentinel.incidents.incidents import owner_name
from sentinel_rag.sentinel.logs.log_analytics import parse_datetime, parse_dynamic
from sentinel_rag.sentinel.rest import Incident
from sentinel_rag.sentinel.workspace_view import WHOLE_DESCRIPTION, WorkspaceView, one_line

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
    notes: tuple[CodedNote, ...] = ()


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
        return LiveIncident(record, notes=(note("told_as_logged", incident=number, reason=failure.error.message),))
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


def _up_to_date(record: Mapping[str, Any], incident: Incident) -> tuple[Mapping[str, Any], tuple[CodedNote, ...]]:
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
    lags = note("log_lags_behind", incident=record["IncidentNumber"], changed=changed, since=moment)
    return {**record, **now, "LastModifiedTime": moment}, (lags,)


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


def _unread(number: Any, held: int, why: str) -> tuple[CodedNote, ...]:
    return (note("bookmarks_unread", incident=number, count=held, reason=why),) if held else ()


# An answer has the richest of a few fixed forms that fits. None drops a count, and each says of what it left out how
# much there is.
COMPACT_BYTES = 20_000
"""JSON bytes of all rows of a compact answer; columns, coverage and notes come on top and stay below 4 kB."""

FULL_BYTES = 2_000_000
"""JSON bytes of all rows of a full answer: incidents of hundreds of alerts fit, and a gateway takes four times that."""

_NO_LIMIT = 1_000_000
WHOLE_ALERT = RowBudget(
    entities=_NO_LIMIT, description=WHOLE_DESCRIPTION, entity_properties=True, remediation_steps=True
)


@dataclass(frozen=True, slots=True)
class RowForm:
    """What one row may show. `alert` None gives alerts the room that their number leaves (`row_budget`)."""

    alerts: int = _NO_LIMIT
    alert: RowBudget | None = None
    entities: int = 100
    properties: bool = True
    events: int = 200
    comments: int = _NO_LIMIT
    comment: int = _NO_LIMIT
    values: int = _NO_LIMIT
    description: int = _NO_LIMIT
    bookmarks: int = 20
    bookmark_text: int = 2000

    def alert_budget(self, count: int) -> RowBudget:
        return self.alert or row_budget(count)


FULL = RowForm(alert=WHOLE_ALERT, entities=_NO_LIMIT, events=_NO_LIMIT, bookmarks=_NO_LIMIT, bookmark_text=_NO_LIMIT)
_BRIEF = RowBudget(entities=4, description=120, entity_properties=False, remediation_steps=False, sparse=True)
_BARE = RowBudget(entities=0, description=0, entity_properties=False, remediation_steps=False, sparse=True)
_FORMS = (
    FULL,
    RowForm(),
    RowForm(alert=_BRIEF, entities=100, events=100, comments=20, comment=2000, description=2000, bookmark_text=300),
    RowForm(alert=_BRIEF, entities=20, events=60, comments=12, comment=1000, description=1000, bookmark_text=150),
    RowForm(
        alert=_BRIEF,
        entities=20,
        properties=False,
        events=60,
        comments=12,
        comment=1000,
        values=100,
        description=1000,
        bookmark_text=100,
    ),
    *(
        RowForm(
            alerts,
            _BARE,
            entities,
            False,
            2 * alerts,
            max(1, alerts // 4),
            20 * alerts,
            2 * alerts,
            20 * alerts,
            bookmarks=max(1, alerts // 4),
            bookmark_text=2 * alerts + 20,
        )
        for alerts, entities in ((40, 12), (30, 10), (22, 8), (16, 7), (11, 5), (7, 3), (4, 2), (2, 1))
    ),
)


@dataclass(frozen=True, slots=True)
class FormedRow:
    """A row, what it leaves out of what there is (name -> how many), and whether it has the form FULL, in which only
    a text may be cut."""

    row: dict[str, JsonValue]
    left_out: Mapping[str, int]
    full: bool


def richest(build: Callable[[RowForm], FormedRow], *, share: int) -> FormedRow:
    """The first form of the row whose JSON has at most `share` bytes; the barest if none has."""
    for form in _FORMS:
        told = build(form)
        if len(json.dumps(told.row, ensure_ascii=False).encode()) <= share:
            break
    return told


def left_out_note(number: object, left_out: Mapping[str, int], *, detail: str) -> CodedNote:
    """For the reader of a row that is not all: what is missing and how to have it."""
    return note(
        "row_parts_left_out",
        form=detail.capitalize(),
        incident=number,
        parts=[f"{count} {_NAMES.get(name, name)}" for name, count in left_out.items()],
        how="ask with detail full, or query_alerts" if detail == "compact" else "ask query_alerts",
    )


_NAMES = {
    "alerts": "alerts",
    "alert_entities": "entities of alerts",
    "alert_fields": "fields of alerts (page, provider, description, remediation steps)",
    "entities": "entities",
    "entity_properties": "properties of entities",
    "timeline": "events of the timeline",
    "comments": "comments",
    "bookmarks": "bookmarks",
    "values": "labels, techniques and ids",
    "remediation_steps": "remediation steps",
    "cut_texts": "texts cut short",
}
