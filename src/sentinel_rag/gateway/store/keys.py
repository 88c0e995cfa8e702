"""The API keys and what each stands for: stored ones, made, rotated, revoked and verified, and those of one run.

A change made by another process is seen by the next `verify`, so `sentinel keys` and a running gateway share the file.
What was changed waits in the transaction that changed it, until the journal has recorded it. Keys of a run are kept in
memory as hashes, never stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from sentinel_rag.audit import KeyChanged, RecordConnection
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.labels import READER_NAMES, Sensitivity, is_reader_name
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store.key_file import NOBODY, KeyFile, Pepper, key_text, new_key_id, new_secret, split_key


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
class RefusedKey:
    """A header that opens nothing. `key_id` is set only if there is, or was, a key with that id."""

    state: KeyState
    key_id: str | None = None


class KeyRing(Protocol):
    """What admission asks of keys."""

    def verify(self, header: str | None) -> Principal | None:
        """The principal of an `X-API-Key` header; None for anything but a live key."""
        ...

    def check(self, header: str | None) -> Principal | RefusedKey:
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

    def check(self, header: str | None) -> Principal | RefusedKey:
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


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._@-]{0,62}[A-Za-z0-9])?")
_COLUMNS = (
    "key_id, name, scopes, clearance, rate_calls, rate_seconds, for_key, created_at, rotated_at, expires_at, "
    "revoked_at, readers"
)


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as an administrator may see it; the secret is not here, and not in the store. Times are ISO 8601 in UTC."""

    key_id: str
    name: str
    scopes: frozenset[Scope]
    created_at: str
    revoked_at: str | None = None
    clearance: Sensitivity = Sensitivity.LOW
    rate: Rate | None = None
    for_key: str | None = None
    rotated_at: str | None = None
    expires_at: str | None = None
    readers: frozenset[str] = frozenset()

    def principal(self) -> Principal:
        return Principal(self.key_id, self.scopes, self.name, self.clearance, self.rate, self.for_key, self.readers)

    def state(self, now: datetime) -> str:
        """`live`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if _over(self.expires_at, now) else "live"

    def terms(self) -> dict[str, Any]:
        """What the key may do and for how long, as JSON."""
        return {
            "scopes": sorted(self.scopes),
            "clearance": self.clearance.name,
            "rate": None if self.rate is None else asdict(self.rate),
            "for_key": self.for_key,
            "expires_at": self.expires_at,
            "readers": sorted(self.readers),
        }


@dataclass(frozen=True, slots=True)
class _Stored:
    info: KeyInfo
    principal: Principal
    secrets: tuple[tuple[bytes, str | None], ...]
    """Hash and end of each; the newest has no end."""


class KeyPlace(Protocol):
    """Where keys are stored: `KeyFile`, or `PostgresKeys`. Its methods raise one of `errors`."""

    @property
    def errors(self) -> tuple[type[Exception], ...]: ...

    @property
    def connection(self) -> RecordConnection: ...

    @property
    def pepper(self) -> Pepper: ...

    def transaction(self) -> AbstractContextManager[None]:
        """A change of `connection`, whole or not at all; of all who change keys, one at a time."""
        ...

    def version(self) -> int:
        """Another number as soon as somebody else has changed the keys."""
        ...

    def unavailable(self, error: Exception) -> UnavailableError:
        """One of `errors` as a sentence."""
        ...

    def close(self) -> None: ...


class KeyStore:
    """The keys in the file at `place`, readable by its owner only, or in a database. May be used from any thread."""

    def __init__(self, place: Path | KeyPlace, *, clock: Clock = utc_now) -> None:
        self._place: KeyPlace = KeyFile(place) if isinstance(place, Path) else place
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, _Stored] = {}
        self._seen_version = -1
        self.last_change = 0
        """The number of the newest change, as of the last `verify`."""
        self._pepper = self._place.pepper
        try:
            with self._lock:
                self.store_id: str = self._place.connection.execute("SELECT store_id FROM key_store").fetchone()[0]
                self._reload()
        except self._place.errors as error:
            raise self._place.unavailable(error) from error

    def create(
        self,
        scopes: Collection[Scope],
        *,
        name: str = "",
        clearance: Sensitivity = Sensitivity.MEDIUM,
        rate: Rate | None = None,
        expires_in: timedelta | None = None,
        for_key: str | None = None,
        readers: Collection[str] = (),
        unique_name: bool = False,
        by: str = "",
    ) -> tuple[str, KeyInfo]:
        """A new key. Its text is returned this once and cannot be shown again.

        Raises UsageError for terms that make no sense, and with `unique_name` for a name that a live key has.
        """
        _check_terms(scopes, name, expires_in, for_key, readers)
        now = self._clock()
        user = Scope.USER in scopes
        info = KeyInfo(
            key_id=new_key_id(),
            name=name,
            scopes=frozenset(scopes),
            created_at=format_time(now),
            clearance=clearance if user else Sensitivity.LOW,
            rate=rate,
            for_key=for_key,
            expires_at=None if expires_in is None else format_time(now + expires_in),
            readers=frozenset(readers),
        )
        secret = new_secret()
        with self._change("created", info, by) as connection:
            if unique_name and any(each.name == name for each in self._live(now)):
                raise UsageError(
                    f"A key named {name!r} exists already.",
                    next_step="Choose another name, or rotate or revoke that key (sentinel keys list shows it).",
                )
            connection.execute(
                f"INSERT INTO api_key ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, NULL, ?)",  # noqa: S608
                [
                    info.key_id,
                    name,
                    json.dumps(sorted(scopes)),
                    info.clearance.name,
                    None if rate is None else rate.calls,
                    None if rate is None else rate.seconds,
                    for_key,
                    info.created_at,
                    info.expires_at,
                    json.dumps(sorted(info.readers)),
                ],
            )
            connection.execute("INSERT INTO secret VALUES (?, ?, NULL)", [self._pepper.digest(secret), info.key_id])
        return key_text(info.key_id, secret), info

    def rotate(self, key_id: str, *, overlap: timedelta = timedelta(0), by: str = "") -> tuple[str, KeyInfo] | None:
        """A new secret under the same id; the one before works for `overlap` more, any older one ends now.

        None if there is no such key or it has ended: an ended key does not come back.
        """
        now = self._clock()
        secret = new_secret()
        found = self.find(key_id)
        if found is None or found.state(now) != "live":
            return None
        with self._change("rotated", found, by, overlap_s=overlap.total_seconds()) as connection:
            if self._keys[key_id].info.revoked_at is not None:
                raise _already_revoked(key_id)
            connection.execute("UPDATE api_key SET rotated_at = ? WHERE key_id = ?", [format_time(now), key_id])
            connection.execute("DELETE FROM secret WHERE key_id = ? AND ends_at IS NOT NULL", [key_id])
            connection.execute("UPDATE secret SET ends_at = ? WHERE key_id = ?", [format_time(now + overlap), key_id])
            connection.execute("INSERT INTO secret VALUES (?, ?, NULL)", [self._pepper.digest(secret), key_id])
        return key_text(key_id, secret), self._keys[key_id].info

    def revoke(self, key_id: str, *, by: str = "") -> bool:
        """End a key, at once and for good. False if there is no such key or it was revoked already."""
        found = self.find(key_id)
        if found is None or found.revoked_at is not None:
            return False
        with self._change("revoked", found, by) as connection:
            if self._keys[key_id].info.revoked_at is not None:
                raise _already_revoked(key_id)
            connection.execute(
                "UPDATE api_key SET revoked_at = ? WHERE key_id = ?", [format_time(self._clock()), key_id]
            )
        return True

    def changes(self, after: int, limit: int = 100) -> list[tuple[int, KeyChanged]]:
        """At most `limit` changes with a number above `after`, oldest first, as the journal is to hold them."""
        try:
            with self._lock:
                rows = self._place.connection.execute(
                    "SELECT seq, at, audit_id, event FROM key_change WHERE seq > ? ORDER BY seq LIMIT ?", [after, limit]
                ).fetchall()
        except self._place.errors as error:
            raise self._place.unavailable(error) from error
        return [
            (seq, KeyChanged(audit_id=audit_id, changed_at=at, **json.loads(text))) for seq, at, audit_id, text in rows
        ]

    def find(self, key_id: str) -> KeyInfo | None:
        """The key with that id, ended ones too."""
        self._refresh()
        stored = self._keys.get(key_id)
        return None if stored is None else stored.info

    def list(self) -> list[KeyInfo]:
        """Every key ever made, oldest first."""
        self._refresh()
        return sorted((stored.info for stored in self._keys.values()), key=lambda info: (info.created_at, info.key_id))

    def verify(self, header: str | None) -> Principal | None:
        """The principal of an `X-API-Key` header; None for anything but a live key."""
        found = self.check(header)
        return found if isinstance(found, Principal) else None

    def check(self, header: str | None) -> Principal | RefusedKey:
        """`verify`, with the reason where there is no principal."""
        parts = split_key(header)
        self._refresh()
        stored = self._keys.get(parts[0]) if parts else None
        digest = self._pepper.digest(parts[1] if parts else "")
        held: tuple[str | None] | None = None
        # Compared also where no key has that id, so that time does not tell which ids exist.
        for known, ends_at in stored.secrets if stored else ((NOBODY, None),):
            if hmac.compare_digest(digest, known):
                held = (ends_at,)
        if stored is None:
            return RefusedKey(KeyState.UNKNOWN)
        key_id = stored.info.key_id
        if held is None:
            return RefusedKey(KeyState.WRONG_SECRET, key_id)
        if stored.info.revoked_at is not None:
            return RefusedKey(KeyState.REVOKED, key_id)
        if stored.info.expires_at is None and held[0] is None:
            return stored.principal
        now = self._clock()
        if _over(stored.info.expires_at, now):
            return RefusedKey(KeyState.EXPIRED, key_id)
        return RefusedKey(KeyState.SUPERSEDED, key_id) if _over(held[0], now) else stored.principal

    def name_of(self, key_id: str) -> str:
        """See `KeyRing.name_of`."""
        found = self.find(key_id)
        return "" if found is None else found.name

    def live(self, key_id: str) -> Principal | None:
        """See `KeyRing.live`."""
        found = self.find(key_id)
        return found.principal() if found is not None and found.state(self._clock()) == "live" else None

    def readers_of(self, key_id: str) -> frozenset[str]:
        """See `KeyRing.readers_of`."""
        found = self.live(key_id)
        return frozenset() if found is None else found.readers

    def close(self) -> None:
        self._place.close()

    def _live(self, now: datetime) -> Iterator[KeyInfo]:
        return (stored.info for stored in self._keys.values() if stored.info.state(now) == "live")

    @contextmanager
    def _change(self, change: str, info: KeyInfo, by: str, **more: Any) -> Iterator[RecordConnection]:
        """A transaction that changes a key and notes that for the journal; its block sees the newest keys."""
        event = {
            "key_id": info.key_id,
            "name": info.name,
            "change": change,
            "by": by,
            "detail": {**info.terms(), **more},
        }
        try:
            with self._lock:
                with self._place.transaction():
                    self._reload()
                    yield self._place.connection
                    self._place.connection.execute(
                        "INSERT INTO key_change (at, audit_id, event) VALUES (?, ?, ?)",
                        [format_time(self._clock()), str(uuid.uuid4()), json.dumps(event)],
                    )
                self._reload()
        except self._place.errors as error:
            raise self._place.unavailable(error) from error

    def _refresh(self) -> None:
        try:
            with self._lock:
                if self._place.version() != self._seen_version:
                    self._reload()
        except self._place.errors as error:
            raise self._place.unavailable(error) from error

    def _reload(self) -> None:
        self._seen_version = self._place.version()
        connection = self._place.connection
        held: dict[str, list[tuple[bytes, str | None]]] = {}
        for digest, key_id, ends_at in connection.execute("SELECT hash, key_id, ends_at FROM secret"):
            held.setdefault(key_id, []).append((digest, ends_at))
        infos = [_info(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM api_key")]  # noqa: S608
        self._keys = {info.key_id: _Stored(info, info.principal(), tuple(held.get(info.key_id, ()))) for info in infos}
        self.last_change = connection.execute("SELECT coalesce(max(seq), 0) FROM key_change").fetchone()[0]


def _already_revoked(key_id: str) -> UsageError:
    """Another process was first; nothing is written."""
    return UsageError(f"The key {key_id} has just been revoked.", next_step="Make a new one with sentinel keys create.")


def _check_terms(
    scopes: Collection[Scope],
    name: str,
    expires_in: timedelta | None,
    for_key: str | None,
    readers: Collection[str],
) -> None:
    if not scopes:
        raise UsageError("A key without a scope opens nothing.", next_step="Name at least one scope.")
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            "A key's name is 1 to 64 letters, digits, blanks or . _ @ -, with a letter or digit at both ends.",
            next_step="Choose such a name.",
        )
    if expires_in is not None and expires_in <= timedelta(0):
        raise UsageError("A key cannot expire before it is made.", next_step="Give a time in the future.")
    wrong = next((reader for reader in readers if not is_reader_name(reader)), None)
    if wrong is not None:
        raise UsageError(f"{wrong[:80]!r} is no name of a reader. {READER_NAMES}", next_step="Choose such a name.")
    if for_key is not None and Scope.USER not in scopes:
        raise UsageError(
            "Only a key with the scope user opens sessions for another key.",
            next_step="Add the scope user, or leave the other key out.",
        )


def _over(end: str | None, now: datetime) -> bool:
    return end is not None and datetime.fromisoformat(end).astimezone(UTC) <= now


def _info(row: tuple[Any, ...]) -> KeyInfo:
    found = dict(zip(_COLUMNS.split(", "), row, strict=True))
    calls, seconds = found.pop("rate_calls"), found.pop("rate_seconds")
    found |= {
        "scopes": frozenset(map(Scope, json.loads(found["scopes"]))),
        "clearance": Sensitivity[found["clearance"]],
        "readers": frozenset(json.loads(found["readers"])),
    }
    return KeyInfo(**found, rate=None if calls is None else Rate(calls, seconds))
