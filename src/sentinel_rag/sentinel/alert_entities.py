"""The entities that a row of an alert shows: each once, the searched one first, as detailed as the page allows."""

from __future__ import annotations

from dataclasses import dataclass, field

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.entities import AlertEntities
from sentinel_rag.sentinel.entity_identity import entity_name, folded_value, identifying_values
from sentinel_rag.sentinel.entity_properties import LONGEST_TEXT, agree, shown_properties
from sentinel_rag.sentinel.results import one_line

LONGEST_COMPACT_NAME = 80

# What a reader looks for first; hashes and clusters are the many that a cut may lose.
_KIND_ORDER = (
    "account",
    "host",
    "ip",
    "mailbox",
    "mailmessage",
    "url",
    "process",
    "file",
    "dns",
    "azure-resource",
    "cloud-application",
)
_PLACES = {kind: place for place, kind in enumerate(_KIND_ORDER)}


@dataclass(slots=True)
class ShownEntity:
    """One entity of an alert; `place` says how early a reader wants it."""

    kind: str
    name: str
    place: int
    properties: dict[str, str] = field(default_factory=dict)


def distinct_entities(parsed: AlertEntities, searched: str = "") -> list[ShownEntity]:
    """Each entity once, however often the row writes it; the one that `searched` names first, then by kind."""
    wanted = folded_value(searched)
    named: dict[tuple[str, str], list[ShownEntity]] = {}
    for entity in parsed.entities:
        kind, name = entity.kind, one_line(entity_name(entity), LONGEST_TEXT)
        place = -1 if wanted and wanted in identifying_values(entity) else _PLACES.get(kind, len(_PLACES))
        properties = shown_properties(entity)
        same_name = named.setdefault((kind, name), [])
        shown = next((other for other in same_name if agree(other.properties, properties)), None)
        if shown is None:
            shown = ShownEntity(kind, name, place)
            same_name.append(shown)
        shown.properties |= properties
        shown.place = min(shown.place, place)
    return sorted((shown for shown_ones in named.values() for shown in shown_ones), key=lambda shown: shown.place)


def full_entities(entities: list[ShownEntity], most: int) -> list[JsonValue]:
    """`{kind, name, ...}` with every identifying property, texts whole up to LONGEST_TEXT."""
    return [{"kind": shown.kind, "name": shown.name, **shown.properties} for shown in entities[:most]]


def compact_entities(entities: list[ShownEntity], most: int) -> list[JsonValue]:
    """`{kind, name}` only, names cut: a hundred alerts in full are 34 000 tokens."""
    names = dict.fromkeys((shown.kind, one_line(shown.name, LONGEST_COMPACT_NAME)) for shown in entities)
    return [{"kind": kind, "name": name} for kind, name in list(names)[:most]]
