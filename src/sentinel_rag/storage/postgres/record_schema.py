"""Records of a store in a schema of its own, which any number of processes use as equals. See `storage.port`.

A transaction that writes holds the advisory lock of the schema from its first statement to its commit, as a gateway's
batch does, so that each sees what every one before it wrote. One connection serves a process: what people keep is
written a few times for each question.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage import Migration, RecordConnection
from sentinel_rag.storage.port import VERSIONS, PostgresPlace, StateAway, bring_up
from sentinel_rag.storage.postgres.connecting import Connector, StateConnection, is_lost
from sentinel_rag.storage.postgres.database import lock_of
from sentinel_rag.storage.postgres.members import hold, is_held

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class RecordSchema:
    """The tables of `component`, made by `steps`, at `place`; reached when it is first used. `what` they are called in
    errors, `setting` is where the address stands. Where several stores share a schema, each has a component and tables
    of its own."""

    shared = True

    def __init__(
        self,
        place: PostgresPlace,
        component: str,
        steps: Sequence[Migration],
        *,
        what: str,
        setting: str = "SENTINEL_DATABASE_URL",
    ) -> None:
        self.name = f"the schema {place.schema} in PostgreSQL"
        self.holder = secrets.token_hex(8)
        self._component = component
        self._steps = steps
        self._what = what
        self._connector = Connector(place, setting=setting, holds="these records")
        self._write = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({lock_of(place.schema)})"
        self._raw: psycopg.Connection[Any] | None = None
        self._made = False
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self, *, reads: bool = False) -> Iterator[RecordConnection]:
        with self._lock:
            try:
                raw = self._begun(_READ if reads else self._write)
                try:
                    yield StateConnection(raw)
                    self._commit(raw)
                except BaseException as error:
                    self._undo(raw, error)
                    raise
            except psycopg.Error as error:
                raise self._unusable(self._connector.away(error)) from None
            except StateAway as away:
                raise self._unusable(away) from None

    def is_live(self, run: RecordConnection, holder: str) -> bool:
        """A process that is cut off from the database counts as one that ended, until it is back."""
        return holder == self.holder or is_held(run, holder)

    def exists(self) -> bool:
        return True

    def forget(self) -> None:
        """Nothing: the server gives the room of deleted rows to new ones (VACUUM), and backups are its own matter."""

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _begun(self, begin: str) -> psycopg.Connection[Any]:
        """A connection whose transaction has begun. One that broke while it rested is replaced: nothing was lost."""
        if self._raw is not None:
            try:
                return _begin(self._raw, begin)
            except psycopg.Error as error:
                if not is_lost(self._raw, error):
                    self._undo(self._raw, error)
                    raise
                self._drop()
        self._raw = self._connected()
        return _begin(self._raw, begin)

    def _connected(self) -> psycopg.Connection[Any]:
        raw = self._connector.connect()
        try:
            hold(raw, self.holder)
            if not self._made:
                self._make(raw)
                self._made = True
        except BaseException:
            raw.close()
            raise
        return raw

    def _make(self, raw: psycopg.Connection[Any]) -> None:
        """Do the steps that are not done, as the only process that does."""
        _begin(raw, self._write)
        connection = StateConnection(raw)
        # A role that may not make tables may not even ask for one that is there.
        if connection.execute("SELECT to_regclass('schema_version') IS NULL").fetchone() == (True,):
            connection.execute(VERSIONS)
        bring_up(self._component, self._steps, self._what, connection, make=False)
        self._commit(raw)

    def _commit(self, raw: psycopg.Connection[Any]) -> None:
        ended = raw.execute("COMMIT", prepare=False)
        if ended.statusmessage != "COMMIT":
            raise psycopg.OperationalError("a statement failed, so nothing was kept")

    def _undo(self, raw: psycopg.Connection[Any], error: BaseException) -> None:
        if isinstance(error, psycopg.Error) and is_lost(raw, error):
            self._drop()
            return
        with suppress(psycopg.Error):
            raw.execute("ROLLBACK", prepare=False)
        if raw.closed or raw.broken:
            self._drop()

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            with suppress(psycopg.Error):
                raw.close()

    def _unusable(self, away: StateAway) -> UnavailableError:
        return UnavailableError(f"{self._what} cannot be used now. {away}", next_step=away.next_step)


def _begin(raw: psycopg.Connection[Any], begin: str) -> psycopg.Connection[Any]:
    raw.execute(begin, prepare=False)
    return raw
