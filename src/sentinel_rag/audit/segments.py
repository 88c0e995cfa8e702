"""A segment: a file of sealed records with their checkpoints, and what the live file knows of it.

Functions over a connection, each for one transaction; `archive` says in which order they are done. A segment ends with
a signed checkpoint, and the next record holds the hash of its last one, so the chain goes on across files.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.audit.chain import GENESIS, ChainHead
from sentinel_rag.audit.files import DamagedJournal
from sentinel_rag.audit.schema import CHECKPOINTS, RECORDS, RECORDS_INDEX
from sentinel_rag.storage.port import RecordConnection

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
