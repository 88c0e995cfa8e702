"""Keys that hold for one run of the Interceptor: handed over at start, kept in memory as hashes, never stored.

The supervisor makes the agent's and the surfaces' keys anew for each run, or hands over one that its user has chosen
(`SENTINEL_API_KEY`); such a key has no fixed form. Keys of the store stay valid beside them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from typing import Protocol

from sentinel_rag.interceptor.store.keys import Principal, Scope


class KeyRing(Protocol):
    """What admission asks of keys."""

    def verify(self, header: str | None) -> Principal | None:
        """The principal of an `X-API-Key` header; None for anything but a live key."""
        ...

    def known_id(self, header: str | None) -> str | None:
        """The id that a header claims, if a live key has it."""
        ...


class RunKeys:
    """`handed_over` maps a key's text to its id and scopes; what it does not know, `stored` is asked."""

    def __init__(self, handed_over: Mapping[str, tuple[str, Collection[Scope]]], *, stored: KeyRing) -> None:
        self._stored = stored
        self._keys = tuple(
            (_digest(key), Principal(key_id, frozenset(scopes))) for key, (key_id, scopes) in handed_over.items()
        )

    def verify(self, header: str | None) -> Principal | None:
        digest = _digest(header or "")
        found: Principal | None = None
        for known, principal in self._keys:  # all are compared, so that time does not tell which
            if hmac.compare_digest(known, digest):
                found = principal
        return found or self._stored.verify(header)

    def known_id(self, header: str | None) -> str | None:
        return self._stored.known_id(header)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
