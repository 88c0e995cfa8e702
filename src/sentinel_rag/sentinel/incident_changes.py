"""What update_incident was asked to change, as the properties of Sentinel's REST API. Pure.

The rules between arguments stand here: closing needs a classification, a reason must fit it, an open incident has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS
from sentinel_rag.sentinel.comment_text import plain_text
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.incidents import UNASSIGNED
from sentinel_rag.sentinel.rest import Incident

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
