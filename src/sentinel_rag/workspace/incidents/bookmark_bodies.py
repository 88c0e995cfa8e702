"""REST bodies of bookmarks and of relations to them: from a row of HuntingBookmark, and from what a client sends.

Pure. HuntingBookmark is a log of versions as SecurityIncident is. Its columns are text where REST has objects and
lists; what an export holds otherwise than as JSON is shown as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel_rag.workspace.incidents.body_values import BodyError, properties_of, text_of, time_of
from sentinel_rag.workspace.incidents.rows import Row, derived_guid, etag_of, json_value, wire_time

MAX_NAME = 500
MAX_TEXT = 30_000
MAX_LABELS = 50
_PERSON_KEYS = ("objectId", "email", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class BookmarkWrite:
    """The writable properties of one PUT."""

    display_name: str
    query: str
    query_result: str = ""
    notes: str = ""
    labels: tuple[str, ...] = ()
    event_time: datetime | None = None
    query_start: datetime | None = None
    query_end: datetime | None = None
    etag: str | None = None


def bookmark_body(row: Row, workspace_path: str) -> dict[str, Any]:
    """The resource of the bookmark whose newest row is `row`."""
    name = str(row["BookmarkId"])
    return {
        "id": f"{workspace_path}/Bookmarks/{name}",
        "name": name,
        "etag": etag_of(row),
        "type": "Microsoft.SecurityInsights/Bookmarks",
        "properties": _properties(row),
    }


def bookmark_entity(row: Row, workspace_path: str) -> dict[str, Any]:
    """The bookmark as an incident lists it: an entity of kind Bookmark."""
    name = str(row["BookmarkId"])
    return {
        "id": f"{workspace_path}/Entities/{name}",
        "name": name,
        "type": "Microsoft.SecurityInsights/Entities",
        "kind": "Bookmark",
        "properties": {**_properties(row), "friendlyName": row["BookmarkName"], "additionalData": {}},
    }


def relation_body(incident: str, relation: str, bookmark: str, workspace_path: str) -> dict[str, Any]:
    """The resource of an incident's relation to a bookmark."""
    return {
        "id": f"{workspace_path}/Incidents/{incident}/Relations/{relation}",
        "name": relation,
        "etag": derived_guid("relation etag", incident, relation, bookmark),
        "type": "Microsoft.SecurityInsights/Incidents/Relations",
        "properties": {
            "relatedResourceId": f"{workspace_path}/Bookmarks/{bookmark}",
            "relatedResourceName": bookmark,
            "relatedResourceType": "Microsoft.SecurityInsights/Bookmarks",
        },
    }


def _properties(row: Row) -> dict[str, Any]:
    properties = {
        "displayName": row["BookmarkName"],
        "created": wire_time(row["CreatedTime"]),
        "createdBy": _person(row["CreatedBy"]),
        "updated": wire_time(row["LastUpdatedTime"] or row["TimeGenerated"]),
        "updatedBy": _person(row["UpdatedBy"]),
        "eventTime": wire_time(row["EventTime"]),
        "labels": _labels_of(row["Tags"]),
        "notes": row["Notes"] or None,
        "query": row["QueryText"],
        "queryResult": row["QueryResultRow"] or None,
        "queryStartTime": wire_time(row["QueryStartTime"]),
        "queryEndTime": wire_time(row["QueryEndTime"]),
    }
    return {key: value for key, value in properties.items() if value is not None}


def _person(cell: Any) -> dict[str, Any] | None:
    """Who it was: the log has a JSON object, whose keys differ in case between its writers, or a name alone."""
    if not cell:
        return None
    value = json_value(cell)
    if not isinstance(value, Mapping):
        return {"objectId": None, "email": None, "name": str(cell)}
    by_key = {str(key).lower(): found for key, found in value.items()}
    return {key: by_key.get(key.lower()) for key in _PERSON_KEYS}


def _labels_of(cell: Any) -> list[str]:
    value = json_value(cell)
    parts = value if isinstance(value, list) else str(cell or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def read_bookmark(body: Any) -> BookmarkWrite:
    """The write that a PUT asks for. Raises BodyError."""
    given = properties_of(body)
    etag = body.get("etag")
    labels = given.get("labels") or []
    if not isinstance(labels, list) or len(labels) > MAX_LABELS or not all(isinstance(each, str) for each in labels):
        raise BodyError(f"The property 'labels' must be a list of at most {MAX_LABELS} texts.")
    return BookmarkWrite(
        display_name=text_of(given, "displayName", MAX_NAME, required=True),
        query=text_of(given, "query", MAX_TEXT, required=True),
        query_result=text_of(given, "queryResult", MAX_TEXT),
        notes=text_of(given, "notes", MAX_TEXT),
        labels=tuple(labels),
        event_time=time_of(given, "eventTime"),
        query_start=time_of(given, "queryStartTime"),
        query_end=time_of(given, "queryEndTime"),
        etag=etag if isinstance(etag, str) and etag else None,
    )


def related_bookmark(body: Any, workspace_path: str) -> str:
    """The id of the bookmark that a relation's PUT names, in lower case. Raises BodyError."""
    properties = body.get("properties") if isinstance(body, dict) else None
    related = properties.get("relatedResourceId") if isinstance(properties, dict) else None
    if not isinstance(related, str) or not related:
        raise BodyError("The property 'relatedResourceId' is required.")
    prefix = f"{workspace_path}/Bookmarks/".lower()
    if not related.lower().startswith(prefix) or "/" in related[len(prefix) :] or len(related) == len(prefix):
        raise BodyError("The property 'relatedResourceId' must be the id of a bookmark of this workspace.")
    return related[len(prefix) :].lower()


def bookmark_columns(write: BookmarkWrite, author: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """The columns that a write sets."""
    return {
        "TimeGenerated": at,
        "BookmarkName": write.display_name,
        "QueryText": write.query,
        "QueryResultRow": write.query_result,
        "Notes": write.notes,
        "Tags": json.dumps(list(write.labels), ensure_ascii=False) if write.labels else "",
        "EventTime": write.event_time,
        "QueryStartTime": write.query_start,
        "QueryEndTime": write.query_end,
        "LastUpdatedTime": at,
        "UpdatedBy": json.dumps({key: author.get(key) for key in _PERSON_KEYS}, ensure_ascii=False),
        "SoftDeleted": False,
    }
