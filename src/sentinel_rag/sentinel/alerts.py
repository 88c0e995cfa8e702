"""An alert as a reader sees it: the newest row of SecurityAlert with its JSON columns read.

Every such column has its own idea of JSON: Entities (`entities`), Tactics (a comma string), Techniques (a list in a
string), ExtendedProperties (an object whose Custom Details are JSON again).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column
from sentinel_rag.sentinel.alert_entities import compact_entities, distinct_entities, full_entities
from sentinel_rag.sentinel.entities import AlertEntities, parse_entities
from sentinel_rag.sentinel.json_text import load_json
from sentinel_rag.sentinel.log_tables import json_cell, parse_dynamic
from sentinel_rag.sentinel.newest_alerts import FIRST_ROW
from sentinel_rag.sentinel.results import FEW_ROWS, LONGEST_DESCRIPTION, WHOLE_DESCRIPTION, one_line, shortened

UNNAMED, UNKNOWN = "(unnamed alert)", "Unknown"
"""How an alert without a name, and a product or severity that a row does not tell, is counted and asked for."""

FULL_ROWS = 20
LONGEST_SPARSE_NAME = 120
MOST_REMEDIATION_STEPS = 12
LONGEST_REMEDIATION_STEP = 500

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
    Column("remediation_steps", "dynamic"),
    Column("url", "string"),
)


@dataclass(frozen=True, slots=True)
class RowBudget:
    """How much of an alert a row shows; `entity_count` always counts all entities. A `sparse` row has no empty values,
    no provider beside the product, and no description that only repeats the name."""

    entities: int
    description: int
    entity_properties: bool
    remediation_steps: bool
    sparse: bool = False


def row_budget(rows: int) -> RowBudget:
    """Few alerts are shown with what to do about them, a page in full, a hundred compactly (34 000 tokens raw)."""
    if rows > FULL_ROWS:
        return RowBudget(entities=4, description=120, entity_properties=False, remediation_steps=False, sparse=True)
    few = rows <= FEW_ROWS
    description = WHOLE_DESCRIPTION if few else LONGEST_DESCRIPTION
    return RowBudget(entities=40, description=description, entity_properties=True, remediation_steps=few)


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
        return alert_name(self.record)

    @property
    def tactics(self) -> list[str]:
        return comma_list(self.record["Tactics"])

    @property
    def row_time(self) -> JsonValue:
        """When the newest row was written: the moment of which its status tells."""
        return json_cell(self.record["ProcessingEndTime"] or self.record["TimeGenerated"])

    @property
    def url(self) -> str:
        """The alert's page in its product's portal; empty where the row tells none."""
        link = str(self.record["AlertLink"] or "").strip()
        return link if link.startswith("https://") else ""

    def row(self, incident_number: int | None, budget: RowBudget, searched: str = "") -> dict[str, JsonValue]:
        """The row that a reader sees; an entity that `searched` names stands first."""
        record = self.record
        entities = distinct_entities(self.entities, searched)
        shown = full_entities if budget.entity_properties else compact_entities
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
            "description": shortened(record["Description"], budget.description) if budget.description else None,
            "entities": shown(entities, budget.entities),
            "entity_count": len(entities),
            "row_time": self.row_time,
        }
        if details is not None:
            row["custom_details"] = details
        if budget.remediation_steps:
            row["remediation_steps"] = list[JsonValue](remediation_steps(record["RemediationSteps"]))
        if budget.entity_properties and self.url:
            row["url"] = self.url
        if not budget.sparse:
            return row
        if row["description"] == row["name"]:
            del row["description"]
        del row["provider"]
        return {name: value for name, value in row.items() if value not in (None, [], "")}


def alert_name(record: Mapping[str, Any]) -> str:
    """AlertName, or DisplayName where that is empty, as people read it; never empty."""
    return clean_name(record["AlertName"]) or clean_name(record["DisplayName"]) or UNNAMED


def clean_name(text: Any) -> str:
    """An alert's name without the zero-width characters that some providers append (U+200B and kin)."""
    return str(text or "").strip("\u200b\u200c\u200d\u2060\ufeff \t\r\n")


def comma_list(text: Any) -> list[str]:
    """`Tactics`: a comma string (or a JSON list of a newer schema), without `Unknown`."""
    value = parse_dynamic(text)
    parts = [str(item) for item in value] if isinstance(value, list) else str(text or "").split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip() and part.strip() != "Unknown"))


def json_list(text: Any) -> list[str]:
    """`Techniques`: a JSON list in a string; other text is a list of one."""
    value = parse_dynamic(text)
    if isinstance(value, list):
        return [str(item) for item in value if item is not None and str(item).strip()]
    return [str(text).strip()] if str(text or "").strip() else []


def techniques_of(record: Mapping[str, Any]) -> list[str]:
    """Techniques and sub-techniques, each once."""
    return list(dict.fromkeys((*json_list(record["Techniques"]), *json_list(record["SubTechniques"]))))


def remediation_steps(text: Any) -> list[str]:
    """`RemediationSteps`: a JSON list in a string, or plain text with a step a line; long lists and steps are cut."""
    return [one_line(step, LONGEST_REMEDIATION_STEP) for step in _steps(text)[:MOST_REMEDIATION_STEPS]]


def remediation_step_count(text: Any) -> int:
    """How many steps there are, shown or not."""
    return len(_steps(text))


def _steps(text: Any) -> list[str]:
    value = parse_dynamic(text)
    lines = json_list(value) if isinstance(value, list) else str(text or "").splitlines()
    return [line for line in lines if line.strip()]


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
        parsed: JsonValue = load_json(raw)
    except ValueError:
        return raw
    return parsed
