"""What a store asks of its database: a connection inside one transaction, places that make them, numbered migrations,
and jobs, which a batch turns into one transaction.

`sqlite3.Connection` is such a connection as it is. Statements are written once, in the SQL that SQLite and PostgreSQL
both understand: `?` for a value, `ON CONFLICT`, `RETURNING`, a limit that is a number.

`Database` decides in which thread a batch is committed; here is only how, and how the callers hear of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sentinel_rag.contracts.errors import UnavailableError


class Cursor(Protocol):
    """The rows of a statement, or how many it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class RecordConnection(Protocol):
    """Runs statements. Values are None, int, float, str and bytes; a row is a tuple."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor: ...


Migration = Callable[[RecordConnection], None]
"""One numbered step of a store's tables; each is done once in the life of a place."""


class Records(Protocol):
    """The place of one store's records. From any thread. What it raises is UnavailableError, with a sentence; the next
    transaction tries anew."""

    @property
    def name(self) -> str:
        """What a person calls it, without a secret."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes write here as equals, at the same time."""
        ...

    @property
    def holder(self) -> str:
        """This process's name for what it is at work on; another one after each start."""
        ...

    def transaction(self, *, reads: bool = False) -> AbstractContextManager[RecordConnection]:
        """A transaction for the block: all of it is kept, or nothing if the block raises. It begins after every one
        that wrote before, in whichever process; with `reads` it only reads, and waits for nobody."""
        ...

    def is_live(self, run: RecordConnection, holder: str) -> bool:
        """Whether the process that called itself `holder` still runs; asked within a transaction."""
        ...

    def exists(self) -> bool:
        """False where nothing was ever written; to look makes nothing."""
        ...

    def forget(self) -> None:
        """After something was deleted: leave no byte of it, where the place lets us say so."""
        ...

    def close(self) -> None:
        """Let go. It may be used again afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """The schema `schema` of the database at `url`, which holds a password and never prints. `folder` holds what must
    not lie in the database: the signing key and checkpoints."""

    url: str = field(repr=False)
    schema: str
    folder: Path


JournalPlace = Path | PostgresPlace


def folder_of(place: JournalPlace) -> Path:
    """The folder of the signing key and the checkpoints."""
    return place.folder if isinstance(place, PostgresPlace) else place.parent


def checkpoints_of(place: JournalPlace) -> Path:
    """The file of checkpoints beside the signing key; one for each journal, since one folder can have had two."""
    name = f"checkpoints-{place.schema}.jsonl" if isinstance(place, PostgresPlace) else "checkpoints.jsonl"
    return folder_of(place) / name


def name_of(place: JournalPlace) -> str:
    """What a person calls the journal, without a secret."""
    return f"the schema {place.schema}" if isinstance(place, PostgresPlace) else place.name


T = TypeVar("T")

Work = Callable[[RecordConnection], T]
"""What is to be done in one transaction. It may be done again if that transaction was lost, so it changes nothing but
the database, or what the next time sets again."""


def put(connection: RecordConnection, sql: str, parameters: Sequence[Any]) -> None:
    """`execute` for a write whose result nobody needs: over a network it need not be waited for. It fails, if it does,
    before the transaction is committed."""
    getattr(connection, "put", connection.execute)(sql, parameters)


def known_of(connection: RecordConnection) -> dict[str, Any] | None:
    """What is true in this transaction and was asked before, where asking costs a way over a network; it is forgotten
    with whatever is undone. None for SQLite, where asking costs nothing."""
    known: dict[str, Any] | None = getattr(connection, "known", None)
    return known


class StateAway(UnavailableError):
    """The server of the state cannot be used now: calls are refused until it can, and go on by themselves then."""

    code = "state_away"


class StateDatabase(Protocol):
    """Transactions of which no two overlap, whichever process makes them; `Database` is one, `PostgresDatabase` too."""

    @property
    def place(self) -> JournalPlace:
        """Where it is."""
        ...

    @property
    def name(self) -> str:
        """What a person calls it, without a secret."""
        ...

    @property
    def synced(self) -> bool:
        """Whether a commit waits for the disk."""
        ...

    @property
    def exact_outcomes(self) -> bool:
        """Whether an outcome is refused where its call is not open: where a call can be closed while it runs."""
        ...

    async def run(self, work: Work[T]) -> T:
        """Do `work` in a transaction and return its result once that is durable.

        If it raises, its own changes are undone and the error is raised here. Raises UnavailableError if the database
        cannot be written: then nothing was changed, or nobody is told of a change (see the class)."""
        ...

    async def look(self, work: Work[T]) -> T:
        """`run` for work of a single statement that only reads; it sees what was acknowledged before."""
        ...

    def run_now(self, work: Work[T]) -> T:
        """`run` for callers without an event loop, and for longer work; blocks."""
        ...

    def later(self, work: Work[object]) -> None:
        """Do `work` as soon as it can be done; nobody waits for it. It may be done twice."""
        ...

    def migrate(self, component: str, steps: Sequence[Migration]) -> None:
        """Bring `component`'s tables up to `len(steps)`; each step runs once in the life of the database.

        Raises UnavailableError if a newer version of the product wrote it."""
        ...

    def aside(self, work: Work[object]) -> None:
        """Do `work` in a transaction beside the others, however long it takes: it touches no row that a call writes.
        Blocks."""
        ...

    def reading(self) -> AbstractContextManager[RecordConnection]:
        """A connection that only reads and that no writer waits for. Blocks. Raises UnavailableError, also for what
        fails in the block."""
        ...


VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (component TEXT PRIMARY KEY, version INTEGER NOT NULL)"


def bring_up(
    component: str, steps: Sequence[Migration], name: str, connection: RecordConnection, *, make: bool = True
) -> None:
    """Do the steps that the database `name` lacks, in the transaction of `connection`. `make`: the table of the
    versions too, if there is none.

    Raises UnavailableError if a newer version of the product wrote it.
    """
    if make:
        connection.execute(VERSIONS)
    row = connection.execute("SELECT version FROM schema_version WHERE component = ?", [component]).fetchone()
    version = 0 if row is None else row[0]
    if version > len(steps):
        raise UnavailableError(
            f"{name} was written by a newer version of Sentinel RAG ({component} schema {version}, this one knows "
            f"{len(steps)}).",
            next_step="Install the newer version, or point the state folder elsewhere.",
        )
    if version == len(steps):
        return
    for step in steps[version:]:
        step(connection)
    connection.execute(
        "INSERT INTO schema_version VALUES (?, ?) ON CONFLICT (component) DO UPDATE SET version = excluded.version",
        [component, len(steps)],
    )


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
