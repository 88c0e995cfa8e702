"""The writing side of the journal, and its sealer: a thread that signs the head soon after new records, and when the
journal is closed.

`append` returns when the record is durable. The head is read inside the same immediate transaction that writes the next
record, so two processes with one file cannot fork the chain, and opening costs the same however long the history is.

Nobody waits for it. Before it signs it waits for the disk, so what is sealed survives a power cut too, whatever the
durability of a single record.

Rotation and retention: sealed records move into segments, whole old segments or rows can be removed.

Each step is safe to die in: a segment is registered in the transaction that says so, its rows leave the live file only
after that, and nothing is removed before the record of its removal is signed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from sentinel_rag.audit.chain import (
    GENESIS,
    KEY_FILE,
    PUBLIC_FILE,
    ChainHead,
    Checkpoint,
    CheckpointFile,
    SigningKey,
    SigningKeyLost,
    seal,
)
from sentinel_rag.audit.events import (
    AppendRecord,
    AuditEvent,
    CallIntended,
    CallOutcome,
    OutcomeStatus,
    RecordsPruned,
    SealingChanged,
    SegmentClosed,
    TailSealed,
)
from sentinel_rag.audit.files import (
    MIGRATIONS,
    SEGMENTS_FOLDER,
    Segment,
    all_segments,
    boundary,
    drop_rows,
    fill,
    forget,
    last_of,
    last_record,
    register,
    sync,
)
from sentinel_rag.audit.reader import JournalEntry, JournalPage, JournalReader, RecordFilter
from sentinel_rag.audit.verification import Verification
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.storage.group_commit import Database
from sentinel_rag.storage.port import (
    JournalPlace,
    PostgresPlace,
    RecordConnection,
    StateAway,
    StateDatabase,
    Work,
    checkpoints_of,
    folder_of,
    known_of,
    put,
)
from sentinel_rag.storage.sqlite import Solo, connect, exclusive

SEGMENT_RECORDS = 100_000
"""Records after which a running gateway begins a new segment; about 120 MB."""

_DELETE_PAUSE = 0.005
"""Seconds between two deletions, so that calls pass between them."""


class Archive:
    """The segments of the journal in `database`. Its methods block; none belongs into an event loop."""

    def __init__(
        self,
        database: Database,
        *,
        record: AppendRecord,
        seal: Callable[[], ChainHead],
        segment_records: int = SEGMENT_RECORDS,
    ) -> None:
        self._database = database
        self._record = record
        self._seal = seal
        self._segment_records = segment_records
        self._folder = database.path.parent / SEGMENTS_FOLDER
        self._moved_through = 0
        self._moving = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def segments(self) -> list[Segment]:
        """Oldest first."""
        return self._database.run_now(all_segments)

    def rotate(self, *, at_least: int = 1) -> Segment | None:
        """Move everything that is sealed into a new segment. None if fewer than `at_least` records would move.

        Raises UnavailableError if another process moves records right now, or if the disk is full.
        """
        with self._alone():
            self._finish()
            head = self._seal()
            done = self._boundary()
            if head.seq - done.seq < at_least:
                return None
            segment = self._copy(done, head)
            event = SegmentClosed(
                audit_id=str(uuid.uuid4()),
                file=segment.file,
                first=segment.first,
                last=segment.last,
                last_hash=segment.last_hash.hex(),
            )
            self._record(event, lambda connection: register(connection, segment))
            self._moved_through = segment.last
            self._finish()
            self._seal()
            return segment

    def prune(self, older_than: datetime) -> list[Segment]:
        """Remove the oldest segments whose every record is older than `older_than`; returns them.

        What is left proves itself and says what was removed. Raises UnavailableError as `rotate` does.
        """
        with self._alone():
            if not self._finish():
                raise UnavailableError("The gateway is stopping.", next_step="Prune again after it has stopped.")
            gone: list[Segment] = []
            for segment in self.segments():
                if parse_time(segment.last_at) >= older_than:
                    break
                gone.append(segment)
            if gone:
                event = RecordsPruned(
                    audit_id=str(uuid.uuid4()),
                    first=gone[0].first,
                    through=gone[-1].last,
                    through_hash=gone[-1].last_hash.hex(),
                    older_than=format_time(older_than),
                )
                # Signed before anything is out of reach: who dies in between leaves a whole journal.
                self._record(event)
                self._seal()
                self._database.run_now(lambda connection: forget(connection, gone[-1].last))
                self._finish()
            return gone

    def sealed(self, head: ChainHead) -> None:
        """Told of each checkpoint: begins a new segment, in a thread of its own, once there are enough records."""
        if head.seq - self._moved_through >= self._segment_records:
            self._moved_through = max(self._moved_through, self._boundary().seq)
            if head.seq - self._moved_through >= self._segment_records:
                self._start(lambda: self.rotate(at_least=self._segment_records))

    def resume(self) -> None:
        """Finish, in a thread of its own, what an earlier process began."""
        self._moved_through = self._boundary().seq
        if self._leftover():
            self._start(self._finish_alone)

    def close(self) -> None:
        """Stop between two steps; the next start goes on there."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self, work: Callable[[], object]) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._try, args=[work], name="audit-segments", daemon=True)
            self._thread.start()

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (SentinelError, sqlite3.Error, OSError) as error:  # records stay in the live file; nothing is lost
            _log.error("the journal was not rotated: %s", error)

    def _finish_alone(self) -> None:
        with self._alone():
            self._finish()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Waits for this process's own threads, and not for another process."""
        with self._moving, self._alone_in_folder():
            yield

    @contextmanager
    def _alone_in_folder(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = exclusive(self._folder / "moving.lock")
        except (OSError, sqlite3.Error) as error:
            raise UnavailableError(
                f"The folder {self._folder.name} of the journal cannot be used: {error}.",
                next_step="Check its permissions and free space.",
            ) from error
        if lock is None:
            raise UnavailableError(
                "Another process moves records of this journal right now.",
                next_step="Wait until it has finished, and try again.",
            )
        with closing(lock):
            yield

    def _boundary(self) -> ChainHead:
        """The last record that a segment holds, or held."""
        return self._database.run_now(boundary)

    def _copy(self, done: ChainHead, head: ChainHead) -> Segment:
        """Write the file with the records after `done` up to `head`; it counts only once it is registered."""
        name = f"{done.seq + 1:012d}-{head.seq:012d}.sqlite"
        fresh = self._folder / f"{name}.new"
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(connect(fresh)) as target:
                last_at = fill(target, self._database.path, done, head)
            sync(fresh)
            os.replace(fresh, self._folder / name)
            sync(self._folder)
        except (OSError, sqlite3.Error) as error:
            fresh.unlink(missing_ok=True)
            raise UnavailableError(
                f"The segment {name} could not be written: {error}. Nothing was moved.",
                next_step="Check the folder's permissions and free space.",
            ) from error
        return Segment(done.seq + 1, head.seq, head.digest, name, last_at)

    def _finish(self) -> bool:
        """Take out of the live file what a segment holds, and remove files that no longer count. False if stopped."""
        through = self._boundary().seq
        while self._database.run_now(lambda connection: drop_rows(connection, through)):
            if self._stop.wait(_DELETE_PAUSE):
                return False
        kept = {segment.file for segment in self.segments()}
        first_kept = min((segment.first for segment in self.segments()), default=through + 1)
        head = self._database.run_now(last_record)
        for path in sorted(self._folder.glob("*.sqlite*")):
            last = last_of(path)
            if path.name in kept or last is None:
                continue
            # Half-written, pruned, or never registered while the live file still has its records. Any other is of a
            # journal that was set back: it stays.
            if path.suffix == ".new" or last < first_kept or through < last <= head:
                path.unlink(missing_ok=True)
        return True

    def _leftover(self) -> bool:
        through = self._boundary().seq
        return bool(
            self._database.run_now(
                lambda connection: connection.execute(
                    "SELECT EXISTS (SELECT 1 FROM journal WHERE seq <= ?)", [through]
                ).fetchone()[0]
            )
        )


# The record of the removal is signed before the rows go, and they go in one transaction. So whoever dies in between
# leaves a whole journal, and pruning again ends what was begun.
class TableArchive:
    """The records of the journal in `database`. Its methods block; none belongs into an event loop."""

    def __init__(self, database: StateDatabase, *, record: AppendRecord, seal: Callable[[], ChainHead]) -> None:
        self._database = database
        self._record = record
        self._seal = seal

    def segments(self) -> list[Segment]:
        """None: the records of a database stay in its table."""
        return []

    def rotate(self, *, at_least: int = 1) -> Segment | None:
        """Raises UsageError: there are no files to begin anew."""
        raise UsageError(
            "A journal in PostgreSQL is one table and has no segments.",
            next_step="To remove old records: sentinel audit prune; to keep a copy: sentinel audit export.",
        )

    def prune(self, older_than: datetime) -> list[Segment]:
        """Remove the oldest records, all of them older than `older_than`, up to a signed place; what was removed, as
        one segment without a file. What is left proves itself and says what was removed.

        Raises UsageError if this role may not remove records; then nothing says so.
        """
        with self._database.reading() as connection:
            if not connection.execute("SELECT has_table_privilege('journal', 'DELETE')").fetchone()[0]:
                raise UsageError(
                    "The role that this gateway runs with may not remove records.",
                    next_step="Set SENTINEL_DATABASE_URL to the owner's address for this command.",
                )
            gone = _up_to_a_checkpoint(connection, older_than)
        if gone is None:
            return []
        event = RecordsPruned(
            audit_id=str(uuid.uuid4()),
            first=gone.first,
            through=gone.last,
            through_hash=gone.last_hash.hex(),
            older_than=format_time(older_than),
        )
        self._record(event)
        self._seal()
        self._database.aside(lambda connection: _remove(connection, gone.last))
        return [gone]

    def sealed(self, head: ChainHead) -> None:
        """Told of each checkpoint; there is nothing to do."""

    def resume(self) -> None:
        """There is nothing that an earlier process could have left half done."""

    def close(self) -> None:
        """There is nothing to stop."""


def _up_to_a_checkpoint(connection: RecordConnection, older_than: datetime) -> Segment | None:
    """The oldest records, up to the last signed one that is old enough; None if there is none.

    Times of records do not go back, apart from clocks that differ between gateways, so the search may halve: what is
    found is checked to be old by itself.
    """
    first = connection.execute("SELECT min(seq) FROM journal").fetchone()[0]
    if first is None:
        return None
    places = [
        row[0]
        for row in connection.execute(
            "SELECT c.seq FROM checkpoint c JOIN journal j ON j.seq = c.seq ORDER BY c.seq"
        ).fetchall()
    ]
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if _time_of(connection, places[middle]) < older_than:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return None
    last = places[low - 1]
    digest, record = connection.execute("SELECT hash, record FROM journal WHERE seq = ?", [last]).fetchone()
    return Segment(first, last, digest, "", str(json.loads(record)["at"]))


def _time_of(connection: RecordConnection, seq: int) -> datetime:
    return parse_time(
        json.loads(connection.execute("SELECT record FROM journal WHERE seq = ?", [seq]).fetchone()[0])["at"]
    )


def _remove(connection: RecordConnection, through: int) -> None:
    """The checkpoint of the last one stays: it is the signed boundary."""
    connection.execute("DELETE FROM journal WHERE seq <= ?", [through])
    connection.execute("DELETE FROM checkpoint WHERE seq < ? AND seq > 0", [through])


SEAL_RECORDS = 256
SEAL_SECONDS = 0.5
"""A checkpoint is made after so many records, or so long after the first one that has none."""

IDLE_SECONDS = 5.0
"""How often to look for records that another process left without a checkpoint."""

_log = logging.getLogger(__name__)


class JournalCut(SentinelError):
    """A checkpoint names a record that the journal does not hold, so nothing may be added to it."""

    code = "journal_cut"


@dataclass(frozen=True, slots=True)
class Sealing:
    """With what the journal is sealed: the key, and the files outside it that hold the checkpoints too."""

    key: SigningKey
    checkpoints: CheckpointFile
    anchor: CheckpointFile | None = None

    @classmethod
    def of_folder(cls, folder: Path, *, anchor: Path | None = None) -> Sealing:
        """`of` the journal in a file of `folder`."""
        return cls.of(folder / "journal.sqlite", anchor=anchor)

    @classmethod
    def of(cls, place: JournalPlace, *, anchor: Path | None = None) -> Sealing:
        """Key and checkpoints of a journal, made if its folder has none. `anchor` is one more file, best on another
        disk."""
        key = SigningKey.open(folder_of(place))
        return cls(key, CheckpointFile(checkpoints_of(place)), None if anchor is None else CheckpointFile(anchor))

    def places(self) -> tuple[CheckpointFile, ...]:
        return (self.checkpoints,) if self.anchor is None else (self.checkpoints, self.anchor)


Report = Callable[[str, str], None]
"""Told the name of a place and what is wrong with it, or nothing when it works again."""


class Sealer:
    """Seals the journal in `database`. `begin` once, before anything is written; `close` before the database."""

    def __init__(self, database: StateDatabase, sealing: Sealing, *, clock: Clock, report: Report) -> None:
        self._database = database
        self._sealing = sealing
        self._clock = clock
        self._report = report
        self._shared = isinstance(database.place, PostgresPlace)
        self._one_at_a_time = threading.Lock()
        self._problems: dict[str, str] = {}
        self._unsealed = 0
        self._pending = False
        self._some, self._many = threading.Event(), threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="audit-sealer", daemon=True)
        self.after_seal: Callable[[ChainHead], None] | None = None
        """Called in the sealer's thread with each place that was sealed."""

    def begin(self) -> ChainHead:
        """Check that the journal holds what was sealed, make the first checkpoint of a new one, and start the thread.

        Returns the last sealed place. Raises JournalCut if something that was sealed is gone, UnavailableError if a
        checkpoint file cannot be written.
        """
        try:
            if self._shared:
                with self._database.reading() as connection:
                    self._check_key(connection)
            sealed, proved = self._last_sealed(), self._proved_elsewhere()
            for place in self._sealing.places():
                new = place.size() in (None, 0)
                if new and sealed is not None and place == self._sealing.checkpoints and not self._shared:
                    raise JournalCut(
                        f"{place.path.name} is gone or empty, but the journal was sealed before.",
                        next_step="Put it back from a copy, or move the whole folder away to begin a new journal.",
                    )
                place.create()
            if sealed is None:
                self._keep(Checkpoint.sign(GENESIS, self._now(), self._sealing.key))
                sealed = GENESIS
            sealed = max(sealed, proved, key=lambda head: head.seq)
        except OSError as error:
            raise UnavailableError(
                f"The checkpoint file {Path(error.filename or '').name} cannot be written: {error.strerror}.",
                next_step="Check that its disk is mounted and writable, or change SENTINEL_AUDIT_ANCHOR.",
            ) from error
        self._thread.start()
        return sealed

    def committed(self) -> None:
        """A record is durable. May be called from any thread; costs less than a microsecond most of the time."""
        self._unsealed += 1
        if not self._pending:
            self._pending = True
            self._some.set()
        elif self._unsealed >= SEAL_RECORDS and not self._many.is_set():
            self._many.set()

    def seal(self) -> ChainHead:
        """Sign the head now, if it is not signed yet, and return it. Blocks for a disk sync.

        Raises UnavailableError if the journal cannot be written.
        """
        with self._one_at_a_time:
            head, sealed = self._head(), self._last_sealed()
            if sealed is None or head.seq > sealed.seq:
                if not self._database.synced and isinstance(self._database.place, Path):
                    _sync(self._database.place)
                self._keep(Checkpoint.sign(head, self._now(), self._sealing.key))
                if self.after_seal is not None:
                    self.after_seal(head)
            return head

    def close(self) -> None:
        """Seal what is left, and stop. Idempotent. What cannot be sealed is sealed by the next start."""
        if not self._stopping:
            self._stopping = True
            self._some.set()
            self._many.set()
            if self._thread.ident is not None:
                self._thread.join()
                self._try_to_seal()

    def _serve(self) -> None:
        while not self._stopping:
            if self._some.wait(IDLE_SECONDS):
                self._many.wait(SEAL_SECONDS)
            self._some.clear()
            self._many.clear()
            self._unsealed, self._pending = 0, False
            if not self._stopping:
                self._try_to_seal()

    def _try_to_seal(self) -> None:
        try:
            self.seal()
        except (SentinelError, sqlite3.Error, OSError) as error:  # the next round tries again
            _log.error("the journal could not be sealed: %s", error)

    def _keep(self, checkpoint: Checkpoint) -> None:
        """Outside first: the journal never holds a checkpoint that its file lacks, unless the file is out of order."""
        for place in self._sealing.places():
            problem = ""
            try:
                place.append(checkpoint)
            except OSError as error:
                problem = error.strerror or str(error)
            name = "anchor" if place is self._sealing.anchor else "checkpoints"
            if self._problems.get(name, "") != problem:
                if problem:
                    _log.error("checkpoints cannot be kept in %s: %s", place.path, problem)
                self._report(name, problem)
                self._problems[name] = problem
        seq, line = checkpoint.head.seq, checkpoint.line()

        def add(connection: RecordConnection) -> None:
            if self._shared:  # of two gateways that begin one journal at once, the second finds the key of the first
                self._check_key(connection)
            connection.execute("INSERT INTO checkpoint VALUES (?, ?) ON CONFLICT DO NOTHING", [seq, line])

        self._database.run_now(add)

    def _proved_elsewhere(self) -> ChainHead:
        """The last record of the journal that a checkpoint outside it proves. Raises JournalCut if it is not there."""
        proved = GENESIS
        first = self._row("SELECT min(seq) FROM journal")[0] or 1
        for place in self._sealing.places():
            sealed = place.last(self._sealing.key.public)
            if sealed is None or sealed.head.seq < first:  # a segment holds it, or it was pruned
                continue
            row = self._row("SELECT hash FROM journal WHERE seq = ?", sealed.head.seq)
            found = None if row is None else row[0]
            if found != sealed.head.digest:
                raise JournalCut(
                    f"{place.path.name} proves a record {sealed.head.seq} that the journal "
                    f"{'does not hold' if found is None else 'holds otherwise'}: the journal was cut, replaced or "
                    "restored from an older copy.",
                    next_step="Run `sentinel audit verify` and keep the folder as evidence; put the journal back from "
                    "a newer copy, or move the whole folder away to begin a new one.",
                )
            proved = max(proved, sealed.head, key=lambda head: head.seq)
        return proved

    def _head(self) -> ChainHead:
        row = self._row("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1")
        return GENESIS if row is None else ChainHead(row[0], row[1])

    def _last_sealed(self) -> ChainHead | None:
        with self._database.reading() as connection:
            newest = _newest(connection)
        return None if newest is None else newest.head

    def _check_key(self, connection: RecordConnection) -> None:
        """Of several gateways with one journal each must sign with the same key, or a verifier would need them all."""
        newest, key = _newest(connection), self._sealing.key.public.fingerprint
        if newest is not None and newest.key != key:
            raise SigningKeyLost(
                f"The journal in PostgreSQL is signed with another key ({newest.key[:16]}) than the one of this "
                f"gateway ({key[:16]}).",
                next_step=f"Copy {KEY_FILE} and {PUBLIC_FILE} from the state folder of the gateway that signs it.",
            )

    def _row(self, question: str, *values: object) -> Any:
        with self._database.reading() as connection:
            return connection.execute(question, values).fetchone()

    def _now(self) -> str:
        return format_time(self._clock())


def _newest(connection: RecordConnection) -> Checkpoint | None:
    row = connection.execute("SELECT line FROM checkpoint ORDER BY seq DESC LIMIT 1").fetchone()
    if row is None:
        return None
    with suppress(ValueError):
        return Checkpoint.parse(row[0])
    return None


def _sync(path: Path) -> None:
    """Wait until the disk has what was committed."""
    with suppress(FileNotFoundError):  # everything is in the database file, which a checkpoint of SQLite has synced
        descriptor = os.open(path.with_name(f"{path.name}-wal"), os.O_RDWR)
        with closing(os.fdopen(descriptor)):
            os.fsync(descriptor)


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
