"""From the files of one gateway into PostgreSQL, once: keys, sessions with their labels, approvals, pins and the whole
journal, whose chain goes on there.

All of it is copied in one transaction into a schema that has no state yet, and the journal is verified where it has
come. Only then are the files put aside, so whoever stops in between begins again.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sentinel_rag.audit import Instance, JournalReader, PostgresPlace, RecordConnection
from sentinel_rag.audit.files import MIGRATIONS as JOURNAL_TABLES
from sentinel_rag.audit.files import stream
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.gateway.approvals.table import MIGRATIONS as APPROVAL_TABLES
from sentinel_rag.gateway.pins import MIGRATIONS as PIN_TABLES
from sentinel_rag.gateway.store.postgres_keys import make_key_tables
from sentinel_rag.gateway.store.session_tables import MIGRATIONS as SESSION_TABLES
from sentinel_rag.gateway.store.state import INSTANCES_FOLDER, JOURNAL_FILE, KEYS_FILE, open_state
from sentinel_rag.gateway.store.state import MIGRATIONS as KEY_JOURNAL_TABLES
from sentinel_rag.storage.port import checkpoints_of
from sentinel_rag.storage.postgres import PostgresDatabase
from sentinel_rag.storage.postgres.database import lock_of
from sentinel_rag.storage.postgres.members import MIGRATIONS as MEMBER_TABLES
from sentinel_rag.storage.sqlite import connect

COMPONENTS = {
    "journal": JOURNAL_TABLES,
    "sessions": SESSION_TABLES,
    "approvals": APPROVAL_TABLES,
    "pins": PIN_TABLES,
    "keys": KEY_JOURNAL_TABLES,
}
"""Every component of the state with its tables, in the order in which a gateway makes them."""

ASIDE = "moved-to-postgresql"
_OF_STATE = (
    "session",
    "session_raise",
    "named_value",
    "handle",
    "resource_label",
    "standing_session",
    "rows_read",
    "agent_memory",
    "approval_bound",
    "approval",
    "pin",
    "key_journal",
)
_OF_KEYS = ("key_store", "api_key", "secret", "key_change")
_NOT_MOVED = {"journal", "checkpoint", "segment", "open_call", "schema_version"}
"""What goes its own way, or is made anew there."""
_ROWS = 500


@dataclass(frozen=True, slots=True)
class Moved:
    """How much was moved; the old files are in `aside`."""

    records: int
    keys: int
    sessions: int
    approvals: int
    aside: Path


def make_tables(place: PostgresPlace) -> None:
    """Everything that a gateway needs in its schema, up to date. Raises UnavailableError."""
    with PostgresDatabase(place) as database:
        database.migrate("gateways", MEMBER_TABLES)
        database.run_now(make_key_tables)
        for component, steps in COMPONENTS.items():
            database.migrate(component, steps)


def move_state(folder: Path, place: PostgresPlace, *, anchor: Path | None = None) -> Moved:
    """Move the state in `folder` to `place`, whose secrets stay in that folder.

    Raises UsageError if a gateway uses the folder or the schema has a state, UnavailableError if something cannot be
    read or written, or the journal does not hold; then nothing was moved.
    """
    journal = folder / JOURNAL_FILE
    _refuse_if_in_use(folder)
    _end_in_order(folder, anchor)
    before = JournalReader(journal).verify(anchor=anchor)
    if not before.intact:
        raise UnavailableError(
            f"The journal does not hold at record {before.broken_at}: {before.problem}. Nothing was moved.",
            next_step="Run sentinel audit verify and keep the folder as evidence.",
        )
    make_tables(place)
    counts: dict[str, int] = {}
    with PostgresDatabase(place) as database:
        database.aside(lambda connection: counts.update(_copy_all(connection, folder, lock_of(place.schema))))
    after = JournalReader(place).verify(before.head, anchor=anchor)
    if not after.intact or after.records != before.records:
        raise UnavailableError(
            f"The journal in PostgreSQL does not hold at record {after.broken_at}: {after.problem}.",
            next_step="Drop the schema and move again; the files are as they were.",
        )
    shutil.copy(checkpoints_of(journal), checkpoints_of(place))
    return Moved(after.records, counts["api_key"], counts["session"], counts["approval"], _put_aside(folder))


def _refuse_if_in_use(folder: Path) -> None:
    if not (folder / JOURNAL_FILE).exists():
        raise UsageError(
            "There is no state in files here: no gateway has run with this home folder.",
            next_step="Run sentinel up: with SENTINEL_DATABASE_URL it begins in PostgreSQL.",
        )
    with Instance(folder / INSTANCES_FOLDER) as instance:
        if not instance.alone():
            raise UsageError("A gateway uses these files now.", next_step="Stop it (sentinel up), and move again.")


def _end_in_order(folder: Path, anchor: Path | None) -> None:
    """Close the calls of a gateway that died, and sign the last record."""
    open_state(folder, anchor=anchor).close()


def _copy_all(target: RecordConnection, folder: Path, lock: int) -> dict[str, int]:
    """Copy every row, and how many of each table."""
    target.execute("SELECT pg_advisory_xact_lock(?)", [lock])
    for table in ("journal", "session", "approval", "key_store"):
        if target.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]:  # noqa: S608  # one of these
            raise UsageError(
                f"The schema has a state already: its table {table} is not empty.",
                next_step="Name another schema with SENTINEL_DATABASE_SCHEMA, or drop that one.",
            )
    counts = {"journal": _copy_journal(target, folder / JOURNAL_FILE)}
    for file, tables in ((JOURNAL_FILE, _OF_STATE), (KEYS_FILE, _OF_KEYS)):
        with closing(connect(folder / file, "read")) as source:
            there = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            unknown = sorted(name for name in there - _NOT_MOVED - {*tables} if not name.startswith("sqlite_"))
            if unknown:
                raise UnavailableError(
                    f"{file} holds a table that this version does not move: {unknown[0]}. Nothing was moved.",
                    next_step="Install the version that wrote it, and move with that.",
                )
            counts |= {table: _copy_table(target, source, table) for table in tables if table in there}
    target.execute("SELECT setval(pg_get_serial_sequence('key_change', 'seq'), max(seq)) FROM key_change")
    return counts


def _copy_journal(target: RecordConnection, journal: Path) -> int:
    """The records of the file and its segments, with their checkpoints."""
    count = 0
    for page in _pages(stream(journal)):
        count += len(page)
        target.executemany(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
            [(each.seq, each.audit_id, each.kind, each.record, each.digest) for each in page],
        )
        signed = [(each.seq, each.checkpoint) for each in page if each.checkpoint is not None]
        target.executemany("INSERT INTO checkpoint VALUES (?, ?) ON CONFLICT DO NOTHING", signed)
    with closing(connect(journal, "read")) as source:
        lines = source.execute("SELECT seq, line FROM checkpoint").fetchall()
    target.executemany("INSERT INTO checkpoint VALUES (?, ?) ON CONFLICT DO NOTHING", lines)
    return count


def _copy_table(target: RecordConnection, source: sqlite3.Connection, table: str) -> int:
    """In the order in which the rows were written, where the table has one."""
    columns = [row[1] for row in source.execute("SELECT * FROM pragma_table_info(?)", [table])]
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    count = 0
    for page in _pages(source.execute(f"SELECT {names} FROM {table}")):  # noqa: S608  # names of our own tables
        count += len(page)
        target.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", page)  # noqa: S608
    return count


def _pages(rows: Iterable[Any]) -> Iterator[Sequence[Any]]:
    rows = iter(rows)
    while page := list(islice(rows, _ROWS)):
        yield page


def _put_aside(folder: Path) -> Path:
    """So that no gateway goes on in the files, with a second end of the chain."""
    aside = folder / ASIDE
    aside.mkdir(mode=0o700)
    for path in sorted(folder.iterdir()):
        if path.name in ("segments", "checkpoints.jsonl") or path.name.startswith((JOURNAL_FILE, KEYS_FILE)):
            path.rename(aside / path.name)
    return aside
