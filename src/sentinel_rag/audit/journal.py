"""The writing side of the journal.

`append` returns when the record is durable. The head is read inside the same immediate transaction that writes the next
record, so two processes with one file cannot fork the chain, and opening costs the same however long the history is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import anyio.to_thread

from sentinel_rag.audit.chain import GENESIS, Head, seal
from sentinel_rag.audit.database import Database, Work
from sentinel_rag.audit.events import AuditEvent, CallIntended, CallOutcome, OutcomeStatus
from sentinel_rag.audit.reader import Entry, JournalReader, Verification
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time


def _tables(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE journal (seq INTEGER PRIMARY KEY, audit_id TEXT NOT NULL, kind TEXT NOT NULL, "
        "record BLOB NOT NULL, hash BLOB NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX journal_audit_id ON journal (audit_id, kind)")
    # Calls without an outcome yet: bounded by the calls in flight, so a restart finds them without reading history.
    connection.execute("CREATE TABLE open_call (audit_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID")


MIGRATIONS = (_tables,)


class Journal:
    """The journal in `database`. One owner at a time: opening it closes the calls of an owner that died."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._reader = JournalReader(database.path)
        database.migrate("journal", MIGRATIONS)
        self.interrupted = database.run_now(self._close_open_calls)
        """How many calls of an earlier owner had no outcome; each has one now, with status unknown."""

    async def append(self, event: AuditEvent, *, alongside: Work[object] | None = None) -> Head:
        """Write one record; returns its place once it is durable. `alongside` is done in the same transaction, first.

        Raises UnavailableError if it cannot be written; then `alongside` did not happen either.
        """
        return await self._database.run(self._record(event, alongside))

    async def head(self) -> Head:
        """The place of the last record; `GENESIS` for an empty journal."""
        return await self._database.run(_head)

    async def read(self, after_seq: int = 0, limit: int = 100) -> list[Entry]:
        """At most `limit` records with a sequence number above `after_seq`, oldest first."""
        return await anyio.to_thread.run_sync(self._reader.read, after_seq, limit)

    async def find(self, audit_id: str) -> list[Entry]:
        """All records of one call, oldest first; empty if there are none."""
        return await anyio.to_thread.run_sync(self._reader.find, audit_id)

    async def verify(self, known: Head | None = None) -> Verification:
        """Check the whole chain; see `JournalReader.verify`."""
        return await anyio.to_thread.run_sync(self._reader.verify, known)

    def _record(self, event: AuditEvent, alongside: Work[object] | None) -> Callable[[sqlite3.Connection], Head]:
        fields = {"at": format_time(self._clock()), "kind": event.kind, "audit_id": event.audit_id, **event.fields()}

        def work(connection: sqlite3.Connection) -> Head:
            if alongside is not None:
                alongside(connection)
            head, record = seal(_head(connection), fields)
            connection.execute(
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
                [head.seq, event.audit_id, event.kind, record, head.digest],
            )
            if event.kind == CallIntended.kind:
                connection.execute("INSERT INTO open_call VALUES (?)", [event.audit_id])
            elif event.kind == CallOutcome.kind:
                connection.execute("DELETE FROM open_call WHERE audit_id = ?", [event.audit_id])
            return head

        return work

    def _close_open_calls(self, connection: sqlite3.Connection) -> int:
        left = [row[0] for row in connection.execute("SELECT audit_id FROM open_call ORDER BY audit_id")]
        for audit_id in left:
            self._record(CallOutcome(audit_id=audit_id, status=OutcomeStatus.UNKNOWN), None)(connection)
        return len(left)


def _head(connection: sqlite3.Connection) -> Head:
    row = connection.execute("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    return GENESIS if row is None else Head(row[0], row[1])
