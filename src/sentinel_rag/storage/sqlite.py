"""Files of SQLite: how each is opened, records in one of them, and which gateways use a state folder."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.storage.port import Migration, RecordConnection, Records

# Files of SQLite: how each is opened, made private to its owner, and brought to a write-ahead log. SQLite's own waiting
# does not cover the change to that mode: of two processes that open a new file at the same moment one is told at once
# that it is locked. `begin_write_ahead` waits for as long as its connection waits for other locks.
PAUSE_S = 0.005
_MODES = {"create": "mode=rwc", "write": "mode=rw", "read": "mode=ro", "immutable": "mode=ro&immutable=1"}


def connect(
    path: Path | None, mode: Literal["create", "write", "read", "immutable"] = "create", *, busy_s: float = 5.0
) -> sqlite3.Connection:
    """A connection to the file at `path`, or to memory alone; statements commit by themselves unless a transaction is
    begun, and it may change threads. It waits `busy_s` seconds for a lock. "write" and "read" make no file.

    Raises sqlite3.OperationalError.
    """
    address = "file::memory:" if path is None else f"{path.absolute().as_uri()}?{_MODES[mode]}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=busy_s)


def begin_write_ahead(connection: sqlite3.Connection) -> None:
    """Bring the file of `connection` into that mode. Blocks at most for the connection's busy timeout, then raises
    sqlite3.OperationalError, as it does for any other fault."""
    (milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
    deadline = time.monotonic() + milliseconds / 1_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def create_private(path: Path) -> None:
    """An empty file with mode 0600, unless there is one. Raises OSError.

    One that is there is not opened: to close it again would drop the locks that this process holds on it.
    """
    if not path.exists():
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


# Which gateways use a state folder at this moment: one lock file for each, held as long as its process lives. The lock
# is SQLite's own on an empty file: it works on every platform and ends with its process, kill -9 included. So one that
# starts can tell the calls of a process that died from those of one that runs beside it.
_SUFFIX = ".lock"


class Instance(Closing):
    """This process's membership in `folder`. Close it at the end, or use it in a `with`."""

    def __init__(self, folder: Path) -> None:
        """Join. Raises UnavailableError if the folder cannot be written."""
        self.instance_id = secrets.token_hex(8)
        self._folder = folder
        self._path = folder / f"{self.instance_id}{_SUFFIX}"
        fresh = folder / f"{self.instance_id}.new"
        try:
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            create_private(fresh)
            self._lock = _try_lock(fresh)
            # Under its name only once it is held: nobody may take it for one whose process has died.
            os.rename(fresh, self._path)
        except (OSError, sqlite3.Error) as error:
            raise UnavailableError(
                f"The state folder {folder.parent.name} cannot be used: {error}.",
                next_step="Check its permissions, or set SENTINEL_HOME to another folder.",
            ) from error

    def close(self) -> None:
        """Leave. Idempotent."""
        with suppress(FileNotFoundError):
            self._path.unlink()
        if self._lock is not None:
            self._lock.close()

    def is_live(self, instance_id: str) -> bool:
        """True while the process that joined under that id runs; this one included."""
        path = self._folder / f"{instance_id}{_SUFFIX}"
        return path.exists() and not _free(path)

    def alone(self) -> bool:
        """True if no other process uses the folder."""
        return all(path == self._path or _free(path) for path in self._folder.glob(f"*{_SUFFIX}"))

    def take_over(self) -> tuple[str, ...]:
        """The ids of processes that ended without leaving. Each is told to one caller only, once."""
        return tuple(
            path.stem
            for path in sorted(self._folder.glob(f"*{_SUFFIX}"))
            if path != self._path and _free(path, then=path.unlink)
        )


class Solo:
    """The membership of one who needs no folder: tests, tools and a journal in memory of one process."""

    instance_id = ""

    def is_live(self, instance_id: str) -> bool:
        return False

    def alone(self) -> bool:
        return True

    def take_over(self) -> tuple[str, ...]:
        return ()


def exclusive(path: Path) -> sqlite3.Connection | None:
    """The lock on the file at `path`, made if there is none; None if another process holds it. Ends when closed."""
    create_private(path)
    return _try_lock(path)


def _try_lock(path: Path) -> sqlite3.Connection | None:
    connection = connect(path, busy_s=0)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # there is nothing to roll back, and no file to leave behind
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return None
        raise
    return connection


def _free(path: Path, *, then: Callable[[], object] | None = None) -> bool:
    """True if nobody holds the lock; `then` is done while we do."""
    try:
        lock = _try_lock(path)
        if lock is None:
            return False
        with closing(lock):
            if then is not None:
                then()
    except (OSError, sqlite3.Error):  # it left while we looked
        return not path.exists()
    return True


# A killed process leaves the state after some transaction; a power cut may take the last ones, and never the file.
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
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                create_private(self._path)  # what SQLite lays beside the file gets its mode
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
