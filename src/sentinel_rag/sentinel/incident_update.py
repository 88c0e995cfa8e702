"""The tool update_incident: status, severity, owner and classification of one incident, and what that changed.

The incident is read, only what differs is written, and only if nobody wrote in between: a conflict ends in an error
that tells who changed what, never in an overwrite. `preview_incident_change` works out the same and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.contracts.tool_schemas import LONGEST_COMMENT
from sentinel_rag.sentinel.comment_text import plain_text
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.incident_changes import changes_of, checked_changes, differences, shown_fields
from sentinel_rag.sentinel.incident_target import Target, target_incident
from sentinel_rag.sentinel.incidents import newest_versions
from sentinel_rag.sentinel.kql_literals import string_literal
from sentinel_rag.sentinel.log_tables import parse_datetime
from sentinel_rag.sentinel.rest import Incident
from sentinel_rag.sentinel.results import one_line
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_COLUMNS = (
    Column("number", "long"),
    Column("title", "string"),
    Column("severity", "string"),
    Column("status", "string"),
    Column("owner", "string"),
    Column("classification", "string"),
    Column("classification_reason", "string"),
    Column("classification_comment", "string"),
    Column("updated_time", "datetime"),
    Column("incident_name", "guid"),
    Column("url", "string"),
    Column("changes", "dynamic"),
)

_FIXED_WORDS = frozenset({"status", "severity", "classification", "classification_reason"})


async def update_incident(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Makes the change and answers with the incident afterwards. Raises QueryFailedError."""
    wanted = checked_changes(arguments)
    target = await target_incident(view, arguments["incident"])
    before = await target.rest.get_incident(target.name)
    changes = changes_of(before, wanted)
    if not changes:
        return _result(target, before, (), (f"{target.label} was so already; nothing was written.",))
    try:
        after = await target.rest.update_incident(before, changes)
    except QueryFailedError as failure:
        if failure.error.code is not QueryErrorCode.CONFLICT:
            raise
        raise await _conflict(view, target, before, failure) from None
    changed = differences(before, after)
    notes: tuple[str, ...] = (_told(target.label, changed),)
    missing = changes_of(after, wanted)
    if missing:
        notes += (f"Microsoft Sentinel did not take over: {', '.join(sorted(missing))}.",)
    return _result(target, after, changed, notes)


async def preview_incident_change(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """The incident as it is, with the changes that update_incident, or add_incident_comment where there is a message,
    would make. Raises QueryFailedError where that would, too."""
    message = arguments.get("message")
    wanted = {} if message is not None else checked_changes(arguments)
    target = await target_incident(view, arguments["incident"])
    before = await target.rest.get_incident(target.name)
    if message is not None:
        written = plain_text("message", message, longest=LONGEST_COMMENT)
        return _result(target, before, ({"field": "comment", "before": None, "after": written},), ())
    after = replace(before, properties={**before.properties, **changes_of(before, wanted)})
    return _result(target, before, differences(before, after), ())


def _result(
    target: Target, after: Incident, changed: Sequence[Mapping[str, JsonValue]], notes: tuple[str, ...]
) -> QueryResult:
    row: dict[str, JsonValue] = {
        "number": after.number,
        "title": after.text("title"),
        **shown_fields(after),
        "updated_time": after.text("lastModifiedTimeUtc"),
        "incident_name": after.name,
        "url": after.text("incidentUrl"),
        "changes": [dict(item) for item in changed],
    }
    ordered = {column.name: row[column.name] for column in _COLUMNS}
    return target.result(_COLUMNS, ordered, summary={"changed": [str(item["field"]) for item in changed]}, notes=notes)


def _told(label: str, changed: list[dict[str, JsonValue]]) -> str:
    """A sentence of ours holds fixed words only: names and free text stay in the row, where they carry their label."""
    parts = [
        f"{item['field']} {item['before'] or 'none'} → {item['after'] or 'none'}"
        if item["field"] in _FIXED_WORDS
        else f"{item['field']} changed"
        for item in changed
    ]
    return f"{label}: {', '.join(parts) or 'none of the fields that update_incident changes'}."


async def _conflict(
    view: WorkspaceView, target: Target, before: Incident, failure: QueryFailedError
) -> QueryFailedError:
    """The conflict with what has changed since the incident was read, and by whom as far as the log tells already."""
    try:
        now = await target.rest.get_incident(target.name)
        changed = differences(before, now)
        if before.text("title") != now.text("title"):
            changed.append({"field": "title"})
        who = one_line(await _changed_by(view, before), 100)
    except (QueryFailedError, ValueError):  # the conflict is what matters; what cannot be told about it is left out
        return failure
    what = _told(f"{target.label} was changed by {who} in the meantime", changed)
    message = f"{what} Nothing of this update was written."
    return QueryFailedError(replace(failure.error, message=message, field="incident"))


async def _changed_by(view: WorkspaceView, before: Incident) -> str:
    answer = await view.logs.query(
        newest_versions(TimeWindow(), (f"IncidentName =~ {string_literal(before.name)}",))
        + "\n| project ModifiedBy, LastModifiedTime"
    )
    read_at = before.text("lastModifiedTimeUtc")
    for record in answer.records():
        modified = record["LastModifiedTime"]
        newer = read_at is None or (modified is not None and modified > parse_datetime(read_at))
        if newer and record["ModifiedBy"]:
            return str(record["ModifiedBy"])
    return "somebody else"  # the log follows the service by some minutes
