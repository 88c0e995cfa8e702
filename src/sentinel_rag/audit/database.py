"""One SQLite file, one writer thread, group commit.

Every write of the Interceptor goes through `Database.run`; what waits while one transaction commits is committed
together by the next one, so the cost of durability is shared under load. A caller hears back only after the commit.
Readers open the file by themselves (WAL lets them) and never wait for the writer.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from sentinel_rag.contracts.errors import UnavailableError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Migration = Callable[[sqlite3.Connection], None]

MAX_BATCH = 256
BUSY_MILLISECONDS = 5_000


class Durability(StrEnum):
    """What a commit survives. PROCESS: the end of this process, also by kill -9. POWER: a power cut too (one disk
    sync a batch, about 4 ms on the disk we measured)."""

    PROCESS = "process"
    POWER = "power"


class Database:
    """The file at `path`, readable by its owner only, with its writer thread. Close it, or use it in a `with`."""

    def __init__(self, path: Path, *, durability: Durability = Durability.PROCESS) -> None:
        self.path = path
        self._durability = durability
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._connection = self._open()
        self._thread = threading.Thread(target=self._serve, name="audit-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def run(self, work: Work[T]) -> T:
        """Do `work` in a transaction and return its result once that is durable.

        If `work` raises, its own changes are undone, those of its batch are kept, and the error is raised here. Raises
        UnavailableError if the file cannot be written (locked, full, removed): then nothing was changed.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        self._submit(_Job(work, loop, waiting))
        return await waiting

    def run_now(self, work: Work[T]) -> T:
        """`run` for callers without an event loop; blocks."""
        waiting: Future[T] = Future()
        self._submit(_Job(work, None, waiting))
        return waiting.result()

    def migrate(self, component: str, steps: Sequence[Migration]) -> None:
        """Bring `component`'s tables up to `len(steps)`; each step runs once in the life of the file.

        Raises UnavailableError if a newer version of the product wrote the file.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_version (component TEXT PRIMARY KEY, version INTEGER NOT NULL)"
            )
            row = connection.execute("SELECT version FROM schema_version WHERE component = ?", [component]).fetchone()
            version = 0 if row is None else row[0]
            if version > len(steps):
                raise UnavailableError(
                    f"{self.path.name} was written by a newer version of Sentinel RAG ({component} schema {version}, "
                    f"this one knows {len(steps)}).",
                    next_step="Install the newer version, or point the state folder elsewhere.",
                )
            for step in steps[version:]:
                step(connection)
            connection.execute("INSERT OR REPLACE INTO schema_version VALUES (?, ?)", [component, len(steps)])

        self.run_now(work)

    def close(self) -> None:
        """Finish what was submitted, then stop. Idempotent."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
            self._thread.join()
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Created here, because SQLite would give it the umask's mode; -wal and -shm copy the mode of this file.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=BUSY_MILLISECONDS / 1000
            )
            with ExitStack() as opened:
                opened.enter_context(closing(connection))
                connection.execute("PRAGMA journal_mode = WAL")
                power = self._durability is Durability.POWER
                connection.execute(f"PRAGMA synchronous = {'FULL' if power else 'NORMAL'}")
                connection.execute("PRAGMA foreign_keys = ON")
                opened.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise _unavailable(self.path, error) from error
        return connection

    def _submit(self, job: _Job[Any]) -> None:
        if self._closed:
            raise UnavailableError(f"{self.path.name} is closed.", next_step="Start the Interceptor again.")
        self._jobs.put(job)

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            batch: list[_Job[Any]] = []
            job = self._jobs.get()
            while job is not None:
                batch.append(job)
                if len(batch) == MAX_BATCH:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            stopping = job is None
            if batch:
                self._commit(batch)
                _deliver(batch)

    def _commit(self, batch: list[_Job[Any]]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                connection.execute("SAVEPOINT job")
                try:
                    job.result, job.error = job.work(connection), None
                except Exception as error:  # whatever one job raises is its caller's, not the other jobs'
                    job.error = _unavailable(self.path, error) if isinstance(error, sqlite3.OperationalError) else error
                    connection.execute("ROLLBACK TO job")
                connection.execute("RELEASE job")
            connection.execute("COMMIT")
        except Exception as error:  # the writer thread must outlive a failed batch, and every caller hear of it
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            for job in batch:
                job.error = _unavailable(self.path, error)


class _Job(Generic[T]):
    """One piece of work and where its caller waits."""

    __slots__ = ("error", "loop", "result", "waiting", "work")

    def __init__(
        self, work: Work[T], loop: asyncio.AbstractEventLoop | None, waiting: asyncio.Future[T] | Future[T]
    ) -> None:
        self.work = work
        self.loop = loop
        self.waiting = waiting
        self.result: T | None = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.waiting.done():  # its caller was cancelled; the work is committed all the same
            return
        if self.error is not None:
            self.waiting.set_exception(self.error)
        else:
            self.waiting.set_result(self.result)  # type: ignore[arg-type]  # set by _commit where error is None


def _deliver(batch: list[_Job[Any]]) -> None:
    """Wake every caller; one wake-up for all that wait in the same event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in batch:
        if job.loop is None:
            job.settle()
        else:
            loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        with suppress(RuntimeError):  # the loop has ended, and its callers with it
            loop.call_soon_threadsafe(_settle_all, jobs)


def _settle_all(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        job.settle()


def _unavailable(path: Path, error: BaseException) -> UnavailableError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return UnavailableError(
            f"{path.name} is locked by another process.",
            next_step="Stop the other Interceptor that uses this state folder, or choose another folder.",
        )
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in text:
        return UnavailableError(
            f"{path.name} is not a journal of Sentinel RAG.",
            next_step="Move the file away, or point the state folder elsewhere.",
        )
    return UnavailableError(
        f"{path.name} cannot be written: {text}.", next_step="Check the folder's permissions and free space."
    )
