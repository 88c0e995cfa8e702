"""The state of gateways in PostgreSQL: a writer of whole batches, and connections that only read.

The batches of all gateways of a schema follow one another by an advisory lock; see the package.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

import anyio.to_thread
import psycopg
from psycopg.pq import TransactionStatus

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.port import (
    VERSIONS,
    Job,
    Migration,
    PostgresPlace,
    RecordConnection,
    StateAway,
    Work,
    bring_up,
    deliver,
)
from sentinel_rag.storage.postgres.connecting import LARGE_S, Connector, Lost, StateConnection, is_alive, is_lost


def lock_of(schema: str) -> int:
    """The number of the advisory lock that a schema's writers hold by turns; locks are the database's, so the name of
    the schema is in it."""
    return int.from_bytes(hashlib.sha256(f"sentinel-rag state {schema}".encode()).digest()[:8], "big", signed=True)


def commit(connection: StateConnection, batch: list[Job[Any]], connector: Connector, lock: int) -> None:
    """Do the jobs in one transaction and set result or error of each. Raises Lost if the connection ended.

    A job that raises undoes its own changes only. If the transaction itself fails, every job has the error.
    """
    alone = len(batch) == 1
    in_commit = False
    connection.forget()
    try:
        # What comes behind the lock sees all that was committed before it was given: READ COMMITTED looks anew for
        # each statement.
        begin = ["BEGIN ISOLATION LEVEL READ COMMITTED", f"SELECT pg_advisory_xact_lock({lock})"]
        connection.steer(*begin, *([] if alone else ["SAVEPOINT job"]))
        for left, job in enumerate(batch, 1 - len(batch)):
            following = ["SAVEPOINT job"] if left else []
            if _done(job, connection, connector):
                if alone:
                    break
                try:
                    # What the job has put fails here, so it is its own.
                    connection.steer("RELEASE job", *following)
                    continue
                except psycopg.Error as error:
                    if is_lost(connection.raw, error):
                        raise
                    job.error = connector.away(error)
            connection.forget()
            if not alone:
                connection.steer("ROLLBACK TO job", "RELEASE job", *following)
        if alone and batch[0].error is not None:
            connection.steer("ROLLBACK")
            return
        in_commit = True
        ended = connection.steer("COMMIT")
        if ended is None or ended.statusmessage != "COMMIT":
            raise psycopg.OperationalError("the transaction was undone")
    except psycopg.Error as error:
        connection.forget()
        if is_lost(connection.raw, error):
            raise Lost(error, in_commit=in_commit) from error
        _roll_back(connection.raw)
        for job in batch:
            job.error = connector.away(error)


def _done(job: Job[Any], connection: StateConnection, connector: Connector) -> bool:
    """Run one job and keep its result or its error; whether it went well. Raises psycopg.Error if the connection was
    lost by it."""
    raw = connection.raw
    job.result = job.error = None
    try:
        job.result = job.work(connection)
    except psycopg.Error as error:
        if is_lost(raw, error):
            raise
        job.error = connector.away(error)
    except Exception as error:  # whatever one job raises is its caller's, not the other jobs'
        job.error = error
    if job.error is None and raw.info.transaction_status is TransactionStatus.INERROR:
        # It caught an error of the server's itself: what it had done is gone, whatever it returned.
        job.error = connector.away(psycopg.OperationalError("a statement failed"))
    return job.error is None


def _roll_back(raw: psycopg.Connection[Any]) -> None:
    try:
        raw.execute("ROLLBACK", prepare=False)
    except psycopg.Error as error:
        raise Lost(error) from error


MOST = 4
WAIT_S = 10


class Readers:
    """At most `MOST` connections to a place. From any thread."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._free: list[tuple[float, psycopg.Connection[Any]]] = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST)
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[StateConnection]:
        """A connection for the block. Raises StateAway, also for what fails in the block."""
        if not self._room.acquire(timeout=WAIT_S):
            raise self._connector.away(psycopg.OperationalError("all connections for reading are in use"))
        try:
            raw = self._take() or self._connector.connect(read_only=True)
            try:
                yield StateConnection(raw)
            except BaseException as error:
                if isinstance(error, psycopg.Error) and is_lost(raw, error):
                    self._drop(raw)
                else:
                    self._give_back(raw)
                if isinstance(error, psycopg.Error):
                    raise self._connector.away(error) from None
                raise
            self._give_back(raw)
        finally:
            self._room.release()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for _, raw in free:
            raw.close()

    def _take(self) -> psycopg.Connection[Any] | None:
        with self._lock:
            if not self._free:
                return None
            rested_since, raw = self._free.pop()
        if is_alive(raw, rested_since):
            return raw
        self._drop(raw)
        return None

    def _give_back(self, raw: psycopg.Connection[Any]) -> None:
        with self._lock:
            if not self._closed and not raw.closed:
                self._free.append((time.monotonic(), raw))
                return
        raw.close()

    def _drop(self, raw: psycopg.Connection[Any]) -> None:
        """This one and those that rest: what ended one has most likely ended all."""
        with self._lock:
            lost, self._free = [raw, *(each for _, each in self._free)], []
        for each in lost:
            with suppress(psycopg.Error):
                each.close()


@contextmanager
def one_moment(place: PostgresPlace) -> Iterator[StateConnection]:
    """The journal at `place` as it is now, whatever is written meanwhile, over a connection of its own.

    Raises UnavailableError if there is none, StateAway for what fails in the block.
    """
    connector = Connector(place)
    raw = connector.connect(read_only=True)
    try:
        raw.execute(f"SET statement_timeout = '{LARGE_S}s'; SET idle_in_transaction_session_timeout = '{LARGE_S}s'")
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if raw.execute("SELECT to_regclass('journal')").fetchone() == (None,):
            raise UnavailableError(
                f"There is no audit journal in the schema {place.schema} yet: no gateway has run with this database.",
                next_step="Start one with sentinel up, or check SENTINEL_DATABASE_URL and SENTINEL_DATABASE_SCHEMA.",
            )
        yield StateConnection(raw)
    except psycopg.Error as error:
        raise connector.away(error) from None
    finally:
        raw.close()


T = TypeVar("T")

# A thread of its own commits, because the server answers over a network. A connection that is lost before the commit is
# replaced and its batch done again; one that is lost in the commit leaves it in doubt, and then nobody is told that it
# happened.
MAX_BATCH = 256
ATTEMPTS = 3
PAUSE_S = 0.02
RETRY_S = 0.5
"""How often to try to come back while nobody calls."""


_log = logging.getLogger(__name__)


class _Lasting(Job[Any]):
    """A job that is tried again until it is done; nobody waits for it."""


class PostgresDatabase(Closing):
    """The schema of `place`. Close it, or use it in a `with`. Raises StateAway if it cannot be reached at the start."""

    exact_outcomes = True
    synced = True

    def __init__(self, place: PostgresPlace) -> None:
        self.place = place
        self.name = f"The schema {place.schema}"
        self.connector = Connector(place)
        self._lock = lock_of(place.schema)
        self._readers = Readers(self.connector)
        self._greetings: list[Callable[[psycopg.Connection[Any]], object]] = []
        self._queue: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._later: list[Job[Any]] = []
        self._last: list[Work[object]] = []
        self._away: StateAway | None = None
        self._not_before = 0.0
        self._closed = False
        self._connection: StateConnection | None = StateConnection(self.connector.connect())
        self._thread = threading.Thread(target=self._serve, name="state-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T]) -> T:
        """See `StateDatabase.run`. Raises StateAway."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        self._submit(Job(work, loop, waiting))
        return await waiting

    async def look(self, work: Work[T]) -> T:
        """See `StateDatabase.look`; on a connection for reading, so that it waits for no writer. Raises StateAway."""

        def read() -> T:
            with self._readers.borrow() as connection:
                return work(connection)

        return await anyio.to_thread.run_sync(read)

    def run_now(self, work: Work[T]) -> T:
        """See `StateDatabase.run_now`. Raises StateAway."""
        waiting: Future[T] = Future()
        self._submit(Job(work, None, waiting))
        return waiting.result()

    def later(self, work: Work[object]) -> None:
        """See `StateDatabase.later`: tried again and again until it is done, or this is closed."""
        self._queue.put(_Lasting(work, None, Future()))

    def aside(self, work: Work[object]) -> None:
        """See `StateDatabase.aside`; on a connection of its own. Raises StateAway."""
        raw = self.connector.connect()
        try:
            raw.execute(f"SET statement_timeout = '{LARGE_S}s'")
            with raw.transaction():
                connection = StateConnection(raw)
                work(connection)
                connection.steer()
        except psycopg.Error as error:
            raise self.connector.away(error) from None
        finally:
            raw.close()

    def reading(self) -> AbstractContextManager[RecordConnection]:
        """See `StateDatabase.reading`. Raises StateAway."""
        return self._readers.borrow()

    def greet(self, greeting: Callable[[psycopg.Connection[Any]], object]) -> None:
        """Do this now and for each new connection of the writer, before anything else: for locks of a session."""

        def first(connection: RecordConnection) -> None:
            assert isinstance(connection, StateConnection)
            greeting(connection.raw)

        self.run_now(first)
        self._greetings.append(greeting)

    def before_close(self, work: Work[object]) -> None:
        """Do this as the last, if the database can be reached then."""
        self._last.append(work)

    def migrate(self, component: str, steps: Sequence[Migration]) -> None:
        """See `StateDatabase.migrate`. Of several gateways that start at once one does the steps, and the others find
        them done."""

        def work(connection: RecordConnection) -> None:
            # A role that may not make tables may not even ask for one that is there.
            if connection.execute("SELECT to_regclass('schema_version')").fetchone()[0] is None:
                connection.execute(VERSIONS)
            bring_up(component, steps, self.name, connection, make=False)

        self.run_now(work)

    def close(self) -> None:
        """Finish what was submitted, then stop. Idempotent."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()
            self._readers.close()

    def _submit(self, job: Job[Any]) -> None:
        if self._closed:
            raise UnavailableError(f"{self.name} is closed.", next_step="Start the gateway again.")
        self._queue.put(job)

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            batch, stopping = self._next_batch()
            if batch:
                self._commit(batch)
                self._later += [job for job in batch if isinstance(job, _Lasting) and isinstance(job.error, StateAway)]
                deliver(batch)
            self._catch_up()
        if self._connection is not None:
            self._commit([Job(work, None, Future()) for work in self._last])
        self._drop()

    def _next_batch(self) -> tuple[list[Job[Any]], bool]:
        """What was submitted while the last one ran; waits for it, while nothing else is due."""
        due = bool(self._later) or self._connection is None
        batch: list[Job[Any]] = []
        try:
            job = self._queue.get(timeout=RETRY_S if due else None)
            while job is not None:
                batch.append(job)
                if len(batch) == MAX_BATCH:
                    break
                job = self._queue.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, job is None

    def _commit(self, batch: list[Job[Any]]) -> None:
        """Set result or error of each job."""
        error: StateAway | None = None
        for _ in range(ATTEMPTS):
            try:
                commit(self._connected(), batch, self.connector, self._lock)
                return
            except StateAway as away:
                error = away
                if time.monotonic() < self._not_before:
                    break
                time.sleep(PAUSE_S)
            except Lost as lost:
                self._drop()
                error = self.connector.away(lost)
                if lost.in_commit:
                    break
        for job in batch:
            job.error = error

    def _connected(self) -> StateConnection:
        if self._connection is None:
            if self._away is not None and time.monotonic() < self._not_before:
                raise self._away
            began = time.monotonic()
            try:
                raw = self.connector.connect()
                try:
                    for greeting in self._greetings:
                        greeting(raw)
                except psycopg.Error as error:
                    raw.close()
                    raise self.connector.away(error) from None
            except StateAway as away:
                # A server that is silent must not take all the time of this thread: until then jobs fail at once.
                took = time.monotonic() - began
                if self._away is None:
                    _log.error("%s %s", away, away.next_step)
                self._away, self._not_before = away, time.monotonic() + (took if took > RETRY_S else 0.0)
                raise
            if self._away is not None:
                _log.warning("the database of the state is back")
            self._connection, self._away = StateConnection(raw), None
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.raw.close()
            self._connection = None

    def _catch_up(self) -> None:
        """Come back by ourselves, and then do what waits for that."""
        if self._connection is None and not self._closed:
            with suppress(StateAway):
                self._connected()
        while self._later and self._connection is not None:
            job = self._later[0]
            self._commit([job])
            if isinstance(job.error, StateAway):
                return
            del self._later[0]
