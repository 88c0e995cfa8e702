"""The API keys and what each stands for: stored ones, made, rotated, revoked and verified, and those of one run.

A change made by another process is seen by the next `verify`, so `sentinel keys` and a running gateway share the file.
What was changed waits in the transaction that changed it, until the journal has recorded it. Keys of a run are kept in
memory as hashes, never stored.

The file of the keys, its pepper, and what is kept of a key's text.

A key is `sr_<id>_<secret>` with 256 random bits of secret. Kept is HMAC-SHA256 under the pepper over the secret's
SHA-256; the pepper lies in a file of its own, so that a copy of the database alone cannot even check a guess. A slow
hash for passwords would buy nothing: 256 random bits cannot be guessed at any speed. Files of older versions are
brought up to date in place, so keys that people hold stay valid.
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
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
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
from sentinel_rag.storage import begin_write_ahead
from sentinel_rag.storage.sqlite import connect

_FORM = re.compile(r"sr_([0-9a-f]{12})_([0-9a-f]{64})")
_PEPPER = re.compile(r"[0-9a-f]{64}\n?")

PEPPER_FILE = "keys.pepper"
"""Where the pepper lies, in the folder of the gateway."""

NOBODY = bytes(32)
"""Compared with where no key has the id; no HMAC is ever known to be this."""


def new_key_id() -> str:
    return secrets.token_hex(6)


def new_secret() -> str:
    return secrets.token_hex(32)


def key_text(key_id: str, secret: str) -> str:
    return f"sr_{key_id}_{secret}"


def split_key(header: str | None) -> tuple[str, str] | None:
    """Id and secret of a key's text; None for every other text."""
    match = _FORM.fullmatch(header or "")
    return (match[1], match[2]) if match else None


class Pepper:
    """The secret half of every stored hash, 256 random bits."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper

    def digest(self, secret: str) -> bytes:
        """What is stored of a secret, 32 bytes."""
        return self.strengthen(hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest())

    def strengthen(self, plain: bytes) -> bytes:
        """`digest` of the secret whose plain SHA-256 is `plain`: what files of version 0 hold."""
        return hmac.digest(self._pepper, plain, "sha256")

    def fingerprint(self) -> bytes:
        """Tells one pepper from another and nothing else about it."""
        return hmac.digest(self._pepper, b"sentinel-rag key store", "sha256")

    def authenticate(self, text: bytes) -> bytes:
        """What only who has the pepper can tell of a text, 32 bytes; it is no digest of a key."""
        derived = hmac.digest(self._pepper, b"sentinel-rag authenticated texts", "sha256")
        return hmac.digest(derived, text, "sha256")


def parse_pepper(content: bytes) -> Pepper | None:
    """The pepper that a file holds; None if it holds none."""
    text = content.decode("ascii", "replace")
    return Pepper(bytes.fromhex(text.strip())) if _PEPPER.fullmatch(text) else None


def read_pepper(path: Path) -> Pepper | None:
    """The pepper in `path`; None if there is no such file. Raises UnavailableError for a file that holds none, or that
    others may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            pepper = parse_pepper(file.read(128))
    except FileNotFoundError:
        return None
    if mode & 0o077:
        raise UnavailableError(
            f"The file {path.name} may be read by others than its owner, so the stored keys are not as safe as they "
            "should be.",
            next_step=f"Run: chmod 600 {path}; then rotate the keys if somebody may have read it.",
        )
    if pepper is None:
        raise UnavailableError(
            f"The file {path.name} is damaged: it should hold 64 hexadecimal digits.",
            next_step="Restore it from a backup, or move it and keys.sqlite away and make new keys.",
        )
    return pepper


def make_pepper(path: Path) -> Pepper:
    """A new pepper in `path`, whole or not at all. The caller sees to it that one process does this at a time."""
    pepper = secrets.token_bytes(32)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(pepper.hex() + "\n")
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    return Pepper(pepper)


PEPPER_SUFFIX = ".pepper"
BUSY_SECONDS = 5.0


def open_key_file(path: Path) -> tuple[sqlite3.Connection, Pepper]:
    """The database at `path` in the newest version, and its pepper beside it; both made if they are missing.

    Raises UnavailableError for a file that cannot be used, was written by a newer version, or lost its pepper.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = connect(path, busy_s=BUSY_SECONDS)
        with ExitStack() as opened:
            opened.enter_context(closing(connection))
            begin_write_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")
            with transaction(connection):  # of two processes that open a new file, one makes the pepper
                pepper = _prepare(connection, path)
            opened.pop_all()
    except (OSError, sqlite3.Error) as error:
        raise UnavailableError(
            f"The key store {path.name} cannot be opened: {error}.",
            next_step="Check the state folder's permissions, or point it elsewhere.",
        ) from error
    return connection, pepper


class KeyFile:
    """The keys in the file at `path`, as `KeyStore` uses them; whoever uses it does so from one thread at a time."""

    errors = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        """Raises UnavailableError as `open_key_file` does."""
        self._path = path
        self.connection, self.pepper = open_key_file(path)

    def transaction(self) -> transaction:
        """Of all who change keys, one at a time."""
        return transaction(self.connection)

    def version(self) -> int:
        """Changes when another connection has committed; about 2 µs."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def unavailable(self, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"The key store {self._path.name} cannot be used: {error}.",
            next_step="Check the state folder's permissions and free space, then repeat.",
        )

    def close(self) -> None:
        self.connection.close()


class transaction:  # reads as a statement
    """`with transaction(connection):` all of the block, or nothing of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def _prepare(connection: sqlite3.Connection, path: Path) -> Pepper:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise UnavailableError(
            f"{path.name} was written by a newer version of Sentinel RAG (key schema {version}, this one knows "
            f"{len(MIGRATIONS)}).",
            next_step="Install the newer version, or point the state folder elsewhere.",
        )
    beside = path.with_suffix(PEPPER_SUFFIX)
    pepper = read_pepper(beside)
    if pepper is None:
        if version > 0 and connection.execute("SELECT 1 FROM secret LIMIT 1").fetchone() is not None:
            raise UnavailableError(
                f"The file {beside.name} is missing, and without it no stored key can be checked.",
                next_step=f"Restore it from a backup, or move {path.name} away and make new keys.",
            )
        pepper = make_pepper(beside)
        if version > 0:
            connection.execute("UPDATE key_store SET pepper = ?", [pepper.fingerprint()])
    for migrate in MIGRATIONS[version:]:
        migrate(connection, pepper)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    if connection.execute("SELECT pepper FROM key_store").fetchone()[0] != pepper.fingerprint():
        raise UnavailableError(
            f"The file {beside.name} does not belong to {path.name}, so no stored key can be checked.",
            next_step=f"Restore both from one backup, or move {path.name} away and make new keys.",
        )
    return pepper


def begin_store(connection: RecordConnection, pepper: Pepper) -> None:
    """Give a new store its id, and note which pepper its keys are hashed with."""
    connection.execute("INSERT INTO key_store VALUES (?, ?)", [secrets.token_hex(16), pepper.fingerprint()])


def key_tables(connection: RecordConnection) -> None:
    """The tables of a new store."""
    connection.execute("CREATE TABLE key_store (store_id TEXT NOT NULL, pepper BLOB NOT NULL) STRICT")
    connection.execute(
        "CREATE TABLE api_key (key_id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, "
        "clearance TEXT NOT NULL, rate_calls INTEGER, rate_seconds REAL, for_key TEXT, created_at TEXT NOT NULL, "
        "rotated_at TEXT, expires_at TEXT, revoked_at TEXT) STRICT"
    )
    # The secrets of a key: the newest has no end of its own, one before it may overlap until `ends_at`.
    connection.execute(
        "CREATE TABLE secret (hash BLOB PRIMARY KEY, key_id TEXT NOT NULL REFERENCES api_key, ends_at TEXT) STRICT"
    )
    # What was changed, in the transaction that changed it: the journal is told from here, once.
    connection.execute(
        "CREATE TABLE key_change (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, audit_id TEXT NOT NULL, "
        "event TEXT NOT NULL) STRICT"
    )


def _version_1(connection: sqlite3.Connection, pepper: Pepper) -> None:
    old = []
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'api_key'").fetchone() is not None:
        rows = connection.execute("SELECT key_id, name, hash, scopes, created_at, revoked_at FROM api_key")
        old = rows.fetchall()
        connection.execute("DROP TABLE api_key")
    key_tables(connection)
    begin_store(connection, pepper)
    for key_id, name, plain, scopes, created_at, revoked_at in old:
        connection.execute(
            "INSERT INTO api_key (key_id, name, scopes, clearance, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?)",
            [key_id, name, scopes, "LOW", created_at, revoked_at],
        )
        connection.execute("INSERT INTO secret VALUES (?, ?, NULL)", [pepper.strengthen(plain), key_id])


def key_readers(connection: RecordConnection) -> None:
    """Names under which a key may read, as a JSON list; keys made before read what is for everybody."""
    connection.execute("ALTER TABLE api_key ADD COLUMN readers TEXT NOT NULL DEFAULT '[]'")


def _version_2(connection: sqlite3.Connection, _: Pepper) -> None:
    key_readers(connection)


MIGRATIONS: tuple[Callable[[sqlite3.Connection, Pepper], None], ...] = (_version_1, _version_2)


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
