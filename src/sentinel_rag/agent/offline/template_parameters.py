"""Values for a template's parameters, from the typed slots of a question; each value is used once.

A parameter takes a name by its own kind (an address, an account, a host), a number behind its word, or one of the
values that it allows. One that is required and missing is told, so that it can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.template_match import Template, items, kind_of, named, specifications
from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True)
class Filled:
    """Parameters found; `missing` are required ones that the question does not give, `unused` names that no parameter
    takes."""

    parameters: Mapping[str, JsonValue]
    missing: tuple[Mapping[str, JsonValue], ...]
    unused: tuple[NameSlot, ...] = ()


def fill(template: Template, reading: Reading) -> Filled:
    """Values for the template's parameters from the question's slots; each value is used once."""
    specs = specifications(template)
    free = list(named(reading))
    parameters: dict[str, JsonValue] = {}
    missing: list[Mapping[str, JsonValue]] = []
    texts = [spec for spec in specs if str(spec.get("type", "string")).lower() not in _NUMBERS]
    for spec in specs:
        name = str(spec.get("name", ""))
        value = _allowed_value(spec, reading)
        if value is None and str(spec.get("type", "")).lower() in _NUMBERS:
            value = _number(spec, reading)
        elif value is None and not spec.get("allowed"):
            value = _text(spec, free, only=len(texts) == 1)
        if value is not None:
            parameters[name] = [value] if _is_array(spec) else value
        elif spec.get("required"):
            missing.append(spec)
    return Filled(parameters, tuple(missing), tuple(free))


_NUMBERS = ("int", "long", "integer", "number", "real", "double")
_PARAMETER_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"destination", ("ip", "url", "domain", "host")),
    (
        r"account|user|upn|identity|sender|recipient|actor|caller|principal|owner|mailbox|initiat",
        ("account", "mailbox", ""),
    ),
    (r"host|computer|device|machine|server|workstation", ("host", "domain", "")),
    (r"\bip\b|ip_|_ip|address", ("ip",)),
    (r"url|link", ("url", "domain")),
    (r"domain|dns", ("domain", "url")),
    (r"hash|sha|md5", ("hash", "filehash")),
    (r"file|path", ("file", "")),
    (r"process|image|command|term|text|search|keyword|pattern|contains|name|operation|event", ("file", "quoted", "")),
)


def _is_array(spec: Mapping[str, JsonValue]) -> bool:
    kind = str(spec.get("type", "")).lower()
    return kind.startswith(("array", "list")) or kind.endswith("[]")


def _allowed_value(spec: Mapping[str, JsonValue], reading: Reading) -> JsonValue:
    text = f" {reading.core.lower()} "
    for value in items(spec.get("allowed")):
        if re.search(rf"(?<!\w){re.escape(str(value).lower())}(?!\w)", text):
            return value
    return None


def _number(spec: Mapping[str, JsonValue], reading: Reading) -> JsonValue:
    name = str(spec.get("name", "")).lower()
    words = [word for word in re.split(r"[_\W]+", name) if len(word) > 2]
    for word in (*words, "least", "threshold", "over", "above"):
        if match := re.search(rf"\b{re.escape(word)}\w*\s+(?:of\s+|than\s+|=\s*)?(\d+)", reading.core, re.IGNORECASE):
            return int(match[1])
    return None


def _text(spec: Mapping[str, JsonValue], free: list[NameSlot], *, only: bool) -> JsonValue:
    kinds_asked = False
    described = f"{spec.get('name', '')} {spec.get('description', '')}".lower()
    name = str(spec.get("name", "")).lower()
    for source in (name, described):
        for pattern, kinds in _PARAMETER_KINDS:
            if not re.search(pattern, source):
                continue
            kinds_asked = True
            for kind in kinds:
                for slot in free:
                    if kind_of(slot) == kind:
                        free.remove(slot)
                        return slot.value
            if source is name:
                break
    if only and len(free) == 1 and not kinds_asked:
        return free.pop().value
    return None
