"""The thread that moves the write-ahead log into the database file, so that nobody who waits for a commit does.

Most of it needs no lock. The end of it does: only when no frame is left can the log start again from its beginning, and
the first write to a restarted log waits for the disk, so that write is made here too.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from sentinel_rag.storage.sqlite import connect

AFTER_JOBS = 2_000
"""Jobs between two checkpoints; about four pages each."""

LARGE_LOG = 64 * 2**20
"""A log of more bytes is moved at once, however few jobs wrote it (long arguments)."""

KEPT_LOG = 16 * 2**20
"""The log file keeps this size when it starts again: to overwrite is cheaper than to extend."""

_SIZE_EVERY = 64


class WalUpkeep:
    """Watches the log of the database at `path`. `writing` is held by whoever uses `connection`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, writing: threading.Lock) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._connection = connection
        self._writing = writing
        self._jobs = 0
        self._unseen = 0
        self._due = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="audit-wal", daemon=True)
        self._thread.start()

    def committed(self, jobs: int) -> None:
        """Count what was committed. Called by the holder of `writing`; costs nothing most of the time."""
        self._jobs += jobs
        self._unseen += jobs
        if self._unseen >= _SIZE_EVERY:
            self._unseen = 0
            if self._jobs >= AFTER_JOBS or self._size() > LARGE_LOG:
                self._jobs = 0
                self._due.set()

    def close(self) -> None:
        self._stopping = True
        self._due.set()
        self._thread.join()

    def _serve(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            while True:
                self._due.wait()
                self._due.clear()
                if self._stopping:
                    return
                # A reader that pins the log, another process that writes, a full disk, a file that was taken away: the
                # next round tries again, and whoever writes is told by the write.
                with suppress(sqlite3.Error):
                    if connection is None:
                        connection = self._connected()
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    with self._writing:
                        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
                        restart_log(self._connection)
        finally:
            if connection is not None:
                connection.close()

    def _connected(self) -> sqlite3.Connection:
        connection = connect(self._path, "write", busy_s=0)  # a file that was removed is not made anew
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _size(self) -> int:
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0


APPLICATION_ID = 0x53524147
"""`SRAG`: by it `file` and others can tell what the database is."""


def restart_log(connection: sqlite3.Connection) -> None:
    """The smallest write there is."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
