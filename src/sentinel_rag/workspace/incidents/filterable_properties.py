"""Which properties of an incident a list can be filtered and ordered by, and the SQL over its newest row for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FilterableProperty:
    """An expression over a row of SecurityIncident and the kind of value that it is compared with."""

    sql: str
    kind: Literal["text", "number", "time"]


def _owner(key: str) -> FilterableProperty:
    return FilterableProperty(f"coalesce(json_extract_string(Owner, '$.{key}'), '')", "text")


PROPERTIES: Mapping[str, FilterableProperty] = {
    "name": FilterableProperty("IncidentName", "text"),
    "properties/title": FilterableProperty("Title", "text"),
    "properties/description": FilterableProperty("Description", "text"),
    "properties/severity": FilterableProperty("Severity", "text"),
    "properties/status": FilterableProperty("Status", "text"),
    "properties/classification": FilterableProperty("Classification", "text"),
    "properties/classificationReason": FilterableProperty("ClassificationReason", "text"),
    "properties/providerName": FilterableProperty("ProviderName", "text"),
    "properties/providerIncidentId": FilterableProperty("ProviderIncidentId", "text"),
    "properties/incidentNumber": FilterableProperty("IncidentNumber", "number"),
    "properties/createdTimeUtc": FilterableProperty("CreatedTime", "time"),
    "properties/lastModifiedTimeUtc": FilterableProperty("coalesce(LastModifiedTime, TimeGenerated)", "time"),
    "properties/firstActivityTimeUtc": FilterableProperty("FirstActivityTime", "time"),
    "properties/lastActivityTimeUtc": FilterableProperty("LastActivityTime", "time"),
    "properties/owner/objectId": _owner("objectId"),
    "properties/owner/email": _owner("email"),
    "properties/owner/assignedTo": _owner("assignedTo"),
    "properties/owner/userPrincipalName": _owner("userPrincipalName"),
}

_SPELLINGS = {name.lower(): known for name, known in PROPERTIES.items()}


def property_named(name: str) -> FilterableProperty | None:
    """The property by its path, in any case of letters."""
    return _SPELLINGS.get(name.lower())
