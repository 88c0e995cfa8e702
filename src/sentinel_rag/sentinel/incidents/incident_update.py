"""Change an incident: a comment, an owner, a status; what stands there is read before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import (
    Column,
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    QueryResult,
    TimeWindow,
    invalid_argument,
)
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS, LONGEST_COMMENT
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.incidents.incident_resolution import Resolution, resolve_incident
from sentinel_rag.sentinel.incidents.incidents import INCIDENT_TABLE, INCIDENT_TIME, UNASSIGNED, newest_versions
from sentinel_rag.sentinel.logs.kql_literals import string_literal
from sentinel_rag.sentinel.logs.log_analytics import parse_datetime
from sentinel_rag.sentinel.rest import Incident, SentinelRest
from sentinel_rag.sentinel.workspace_view import TableStatistics, WorkspaceView, build_result, one_line, shortened

# What an agent writes may hold text that an attacker put into a log. So everything that would become a tag, a link or
# an image is written with character references, which both renderers show as the character and neither takes for
# markup. `html.unescape` gives the text back.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REFERENCE = re.compile(r"&(?=[#A-Za-z])")  # what would be read as a character reference must not become one
_MARKDOWN_LINK = re.compile(r"\]\s*[(\[:]")


def plain_text(field: str, text: str, *, longest: int) -> str:
    """`text` so that it is shown as it is written. Raises QueryFailedError INVALID_ARGUMENT for `field`: a control
    character (also one that turns the direction of writing), or more than `longest` characters once escaped."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    control = _CONTROL.search(text)
    if control is not None:
        raise invalid_argument(
            field,
            f"{field} holds the control character U+{ord(control[0]):04X} at position {control.start()}.",
            next_step="Leave it out.",
        )
    escaped = _REFERENCE.sub("&amp;", text).replace("<", "&lt;")
    if _MARKDOWN_LINK.search(escaped):
        escaped = escaped.replace("[", "&#91;").replace("]", "&#93;")
    if len(escaped) > longest:
        raise invalid_argument(
            field,
            f"{field} is {len(escaped)} characters long once it is escaped for the portal; {longest} are kept.",
            next_step="Shorten it.",
        )
    return escaped


# A tool that reads may show every incident that a reference could mean; one that writes must know.
@dataclass(frozen=True, slots=True)
class Target:
    """An incident by its GUID, with everything that the answer's coverage needs: nothing is read after a write."""

    name: str
    label: str
    rest: SentinelRest
    found: Resolution
    statistics: TableStatistics

    def result(
        self, columns: Any, row: Mapping[str, Any], *, summary: Mapping[str, Any], notes: tuple[CodedNote, ...]
    ) -> QueryResult:
        """The answer of an action: one row, the incident or its comment afterwards."""
        return build_result(
            columns,
            (row,),
            tables=(INCIDENT_TABLE,),
            window=TimeWindow(),
            time_column=INCIDENT_TIME,
            rows_total=1,
            answers=self.found.answers,
            statistics=self.statistics,
            summary={"matched_by": self.found.matched_by, "reference": self.found.reference, **summary},
            notes=(*notes, *self.found.notes),
        )


async def target_incident(view: WorkspaceView, reference: str) -> Target:
    """The incident that `reference` means. Raises QueryFailedError: none, several, or a workspace that is read only."""
    if view.rest is None:
        raise QueryFailedError(
            QueryError(
                code=QueryErrorCode.WORKSPACE_NOT_FOUND,
                message=f"Workspace {view.logs.name} is read only here: its Resource ID is not configured.",
                next_step="Set SENTINEL_WORKSPACE_RESOURCE_ID (docs/settings.md) and start again.",
            )
        )
    resolution = await resolve_incident(view, reference)
    record = _only(resolution)
    statistics = await view.statistics.read(INCIDENT_TABLE, INCIDENT_TIME)
    merge = resolution.merges.get(record["IncidentNumber"])
    if merge is not None:
        raise invalid_argument(
            "incident",
            f"{merge.note()} Nothing was changed.",
            allowed=() if merge.into is None else (str(merge.into),),
            next_step="Make the change to the incident that it was merged into.",
        )
    name = str(record["IncidentName"] or "")
    label = f"Incident {record['IncidentNumber']}" if record["IncidentNumber"] is not None else f"Incident {name}"
    if not name:
        raise invalid_argument("incident", f"{label} has no GUID in the log, so Sentinel cannot be told which it is.")
    return Target(name, label, view.rest, resolution, statistics)


def _only(resolution: Resolution) -> Mapping[str, Any]:
    records = resolution.records
    if not records:
        raise invalid_argument(
            "incident",
            " ".join(resolution.notes) or f"No incident has the reference {resolution.reference[:80]!r}.",
            next_step="query_incidents lists the incidents that there are.",
        )
    if len(records) > 1:
        shown = "; ".join(
            f"{record['IncidentNumber']} ({shortened(record['Title'], 60)}, {record['IncidentName']})"
            for record in records[:10]
        )
        raise invalid_argument(
            "incident",
            f"{resolution.reference[:80]!r} may mean {len(records)} incidents: {shown}. Nothing was changed.",
            allowed=tuple(str(record["IncidentName"]) for record in records[:10]),
            next_step="Ask which one is meant, then name it by its GUID.",
        )
    return records[0]


# The rules between arguments stand here: closing needs a classification, a reason must fit it, an open incident has
# none.
_PROPERTIES = {
    "status": "status",
    "severity": "severity",
    "classification": "classification",
    "classification_reason": "classificationReason",
    "classification_comment": "classificationComment",
}
_CLASSIFIED = ("classification", "classificationReason", "classificationComment")
FIELDS = ("status", "severity", "owner", "classification", "classification_reason", "classification_comment")
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ADDRESS = re.compile(r"[^\s@<>\"(),:;\[\]\\]+@[^\s@<>\"(),:;\[\]\\]+\.[^\s@<>\"(),:;\[\]\\]+")
_NO_OWNER: Mapping[str, None] = dict.fromkeys(("objectId", "email", "assignedTo", "userPrincipalName"))
_LONGEST_COMMENT = 3_000


def checked_changes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The wanted REST properties. Raises QueryFailedError INVALID_ARGUMENT for arguments that cannot go together."""
    given = {field: arguments[field] for field in FIELDS if arguments.get(field) is not None}
    if not given:
        raise invalid_argument(
            "status",
            "update_incident needs something to change.",
            next_step="Give status, severity, owner or classification.",
        )
    status, classification = given.get("status"), given.get("classification")
    if status == "Closed" and classification is None:
        raise invalid_argument(
            "classification", "Closing an incident needs a classification.", allowed=tuple(CLASSIFICATION_REASONS)
        )
    if classification is not None and status in ("New", "Active"):
        raise invalid_argument(
            "classification",
            f"An incident that is {status} has no classification.",
            next_step="Leave classification out, or set status Closed.",
        )
    for field in ("classification_reason", "classification_comment"):
        if field in given and classification is None:
            raise invalid_argument(
                field, f"{field} needs a classification beside it.", next_step="Give classification too."
            )
    wanted: dict[str, Any] = {_PROPERTIES[field]: value for field, value in given.items() if field in _PROPERTIES}
    if classification is not None:
        wanted |= _classified(classification, given)
    if "owner" in given:
        wanted["owner"] = _owner(given["owner"])
    return wanted


def changes_of(incident: Incident, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of `wanted` the incident does not show yet; None takes a property away.

    Raises QueryFailedError INVALID_ARGUMENT for a classification of an incident that stays open.
    """
    status = wanted.get("status", incident.text("status"))
    if "classification" in wanted and status != "Closed":
        raise invalid_argument(
            "classification",
            f"The incident is {status}; only a closed one has a classification.",
            next_step="Set status Closed too, or leave classification out.",
        )
    changes = {key: value for key, value in wanted.items() if key != "owner" and incident.text(key) != value}
    if "classification" not in changes and wanted.get("classificationReason") is None:
        changes.pop("classificationReason", None)  # none was given, so the one that it has stays
    if "owner" in wanted and not _same_owner(incident.owner, wanted["owner"]):
        changes["owner"] = wanted["owner"]
    if status != "Closed":
        changes |= {key: None for key in _CLASSIFIED if incident.text(key) is not None}
    return changes


def shown_fields(incident: Incident) -> dict[str, JsonValue]:
    """The fields that an update can change, as a reader sees them."""
    fields: dict[str, JsonValue] = {field: incident.text(key) for field, key in _PROPERTIES.items()}
    fields["owner"] = shown_owner(incident.owner)
    return {field: fields[field] for field in FIELDS}


def shown_owner(owner: Mapping[str, Any]) -> str | None:
    """The owner's name with the address where both are known, else whatever identifies them; None for nobody."""
    name = owner.get("assignedTo")
    address = owner.get("userPrincipalName") or owner.get("email")
    if name and address and name != address:
        return f"{name} <{address}>"
    found = name or address or owner.get("objectId")
    return str(found) if found else None


def differences(before: Incident, after: Incident) -> list[dict[str, JsonValue]]:
    """`{field, before, after}` of every field that an update can change and that differs."""
    old, new = shown_fields(before), shown_fields(after)
    return [{"field": field, "before": old[field], "after": new[field]} for field in FIELDS if old[field] != new[field]]


def _classified(classification: str, given: Mapping[str, Any]) -> dict[str, Any]:
    reasons = CLASSIFICATION_REASONS[classification]
    reason = given.get("classification_reason")
    if reason is not None and reason not in reasons:
        fitting = f"takes {' or '.join(reasons)}" if reasons else "takes no reason"
        raise invalid_argument("classification_reason", f"{classification} {fitting}, not {reason}.", allowed=reasons)
    if reason is None and len(reasons) == 1:
        reason = reasons[0]  # there is no other, so it is not a guess
    wanted: dict[str, Any] = {"classificationReason": reason}
    if "classification_comment" in given:
        comment = plain_text("classification_comment", given["classification_comment"], longest=_LONGEST_COMMENT)
        wanted["classificationComment"] = comment
    return wanted


def _owner(text: str) -> Mapping[str, str | None]:
    if text.casefold() == UNASSIGNED:
        return _NO_OWNER
    if _GUID.fullmatch(text):
        return {"objectId": text.lower()}
    if _ADDRESS.fullmatch(text):
        return {"userPrincipalName": text}
    raise invalid_argument(
        "owner",
        f"{text[:80]!r} names no user: a name is not enough, since several people may have it.",
        next_step="Give the user principal name, e-mail address or object id, or 'unassigned'.",
    )


def _same_owner(owner: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    names = {str(value).casefold() for value in owner.values() if value}
    asked = {str(value).casefold() for value in wanted.values() if value}
    return not names if not asked else asked <= names


MOST_COMMENTS = 100
_COMMENT_COLUMNS = (
    Column("number", "long"),
    Column("title", "string"),
    Column("incident_name", "guid"),
    Column("url", "string"),
    Column("comment_id", "guid"),
    Column("time", "datetime"),
    Column("author", "string"),
    Column("message", "string"),
    Column("comment_count", "long"),
)


async def add_incident_comment(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Adds the comment and answers with it as it is stored. Raises QueryFailedError."""
    message = plain_text("message", arguments["message"], longest=LONGEST_COMMENT)
    target = await target_incident(view, arguments["incident"])
    incident = await target.rest.get_incident(target.name)
    additional = incident.properties.get("additionalData")
    count = additional.get("commentsCount") if isinstance(additional, Mapping) else None
    if isinstance(count, int) and count >= MOST_COMMENTS:
        raise QueryFailedError(
            QueryError(
                code=QueryErrorCode.QUERY_REJECTED,
                message=f"{target.label} has {count} comments, which is all that Sentinel keeps. Nothing was added.",
                next_step="Delete comments in the portal, or write to another incident.",
            )
        )
    comment = await target.rest.add_comment(target.name, str(uuid4()), message)
    told = f"A comment was added to {target.label[0].lower()}{target.label[1:]}"
    notes = [note("change_made", change=told)]
    if message != arguments["message"]:
        notes.append(note("written_as_plain_text"))
    if comment.message != message:
        notes.append(note("stored_otherwise"))
    return target.result(
        _COMMENT_COLUMNS,
        {
            "number": incident.number,
            "title": incident.text("title"),
            "incident_name": incident.name,
            "url": incident.text("incidentUrl"),
            "comment_id": comment.name,
            "time": comment.created,
            "author": comment.author,
            "message": comment.message,
            "comment_count": count + 1 if isinstance(count, int) else None,
        },
        summary={},
        notes=tuple(notes),
    )


_UPDATE_COLUMNS = (
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

# The incident is read, only what differs is written, and only if nobody wrote in between: a conflict ends in an error
# that tells who changed what, never in an overwrite. `preview_incident_change` works out the same and writes nothing.
_FIXED_WORDS = frozenset({"status", "severity", "classification", "classification_reason"})


async def update_incident(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Makes the change and answers with the incident afterwards. Raises QueryFailedError."""
    wanted = checked_changes(arguments)
    target = await target_incident(view, arguments["incident"])
    before = await target.rest.get_incident(target.name)
    changes = changes_of(before, wanted)
    if not changes:
        return _result(target, before, (), (note("nothing_to_change", incident=target.label),))
    try:
        after = await target.rest.update_incident(before, changes)
    except QueryFailedError as failure:
        if failure.error.code is not QueryErrorCode.CONFLICT:
            raise
        raise await _conflict(view, target, before, failure) from None
    changed = differences(before, after)
    notes: tuple[CodedNote, ...] = (note("change_made", change=_told(target.label, changed)),)
    missing = changes_of(after, wanted)
    if missing:
        notes += (note("change_not_taken_over", fields=sorted(missing)),)
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
    target: Target, after: Incident, changed: Sequence[Mapping[str, JsonValue]], notes: tuple[CodedNote, ...]
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
    ordered = {column.name: row[column.name] for column in _UPDATE_COLUMNS}
    return target.result(
        _UPDATE_COLUMNS, ordered, summary={"changed": [str(item["field"]) for item in changed]}, notes=notes
    )


def _told(label: str, changed: list[dict[str, JsonValue]]) -> str:
    """A sentence of ours holds fixed words only: names and free text stay in the row, where they carry their label."""
    parts = [
        f"{item['field']} {item['before'] or 'none'} → {item['after'] or 'none'}"
        if item["field"] in _FIXED_WORDS
        else f"{item['field']} changed"
        for item in changed
    ]
    return f"{label}: {', '.join(parts) or 'none of the fields that update_incident changes'}"


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
    message = f"{what}. Nothing of this update was written."
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
