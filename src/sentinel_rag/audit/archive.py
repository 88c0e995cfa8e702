"""Rotation and retention: sealed records move into segments, whole old segments or rows can be removed.

Each step is safe to die in: a segment is registered in the transaction that says so, its rows leave the live file only
after that, and nothing is removed before the record of its removal is signed.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.audit.events import AppendRecord, RecordsPruned, SegmentClosed
from sentinel_rag.audit.files import (
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
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.storage.group_commit import Database
from sentinel_rag.storage.port import RecordConnection, StateDatabase
from sentinel_rag.storage.sqlite import connect, exclusive

SEGMENT_RECORDS = 100_000
"""Records after which a running gateway begins a new segment; about 120 MB."""

_DELETE_PAUSE = 0.005
"""Seconds between two deletions, so that calls pass between them."""

_log = logging.getLogger(__name__)


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
                self._record(event, lambda connection: forget(connection, gone[-1].last))
                self._seal()
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
