"""The values of one property in an alert, each as an answer gives it: a file by its name, a host without its domain.

Two values are one if their `key` is: a URL with and without its scheme, an account by its SID and by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline.alert_walk.pool import Alert, base_name
from sentinel_rag.agent.offline.attribute_catalogue import ADDRESSES, ATTRIBUTES, Attribute
from sentinel_rag.agent.offline.attributes import values_of
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.contracts.json_values import JsonValue

_NO_PERSON = re.compile(
    r"s-\d+(?:-\d+)+|(?:nt authority\\)?(?:local ?system|system|local service|network service)|.*\$", re.IGNORECASE
)
"""Names of accounts that belong to a machine or to nobody."""


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


def attributes_of(plan: Plan) -> tuple[Attribute, ...]:
    """What is asked for, then what may stand for it where no alert tells it."""
    labels = [label for first in plan.aspects[:1] for label in (first, _INSTEAD.get(first)) if label]
    return tuple(next(known for known in ATTRIBUTES if known.label == label) for label in labels)


_INSTEAD = {"sender IP": "IP address", "recipient": "email address"}


def values_in(attribute: Attribute, alert: Alert) -> list[Value]:
    """The values of `attribute` that the alert tells, each once."""
    found: dict[str, Value] = {}
    for at, entity in alert.entities:
        for value in _of_entity(attribute, alert, at, entity):
            found.setdefault(value.key, value)
    return list(found.values())


def told_elsewhere(attribute: Attribute, alerts: Sequence[Alert], others: Sequence[Alert]) -> list[Value]:
    """The property of the things that `alerts` name without it, from other alerts that name the same things."""
    if not attribute.deep:
        return []
    named = {
        (entity.get("kind"), str(entity.get("name")).lower())
        for alert in alerts
        for _, entity in alert.entities
        if entity.get("kind") in attribute.kinds
    }
    return [
        value
        for alert in others
        for value in values_in(attribute, alert)
        if (value.entity.get("kind"), str(value.entity.get("name")).lower()) in named
    ]


def is_person(value: Value) -> bool:
    """False for an account of a machine, a service or nobody."""
    return _NO_PERSON.fullmatch(value.text) is None


def _of_entity(attribute: Attribute, alert: Alert, at: str, entity: Mapping[str, JsonValue]) -> Iterator[Value]:
    kind = entity.get("kind")
    match attribute.label:
        case "host" if kind == "host":
            yield _named(alert, at, entity, "host_name")
        case "account" if kind == "account":
            yield _account(alert, at, entity)
        case "file" if kind == "file":
            yield _named(alert, at, entity, "name", shorten=True)
        case "malware" if kind in ("malware", "file"):
            yield _named(alert, at, entity, "name", shorten=True)
        case "process" if kind == "process":
            yield _named(alert, at, entity, "image_file", shorten=True)
        case _:
            for pointer, leaf in values_of(attribute, entity):
                text = str(leaf)
                others = _display_name(at, entity) if attribute.label in ADDRESSES else ()
                yield Value(_folded(text), text, alert, at + pointer, entity, at, others)


def _named(alert: Alert, at: str, entity: Mapping[str, JsonValue], key: str, *, shorten: bool = False) -> Value:
    """A thing by the property `key`, or by its name where it has none."""
    key = key if entity.get(key) else "name"
    text = str(entity.get(key) or "")
    text = base_name(text) if shorten else text
    if key == "name" and entity.get("kind") == "host":
        text = text.partition(".")[0]
    return Value(_folded(text), text, alert, f"{at}/{key}", entity, at)


def _account(alert: Alert, at: str, entity: Mapping[str, JsonValue]) -> Value:
    key = "account_name" if entity.get("account_name") else "name"
    text = str(entity.get(key) or "")
    identity = str(entity.get("aad_user_id") or entity.get("upn") or text)
    named = (("display_name", entity.get("display_name")), ("upn", entity.get("upn")))
    others = tuple((str(told), f"{at}/{name}") for name, told in named if told and str(told).lower() != text.lower())
    return Value(_folded(identity), text, alert, f"{at}/{key}", entity, at, others)


def _display_name(at: str, entity: Mapping[str, JsonValue]) -> tuple[tuple[str, str], ...]:
    """The name of the person whose address it is, where the alert tells it."""
    told = entity.get("display_name")
    return ((str(told), f"{at}/display_name"),) if told else ()


def _folded(text: str) -> str:
    text = re.sub(r"^https?://", "", text.strip().casefold()).rstrip("/.")
    return re.sub(r"\\+", r"\\", text)
