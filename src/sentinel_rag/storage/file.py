"""Records in one SQLite file, private to its owner, in which deleted bytes are overwritten.

A killed process leaves the state after some transaction; a power cut may take the last ones, and never the file.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.storage.port import Migration, RecordConnection, Records
from sentinel_rag.storage.sqlite import begin_write_ahead, connect

BUSY_S = 5.0


class RecordFile:
    """The file `path`, or memory alone for None; made and opened when it is first used. See `Records`.

    `what` it is called in errors, `again` when it is tried again; `busy_s` is how long it waits for another program.
    """

    shared = False

    def __init__(
        self,
        path: Path | None,
        steps: Sequence[Migration],
        *,
        what: str,
        again: str = "the next request tries again",
        busy_s: float = BUSY_S,
    ) -> None:
        self.name = "memory" if path is None else str(path)
        self.holder = secrets.token_hex(8)
        self._path = path
        self._steps = steps
        self._what = what
        self._again = again
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @contextmanager
    def transaction(self, *, reads: bool = False) -> Iterator[RecordConnection]:
        with self._lock:
            try:
                run = self._open()
                run.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
                try:
                    yield run
                    run.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        run.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError) as error:
                if self._path is not None:  # what is in memory alone would be gone
                    self._drop()
                raise self._unusable(error) from error

    def is_live(self, run: RecordConnection, holder: str) -> bool:
        """One process at a time has the file for what it is at work on."""
        return holder == self.holder

    def exists(self) -> bool:
        return self._connection is not None if self._path is None else self._path.exists()

    def forget(self) -> None:
        """Empty the write-ahead log, which holds deleted text until then; a reader in the way leaves it to later."""
        with self._lock, suppress(sqlite3.Error):
            self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._path is not None:
                _make_private(self._path)
            connection = connect(self._path, busy_s=self._busy_s)
            try:
                begin_write_ahead(connection)
                for pragma in ("synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                    connection.execute(f"PRAGMA {pragma}")
                self._bring_up(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """Do the steps that the file lacks. Raises UnavailableError for one that a newer version wrote."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(self._steps):
            raise UnavailableError(
                f"{self._what} was written by a newer version of Sentinel RAG.",
                next_step="Use that version, or set SENTINEL_HOME to another folder.",
            )
        if version == len(self._steps):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been first
            for step in self._steps[version:]:
                step(connection)
            connection.execute(f"PRAGMA user_version = {len(self._steps)}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _unusable(self, error: Exception) -> UnavailableError:
        """What a person is told. The kinds are told apart by SQLite's own codes."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            why, step = "is locked by another program", "Close what has it open; "
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            why, step = "is damaged", "Move it away to start a new one; what is in it may be saved with sqlite3."
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            why, step = "cannot be written (is the disk full?)", "Make room; "
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
            why, step = "cannot be opened for writing", "Check its folder and its owner; "
        else:
            why, step = f"failed ({type(error).__name__})", ""
        again = f"{self._again}."
        if step.endswith("; "):
            step += again
        return UnavailableError(f"{self._what} {why}.", next_step=step or again[0].upper() + again[1:])


def _make_private(path: Path) -> None:
    """The file and its folder, for their owner alone; what SQLite lays beside the file gets the file's mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def move_records(source: RecordFile, target: Records, tables: Sequence[str]) -> dict[str, int]:
    """Copy `tables`, those that others refer to first; how many rows of each. The file stays as it is.

    Raises UsageError if the target holds rows already, UnavailableError if either cannot be used.
    """
    moved: dict[str, int] = {}
    with source.transaction(reads=True) as old, target.transaction() as new:
        for table in tables:
            if new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                raise UsageError(
                    f"{target.name} holds records already, so those of {source.name} were not moved.",
                    next_step="Name another SENTINEL_DATABASE_SCHEMA, or put that file away.",
                )
            columns = [name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")]
            marks = ", ".join("?" * len(columns))
            rows = old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            new.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
            moved[table] = len(rows)
    return moved
