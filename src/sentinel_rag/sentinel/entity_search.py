"""Finding the alerts that name an entity: a wide net in KQL, an exact decision in Python.

The net must catch every spelling of the JSON in `Entities` (doubled backslashes, \\u escapes, a UPN split into Name and
UPNSuffix), so it asks only for plain pieces of the value; which alerts really name the entity is then decided on the
parsed objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.entity_identity import entity_name, identifying_values
from sentinel_rag.sentinel.kql_literals import string_literal

MOST_CANDIDATES = 2000
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9_-]+")
_MOST_PIECES = 4
_MOST_NEAR_NAMES = 5


def net_condition(value: str) -> str:
    """A KQL predicate that holds for every alert naming `value`, and for some others; `true` if nothing is plain."""
    address = _address(value)
    if address is not None and address.version == 4:
        pieces = [str(address)]
    else:
        pieces = sorted({piece for piece in _PLAIN_PIECE.findall(value) if len(piece) > 1}, key=len, reverse=True)
    if not pieces:
        return "true"
    tests = [
        f"(Entities contains {string_literal(piece)} or CompromisedEntity contains {string_literal(piece)})"
        for piece in pieces[:_MOST_PIECES]
    ]
    return " and ".join(tests)


def names_entity(alert: Alert, value: str, kind: str | None) -> bool:
    """True if an entity of the alert (of `kind`, if given) is identified by `value`, in any case.

    CompromisedEntity counts as well, unless a kind is asked for that it cannot be.
    """
    wanted = value.casefold()
    if any(
        wanted in identifying_values(entity)
        for entity in alert.entities.entities
        if kind is None or entity.kind == kind
    ):
        return True
    compromised = str(alert.record["CompromisedEntity"] or "").casefold()
    if kind not in (None, "host", "account") or not compromised:
        return False
    return compromised == wanted or (kind != "account" and compromised.partition(".")[0] == wanted)


def near_names(alerts: Iterable[Alert], value: str, kind: str | None) -> tuple[str, ...]:
    """Names of entities that contain `value`, for a reader whose value matches none exactly."""
    wanted = value.casefold()
    names: dict[str, None] = {}
    for alert in alerts:
        for entity in alert.entities.entities:
            if (kind is None or entity.kind == kind) and any(wanted in known for known in identifying_values(entity)):
                names.setdefault(entity_name(entity))
            if len(names) >= _MOST_NEAR_NAMES:
                return tuple(names)
    return tuple(names)


def _address(value: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(value)
    except ValueError:
        return None
