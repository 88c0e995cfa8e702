"""The values of one property in an alert, each as an answer gives it: a file by its name, a host without its domain.

Two values are one if their `key` is: a URL with and without its scheme, an account by its SID and by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline.attributes import Attribute, values_of
from sentinel_rag.agent.offline.relations.alerts import Alert, base_name
from sentinel_rag.contracts.json_values import JsonValue

_NO_PERSON = re.compile(
    r"s-\d+(?:-\d+)+|(?:nt authority\\)?(?:local ?system|system|local service|network service)|.*\$", re.IGNORECASE
)
"""Names of accounts that belong to a machine or to nobody."""
_BY_NAME = {"host": ("host", "host_name"), "file": ("file", "name"), "process": ("process", "image_file")}
"""Labels of whole things: their kind, and the property by which an answer calls them."""


@dataclass(frozen=True, slots=True)
class Value:
    """`text` as the answer says it, `others` what the same thing is called too; `pointer` leads to it in the result."""

    key: str
    text: str
    alert: Alert
    pointer: str
    entity: Mapping[str, JsonValue]
    at: str
    others: tuple[tuple[str, str], ...] = ()


def values_in(wanted: Attribute, alert: Alert) -> list[Value]:
    """The values of a property that the alert tells, each once."""
    found: dict[str, Value] = {}
    for at, entity in alert.entities:
        for value in _of_entity(wanted, alert, at, entity):
            found.setdefault(value.key, value)
    return list(found.values())


def told_elsewhere(wanted: Attribute, alerts: Sequence[Alert], others: Sequence[Alert]) -> list[Value]:
    """The property of the things that `alerts` name without it, from other alerts that name the same things."""
    if wanted.thing:
        return []
    named = {_identity(each) for alert in alerts for _, each in alert.entities if each.get("kind") in wanted.kinds}
    return [value for alert in others for value in values_in(wanted, alert) if _identity(value.entity) in named]


def _identity(entity: Mapping[str, JsonValue]) -> tuple[object, str]:
    return entity.get("kind"), str(entity.get("name")).lower()


def is_person(value: Value) -> bool:
    """False for an account of a machine, a service or nobody."""
    return _NO_PERSON.fullmatch(value.text) is None


def _of_entity(wanted: Attribute, alert: Alert, at: str, entity: Mapping[str, JsonValue]) -> Iterator[Value]:
    kind = entity.get("kind")
    if wanted.label == "account":
        if kind == "account":
            yield _account(alert, at, entity)
    elif wanted.label == "malware" and kind in ("malware", "file"):
        yield _named(alert, at, entity, "name")
    elif wanted.label in _BY_NAME:
        if kind == _BY_NAME[wanted.label][0]:
            yield _named(alert, at, entity, _BY_NAME[wanted.label][1])
    else:
        for pointer, leaf in values_of(wanted, entity):
            text = str(leaf)
            shown = entity.get("display_name") if wanted.address else None
            others = ((str(shown), f"{at}/display_name"),) if shown else ()
            yield Value(_folded(text), text, alert, at + pointer, entity, at, others)


def _named(alert: Alert, at: str, entity: Mapping[str, JsonValue], key: str) -> Value:
    """A thing by the property `key`, else by its name: a host without its domain, of a path the last part."""
    key = key if entity.get(key) else "name"
    text = str(entity.get(key) or "")
    host = entity.get("kind") == "host"
    text = text.partition(".")[0] if host and key == "name" else text if host else base_name(text)
    return Value(_folded(text), text, alert, f"{at}/{key}", entity, at)


def _account(alert: Alert, at: str, entity: Mapping[str, JsonValue]) -> Value:
    key = "account_name" if entity.get("account_name") else "name"
    text = str(entity.get(key) or "")
    identity = str(entity.get("aad_user_id") or entity.get("upn") or text)
    named = (("display_name", entity.get("display_name")), ("upn", entity.get("upn")))
    others = tuple((str(told), f"{at}/{name}") for name, told in named if told and str(told).lower() != text.lower())
    return Value(_folded(identity), text, alert, f"{at}/{key}", entity, at, others)


def _folded(text: str) -> str:
    text = re.sub(r"^https?://", "", text.strip().casefold()).rstrip("/.")
    return re.sub(r"\\+", r"\\", text)
