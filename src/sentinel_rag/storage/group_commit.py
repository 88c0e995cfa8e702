"""One SQLite file and the group commit: what is submitted at one moment becomes durable in one transaction.

With `Durability.PROCESS` that happens in the thread of the event loop itself, once for each turn of the loop: a commit
costs less than waking another thread. What could make the loop wait goes to the writer thread; a thread of its own
moves the write-ahead log into the file.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage import begin_write_ahead
from sentinel_rag.storage.port import (
    Busy,
    Job,
    Migration,
    RecordConnection,
    Work,
    bring_up,
    commit,
    deliver,
    settle_all,
    unavailable,
)
from sentinel_rag.storage.sqlite import connect, create_private

# The thread that moves the write-ahead log into the database file, so that nobody who waits for a commit does. Most of
# it needs no lock. The end of it does: only when no frame is left can the log start again from its beginning, and the
# first write to a restarted log waits for the disk, so that write is made here too.
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
"""`SRAG`: by it `sqlite` and others can tell what the database is."""


def restart_log(connection: sqlite3.Connection) -> None:
    """The smallest write there is."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


T = TypeVar("T")

MAX_BATCH = 256
MAX_IN_LOOP = 64
"""A batch of more jobs would hold the loop for more than about a millisecond."""

BUSY_MILLISECONDS = 5_000
_RETRY_SECONDS = 0.001


class Durability(StrEnum):
    """What a commit survives. PROCESS: the end of this process, also by kill -9. POWER: a power cut too (one disk
    sync a batch, up to 4 ms on the disks we measured)."""

    PROCESS = "process"
    POWER = "power"


class Database(Closing):
    """The file at `path`, readable by its owner only. Close it, or use it in a `with`."""

    def __init__(self, path: Path, *, durability: Durability = Durability.PROCESS) -> None:
        self.path = path
        self.durability = durability
        self._closed = False
        self._connection = self._open()
        self._identity = _identity(path)
        self._writing = threading.Lock()  # whoever holds it uses the connection
        self._waiting: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._queued = 0
        self._upkeep = WalUpkeep(path, self._connection, self._writing)
        self._thread = threading.Thread(target=self._serve, name="audit-writer", daemon=True)
        self._thread.start()

    @property
    def place(self) -> Path:
        return self.path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def synced(self) -> bool:
        return self.durability is Durability.POWER

    @property
    def exact_outcomes(self) -> bool:
        return False

    async def run(self, work: Work[T]) -> T:
        """Do `work` in a transaction and return its result once that is durable.

        `work` may run in the thread of the event loop, so it must be short: a few rows by index. If it raises, its own
        changes are undone, those of its batch are kept, and the error is raised here. Raises UnavailableError if the
        file cannot be written (locked, full, removed): then nothing was changed.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        job = Job(work, loop, waiting)
        self._refuse_if_closed()
        if self.durability is Durability.POWER:
            self._hand_over([job])
        elif (batch := self._waiting.get(loop)) is not None:
            batch.append(job)
        else:
            self._waiting[loop] = [job]
            loop.call_soon(self._flush, loop)
        return await waiting

    async def look(self, work: Work[T]) -> T:
        """`run` for work of a single statement that only reads: at once, if nothing that was submitted earlier is under
        way, since a transaction for it alone would cost more than the rest of it."""
        self._refuse_if_closed()
        if not (self._waiting or self._queued) and self._writing.acquire(blocking=False):
            try:
                return work(self._connection)
            except sqlite3.Error as error:
                raise unavailable(self.path, error) from error
            finally:
                self._writing.release()
        return await self.run(work)

    def run_now(self, work: Work[T]) -> T:
        """`run` for callers without an event loop, and for longer work; blocks."""
        waiting: Future[T] = Future()
        self._refuse_if_closed()
        self._hand_over([Job(work, None, waiting)])
        return waiting.result()

    def later(self, work: Work[object]) -> None:
        """`run` for work that nobody waits for. What the file refuses now is made good by the next start."""
        if not self._closed:
            self._hand_over([Job(work, None, Future())])

    def aside(self, work: Work[object]) -> None:
        """`run_now`: a file has one writer."""
        self.run_now(work)

    @contextmanager
    def reading(self) -> Iterator[RecordConnection]:
        """A read-only connection of its own. Raises UnavailableError, also for what fails in the block."""
        try:
            with closing(connect(self.path, "read")) as opened:
                yield opened
        except sqlite3.Error as error:
            raise UnavailableError(
                f"{self.path.name} cannot be read: {error}.",
                next_step="Check the state folder's permissions, and that its disk is mounted.",
            ) from error

    def migrate(self, component: str, steps: Sequence[Migration]) -> None:
        """Bring `component`'s tables up to `len(steps)`; each step runs once in the life of the file.

        Raises UnavailableError if a newer version of the product wrote the file.
        """

        self.run_now(partial(bring_up, component, steps, self.name))

    def close(self) -> None:
        """Finish what was submitted, then stop. Idempotent."""
        if not self._closed:
            self._closed = True
            while self._waiting:
                self._hand_over(self._waiting.popitem()[1])
            self._queue.put(None)
            self._thread.join()
            self._upkeep.close()
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            create_private(self.path)  # SQLite would give it the umask's mode; -wal and -shm copy the mode of this file
            connection = connect(self.path, busy_s=BUSY_MILLISECONDS / 1000)
            with ExitStack() as opened:
                opened.enter_context(closing(connection))
                begin_write_ahead(connection)
                power = self.durability is Durability.POWER
                connection.execute(f"PRAGMA synchronous = {'FULL' if power else 'NORMAL'}")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                connection.execute(f"PRAGMA journal_size_limit = {KEPT_LOG}")
                restart_log(connection)
                # From here on waiting is the business of the thread that can afford it.
                connection.execute("PRAGMA busy_timeout = 0")
                opened.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise unavailable(self.path, error) from error
        return connection

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise UnavailableError(f"{self.path.name} is closed.", next_step="Start the gateway again.")

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Commit in this thread, the loop's, what was submitted in this turn of it."""
        batch = self._waiting.pop(loop, None)
        if batch is None:  # closed meanwhile, and handed over there
            return
        # Behind jobs of the writer thread it must stay behind: an outcome does not overtake its intent.
        if self._queued or len(batch) > MAX_IN_LOOP or not self._writing.acquire(blocking=False):
            self._hand_over(batch)
            return
        try:
            self._commit(batch)
        except Busy:
            self._hand_over(batch)
            return
        finally:
            self._writing.release()
        settle_all(batch)

    def _hand_over(self, batch: list[Job[Any]]) -> None:
        with self._counting:
            self._queued += len(batch)
        for job in batch:
            self._queue.put(job)

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            batch: list[Job[Any]] = []
            job = self._queue.get()
            while job is not None:
                batch.append(job)
                if len(batch) == MAX_BATCH:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            stopping = job is None
            if batch:
                self._commit_patiently(batch)
                with self._counting:
                    self._queued -= len(batch)
                deliver(batch)

    def _commit_patiently(self, batch: list[Job[Any]]) -> None:
        deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
        while True:
            try:
                with self._writing:
                    self._commit(batch)
                return
            except Busy as busy:
                if time.monotonic() > deadline:
                    for job in batch:
                        job.error = unavailable(self.path, busy)
                    return
            time.sleep(_RETRY_SECONDS)

    def _commit(self, batch: list[Job[Any]]) -> None:
        """By the holder of `_writing`. Raises Busy."""
        # SQLite goes on writing into a file that was deleted or replaced; what it then acknowledges is lost.
        if _identity(self.path) != self._identity:
            gone = UnavailableError(
                f"{self.path.name} was removed or replaced while it was in use.",
                next_step="Put it back, or start the gateway again; `sentinel audit verify` says what is missing.",
            )
            for job in batch:
                job.error = gone
            return
        commit(self._connection, batch, self.path)
        self._upkeep.committed(len(batch))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
