"""Finding the alerts that name an entity: a wide net in KQL, an exact decision in Python.

The net must catch every spelling of the JSON in `Entities` (doubled backslashes, \\u escapes, a UPN split into Name and
UPNSuffix), so it asks only for plain pieces of the value; which alerts really name the entity is then decided on the
parsed objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.entity_identity import entity_name, folded_value, identifying_values, identity_of
from sentinel_rag.sentinel.entity_tally import merge_identities
from sentinel_rag.sentinel.kql_literals import string_literal
from sentinel_rag.sentinel.near_names import NameCode, NameReading, holding, is_whole, read_name

MOST_CANDIDATES = 2000
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9_-]+")
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_IPV6 = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*")
_MOST_PIECES = 4
_UPN = re.compile(r"[^@\s\\]+@[^@\s\\]+")
_DOTTED_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){2,}")
_PRINCIPALS = ("account", "host")
_TEXTS = frozenset({"mailmessage", "mailcluster", "url", "process", "registry-key", "registry-value"})
"""Kinds whose names are sentences, commands or addresses that an attacker writes: no such name is proposed."""
_MOST_KEYS = 20


def net_condition(value: str) -> str:
    """A KQL predicate that holds for every alert naming `value`, and for some others; `true` if nothing is plain."""
    address = folded_value(value)
    if _IPV4.fullmatch(address):
        return _holding([address])
    return pieces_condition(address if _IPV6.fullmatch(address) else _distinctive_part(value))


def pieces_condition(text: str) -> str:
    """A KQL predicate that holds for every alert with `text` in whatever JSON, and for some others."""
    return _holding(sorted({piece for piece in _PLAIN_PIECE.findall(text) if len(piece) > 1}, key=len, reverse=True))


def _holding(pieces: Sequence[str]) -> str:
    if not pieces:
        return "true"
    tests = [
        f"(Entities contains {string_literal(piece)} or CompromisedEntity contains {string_literal(piece)})"
        for piece in pieces[:_MOST_PIECES]
    ]
    return " and ".join(tests)


def wider_net(value: str) -> str:
    """A KQL predicate for alerts that may name something like `value`, letters and digits alone compared."""
    tests = [net_condition(value)]
    if not is_whole(value):
        tests += [holding("tostring(Entities)", value), holding("CompromisedEntity", value)]
    return " or ".join(f"({test})" for test in tests)


def _distinctive_part(value: str) -> str:
    """The user of a UPN, the first label of a host name, all of anything else.

    The rest may be spelled otherwise in another alert that means the same account or host.
    """
    if _UPN.fullmatch(value):
        return value.partition("@")[0]
    if _DOTTED_NAME.fullmatch(value):
        return value.partition(".")[0]
    return value


def alerts_naming(candidates: Sequence[Alert], value: str, kind: str | None) -> list[Alert]:
    """The candidates that name the entity, also under another spelling that `entity_tally` merges with it."""
    found = {alert.alert_id for alert in candidates if names_entity(alert, value, kind)}
    wanted = folded_value(value)
    for merged_kind in _PRINCIPALS:
        if kind not in (None, merged_kind):
            continue
        sightings = [
            (identity_of(entity), wanted in identifying_values(entity), alert.alert_id)
            for alert in candidates
            for entity in alert.entities.entities
            if entity.kind == merged_kind
        ]
        groups = merge_identities([identity for identity, _, _ in sightings])
        named = {group for group, (_, direct, _) in zip(groups, sightings, strict=True) if direct}
        found.update(alert_id for group, (_, _, alert_id) in zip(groups, sightings, strict=True) if group in named)
    return [alert for alert in candidates if alert.alert_id in found]


def other_keys(found: Iterable[Alert], value: str, kind: str | None) -> tuple[str, ...]:
    """The ids and addresses of the accounts and hosts that `value` names in these alerts: what other alerts may tell of
    them instead of it."""
    wanted = folded_value(value)
    identities = [
        identity_of(entity)
        for alert in found
        for entity in alert.entities.entities
        if entity.kind in _PRINCIPALS and kind in (None, entity.kind) and wanted in identifying_values(entity)
    ]
    keys = {key.partition(":")[2] for identity in identities for key in identity.strong}
    return tuple(sorted(key for key in keys if key != wanted))[:_MOST_KEYS]


def names_entity(alert: Alert, value: str, kind: str | None) -> bool:
    """True if an entity of the alert (of `kind`, if given) is identified by `value`, in any case.

    CompromisedEntity counts as well, unless a kind is asked for that it cannot be.
    """
    wanted = folded_value(value)
    entities = (entity for entity in alert.entities.entities if kind is None or entity.kind == kind)
    if any(wanted in identifying_values(entity) for entity in entities):
        return True
    compromised = str(alert.record["CompromisedEntity"] or "").casefold()
    if kind not in (None, "host", "account") or not compromised:
        return False
    return compromised == wanted or (kind != "account" and compromised.partition(".")[0] == wanted)


def read_entity(alerts: Iterable[Alert], value: str, kind: str | None) -> tuple[NameReading, str | None]:
    """What a value that names no entity exactly stands for, and the kind of what is used: the one account or host that
    is like it, or where there is no such one the one entity of another kind."""
    names: dict[str, dict[str, None]] = {}
    for alert in alerts:
        for entity in alert.entities.entities:
            if kind in (None, entity.kind) and entity.kind not in _TEXTS:
                names.setdefault(entity.kind, {})[entity_name(entity)] = None
    first = [name for each in _PRINCIPALS for name in names.get(each, ())]
    for among in (first, [name for each, found in names.items() if each not in _PRINCIPALS for name in found]):
        reading = read_name("entity", value, among)
        if reading.code is not NameCode.UNKNOWN:
            return reading, next((each for each, found in names.items() if reading.used in found), None)
    return NameReading("entity", value, NameCode.UNKNOWN), None
