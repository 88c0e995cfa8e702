"""The write-ahead log of a SQLite file that several processes open at once.

SQLite's own waiting does not cover the change to that mode: of two processes that open a new file at the same moment
one is told at once that it is locked. Here it waits for as long as its connection waits for every other lock.
"""

from __future__ import annotations

import sqlite3
import time

PAUSE_S = 0.005


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
