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
    bounded = False
    texts = [spec for spec in specs if str(spec.get("type", "string")).lower() not in _NUMBERS]
    for spec in specs:
        name = str(spec.get("name", ""))
        value = _allowed_value(spec, reading)
        if value is None and str(spec.get("type", "")).lower() in _NUMBERS:
            value = _number(spec, reading) or _bound(spec, reading, bounded=bounded)
            bounded = bounded or value is not None
        elif value is None and not spec.get("allowed"):
            usable = [slot for slot in free if not _runs_the_other_way(spec, slot, reading)]
            value = _text(spec, usable, only=len(texts) == 1)
            free = [slot for slot in free if slot.value != value]
        if value is not None:
            parameters[name] = [value] if _is_array(spec) else value
        elif spec.get("required"):
            missing.append(spec)
    return Filled(parameters, tuple(missing), tuple(free))


_OTHER_WAY = {"sender": "to", "recipient": "from", "destination": "from", "source": "to"}
"""Parameters of one direction, and the word before a thing that stands at the other end."""


def _runs_the_other_way(spec: Mapping[str, JsonValue], slot: NameSlot, reading: Reading) -> bool:
    """True for the address of "mails to X" where a query asks for a sender."""
    word = _OTHER_WAY.get(str(spec.get("name", "")).lower())
    place = reading.text.lower().find(slot.value.lower())
    if word is None or place < 0:
        return False
    return re.search(rf"\b{word}\s+(?:the\s+)?(?:\w+\s+)?$", reading.text[:place], re.IGNORECASE) is not None


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
    for word in words:
        if match := re.search(rf"\b{re.escape(word)}\w*\s+(?:of\s+|than\s+|=\s*)?(\d+)", reading.core, re.IGNORECASE):
            return int(match[1])
    return None


_NO_TIME = r"\s*(?P<number>\d{1,6})\b(?!\s*(?:minutes?|mins?|hours?|hrs?|h|days?|d|weeks?)\b)"
_LEAST = re.compile(
    rf"(?:(?P<strict>\bmore\s+than|\bover|\babove|>(?!=))|>=|≥|\bat\s+least|\b(?:minimum|threshold)(?:\s+of)?){_NO_TIME}",
    re.IGNORECASE,
)
_MOST = re.compile(
    rf"(?:(?P<strict>\b(?:less|fewer)\s+than|\bunder|\bbelow|<(?!=))|<=|≤|\bat\s+most|\bmaximum(?:\s+of)?){_NO_TIME}",
    re.IGNORECASE,
)


def _bound(spec: Mapping[str, JsonValue], reading: Reading, *, bounded: bool) -> JsonValue:
    """The one bound that a question gives without its noun: "failed logins > 10"."""
    side = str(spec.get("name", "")).lower().partition("_")[0]
    pattern = {"min": _LEAST, "max": _MOST}.get(side)
    match = None if pattern is None or bounded else pattern.search(reading.core)
    if match is None:
        return None
    strict = 0 if match["strict"] is None else 1 if side == "min" else -1
    return int(match["number"]) + strict


def _text(spec: Mapping[str, JsonValue], free: list[NameSlot], *, only: bool) -> JsonValue:
    kinds_asked = said_by_name = False
    described = f"{spec.get('name', '')} {spec.get('description', '')}".lower()
    name = str(spec.get("name", "")).lower()
    for source in (name, described):
        for pattern, kinds in _PARAMETER_KINDS:
            if not re.search(pattern, source):
                continue
            kinds_asked = True
            # A plain word is of any kind: it goes by the parameter's name, and by its description where that says none.
            words_too = source is name or not said_by_name
            for kind in kinds if words_too else filter(None, kinds):
                for slot in free:
                    if kind_of(slot) == kind:
                        free.remove(slot)
                        return slot.value
            if source is name:
                said_by_name = True
                break
    if only and len(free) == 1 and not kinds_asked:
        return free.pop().value
    return None
