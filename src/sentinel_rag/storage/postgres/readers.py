"""Connections that only read: a few that threads borrow in turn, and one moment of the whole journal.

Neither takes the lock of the writers, so neither waits for one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.port import PostgresPlace
from sentinel_rag.storage.postgres.connecting import LARGE_S, Connector, StateConnection, is_lost

MOST = 4
WAIT_S = 10
STALE_S = 5.0
"""A connection that has rested longer is asked whether it still lives before it is lent."""


class Readers:
    """At most `MOST` connections to a place. From any thread."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._free: list[tuple[float, psycopg.Connection[Any]]] = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST)
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[StateConnection]:
        """A connection for the block. Raises StateAway, also for what fails in the block."""
        if not self._room.acquire(timeout=WAIT_S):
            raise self._connector.away(psycopg.OperationalError("all connections for reading are in use"))
        try:
            raw = self._take() or self._connector.connect(read_only=True)
            try:
                yield StateConnection(raw)
            except BaseException as error:
                if isinstance(error, psycopg.Error) and is_lost(raw, error):
                    self._drop(raw)
                else:
                    self._give_back(raw)
                if isinstance(error, psycopg.Error):
                    raise self._connector.away(error) from None
                raise
            self._give_back(raw)
        finally:
            self._room.release()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, raw in free:
            raw.close()

    def _take(self) -> psycopg.Connection[Any] | None:
        with self._lock:
            if not self._free:
                return None
            rested_since, raw = self._free.pop()
        if time.monotonic() - rested_since > STALE_S:
            try:
                raw.execute("SELECT 1")
            except psycopg.Error:
                self._drop(raw)
                return None
        return raw

    def _give_back(self, raw: psycopg.Connection[Any]) -> None:
        with self._lock:
            if not self._closed and not raw.closed:
                self._free.append((time.monotonic(), raw))
                return
        raw.close()

    def _drop(self, raw: psycopg.Connection[Any]) -> None:
        """This one and those that rest: what ended one has most likely ended all."""
        with self._lock:
            lost, self._free = [raw, *(each for _, each in self._free)], []
        for each in lost:
            with suppress(psycopg.Error):
                each.close()


@contextmanager
def one_moment(place: PostgresPlace) -> Iterator[StateConnection]:
    """The journal at `place` as it is now, whatever is written meanwhile, over a connection of its own.

    Raises UnavailableError if there is none, StateAway for what fails in the block.
    """
    connector = Connector(place)
    raw = connector.connect(read_only=True)
    try:
        raw.execute(f"SET statement_timeout = '{LARGE_S}s'; SET idle_in_transaction_session_timeout = '{LARGE_S}s'")
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if raw.execute("SELECT to_regclass('journal')").fetchone() == (None,):
            raise UnavailableError(
                f"There is no audit journal in the schema {place.schema} yet: no gateway has run with this database.",
                next_step="Start one with sentinel up, or check SENTINEL_DATABASE_URL and SENTINEL_DATABASE_SCHEMA.",
            )
        yield StateConnection(raw)
    except psycopg.Error as error:
        raise connector.away(error) from None
    finally:
        raw.close()
