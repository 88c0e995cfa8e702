"""REST bodies of incidents and comments: from a row of SecurityIncident, and from what a client sends.

Pure functions. Reading is strict where the service is (required properties, allowed values, lengths) and drops unknown
or read-only properties, as it does. A PUT replaces: a writable property that is left out is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel_rag.workspace.incidents.body_values import BodyError, choice_of, properties_of, text_of, time_of
from sentinel_rag.workspace.incidents.rows import Row, etag_of, json_list, json_object, wire_time

SEVERITIES = ("High", "Medium", "Low", "Informational")
STATUSES = ("New", "Active", "Closed")
CLASSIFICATIONS = ("Undetermined", "TruePositive", "BenignPositive", "FalsePositive")
REASONS = ("SuspiciousActivity", "SuspiciousButExpected", "IncorrectAlertLogic", "InaccurateData")
MAX_DESCRIPTION = 5_000
MAX_TITLE = 500
MAX_MESSAGE = 30_000
OWNER_KEYS = ("objectId", "email", "assignedTo", "userPrincipalName")


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
    given = properties_of(body)
    status = choice_of(given, "status", STATUSES, required=True)
    classification = choice_of(given, "classification", CLASSIFICATIONS)
    if status == "Closed" and not classification:
        raise BodyError("The property 'classification' is required when the status is Closed.")
    etag = body.get("etag")
    if etag is not None and not isinstance(etag, str):
        raise BodyError("The property 'etag' must be text.")
    return IncidentWrite(
        title=text_of(given, "title", MAX_TITLE, required=True),
        severity=choice_of(given, "severity", SEVERITIES, required=True),
        status=status,
        description=text_of(given, "description", MAX_DESCRIPTION),
        classification=classification,
        classification_reason=choice_of(given, "classificationReason", REASONS),
        classification_comment=text_of(given, "classificationComment", MAX_MESSAGE),
        owner=_owner(given.get("owner")),
        labels=_labels(given.get("labels")),
        first_activity=time_of(given, "firstActivityTimeUtc"),
        last_activity=time_of(given, "lastActivityTimeUtc"),
        etag=etag or None,
    )


def read_comment(body: Any) -> tuple[str, str | None]:
    """Message and etag of a comment's PUT. Raises BodyError."""
    message = text_of(properties_of(body), "message", MAX_MESSAGE, required=True)
    etag = body.get("etag")
    return message, etag if isinstance(etag, str) and etag else None


def _owner(value: Any) -> Mapping[str, str | None]:
    if value is None:
        return dict.fromkeys(OWNER_KEYS)
    if not isinstance(value, dict):
        raise BodyError("The property 'owner' must be an object.")
    return {key: text_of(value, key, 500) or None for key in OWNER_KEYS}


def _labels(value: Any) -> tuple[Mapping[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(label, dict) for label in value):
        raise BodyError("The property 'labels' must be a list of objects.")
    labels = []
    for label in value:
        name = text_of(label, "labelName", 500)
        if not name:
            raise BodyError("Each label needs a 'labelName'.")
        kind = choice_of(label, "labelType", ("User", "AutoAssigned")) or "User"
        labels.append({"labelName": name, "labelType": kind})
    return tuple(labels)
