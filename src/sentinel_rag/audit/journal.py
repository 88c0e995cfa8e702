"""The writing side of the journal.

`append` returns when the record is durable. The head is read inside the same immediate transaction that writes the next
record, so two processes with one file cannot fork the chain, and opening costs the same however long the history is.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Protocol

import anyio.to_thread

from sentinel_rag.audit.archive import SEGMENT_RECORDS, Archive, TableArchive
from sentinel_rag.audit.chain import GENESIS, ChainHead, seal
from sentinel_rag.audit.events import AuditEvent, CallIntended, CallOutcome, OutcomeStatus, SealingChanged, TailSealed
from sentinel_rag.audit.files import MIGRATIONS
from sentinel_rag.audit.reader import JournalEntry, JournalPage, JournalReader, RecordFilter
from sentinel_rag.audit.sealing import Sealer, Sealing
from sentinel_rag.audit.verification import Verification
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage.group_commit import Database
from sentinel_rag.storage.port import RecordConnection, StateAway, StateDatabase, Work, known_of, put
from sentinel_rag.storage.sqlite import Solo


class Membership(Protocol):
    """Who else writes to the file; `storage.sqlite.Instance` is one."""

    @property
    def instance_id(self) -> str: ...

    def is_live(self, instance_id: str) -> bool: ...

    def alone(self) -> bool: ...

    def take_over(self) -> tuple[str, ...]: ...


class JournalListener(Protocol):
    """Hears of each record that `append` wrote or could not write, in the task that asked for it."""

    def written(self, event: AuditEvent, seconds: float) -> None: ...

    def failed(self, event: AuditEvent) -> None: ...


class Journal:
    """The journal in `database`. Opening it closes the calls of processes that died. Close it before the database.

    Without `sealing` nothing is signed, and a cut tail cannot be found: for tests and tools.
    """

    def __init__(
        self,
        database: StateDatabase,
        *,
        clock: Clock = utc_now,
        membership: Membership | None = None,
        sealing: Sealing | None = None,
        segment_records: int = SEGMENT_RECORDS,
    ) -> None:
        """Raises UnavailableError if the file cannot be used, JournalCut if it lacks what was sealed."""
        self._database = database
        self._clock = clock
        self._membership = membership or Solo()
        self._reader = JournalReader(database.place)
        self._sealer: Sealer | None = None
        self.listeners: list[JournalListener] = []
        self.archive: Archive | TableArchive
        """Removes old records; from a file they move into segments first."""
        if isinstance(database, Database):
            self.archive = Archive(
                database, record=self.append_now, seal=self.seal_now, segment_records=segment_records
            )
        else:
            self.archive = TableArchive(database, record=self.append_now, seal=self.seal_now)
        database.migrate("journal", MIGRATIONS)
        if sealing is not None:
            self._sealer = Sealer(database, sealing, clock=clock, report=self._report)
        try:
            if self._sealer is not None:
                self._recover(self._sealer.begin())
                self._sealer.after_seal = self.archive.sealed
            self.interrupted = database.run_now(self._close_open_calls)
            """How many calls of processes that died had no outcome; each has one now, with status unknown."""
            if self._sealer is not None:
                self._sealer.committed()
                self.archive.resume()
        except BaseException:
            self.close()
            raise

    async def append(self, event: AuditEvent, *, alongside: Work[object] | None = None) -> ChainHead:
        """Write one record; returns its place once it is durable. `alongside` is done in the same transaction, first.

        Raises UnavailableError if it cannot be written; then `alongside` did not happen either.
        """
        started = time.perf_counter()
        try:
            head = await self._append(event, alongside)
        except UnavailableError:
            for listener in self.listeners:
                listener.failed(event)
            raise
        for listener in self.listeners:
            listener.written(event, time.perf_counter() - started)
        return head

    async def _append(self, event: AuditEvent, alongside: Work[object] | None) -> ChainHead:
        try:
            head = await self._database.run(self._record(event, alongside))
        except (UnavailableError, asyncio.CancelledError):
            self._leave_no_doubt(event)
            raise
        if self._sealer is not None:
            self._sealer.committed()
        return head

    def append_now(self, event: AuditEvent, alongside: Work[object] | None = None) -> ChainHead:
        """`append` for callers without an event loop; blocks."""
        head = self._database.run_now(self._record(event, alongside))
        if self._sealer is not None:
            self._sealer.committed()
        return head

    def seal_now(self) -> ChainHead:
        """Sign the head now and return it; blocks. Without `sealing` just the head."""
        return self._database.run_now(_head) if self._sealer is None else self._sealer.seal()

    async def head(self) -> ChainHead:
        """The place of the last record; `GENESIS` for an empty journal."""
        return await self._database.run(_head)

    async def read(self, after_seq: int = 0, limit: int = 100) -> list[JournalEntry]:
        """At most `limit` records with a sequence number above `after_seq`, oldest first."""
        return await anyio.to_thread.run_sync(self._reader.read, after_seq, limit)

    async def back(self, wanted: RecordFilter, before: int | None, limit: int) -> JournalPage:
        """Records before number `before` that `wanted` accepts, newest first; see `JournalReader.back`."""
        return await anyio.to_thread.run_sync(self._reader.back, wanted, before, limit)

    async def sessions_of(self, keys: frozenset[str], before: int | None) -> frozenset[str]:
        """Sessions that these keys opened; see `JournalReader.sessions_of`."""
        return await anyio.to_thread.run_sync(self._reader.sessions_of, keys, before)

    async def find(self, audit_id: str) -> list[JournalEntry]:
        """All records of one call, oldest first; empty if there are none."""
        return await anyio.to_thread.run_sync(self._reader.find, audit_id)

    async def verify(self, known: ChainHead | None = None) -> Verification:
        """Check the whole chain; see `JournalReader.verify`."""
        return await anyio.to_thread.run_sync(self._reader.verify, known)

    def close(self) -> None:
        """Seal what is left. Idempotent."""
        self.archive.close()
        if self._sealer is not None:
            self._sealer.close()

    def _record(self, event: AuditEvent, alongside: Work[object] | None) -> Callable[[RecordConnection], ChainHead]:
        fields = {"at": format_time(self._clock()), "kind": event.kind, "audit_id": event.audit_id, **event.fields()}

        def work(connection: RecordConnection) -> ChainHead:
            if alongside is not None:
                alongside(connection)
            head, record = seal(_head(connection), fields)
            put(
                connection,
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
                [head.seq, event.audit_id, event.kind, record, head.digest],
            )
            if event.kind == CallIntended.kind:
                put(
                    connection,
                    "INSERT INTO open_call (audit_id, instance) VALUES (?, ?)",
                    [event.audit_id, self._membership.instance_id],
                )
            elif event.kind == CallOutcome.kind:
                open_calls = connection.execute("DELETE FROM open_call WHERE audit_id = ?", [event.audit_id]).rowcount
                if not open_calls and self._database.exact_outcomes:
                    raise StateAway(
                        "This call is on record as unknown: its gateway was away from the database while it ran.",
                        next_step="It may have taken effect: look before you call again.",
                    )
            known = known_of(connection)
            if known is not None:
                known["head"] = head
            return head

        return work

    def _recover(self, sealed: ChainHead) -> None:
        """Seal a tail that nobody else will, and say so. One of two that start at once does it."""
        left_behind = self._membership.take_over()
        head = self._database.run_now(_head)
        if head.seq > sealed.seq and (left_behind or self._membership.alone()):
            self.append_now(TailSealed(audit_id=str(uuid.uuid4()), first=sealed.seq + 1, last=head.seq))
            self.seal_now()

    def _close_open_calls(self, connection: RecordConnection) -> int:
        rows = connection.execute("SELECT audit_id, instance FROM open_call ORDER BY audit_id").fetchall()
        live = {instance for _, instance in rows if self._membership.is_live(instance)}
        left = [audit_id for audit_id, instance in rows if instance not in live]
        for audit_id in left:
            self._record(CallOutcome(audit_id=audit_id, status=OutcomeStatus.UNKNOWN), None)(connection)
        return len(left)

    def _leave_no_doubt(self, event: AuditEvent) -> None:
        """Of a record that nobody acknowledged: if it was an intent, or one is left open by it, the call is closed."""
        if self._database.exact_outcomes and event.kind in (CallIntended.kind, CallOutcome.kind):
            self._database.later(partial(self._close_if_open, event.audit_id))

    def _close_if_open(self, audit_id: str, connection: RecordConnection) -> None:
        if connection.execute("SELECT 1 FROM open_call WHERE audit_id = ?", [audit_id]).fetchone() is not None:
            self._record(CallOutcome(audit_id=audit_id, status=OutcomeStatus.UNKNOWN), None)(connection)

    def _report(self, place: str, problem: str) -> None:
        self.append_now(SealingChanged(audit_id=str(uuid.uuid4()), place=place, problem=problem))


def _head(connection: RecordConnection) -> ChainHead:
    known = known_of(connection)
    if known is not None and "head" in known:
        head: ChainHead = known["head"]
        return head
    row = connection.execute("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    return GENESIS if row is None else ChainHead(row[0], row[1])
