"""Properties of entities that a question may ask for (`attributes.toml`), and their values in an entity of a result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from sentinel_rag.agent.answers.renderer import elements, escape
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.text import toml_beside


@dataclass(frozen=True, slots=True)
class Attribute:
    """`label` is how an answer calls it; the fields are explained in `attributes.toml`."""

    label: str
    kinds: tuple[str, ...]
    keys: tuple[str, ...] = ()
    named: bool = False
    thing: bool = False
    unnamed: tuple[str, ...] = ()
    of_one: bool = False
    length: int = 0
    address: bool = False

    @property
    def heading(self) -> str:
        """The label as it begins a line."""
        return self.label[0].upper() + self.label[1:]

    def fits(self, value: JsonValue) -> bool:
        """True if a value can be of this attribute: an address has an @, a hash its length."""
        if self.address:
            return isinstance(value, str) and "@" in value
        digits = rf"[0-9a-fA-F]{{{self.length}}}"
        return not self.length or (isinstance(value, str) and re.fullmatch(digits, value) is not None)


@cache
def _attributes() -> Mapping[str, Attribute]:
    told: Mapping[str, dict[str, Any]] = toml_beside(__package__, "attributes.toml")
    return {label: msgspec.convert({"label": label, **fields}, Attribute) for label, fields in told.items()}


def attribute_of(label: str) -> Attribute:
    """The attribute of that label."""
    return _attributes()[label]


def values_of(attribute: Attribute, entity: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """(JSON pointer inside the entity, value) of the attribute; nothing if the entity is of another kind."""
    kind, name = entity.get("kind"), entity.get("name")
    if kind not in attribute.kinds:
        return
    found = [
        (pointer, leaf)
        for key, value in entity.items()
        if "".join(filter(str.isalnum, key.lower())) in attribute.keys
        for pointer, leaf in _leaves(f"/{escape(key)}", value)
        if attribute.fits(leaf)
    ]
    by_name = (attribute.named and kind not in attribute.unnamed) or (kind == "filehash" and attribute.length)
    if not found and by_name and name and attribute.fits(name):
        found = [("/name", name)]
    yield from found


def kinds_of(run: ToolRun) -> Sequence[str]:
    """The kinds of things that an incident names."""
    entities = run.at("/rows/0/entities")
    return list(entities) if isinstance(entities, Mapping) else []


def entities_of(run: ToolRun, kind: str) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    """(JSON pointer, entity) of each thing of a kind that an incident names, with its kind."""
    for at, entity in things_at(run, f"/rows/0/entities/{escape(kind)}"):
        yield at, {**entity, "kind": kind}


def things_at(run: ToolRun, base: str) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    """(JSON pointer, entity) of each thing in a list of a result."""
    for place, entity in enumerate(elements(run, base)):
        if isinstance(entity, Mapping):
            yield f"{base}/{place}", entity


def _leaves(pointer: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{pointer}/{escape(key)}", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(f"{pointer}/{index}", part)
    elif value not in (None, ""):
        yield pointer, value
