"""Rows of SecurityIncident and SecurityAlert as Sentinel writes them, one call a row, only what matters spelled out."""

from __future__ import annotations

import json
from typing import Any
from uuid import NAMESPACE_OID, uuid5


def guid(name: object) -> str:
    """A GUID that is always the same for the same name."""
    return str(uuid5(NAMESPACE_OID, str(name)))


def incident(number: int, time: str, **over: Any) -> dict[str, Any]:
    """One version of an incident, written at `time`; created at `CreatedTime` (the same unless given)."""
    row: dict[str, Any] = {
        "TimeGenerated": time,
        "IncidentNumber": number,
        "IncidentName": guid(f"incident {number}"),
        "Title": f"Incident number {number}",
        "Severity": "Medium",
        "Status": "New",
        "CreatedTime": time,
        "LastModifiedTime": time,
        "Owner": {"assignedTo": None, "email": None, "userPrincipalName": None, "objectId": None},
        "AlertIds": [],
        "AdditionalData": {"alertsCount": 0, "tactics": [], "techniques": []},
        "Comments": [],
        "Labels": [],
        "ProviderName": "Azure Sentinel",
        "ProviderIncidentId": str(10_000 + number),
        "IncidentUrl": f"https://portal.azure.com/#asset/Incident/x/Incidents/{guid(f'incident {number}')}",
        "Type": "SecurityIncident",
    }
    return row | over


def alert(name: str, time: str, **over: Any) -> dict[str, Any]:
    """One row of an alert; `Entities` and `ExtendedProperties` may be given as objects."""
    row: dict[str, Any] = {
        "TimeGenerated": time,
        "StartTime": time,
        "EndTime": time,
        "ProcessingEndTime": time,
        "SystemAlertId": guid(f"alert {name}"),
        "VendorOriginalId": f"vendor1_{name}",
        "AlertName": name,
        "DisplayName": name,
        "AlertSeverity": "Medium",
        "Status": "New",
        "ProductName": "Microsoft Defender XDR",
        "ProviderName": "MTP",
        "Tactics": "",
        "Techniques": "",
        "SubTechniques": "",
        "CompromisedEntity": "",
        "Description": "",
        "Entities": [],
        "ExtendedProperties": {},
        "Type": "SecurityAlert",
    }
    row |= over
    for column in ("Entities", "ExtendedProperties"):
        if not isinstance(row[column], str):
            row[column] = json.dumps(row[column])
    return row
