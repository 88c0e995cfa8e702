"""One thing that a person can point at afterwards: an incident, an alert, an entity, or a question that was offered.

It holds the id, which a later call is made with, and the few words by which a person tells one line from the next ("the
high one", "the one from yesterday"). Those words are what the screen showed then; no answer is ever made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue

LONGEST_WORDS = 200
"""Characters of a title that are kept: enough to tell lines apart."""
LONGEST_ID = 2_000
"""Characters of an id: above every incident, alert and URL; a longer one is cut nowhere, its line is not kept."""
INCIDENT, ALERT, ENTITY, QUESTION, ROW, SECTION = "incident", "alert", "entity", "question", "row", "section"


@dataclass(frozen=True, slots=True)
class ListItem:
    """One numbered line. `value` is the incident's number (its GUID where workspaces may use a number twice), the
    alert's id, the entity's name, the key of a row, the name of a playbook's section or a whole question; empty for a
    line whose thing is not known. `incident` is the number of the incident that an alert belongs to, `time` the
    creation of an incident or the time of an alert. `title`, `severity`, `status` and `owner` are as they were shown;
    `place` is the entity that an alert names first.
    """

    kind: str
    value: str = ""
    entity_kind: str = ""
    time: str = ""
    incident: str = ""
    title: str = ""
    severity: str = ""
    status: str = ""
    owner: str = ""
    place: str = ""
    guid: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two lines the same thing."""
        return (self.kind, self.entity_kind, self.value.casefold())

    @property
    def of_kind(self) -> str:
        """The kind that a noun asks for: `incident`, `alert`, or the entity's own, such as `host`."""
        return self.entity_kind if self.kind == ENTITY and self.entity_kind else self.kind


def incident_item(row: Mapping[str, JsonValue], *, by_guid: bool = False) -> ListItem:
    """A row of query_incidents, get_incident_detail or get_threat_summary; `by_guid` where a number is not unique."""
    guid = _text(row, "incident_name")
    number = _text(row, "number")
    return ListItem(
        INCIDENT,
        guid if by_guid and guid else number,
        time=_text(row, "created_time"),
        incident=number,
        title=_text(row, "title")[:LONGEST_WORDS],
        severity=_text(row, "severity"),
        status=_text(row, "status"),
        owner=_text(row, "owner")[:LONGEST_WORDS],
        guid=guid,
    )


def alert_item(row: Mapping[str, JsonValue], *, incident: str = "") -> ListItem:
    """A row of query_alerts, or an alert of an incident's detail, whose number is then given."""
    return ListItem(
        ALERT,
        _text(row, "alert_id"),
        time=_text(row, "time"),
        incident=_text(row, "incident_number") or incident,
        title=_text(row, "name")[:LONGEST_WORDS],
        severity=_text(row, "severity"),
        status=_text(row, "status"),
        place=_text(row, "compromised_entity")[:LONGEST_WORDS],
    )


def entity_item(kind: str, name: str) -> ListItem:
    """A named thing of the logs."""
    return ListItem(ENTITY, name, entity_kind=kind)


def _text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    return "" if value is None or isinstance(value, list | tuple | Mapping) else str(value)
