"""Which gateways use a state folder at this moment: one lock file for each, held as long as its process lives.

The lock is SQLite's own on an empty file: it works on every platform and ends with its process, kill -9 included. So
one that starts can tell the calls of a process that died from those of one that runs beside it.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.sqlite import connect, create_private

_SUFFIX = ".lock"


class Instance:
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

    def __enter__(self) -> Instance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
