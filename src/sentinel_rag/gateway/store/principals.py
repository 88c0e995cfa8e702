"""Who asks: what a verified key stands for, and why one was not accepted. Values only; rings of keys make them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.policy.model import Rate


class Scope(StrEnum):
    """What a key may do: run tools, speak for a signed-in person (open clean sessions, name values, see what was
    hidden), decide approvals, read the journal, manage keys and policy."""

    EXECUTE = "execute"
    USER = "user"
    APPROVE = "approve"
    AUDIT = "audit"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """Whose request it is, once the key was verified.

    `clearance` is the highest sensitivity of hidden values that a key with the scope `user` may have shown; `for_key`
    is the id of the key whose sessions it may open. `rate` is None where the gateway's default holds. `readers` are
    the names under which it may read what is not for everybody.
    """

    key_id: str
    scopes: frozenset[Scope]
    name: str = ""
    clearance: Sensitivity = Sensitivity.LOW
    rate: Rate | None = None
    for_key: str | None = None
    readers: frozenset[str] = frozenset()


class KeyState(StrEnum):
    """Why a header opens nothing. UNKNOWN: not the text of a key, or no key has this id. WRONG_SECRET: the id is that
    of a key, the secret is not. The others were said to somebody who does hold the secret."""

    UNKNOWN = "unknown"
    WRONG_SECRET = "wrong_secret"  # noqa: S105  # the name of a state
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Refused:
    """A header that opens nothing. `key_id` is set only if there is, or was, a key with that id."""

    state: KeyState
    key_id: str | None = None


class KeyRing(Protocol):
    """What admission asks of keys."""

    def verify(self, header: str | None) -> Principal | None:
        """The principal of an `X-API-Key` header; None for anything but a live key."""
        ...

    def check(self, header: str | None) -> Principal | Refused:
        """`verify`, with the reason where there is no principal."""
        ...

    def name_of(self, key_id: str) -> str:
        """The name of the key with that id, ended ones too; empty if it has none."""
        ...

    def live(self, key_id: str) -> Principal | None:
        """The principal of the live key with that id; None for a key that has ended, or is none."""
        ...

    def readers_of(self, key_id: str) -> frozenset[str]:
        """The names under which the live key with that id may read; none for a key that has ended, or is none."""
        ...
