"""How an analyst names an incident: a Sentinel number, a Defender id, a GUID, a portal URL or an alert id.

Parsing only: whether there is such an incident, and which kind of number it was, `incident_resolution` finds out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from sentinel_rag.sentinel.failures import invalid_argument

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = re.compile(r"(?:(?:incident|inc)(?:[\s:_-]*(?:number|no\.?|id))?[\s:_-]*)?#?\s*(\d{1,10})", re.IGNORECASE)
_WHOLE_GUID = re.compile(rf"\{{?({_GUID})\}}?")
_SENTINEL_URL = re.compile(rf"/Incidents/({_GUID})", re.IGNORECASE)
_DEFENDER_URL = re.compile(r"security\.microsoft\.com/incidents?2?/(\d+)", re.IGNORECASE)
_ALERT_URL = re.compile(r"security\.microsoft\.com/alerts/([A-Za-z0-9_-]+)", re.IGNORECASE)
_ALERT_ID = re.compile(r"[A-Za-z0-9_-]{8,100}")
_LARGEST_NUMBER = 2**31 - 1  # IncidentNumber is an int


class ReferenceKind(StrEnum):
    """What the text is by its form; a number may turn out to be either of two things."""

    NUMBER = "number"
    GUID = "guid"
    SENTINEL_URL = "sentinel_url"
    DEFENDER_URL = "defender_url"
    ALERT_ID = "alert_id"


@dataclass(frozen=True, slots=True)
class IncidentReference:
    kind: ReferenceKind
    value: str


def parse_reference(text: str) -> IncidentReference:
    """The form of a reference. Raises QueryFailedError INVALID_ARGUMENT for text that is none of the forms."""
    text = text.strip().strip("'\"`")
    if "://" in text or "security.microsoft.com" in text or "portal.azure.com" in text:
        url = unquote(text)
        for pattern, kind in (
            (_SENTINEL_URL, ReferenceKind.SENTINEL_URL),
            (_DEFENDER_URL, ReferenceKind.DEFENDER_URL),
            (_ALERT_URL, ReferenceKind.ALERT_ID),
        ):
            match = pattern.search(url)
            if match:
                return IncidentReference(kind, match[1])
    guid = _WHOLE_GUID.fullmatch(text)
    if guid:
        return IncidentReference(ReferenceKind.GUID, guid[1].lower())
    number = _NUMBER.fullmatch(text)
    if number and int(number[1]) <= _LARGEST_NUMBER:
        return IncidentReference(ReferenceKind.NUMBER, str(int(number[1])))
    if _ALERT_ID.fullmatch(text) and re.search(r"\d", text) and re.search(r"[A-Za-z]", text):
        return IncidentReference(ReferenceKind.ALERT_ID, text)
    raise invalid_argument(
        "incident",
        f"{text[:80]!r} is no reference to an incident.",
        next_step="Give a Sentinel number (55 or #55), a Defender id, a GUID, the portal's URL or an alert id; "
        "query_incidents with title_contains finds incidents by words.",
    )
