"""The file of the keys, its pepper, and what is kept of a key's text.

A key is `sr_<id>_<secret>` with 256 random bits of secret. Kept is HMAC-SHA256 under the pepper over the secret's
SHA-256; the pepper lies in a file of its own, so that a copy of the database alone cannot even check a guess. A slow
hash for passwords would buy nothing: 256 random bits cannot be guessed at any speed. Files of older versions are
brought up to date in place, so keys that people hold stay valid.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.errors import UnavailableError
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
