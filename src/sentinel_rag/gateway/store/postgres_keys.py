"""The keys in PostgreSQL. The pepper stays outside, in a file of each gateway: a copy of the database alone cannot even
check a guess.

A gateway that serves hears of a change within a moment (LISTEN), and asks each second in case it did not; one that has
heard nothing for `STALE_S` takes no key any more, since one of them may have been revoked meanwhile.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from sentinel_rag.audit import PostgresPlace, RecordConnection, StateAway
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store.keys import (
    PEPPER_FILE,
    Pepper,
    begin_store,
    key_readers,
    key_tables,
    make_pepper,
    read_pepper,
)
from sentinel_rag.storage.port import VERSIONS, bring_up
from sentinel_rag.storage.postgres.connecting import Connector, StateConnection, is_alive
from sentinel_rag.storage.postgres.database import lock_of

ASK_S = 1.0
STALE_S = 5.0
_NEWEST = "SELECT coalesce(max(seq), 0) FROM key_change"


class PostgresKeys:
    """The keys in `place`, for a `KeyStore`. `serving`: for a process that checks keys all day, which asks no database
    to do so."""

    errors = (psycopg.Error,)

    def __init__(self, place: PostgresPlace, *, serving: bool = False) -> None:
        """Raises UnavailableError if the database cannot be used, or this machine lacks the pepper of its keys."""
        self._connector = Connector(place)
        self._lock = lock_of(place.schema)
        self._channel = f"{place.schema}_keys"
        self._connection = StateConnection(self._connector.connect())
        self._used_at = time.monotonic()
        self._watch: _Watch | None = None
        try:
            with self.transaction():
                self.pepper = _prepare(self._connection, place.folder / PEPPER_FILE)
            if serving:
                self._watch = _Watch(self._connector, self._channel)
        except psycopg.Error as error:
            self.close()
            raise self.unavailable(error) from None
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> StateConnection:
        """Connected anew where it was lost. Raises StateAway."""
        raw = self._connection.raw
        rests = raw.info.transaction_status is TransactionStatus.IDLE
        if raw.closed or (rests and not is_alive(raw, self._used_at)):
            self._connection = StateConnection(self._connector.connect())
        self._used_at = time.monotonic()
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """By turns with all who write the state, and told to all who listen."""
        raw = self.connection.raw
        with raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(%s)", [self._lock])
            yield
            raw.execute("SELECT pg_notify(%s, '')", [self._channel])

    def version(self) -> int:
        """The number of the newest change. Raises StateAway if it is not known any more."""
        if self._watch is not None:
            return self._watch.newest()
        return int(self.connection.execute(_NEWEST).fetchone()[0])  # type: ignore[index]  # a total has a row

    def unavailable(self, error: Exception) -> UnavailableError:
        return self._connector.away(error)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._connection.raw.close()


class _Watch:
    """Knows the number of the newest change of a key, from a thread with a connection of its own."""

    def __init__(self, connector: Connector, channel: str) -> None:
        self._connector = connector
        self._channel = channel
        self._stopping = threading.Event()
        self._woken, self._wake = socket.socketpair()
        self._raw = self._listen()
        self._number = 0
        self._heard_at = 0.0
        self._ask(self._raw)
        self._thread = threading.Thread(target=self._serve, name="key-watch", daemon=True)
        self._thread.start()

    def newest(self) -> int:
        if time.monotonic() - self._heard_at > STALE_S:
            raise StateAway(
                "The keys cannot be checked: the database of the gateway's state does not answer.",
                next_step="Check that PostgreSQL runs; calls go on by themselves once it is back.",
            )
        return self._number

    def close(self) -> None:
        self._stopping.set()
        self._wake.close()
        self._thread.join()
        self._woken.close()

    def _serve(self) -> None:
        raw: psycopg.Connection[Any] | None = self._raw
        while not self._stopping.is_set():
            try:
                raw = raw or self._listen()
                self._ask(raw)
                self._wait(raw)
            except (psycopg.Error, StateAway):
                if raw is not None:
                    with suppress(psycopg.Error):
                        raw.close()
                    raw = None
                self._stopping.wait(ASK_S / 2)
        if raw is not None:
            raw.close()

    def _wait(self, raw: psycopg.Connection[Any]) -> None:
        """Until something was heard, `ASK_S` has passed, or this is closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(raw.fileno(), selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            selector.select(ASK_S)

    def _listen(self) -> psycopg.Connection[Any]:
        raw = self._connector.connect(read_only=True)
        raw.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(self._channel)))
        return raw

    def _ask(self, raw: psycopg.Connection[Any]) -> None:
        asked_at = time.monotonic()
        row = raw.execute(_NEWEST).fetchone()
        assert row is not None  # a total has a row
        self._number, self._heard_at = row[0], asked_at


def make_key_tables(connection: RecordConnection) -> None:
    """Bring the tables up to date; they are nobody's until a gateway with a pepper begins the store."""
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
        connection.execute(VERSIONS)
    bring_up("key_store", (key_tables, key_readers), "The database", connection, make=False)


def _prepare(connection: RecordConnection, file: Path) -> Pepper:
    """Tables that are up to date, and the pepper in `file`, made if the store is new."""
    make_key_tables(connection)
    pepper = read_pepper(file)
    held = connection.execute("SELECT pepper FROM key_store").fetchone()
    if held is None:
        if pepper is None:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            pepper = make_pepper(file)
        begin_store(connection, pepper)
        return pepper
    where = "Copy it from the state folder of a gateway with this database; see docs/postgresql.md."
    if pepper is None:
        raise UnavailableError(
            f"The file {file.name} is missing on this machine, and without it no stored key can be checked.",
            next_step=where,
        )
    if held[0] != pepper.fingerprint():
        raise UnavailableError(
            f"The file {file.name} does not belong to the keys of this database, so none of them can be checked.",
            next_step=where,
        )
    return pepper
