"""Jobs of the database: what a caller wants done, and how a batch of them becomes one transaction of SQLite.

`Database` decides in which thread a batch is committed; here is only how, and how the callers hear of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.port import Work

T = TypeVar("T")


class Busy(Exception):
    """Another process writes at this moment; nothing was done."""


class Job(Generic[T]):
    """One piece of work and where its caller waits: in an event loop, or in a thread if `loop` is None."""

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
        """Let the caller go on. For a job of an event loop: only in that loop's thread."""
        if self.waiting.done():  # its caller was cancelled; the work is committed all the same
            return
        if self.error is not None:
            self.waiting.set_exception(self.error)
        else:
            self.waiting.set_result(self.result)  # type: ignore[arg-type]  # set by commit where error is None


def commit(connection: sqlite3.Connection, batch: list[Job[Any]], path: Path) -> None:
    """Do the jobs in one transaction and set result or error of each. Raises Busy, and then nothing was done.

    A job that raises undoes its own changes only. If the transaction itself fails, every job has the error.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise Busy from error
        _fail(batch, path, error)
        return
    try:
        alone = len(batch) == 1
        for job in batch:
            if not alone:
                connection.execute("SAVEPOINT job")
            failed = _do(job, connection, path)
            if failed is not None and not connection.in_transaction:
                raise failed  # a full disk undoes the whole transaction, not the one statement
            if not alone:
                if failed is not None:
                    connection.execute("ROLLBACK TO job")
                connection.execute("RELEASE job")
        connection.execute("ROLLBACK" if alone and batch[0].error is not None else "COMMIT")
    except Exception as error:  # the thread that commits must outlive a failed batch, and every caller hear of it
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        _fail(batch, path, error)


def settle_all(jobs: list[Job[Any]]) -> None:
    for job in jobs:
        job.settle()


def deliver(batch: list[Job[Any]]) -> None:
    """Wake every caller from another thread; one wake-up for all that wait in the same event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in batch:
        if job.loop is None:
            job.settle()
        else:
            loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        with suppress(RuntimeError):  # the loop has ended, and its callers with it
            loop.call_soon_threadsafe(settle_all, jobs)


def unavailable(path: Path, error: BaseException) -> UnavailableError:
    """`error` of SQLite or the file system as a sentence for the operator."""
    text = str(error)
    if isinstance(error, Busy) or "locked" in text or "busy" in text:
        return UnavailableError(
            f"{path.name} is locked by another process.",
            next_step="End the program that holds it (a database browser, a copy in progress), and try again.",
        )
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in text:
        return UnavailableError(
            f"{path.name} is not a journal of Sentinel RAG.",
            next_step="Move the file away, or point the state folder elsewhere.",
        )
    return UnavailableError(
        f"{path.name} cannot be written: {text}.", next_step="Check the folder's permissions and free space."
    )


def _do(job: Job[Any], connection: sqlite3.Connection, path: Path) -> Exception | None:
    """Run one job and keep its result or its error, which is also returned."""
    try:
        job.result, job.error = job.work(connection), None
    except Exception as error:  # whatever one job raises is its caller's, not the other jobs'
        job.error = unavailable(path, error) if isinstance(error, sqlite3.OperationalError) else error
        return error
    return None


def _fail(batch: list[Job[Any]], path: Path, error: BaseException) -> None:
    for job in batch:
        job.error = unavailable(path, error)
