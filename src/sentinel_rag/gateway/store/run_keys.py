"""Keys that hold for one run of the gateway: handed over at start, kept in memory as hashes, never stored.

The supervisor makes the keys of the agent and of the surfaces anew for each run, or hands over one that its user has
chosen (`SENTINEL_API_KEY`); such a key has no fixed form. Keys of the store stay valid beside them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.store.principals import KeyRing, Principal, Refused, Scope

RUN_KEY_IDS = ("agent", "audit", "user", "approver")
"""Ids that a supervisor gives to such keys; the first is the agent's. No stored key is named so."""


class RunKeys:
    """`handed_over` maps a key's text to its principal; what it does not know, `stored` is asked."""

    def __init__(self, handed_over: Mapping[str, Principal], *, stored: KeyRing) -> None:
        self._stored = stored
        self._keys = tuple((_digest(key), principal) for key, principal in handed_over.items())

    def verify(self, header: str | None) -> Principal | None:
        found = self.check(header)
        return found if isinstance(found, Principal) else None

    def check(self, header: str | None) -> Principal | Refused:
        digest = _digest(header or "")
        found: Principal | None = None
        for known, principal in self._keys:  # all are compared, so that time does not tell which
            if hmac.compare_digest(known, digest):
                found = principal
        return found or self._stored.check(header)

    def name_of(self, key_id: str) -> str:
        """See `KeyRing.name_of`."""
        for _, principal in self._keys:
            if principal.key_id == key_id:
                return principal.name
        return self._stored.name_of(key_id)

    def live(self, key_id: str) -> Principal | None:
        """See `KeyRing.live`."""
        handed_over = next((each for _, each in self._keys if each.key_id == key_id), None)
        return handed_over or self._stored.live(key_id)

    def readers_of(self, key_id: str) -> frozenset[str]:
        """See `KeyRing.readers_of`."""
        for _, principal in self._keys:
            if principal.key_id == key_id:
                return principal.readers
        return self._stored.readers_of(key_id)


def run_principal(data: Mapping[str, Any]) -> Principal:
    """The principal of a hand-over line: `key_id` and `scopes`, for a user's key also `clearance`, `for_key` and
    `readers`."""
    return Principal(
        key_id=data["key_id"],
        scopes=frozenset(map(Scope, data["scopes"])),
        name=data["key_id"],
        clearance=Sensitivity[data.get("clearance", Sensitivity.LOW.name)],
        for_key=data.get("for_key"),
        readers=frozenset(data.get("readers", ())),
    )


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
