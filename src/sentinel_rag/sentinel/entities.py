"""The entities of an alert: `SecurityAlert.Entities` is JSON in which most elements only point at others.

An element `{"$ref": "7"}` stands for the object with `"$id": "7"` anywhere in the same row, so every object is taken
once, by its id, wherever it was written. Nothing is dropped: unknown kinds stay, text that does not parse is reported.
What an entity is called and when two are the same is the business of `entity_identity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.sentinel.json_text import load_json

_KINDS = {
    "cloudapplication": "cloud-application",
    "azureresource": "azure-resource",
    "dnsresolution": "dns",
    "registrykey": "registry-key",
    "registryvalue": "registry-value",
    "securitygroup": "security-group",
    "oauthapplication": "oauth-application",
    "cloudlogonsession": "cloud-logon-session",
    "cloudlogonrequest": "cloud-logon-request",
}
"""Spellings of the REST API and of other providers, without hyphens, to the names of ENTITY_KINDS."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity: its kind in lower case and its properties, references inside them resolved one level at a time."""

    kind: str
    properties: Mapping[str, Any]
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def text(self, *names: str) -> str:
        """The first of the named properties that is a non-empty string or number, else the empty string."""
        for name in names:
            value = self.properties.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
        return ""

    def part(self, name: str) -> Entity | None:
        """A nested entity (the image file of a process), its reference resolved; None where there is none."""
        return self._resolved(self.properties.get(name))

    def parts(self, name: str) -> tuple[Entity, ...]:
        """The nested entities of a list (the hashes of a file), references resolved, what is no object left out."""
        values = self.properties.get(name)
        resolved = map(self._resolved, values if isinstance(values, list) else ())
        return tuple(part for part in resolved if part is not None)

    def _resolved(self, value: Any) -> Entity | None:
        if not isinstance(value, Mapping):
            return None
        target = self.objects.get(str(value["$ref"])) if "$ref" in value else value
        return None if target is None else Entity(kind_of(target), target, self.objects)


@dataclass(frozen=True, slots=True)
class AlertEntities:
    """The entities of one row. `readable` is False if the text is no JSON list of objects; `dangling` counts
    references to ids that the row does not hold."""

    entities: tuple[Entity, ...] = ()
    readable: bool = True
    dangling: int = 0


def kind_of(element: Mapping[str, Any]) -> str:
    """The kind, as ENTITY_KINDS spells it; `unknown` for an object that does not tell."""
    raw = str(element.get("Type") or element.get("$type") or element.get("kind") or "").strip().lower()
    return _KINDS.get(raw.replace("-", "").replace("_", ""), raw) or "unknown"


def parse_entities(text: Any) -> AlertEntities:
    """The entities of a cell: JSON text, or a value that was decoded already."""
    if isinstance(text, str):
        if not text.strip():
            return AlertEntities()
        try:
            elements = load_json(text)
        except ValueError:
            return AlertEntities(readable=False)
    else:
        elements = text
    if elements is None:
        return AlertEntities()
    if isinstance(elements, Mapping):
        elements = [elements]
    if not isinstance(elements, list):
        return AlertEntities(readable=False)

    objects, without_id, references = _walk(elements)
    entities = [Entity(kind_of(element), element, objects) for element in (*objects.values(), *without_id)]
    dangling = sum(reference not in objects for reference in references)
    return AlertEntities(tuple(entities), True, dangling)


def _walk(elements: list[Any]) -> tuple[dict[str, Mapping[str, Any]], list[Mapping[str, Any]], list[str]]:
    """All entity objects by `$id`, those without one, and the ids that top-level elements refer to.

    An object is an entity if it stands in the list or carries a Type; parts such as a host's logged-on users do not.
    """
    objects: dict[str, Mapping[str, Any]] = {}
    without_id: list[Mapping[str, Any]] = []
    references: list[str] = []
    pending: list[tuple[Any, bool]] = [(element, True) for element in reversed(elements)]
    while pending:
        value, top = pending.pop()
        if isinstance(value, list):
            pending.extend((item, False) for item in reversed(value))
        elif isinstance(value, Mapping):
            if "$ref" in value:
                if top:
                    references.append(str(value["$ref"]))
                continue
            if top or value.get("Type"):
                if value.get("$id") is None:
                    without_id.append(value)
                else:
                    objects.setdefault(str(value["$id"]), value)
            pending.extend((item, False) for item in reversed(list(value.values())) if isinstance(item, list | Mapping))
    return objects, without_id, references
