"""Alerts as they are now: several rows of SecurityAlert may tell of one SystemAlertId, and the newest wins.

An alert belongs to a window by the time of its *first* row, so that an alert of last night which was resolved today
stays an alert of last night; its values are those of the newest row. This module owns that KQL, the shape of an alert
row and the reading of its JSON columns.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, TimeWindow
from sentinel_rag.sentinel.entities import AlertEntities, parse_entities
from sentinel_rag.sentinel.entity_identity import entity_name
from sentinel_rag.sentinel.incidents import SEVERITY_RANK
from sentinel_rag.sentinel.log_tables import LogsTable, json_cell, parse_dynamic
from sentinel_rag.sentinel.results import shortened
from sentinel_rag.sentinel.time_windows import within

ALERT_TABLE = "SecurityAlert"
ALERT_TIME = "TimeGenerated"
FIRST_ROW = "FirstRow"
LOOK_BACK = timedelta(days=30)
"""How long before a window the first row of an alert that was updated in it is looked for."""
MOST_ENTITIES_IN_A_ROW = 10
LONGEST_ENTITY_NAME = 80

ALERT_COLUMNS = (
    Column("alert_id", "guid"),
    Column("name", "string"),
    Column("severity", "string"),
    Column("status", "string"),
    Column("time", "datetime"),
    Column("start_time", "datetime"),
    Column("end_time", "datetime"),
    Column("product", "string"),
    Column("provider", "string"),
    Column("tactics", "dynamic"),
    Column("techniques", "dynamic"),
    Column("compromised_entity", "string"),
    Column("incident_number", "long"),
    Column("description", "string"),
    Column("entities", "dynamic"),
    Column("entity_count", "long"),
    Column("row_time", "datetime"),
    Column("custom_details", "dynamic"),
)

PROJECTED = (
    "SystemAlertId, AlertName, DisplayName, AlertSeverity, Status, FirstRow, TimeGenerated, StartTime, EndTime, "
    "ProcessingEndTime, ProductName, ProviderName, Tactics, Techniques, SubTechniques, CompromisedEntity, Description, "
    "Entities, ExtendedProperties, VendorOriginalId"
)
ORDERS = {
    "newest": "FirstRow desc, SystemAlertId asc",
    "oldest": "FirstRow asc, SystemAlertId asc",
    "severity": "Rank desc, FirstRow desc, SystemAlertId asc",
}
# What a reader looks for first; hashes and clusters are the many that a cut may lose.
_KIND_ORDER = (
    "account",
    "host",
    "ip",
    "mailbox",
    "url",
    "process",
    "file",
    "dns",
    "azure-resource",
    "cloud-application",
)


def alert_span(window: TimeWindow) -> TimeWindow:
    """The TimeGenerated span to read for alerts of `window`: earlier for first rows, open for newest rows."""
    return TimeWindow(None if window.start is None else window.start - LOOK_BACK, None)


def newest_alerts(conditions: tuple[str, ...] = ()) -> str:
    """KQL for the newest row of each alert that meets `conditions`, with the time of its first row as FirstRow."""
    lines = [
        ALERT_TABLE,
        f"| summarize arg_max(TimeGenerated, *), {FIRST_ROW} = min(TimeGenerated) by SystemAlertId",
        *(f"| where {condition}" for condition in conditions),
    ]
    return "\n".join(lines)


def listed(base: str, window: TimeWindow, column: str, order: str, limit: int) -> str:
    """KQL for the first `limit` alerts whose `column` (FirstRow or StartTime) lies in `window`."""
    return "\n".join(
        (
            base,
            f"| where {within(column, window)}",
            f"| extend Rank = {SEVERITY_RANK.format('AlertSeverity')}",
            f"| order by {ORDERS[order]}",
            f"| take {limit}",
            f"| project {PROJECTED}",
        )
    )


def counted(base: str, window: TimeWindow) -> str:
    """KQL for counts by severity, status, name and product: recorded in `window`, and begun in it."""
    return "\n".join(
        (
            base,
            f"| summarize Recorded = countif({within(FIRST_ROW, window)}), "
            f"Begun = countif({within('StartTime', window)}) by AlertSeverity, Status, AlertName, ProductName",
        )
    )


BEGAN_IN_WINDOW = (
    "No alert was recorded (TimeGenerated) in the window; these are the alerts whose activity began (StartTime) in it."
)


async def placed(
    read: Callable[[str], Awaitable[LogsTable]], window: TimeWindow
) -> tuple[LogsTable, str, tuple[str, ...]]:
    """`read` with FirstRow, or with StartTime if a bounded window holds no first row; the time column, and why.

    An analyst who names a minute means the activity, and providers may record it days later.
    """
    answer = await read(FIRST_ROW)
    if answer.rows or window == TimeWindow():
        return answer, ALERT_TIME, ()
    begun = await read("StartTime")
    return (begun, "StartTime", (BEGAN_IN_WINDOW,)) if begun.rows else (answer, ALERT_TIME, ())


@dataclass(frozen=True, slots=True)
class Alert:
    """A newest row of SecurityAlert, read."""

    record: Mapping[str, Any]
    entities: AlertEntities

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Alert:
        return cls(record, parse_entities(record["Entities"]))

    @property
    def alert_id(self) -> str:
        """SystemAlertId in lower case: incidents and alerts do not agree on case everywhere."""
        return str(self.record["SystemAlertId"] or "").lower()

    @property
    def name(self) -> str:
        """AlertName (DisplayName where that is empty) without zero-width characters."""
        return clean_name(self.record["AlertName"]) or clean_name(self.record["DisplayName"]) or "(unnamed alert)"

    @property
    def tactics(self) -> list[str]:
        return comma_list(self.record["Tactics"])

    def row(self, incident_number: int | None) -> dict[str, JsonValue]:
        """The row that a reader sees; `entities` hold at most MOST_ENTITIES_IN_A_ROW, `entity_count` counts all."""
        record = self.record
        shown = entity_list(self.entities)
        properties = extended_properties(record["ExtendedProperties"])
        details = custom_details(properties)
        row: dict[str, JsonValue] = {
            "alert_id": self.alert_id,
            "name": self.name,
            "severity": record["AlertSeverity"] or None,
            "status": record["Status"] or None,
            "time": json_cell(record[FIRST_ROW]),
            "start_time": json_cell(record["StartTime"]),
            "end_time": json_cell(record["EndTime"]),
            "product": record["ProductName"] or None,
            "provider": record["ProviderName"] or None,
            "tactics": self.tactics,
            "techniques": techniques_of(record),
            "compromised_entity": record["CompromisedEntity"] or None,
            "incident_number": incident_number,
            "description": shortened(record["Description"]),
            "entities": shown[:MOST_ENTITIES_IN_A_ROW],
            "entity_count": len(shown),
            "row_time": json_cell(record["ProcessingEndTime"] or record["TimeGenerated"]),
        }
        if details is not None:
            row["custom_details"] = details
        return row


def entity_list(parsed: AlertEntities) -> list[JsonValue]:
    """`{kind, name}` of each distinct entity, what people look for first in front."""
    seen: dict[tuple[str, str], None] = {}
    for entity in parsed.entities:
        seen.setdefault((entity.kind, shortened(entity_name(entity), LONGEST_ENTITY_NAME) or ""))
    order = {kind: place for place, kind in enumerate(_KIND_ORDER)}
    ranked = sorted(seen, key=lambda pair: order.get(pair[0], len(order)))
    return [{"kind": kind, "name": name} for kind, name in ranked]


def clean_name(text: Any) -> str:
    """An alert's name without the zero-width characters that some providers append (U+200B and kin)."""
    return str(text or "").strip("\u200b\u200c\u200d\u2060\ufeff \t\r\n")


def comma_list(text: Any) -> list[str]:
    """`Tactics`: a comma string (or a JSON list of a newer schema), without `Unknown`."""
    value = parse_dynamic(text)
    parts = [str(item) for item in value] if isinstance(value, list) else str(text or "").split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip() and part.strip() != "Unknown"))


def json_list(text: Any) -> list[str]:
    """`Techniques`, `RemediationSteps`: a JSON list in a string; other text is a list of one."""
    value = parse_dynamic(text)
    if isinstance(value, list):
        return [str(item) for item in value if item is not None and str(item).strip()]
    return [str(text).strip()] if str(text or "").strip() else []


def techniques_of(record: Mapping[str, Any]) -> list[str]:
    """Techniques and sub-techniques, each once."""
    return list(dict.fromkeys((*json_list(record["Techniques"]), *json_list(record["SubTechniques"]))))


def extended_properties(text: Any) -> Mapping[str, Any] | None:
    """ExtendedProperties as a mapping; line breaks inside its strings are taken. None if it is no JSON object."""
    value = parse_dynamic(text)
    return value if isinstance(value, Mapping) else None


def custom_details(properties: Mapping[str, Any] | None) -> JsonValue:
    """The analytic rule's Custom Details: an object if it parses, the raw text if not, None if there are none."""
    raw = None if properties is None else properties.get("Custom Details")
    if raw in (None, "", {}):
        return None
    if not isinstance(raw, str):
        value: JsonValue = raw
        return value
    try:
        parsed: JsonValue = json.loads(raw, strict=False)
    except ValueError:
        return raw
    return parsed
