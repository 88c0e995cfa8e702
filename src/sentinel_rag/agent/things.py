"""One thing that a person can point at afterwards: an incident, an alert, an entity, or a question that was offered.

It holds the id, which a later call is made with, and the few words by which a person tells one line from the next ("the
high one", "the one from yesterday"). Those words are what the screen showed then; no answer is ever made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.json_values import JsonValue

Row = Mapping[str, JsonValue]
LONGEST_WORDS = 200
"""Characters of a title that are kept: enough to tell lines apart."""
LONGEST_ID = 2_000
"""Characters of an id: above every incident, alert and URL; a longer one is cut nowhere, its line is not kept."""
INCIDENT, ALERT, ENTITY, QUESTION, ROW, SECTION = "incident", "alert", "entity", "question", "row", "section"
OWNER = "owner"
"""The kind of a person who works on an incident, and is not one of those that it names."""


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


def row_items(tool: str, arguments: Row, rows: Sequence[Row], call_id: str = "") -> tuple[ListItem, ...]:
    """The rows of one result as things, in their order: number n of a list that shows them all is the nth."""
    if tool == "get_top_entities":
        return tuple(entity_item(_text(arguments, "kind"), _text(row, "name")) for row in rows)
    return tuple(_row_item(row, f"{call_id}/rows/{place}") for place, row in enumerate(rows))


def _row_item(row: Row, where: str) -> ListItem:
    if row.get("number") is not None and "title" in row:
        return incident_item(row)
    if row.get("alert_id"):
        return alert_item(row)
    if isinstance(row.get("section"), str) and row.get("section"):
        source = _text(row, "file") or _text(row, "source")
        return ListItem(SECTION, f"{source} § {row['section']}" if source else str(row["section"]))
    words = " ".join(str(value) for value in row.values() if isinstance(value, str | int | float))
    return ListItem(ROW, where, title=words[:LONGEST_WORDS])


def inner_items(rows: Iterable[Row]) -> Iterator[ListItem]:
    """The things that rows hold inside: alerts of an incident, entities, its owner, the incident of an alert."""
    for row in rows:
        number = _text(row, "number")
        for alert in _rows(row.get("alerts")):
            yield alert_item(alert, incident=number)
            yield from _entities(alert)
        yield from _entities(row)
        if owner := _text(row, "owner"):
            yield entity_item(OWNER, owner)
        if row.get("incident_number") is not None:
            yield ListItem(INCIDENT, str(row["incident_number"]), incident=str(row["incident_number"]))


def _entities(row: Row) -> Iterator[ListItem]:
    """Entities as an incident's detail groups them (kind -> names) or as an alert lists them (kind and name each)."""
    entities = row.get("entities")
    if isinstance(entities, Mapping):
        for kind, named in entities.items():
            for entity in _rows(named):
                yield entity_item(str(kind), _text(entity, "name"))
    for entity in _rows(entities):
        yield entity_item(_text(entity, "kind"), _text(entity, "name"))


def _rows(value: JsonValue) -> list[Row]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def section_item(hit: KnowledgeHit) -> ListItem:
    """A section of a playbook, by its citation."""
    return ListItem(SECTION, hit.citation, title=hit.title[:LONGEST_WORDS])


def past_item(hit: KnowledgeHit) -> ListItem:
    """A past incident, by its number."""
    return ListItem(
        INCIDENT,
        hit.number,
        incident=hit.number,
        title=hit.title[:LONGEST_WORDS],
        severity=hit.severity,
        status=hit.status,
        time=hit.time,
    )


def hit_item(hit: KnowledgeHit) -> ListItem:
    """What a hit is of."""
    return section_item(hit) if hit.is_playbook else past_item(hit)


LONGEST_NAME = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:{}-]{0,199}")
_SIGNS_OF_A_NAME = re.compile(r"[\w.@:\\/$%+~()&=#\u27e6\u27e7 -]+")
_WORDS_OF_A_NAME = 3
_KIND_WORDS = {
    "filehash": "hash",
    "ip": "ip",
    "dns": "domain",
    "mailmessage": "mail",
    "cloud-application": "application",
    "azure-resource": "resource",
}


def words_for(item: ListItem) -> str | None:
    """The words for `item`; None if its id is unknown or may not stand in a sentence."""
    if item.kind == INCIDENT:
        return f"incident {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == ALERT:
        return f"alert {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == QUESTION:
        return item.value
    if not is_a_name(item.value):
        return None
    kind = _KIND_WORDS.get(item.entity_kind, item.entity_kind) if item.kind == ENTITY else item.kind
    return f'{kind} "{item.value}"'.lstrip()


def is_a_name(value: str) -> bool:
    """True for what reads as a name and not as a sentence: few words, no sign that ends a quotation or a clause."""
    return (
        0 < len(value) <= LONGEST_NAME
        and plain(value, limit=LONGEST_NAME) == value
        and _SIGNS_OF_A_NAME.fullmatch(value) is not None
        and len(value.split()) <= _WORDS_OF_A_NAME
        and not reads_like_instruction(value)
    )


def shown_words(item: ListItem) -> str:
    """The thing as a footnote or a question back names it: one safe line."""
    if item.kind in (INCIDENT, ALERT):
        return f"{item.kind} {plain(item.value, limit=80)}"
    return f"{item.of_kind} {plain(item.value, limit=120)}".strip()


def _text(row: Mapping[str, JsonValue], name: str) -> str:
    value = row.get(name)
    return "" if value is None or isinstance(value, list | tuple | Mapping) else str(value)
