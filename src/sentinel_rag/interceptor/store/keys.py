"""API keys. A key is `sr_<id>_<secret>` with 256 random bits of secret; only the secret's SHA-256 is stored.

A plain hash is enough here, because the secret is random and not a password: there is nothing to guess faster. A change
made by another process is seen by the next `verify`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Collection
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.query_results import format_time

_FORM = re.compile(r"sr_([0-9a-f]{12})_([0-9a-f]{64})")
_NOBODY = bytes(32)


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
    """Whose request it is, once the key was verified."""

    key_id: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as an administrator may see it; the secret is not here, and not in the store."""

    key_id: str
    name: str
    scopes: frozenset[Scope]
    created_at: str
    revoked_at: str | None


class KeyStore:
    """The keys in the file at `path`, readable by its owner only. May be used from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[bytes, Principal]] = {}
        self._seen_version = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
            with ExitStack() as opened:
                opened.enter_context(closing(self._connection))
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS api_key (key_id TEXT PRIMARY KEY, name TEXT NOT NULL, "
                    "hash BLOB NOT NULL, scopes TEXT NOT NULL, created_at TEXT NOT NULL, revoked_at TEXT) STRICT"
                )
                self._reload()
                opened.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise UnavailableError(
                f"The key store {path.name} cannot be opened: {error}.",
                next_step="Check the state folder's permissions, or point it elsewhere.",
            ) from error

    def create(self, scopes: Collection[Scope], *, name: str = "") -> tuple[str, KeyInfo]:
        """A new key. Its text is returned this once and cannot be shown again."""
        key_id, secret = secrets.token_hex(6), secrets.token_hex(32)
        info = KeyInfo(key_id, name, frozenset(scopes), format_time(datetime.now(UTC)), None)
        with self._lock:
            self._connection.execute(
                "INSERT INTO api_key VALUES (?, ?, ?, ?, ?, NULL)",
                [key_id, name, _digest(secret), json.dumps(sorted(scopes)), info.created_at],
            )
            self._reload()
        return f"sr_{key_id}_{secret}", info

    def revoke(self, key_id: str) -> bool:
        """End a key, at once and for good. False if there is no such key or it has ended already."""
        with self._lock:
            changed = self._connection.execute(
                "UPDATE api_key SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL",
                [format_time(datetime.now(UTC)), key_id],
            ).rowcount
            self._reload()
        return changed == 1

    def list(self) -> list[KeyInfo]:
        """Every key ever made, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT key_id, name, scopes, created_at, revoked_at FROM api_key ORDER BY created_at, key_id"
            ).fetchall()
        return [
            KeyInfo(key_id, name, frozenset(map(Scope, json.loads(scopes))), created_at, revoked_at)
            for key_id, name, scopes, created_at, revoked_at in rows
        ]

    def verify(self, header: str | None) -> Principal | None:
        """The principal of an `X-API-Key` header; None for anything but a live key."""
        match = _FORM.fullmatch(header or "")
        self._refresh()
        stored, principal = self._keys.get(match[1], (_NOBODY, None)) if match else (_NOBODY, None)
        # Compared also where no key has that id, so that time does not tell which ids exist.
        equal = hmac.compare_digest(_digest(match[2] if match else ""), stored)
        return principal if equal else None

    def known_id(self, header: str | None) -> str | None:
        """The id that a header claims, if a live key has it: what a record of a failed attempt may say."""
        match = _FORM.fullmatch(header or "")
        return match[1] if match and match[1] in self._keys else None

    def close(self) -> None:
        self._connection.close()

    def _refresh(self) -> None:
        with self._lock:
            if self._data_version() != self._seen_version:
                self._reload()

    def _data_version(self) -> int:
        """Changes when another connection has committed; about 2 µs."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def _reload(self) -> None:
        self._seen_version = self._data_version()
        rows = self._connection.execute("SELECT key_id, hash, scopes FROM api_key WHERE revoked_at IS NULL")
        self._keys = {
            key_id: (digest, Principal(key_id, frozenset(map(Scope, json.loads(scopes)))))
            for key_id, digest, scopes in rows
        }


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
