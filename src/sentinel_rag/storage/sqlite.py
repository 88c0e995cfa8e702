"""Files of SQLite: how each is opened, made private to its owner, and brought to a write-ahead log.

SQLite's own waiting does not cover the change to that mode: of two processes that open a new file at the same moment
one is told at once that it is locked. `begin_write_ahead` waits for as long as its connection waits for other locks.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

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
