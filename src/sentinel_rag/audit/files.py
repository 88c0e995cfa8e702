"""Where records lie: tables, the live file that the gateway writes, and the segments that were moved out of it.

A `Snapshot` is one moment of all of them, whatever is written or moved meanwhile.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sentinel_rag.audit.chain import GENESIS, ChainHead
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.storage.port import JournalPlace, PostgresPlace, RecordConnection
from sentinel_rag.storage.sqlite import connect

# `tests/audit/corpus` keeps files of every earlier number.
RECORDS = (
    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, audit_id TEXT NOT NULL, kind TEXT NOT NULL, "
    "record BLOB NOT NULL, hash BLOB NOT NULL) STRICT"
)
RECORDS_INDEX = "CREATE INDEX journal_audit_id ON journal (audit_id, kind)"
CHECKPOINTS = "CREATE TABLE checkpoint (seq INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT"


def _records_and_open_calls(connection: RecordConnection) -> None:
    connection.execute(RECORDS)
    connection.execute(RECORDS_INDEX)
    # Calls without an outcome yet: bounded by the calls in flight, so a restart finds them without reading history.
    connection.execute("CREATE TABLE open_call (audit_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID")


def _instances_checkpoints_and_segments(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE open_call ADD COLUMN instance TEXT NOT NULL DEFAULT ''")
    connection.execute(CHECKPOINTS)
    connection.execute(
        "CREATE TABLE segment (first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, last_hash BLOB NOT NULL, "
        "file TEXT NOT NULL, last_at TEXT NOT NULL) STRICT"
    )


MIGRATIONS = (_records_and_open_calls, _instances_checkpoints_and_segments)


SEGMENTS_FOLDER = "segments"

END = 2**62
"""Beyond the last record of the live file."""

STREAM_PAGE = 1_000
SERVED_PAGE = 200
"""Records that a server is asked for at once, since it sends all of them."""


_PASSING = frozenset(
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN)
)


class DamagedJournal(SentinelError):
    """A record or a segment cannot be read back; `verify` says where the chain breaks."""

    code = "journal_damaged"


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Records `first` to `last` and where they are. For the live file, and a database, `last` is `END`."""

    first: int
    last: int
    path: JournalPlace
    last_at: str | None = None
    """The time of the newest record; None for the live file."""


@dataclass(slots=True)
class Snapshot:
    """The parts, oldest first, and a connection to each that is asked for. The last part is the live file."""

    parts: tuple[RecordRange, ...]
    sealed: bool
    """False for a file written before checkpoints existed."""
    _stack: ExitStack
    _open: dict[JournalPlace, RecordConnection] = field(default_factory=dict)

    @property
    def live(self) -> RecordConnection:
        return self._open[self.parts[-1].path]

    def connection(self, part: RecordRange) -> RecordConnection:
        """Read-only. Raises DamagedJournal if the segment is not there or no database."""
        known = self._open.get(part.path)
        if known is None:
            assert isinstance(part.path, Path)  # a database has one part, and that is open
            try:
                known = self._stack.enter_context(closing(_read_only(part.path, immutable=True)))
                known.execute("SELECT seq FROM journal LIMIT 1").fetchone()
            except sqlite3.Error as error:
                raise DamagedJournal(
                    f"The segment {part.path.name} (records {part.first} to {part.last}) cannot be read: {error}.",
                    next_step="Put it back from a copy.",
                ) from error
            self._open[part.path] = known
        return known

    def holding(self, seq: int) -> RecordRange:
        """The part where record `seq` is, if it is anywhere."""
        return next((part for part in self.parts if part.first <= seq <= part.last), self.parts[0])


@contextmanager
def open_snapshot(path: JournalPlace) -> Iterator[Snapshot]:
    """The journal at `path` with its segments, as it is now. Raises UnavailableError if there is none to read."""
    if isinstance(path, PostgresPlace):
        from sentinel_rag.storage.postgres import one_moment

        with one_moment(path) as connection, ExitStack() as stack:
            yield Snapshot((RecordRange(1, END, path),), True, stack, {path: connection})
        return
    if not path.exists():
        raise UnavailableError(
            "There is no audit journal yet: no gateway has run with this home folder.",
            next_step="Ask something first, or set SENTINEL_HOME to the folder that you mean.",
        )
    with ExitStack() as stack:
        try:
            live = stack.enter_context(closing(_read_only(path)))
            live.execute("BEGIN")
            live.execute("SELECT seq FROM journal LIMIT 1").fetchone()
            tables = {row[0] for row in live.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            parts = (
                [
                    RecordRange(first, last, path.parent / SEGMENTS_FOLDER / name, last_at)
                    for first, last, name, last_at in live.execute(
                        "SELECT first_seq, last_seq, file, last_at FROM segment ORDER BY first_seq"
                    )
                ]
                if "segment" in tables
                else []
            )
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite may quote a damaged schema in its message
            raise UnavailableError(
                f"The journal {path.name} cannot be opened: {_reason(error)}.",
                next_step="Check that the file is yours to read, and that its disk is mounted.",
            ) from error
        # Rows of the live file up to the last segment are leftovers of a move: they are read from the segment.
        parts.append(RecordRange(parts[-1].last + 1 if parts else 1, END, path))
        try:
            yield Snapshot(tuple(parts), "checkpoint" in tables, stack, {path: live})
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: sqlite3.DatabaseError | UnicodeDecodeError) -> SentinelError:
    """What an error in the middle of reading means: the disk and other programs pass, damage stays."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _PASSING:
        return UnavailableError(
            f"The journal {path.name} cannot be read now: {_reason(error)}.",
            next_step="Try again; if it stays, check the disk.",
        )
    return DamagedJournal(
        f"The file is damaged: {_reason(error)}.",
        next_step="Run `sentinel audit verify` and restore the file from a copy.",
    )


def _reason(error: sqlite3.Error | UnicodeDecodeError) -> str:
    return "it holds text that is no text" if isinstance(error, UnicodeDecodeError) else str(error)


def _read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    return connect(path, "immutable" if immutable else "read")


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it lies in a file, and the checkpoint line made for it, if there is one."""

    seq: int
    audit_id: str
    kind: str
    record: bytes
    digest: bytes
    checkpoint: bytes | None


def stream(path: JournalPlace, after: int = -END) -> Iterator[StoredRecord]:
    """Every record above `after` in order, whatever gaps there are; memory does not grow with the journal.

    One page is one short transaction, so that the log of a running gateway is not held up. Raises DamagedJournal
    for a segment that cannot be read.
    """
    while True:
        with open_snapshot(path) as snapshot:
            more = False
            for part in snapshot.parts:
                if part.last <= after:
                    continue
                for stored in _page(snapshot, part, max(after, part.first - 1) if len(snapshot.parts) > 1 else after):
                    yield stored
                    after, more = stored.seq, True
                if more:
                    break
        if not more:
            return


def well_typed(row: Sequence[object]) -> bool:
    """Whether the columns of a record are of their types: seq, audit id, kind, record, hash, and one more blob or none.
    SQLite's STRICT holds for statements, not for bytes that are written into the file."""
    return all(map(isinstance, row, (int, str, str, bytes, bytes, bytes | None)))


def _page(snapshot: Snapshot, part: RecordRange, after: int) -> Iterator[StoredRecord]:
    connection = snapshot.connection(part)
    line = "(SELECT line FROM checkpoint c WHERE c.seq = j.seq)" if snapshot.sealed else "NULL"
    rows = connection.execute(
        f"SELECT seq, audit_id, kind, record, hash, {line} FROM journal j "  # noqa: S608  # one of the two texts above
        "WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        [after, part.last, STREAM_PAGE if isinstance(part.path, Path) else SERVED_PAGE],
    )
    for row in rows:
        if not well_typed(row):
            raise DamagedJournal(
                f"Record {row[0]} of the journal is not of its type.",
                next_step="Run `sentinel audit verify` and restore the file from a copy.",
            )
        yield StoredRecord(*row)


# Functions over a connection, each for one transaction; `journal` says in which order they are done. A segment ends
# with a signed checkpoint, and the next record holds the hash of its last one, so the chain goes on across files.
COPY_ROWS = 5_000
DELETE_ROWS = 256


@dataclass(frozen=True, slots=True)
class Segment:
    """Records `first` to `last` in the file of that name; `last_at` is the time of the newest."""

    first: int
    last: int
    last_hash: bytes
    file: str
    last_at: str


def all_segments(connection: RecordConnection) -> list[Segment]:
    """Oldest first."""
    rows = connection.execute("SELECT first_seq, last_seq, last_hash, file, last_at FROM segment ORDER BY first_seq")
    return [Segment(*row) for row in rows]


def boundary(connection: RecordConnection) -> ChainHead:
    """The last record that a segment holds, or held before it was pruned."""
    row = connection.execute("SELECT last_seq, last_hash FROM segment ORDER BY first_seq DESC LIMIT 1").fetchone()
    if row is not None:
        return ChainHead(row[0], row[1])
    first = connection.execute("SELECT seq, record FROM journal ORDER BY seq LIMIT 1").fetchone()
    if first is None or first[0] == 1:
        return GENESIS
    return ChainHead(first[0] - 1, bytes.fromhex(json.loads(first[1])["previous"]))  # every segment was pruned


def register(connection: RecordConnection, segment: Segment) -> None:
    """From here on readers take its records from its file."""
    connection.execute(
        "INSERT INTO segment (first_seq, last_seq, last_hash, file, last_at) VALUES (?, ?, ?, ?, ?)",
        [segment.first, segment.last, segment.last_hash, segment.file, segment.last_at],
    )


def forget(connection: RecordConnection, through: int) -> None:
    """From here on nobody looks for records up to `through`; the checkpoint of that one stays."""
    connection.execute("DELETE FROM segment WHERE last_seq <= ?", [through])
    connection.execute("DELETE FROM checkpoint WHERE seq < ? AND seq > 0", [through])


def drop_rows(connection: RecordConnection, through: int) -> int:
    """Take a few rows up to `through` out of the live file; 0 if there are none left."""
    dropped = connection.execute(
        "DELETE FROM journal WHERE seq IN (SELECT seq FROM journal WHERE seq <= ? ORDER BY seq LIMIT ?)",
        [through, DELETE_ROWS],
    ).rowcount
    # The checkpoint of a segment's end stays here too: it is the signed boundary once the segment is pruned.
    connection.execute(
        "DELETE FROM checkpoint WHERE seq IN (SELECT seq FROM checkpoint WHERE seq > 0 AND seq <= ? AND seq NOT IN "
        "(SELECT last_seq FROM segment) AND seq <> ? ORDER BY seq LIMIT ?)",
        [through, through, DELETE_ROWS],
    )
    return dropped


def fill(target: sqlite3.Connection, live: Path, done: ChainHead, head: ChainHead) -> str:
    """Copy rows inside SQLite, which leaves the interpreter to the calls meanwhile. Returns the time of the last."""
    target.execute("PRAGMA journal_mode = MEMORY")
    target.execute("PRAGMA synchronous = OFF")
    target.execute("ATTACH ? AS live", [f"{live.absolute().as_uri()}?mode=ro"])
    target.execute(RECORDS)
    target.execute(CHECKPOINTS)
    for after in range(done.seq, head.seq, COPY_ROWS):
        last = min(after + COPY_ROWS, head.seq)
        target.execute(
            "INSERT INTO main.journal SELECT seq, audit_id, kind, record, hash FROM live.journal "
            "WHERE seq > ? AND seq <= ? ORDER BY seq",
            [after, last],
        )
    target.execute(
        "INSERT INTO main.checkpoint SELECT seq, line FROM live.checkpoint WHERE seq > ? AND seq <= ?",
        [done.seq, head.seq],
    )
    target.execute(RECORDS_INDEX)
    target.execute("DETACH live")
    count, last_hash = target.execute(
        "SELECT (SELECT count(*) FROM journal), (SELECT hash FROM journal WHERE seq = ?)", [head.seq]
    ).fetchone()
    if count != head.seq - done.seq or last_hash != head.digest:
        raise DamagedJournal(
            f"Records are missing between {done.seq + 1} and {head.seq}, so nothing was moved.",
            next_step="Run `sentinel audit verify`; it names the first one.",
        )
    record = target.execute("SELECT record FROM journal WHERE seq = ?", [head.seq]).fetchone()[0]
    return str(json.loads(record)["at"])


def last_record(connection: RecordConnection) -> int:
    """Its number; 0 for an empty journal."""
    row = connection.execute("SELECT max(seq) FROM journal").fetchone()
    return int(row[0] or 0)


def last_of(path: Path) -> int | None:
    """The last record of a segment by its name; None for a file that is not ours."""
    first, _, last = path.name.removesuffix(".new").removesuffix(".sqlite").partition("-")
    return int(last) if first.isdecimal() and last.isdecimal() else None


def sync(path: Path) -> None:
    """Wait until the disk has a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
