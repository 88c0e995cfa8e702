"""An alert as a reader sees it: the newest row of SecurityAlert with its JSON columns read.

Every such column has its own idea of JSON: Entities (`entities`), Tactics (a comma string), Techniques (a list in a
string), ExtendedProperties (an object whose Custom Details are JSON again).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.sentinel.alerts.newest_alerts import FIRST_ROW
from sentinel_rag.sentinel.arguments import severities_from
from sentinel_rag.sentinel.entities.entities import (
    AlertEntities,
    ShownEntity,
    compact_entities,
    distinct_entities,
    full_entities,
    parse_entities,
)
from sentinel_rag.sentinel.logs.kql_literals import list_literal, string_literal
from sentinel_rag.sentinel.logs.log_analytics import json_cell, parse_dynamic
from sentinel_rag.sentinel.response_bodies import load_json
from sentinel_rag.sentinel.workspace_view import FEW_ROWS, LONGEST_DESCRIPTION, WHOLE_DESCRIPTION, one_line, shortened

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


@dataclass(frozen=True)
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

    @cached_property
    def distinct_entities(self) -> list[ShownEntity]:
        """Its entities, each once. Kept: the forms of an incident's row show an alert up to eighteen times."""
        return distinct_entities(self.entities)

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
        entities = distinct_entities(self.entities, searched) if searched else self.distinct_entities
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
    return [one_line(step, LONGEST_REMEDIATION_STEP) for step in all_steps(text)[:MOST_REMEDIATION_STEPS]]


def all_steps(text: Any) -> list[str]:
    """The steps whole, shown or not."""
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


_ALERT_PAGE = re.compile(r"\bsecurity\.microsoft\.(?:com|us)/alerts/([A-Za-z0-9_-]+)", re.IGNORECASE)
_NAMELESS = r'not(strcat(AlertName, DisplayName) matches regex @"[^\s\x{200b}-\x{200d}\x{2060}\x{feff}]")'
"""As `alert_name` reads it: some providers append zero-width characters, and some write nothing else."""
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?", re.IGNORECASE)


def severity_conditions(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """From `severity` and `min_severity`."""
    severities = severities_from(arguments)
    return () if severities == SEVERITIES else (f"AlertSeverity in~ {list_literal(severities)}",)


def alert_conditions(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """From the arguments of query_alerts that KQL alone can decide; entity and incident are not among them."""
    found = list(severity_conditions(arguments))
    if "alert_id" in arguments:
        literal = string_literal(alert_id_in(arguments["alert_id"]))
        found.append(f"SystemAlertId =~ {literal} or VendorOriginalId =~ {literal}")
    if "status" in arguments:
        found.append(f"Status =~ {string_literal(arguments['status'])}")
    name = arguments.get("name_contains", "")
    if name.casefold() == UNNAMED:
        found.append(_NAMELESS)
    else:
        for word in name.split():
            literal = string_literal(word)
            found.append(f"AlertName contains {literal} or DisplayName contains {literal}")
    if arguments.get("product", "").casefold() == UNKNOWN.casefold():
        found.append("isempty(ProductName)")
    elif "product" in arguments:
        literal = string_literal(arguments["product"])
        found.append(f"ProductName contains {literal} or ProviderName contains {literal}")
    if "tactic" in arguments:
        found.append(tactic_condition(arguments["tactic"]))
    return tuple(found)


def alert_id_in(text: str) -> str:
    """The id in the address of an alert's page in the Defender portal; other text is the id itself."""
    page = _ALERT_PAGE.search(text)
    return page[1] if page else text.strip("{}")


def tactic_condition(text: str) -> str:
    """A technique id matches itself and its sub-techniques; a tactic matches whole, with or without spaces."""
    if _TECHNIQUE.fullmatch(text):
        literal = string_literal(text.upper())
        return f"Techniques has {literal} or SubTechniques has {literal}"
    tactic = string_literal(f",{re.sub(r'[^A-Za-z]', '', text)},")
    return f'strcat(",", replace_string(Tactics, " ", ""), ",") contains {tactic}'
