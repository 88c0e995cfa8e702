"""What an alert holds as evidence beside its query: who raised it, its ids and pages, its entities, its own details."""

from __future__ import annotations

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.alert_entities import distinct_entities, full_entities
from sentinel_rag.sentinel.alerts import Alert, custom_details, extended_properties
from sentinel_rag.sentinel.log_tables import json_cell

MOST_ENTITIES = 25

_WHERE: tuple[tuple[str, str], ...] = (
    ("defender advanced threat", "the tables DeviceProcessEvents, DeviceNetworkEvents and DeviceFileEvents"),
    ("defender for endpoint", "the tables DeviceProcessEvents, DeviceNetworkEvents and DeviceFileEvents"),
    ("azure advanced threat", "the tables IdentityLogonEvents, IdentityQueryEvents and IdentityDirectoryEvents"),
    ("defender for identity", "the tables IdentityLogonEvents, IdentityQueryEvents and IdentityDirectoryEvents"),
    ("office 365", "the tables EmailEvents, EmailUrlInfo and UrlClickEvents"),
    ("identity protection", "the tables SigninLogs and AADUserRiskEvents"),
    ("cloud app security", "the tables CloudAppEvents and OfficeActivity"),
    ("security center", "the tables AzureActivity and SecurityEvent"),
    ("defender for cloud", "the tables AzureActivity and SecurityEvent"),
    ("365 defender", "the tables AlertEvidence and those of the products it joins"),
    ("defender xdr", "the tables AlertEvidence and those of the products it joins"),
)
"""Where the rows of a product's alerts lie if they are collected, by a part of the product's name."""


def evidence_of(alert: Alert, incident_number: int | None) -> dict[str, JsonValue]:
    """The summary's fields that every answer about one alert's events has."""
    record = alert.record
    entities = distinct_entities(alert.entities)
    return {
        "alert_id": alert.alert_id,
        "vendor_id": record["VendorOriginalId"] or None,
        "alert_name": alert.name,
        "severity": record["AlertSeverity"] or None,
        "product": record["ProductName"] or None,
        "incident_number": incident_number,
        "url": alert.url or None,
        "start_time": json_cell(record["StartTime"]),
        "end_time": json_cell(record["EndTime"]),
        "row_time": alert.row_time,
        "entities": full_entities(entities, MOST_ENTITIES),
        "entity_count": len(entities),
        "custom_details": custom_details(extended_properties(record["ExtendedProperties"])),
    }


def without_query(alert: Alert) -> str:
    """For the reader of an alert that no analytic rule of this workspace raised, or whose row lost its properties."""
    product = str(alert.record["ProductName"] or "its product")
    properties = extended_properties(alert.record["ExtendedProperties"])
    if properties is None and str(alert.record["ExtendedProperties"] or "").strip():
        return (
            "The alert's ExtendedProperties do not parse as JSON, so its query cannot be read; its entities and its "
            "page in the portal are the evidence there is."
        )
    where = next((tables for part, tables in _WHERE if part in product.casefold()), "")
    rows = f" Its rows, where they are collected, lie in {where}, around its start and end." if where else ""
    if "sentinel" in product.casefold():  # scheduled rules store their query, those of Fusion and of Microsoft do not
        why = "No query of its rule is stored with this alert"
    else:
        why = f"{product} stores no query with its alerts"
    return (
        f"{why}, so there are no events to run again: the evidence is in the entities, the ids and the page in the "
        f"portal.{rows}"
    )
