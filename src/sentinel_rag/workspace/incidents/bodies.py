"""REST bodies of incidents and comments: from a row of SecurityIncident, and from what a client sends.

Pure functions. Reading is strict where the service is (required properties, allowed values, lengths) and drops unknown
or read-only properties, as it does. A PUT replaces: a writable property that is left out is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sentinel_rag.workspace.incidents.rows import Row, etag_of, json_list, json_object, wire_time

SEVERITIES = ("High", "Medium", "Low", "Informational")
STATUSES = ("New", "Active", "Closed")
CLASSIFICATIONS = ("Undetermined", "TruePositive", "BenignPositive", "FalsePositive")
REASONS = ("SuspiciousActivity", "SuspiciousButExpected", "IncorrectAlertLogic", "InaccurateData")
MAX_DESCRIPTION = 5_000
MAX_TITLE = 500
MAX_MESSAGE = 30_000
OWNER_KEYS = ("objectId", "email", "assignedTo", "userPrincipalName")


class BodyError(Exception):
    """The body is not one that the service takes; the text says what is wrong with which property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentWrite:
    """The writable properties of one PUT."""

    title: str
    severity: str
    status: str
    description: str = ""
    classification: str = ""
    classification_reason: str = ""
    classification_comment: str = ""
    owner: Mapping[str, str | None]
    labels: tuple[Mapping[str, str], ...] = ()
    first_activity: datetime | None = None
    last_activity: datetime | None = None
    etag: str | None = None


def incident_body(row: Row, workspace_path: str) -> dict[str, Any]:
    """The resource of the incident whose newest row is `row`, below the provider's path `workspace_path`."""
    additional = json_object(row["AdditionalData"])
    owner = json_object(row["Owner"])
    name = str(row["IncidentName"])
    closed = {
        "classification": row["Classification"],
        "classificationReason": row["ClassificationReason"],
        "classificationComment": row["ClassificationComment"],
    }
    properties = {
        "title": row["Title"],
        "description": row["Description"] or "",
        "severity": row["Severity"],
        "status": row["Status"],
        **{key: value for key, value in closed.items() if value},
        "owner": {key: owner.get(key) for key in OWNER_KEYS},
        "labels": [
            {"labelName": label["labelName"], "labelType": label.get("labelType", "User")}
            for label in json_list(row["Labels"])
            if isinstance(label, dict) and label.get("labelName")
        ],
        "firstActivityTimeUtc": wire_time(row["FirstActivityTime"]),
        "lastActivityTimeUtc": wire_time(row["LastActivityTime"]),
        "lastModifiedTimeUtc": wire_time(row["LastModifiedTime"] or row["TimeGenerated"]),
        "createdTimeUtc": wire_time(row["CreatedTime"]),
        "incidentNumber": row["IncidentNumber"],
        "additionalData": {
            "alertsCount": additional.get("alertsCount", len(json_list(row["AlertIds"]))),
            "bookmarksCount": len(json_list(row["BookmarkIds"])),
            "commentsCount": len(json_list(row["Comments"])),
            "alertProductNames": additional.get("alertProductNames", []),
            "tactics": additional.get("tactics", []),
            **({"providerIncidentUrl": url} if (url := additional.get("providerIncidentUrl")) else {}),
        },
        "relatedAnalyticRuleIds": [
            f"{workspace_path}/alertRules/{rule}" for rule in json_list(row["RelatedAnalyticRuleIds"])
        ],
        "incidentUrl": row["IncidentUrl"],
        "providerName": row["ProviderName"],
        "providerIncidentId": row["ProviderIncidentId"],
    }
    return {
        "id": f"{workspace_path}/Incidents/{name}",
        "name": name,
        "etag": etag_of(row),
        "type": "Microsoft.SecurityInsights/Incidents",
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def read_incident(body: Any) -> IncidentWrite:
    """The write that a PUT asks for. Raises BodyError."""
    if not isinstance(body, dict) or not isinstance(body.get("properties"), dict):
        raise BodyError("The request body needs an object 'properties'.")
    given: dict[str, Any] = body["properties"]
    status = _choice(given, "status", STATUSES, required=True)
    classification = _choice(given, "classification", CLASSIFICATIONS)
    if status == "Closed" and not classification:
        raise BodyError("The property 'classification' is required when the status is Closed.")
    etag = body.get("etag")
    if etag is not None and not isinstance(etag, str):
        raise BodyError("The property 'etag' must be text.")
    title = _text(given, "title", MAX_TITLE)
    if not title.strip():
        raise BodyError("The property 'title' is required.")
    return IncidentWrite(
        title=title,
        severity=_choice(given, "severity", SEVERITIES, required=True),
        status=status,
        description=_text(given, "description", MAX_DESCRIPTION),
        classification=classification,
        classification_reason=_choice(given, "classificationReason", REASONS),
        classification_comment=_text(given, "classificationComment", MAX_MESSAGE),
        owner=_owner(given.get("owner")),
        labels=_labels(given.get("labels")),
        first_activity=_time(given, "firstActivityTimeUtc"),
        last_activity=_time(given, "lastActivityTimeUtc"),
        etag=etag or None,
    )


def read_comment(body: Any) -> tuple[str, str | None]:
    """Message and etag of a comment's PUT. Raises BodyError."""
    if not isinstance(body, dict) or not isinstance(body.get("properties"), dict):
        raise BodyError("The request body needs an object 'properties'.")
    message = _text(body["properties"], "message", MAX_MESSAGE)
    if not message.strip():
        raise BodyError("The property 'message' is required.")
    etag = body.get("etag")
    return message, etag if isinstance(etag, str) and etag else None


def _text(given: Mapping[str, Any], key: str, longest: int) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BodyError(f"The property '{key}' must be text.")
    if len(value) > longest:
        raise BodyError(f"The property '{key}' may be {longest} characters long, not {len(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BodyError(f"The property '{key}' holds half of a surrogate pair.") from None
    return value


def _choice(given: Mapping[str, Any], key: str, allowed: tuple[str, ...], *, required: bool = False) -> str:
    value = given.get(key)
    if value is None or value == "":
        if required:
            raise BodyError(f"The property '{key}' is required.")
        return ""
    for known in allowed:
        if isinstance(value, str) and known.lower() == value.lower():
            return known
    raise BodyError(f"The property '{key}' must be one of {', '.join(allowed)}.")


def _owner(value: Any) -> Mapping[str, str | None]:
    if value is None:
        return dict.fromkeys(OWNER_KEYS)
    if not isinstance(value, dict):
        raise BodyError("The property 'owner' must be an object.")
    return {key: _text(value, key, 500) or None for key in OWNER_KEYS}


def _labels(value: Any) -> tuple[Mapping[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(label, dict) for label in value):
        raise BodyError("The property 'labels' must be a list of objects.")
    labels = []
    for label in value:
        name = _text(label, "labelName", 500)
        if not name:
            raise BodyError("Each label needs a 'labelName'.")
        kind = _choice(label, "labelType", ("User", "AutoAssigned")) or "User"
        labels.append({"labelName": name, "labelType": kind})
    return tuple(labels)


def _time(given: Mapping[str, Any], key: str) -> datetime | None:
    text = _text(given, key, 40)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise BodyError(f"The property '{key}' is not a time such as 2026-11-01T00:00:00Z.") from None
