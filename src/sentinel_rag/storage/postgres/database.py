"""The writer of a gateway's state in PostgreSQL: what is submitted while one transaction runs becomes the next one.

A thread of its own commits, because the server answers over a network. The batches of all gateways of a schema follow
one another by an advisory lock; see the package. A connection that is lost before the commit is replaced and its batch
done again; one that is lost in the commit leaves it in doubt, and then nobody is told that it happened.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import anyio.to_thread
import psycopg

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.jobs import Job, deliver
from sentinel_rag.storage.migrations import VERSIONS, bring_up
from sentinel_rag.storage.port import Migration, PostgresPlace, RecordConnection, StateAway, Work
from sentinel_rag.storage.postgres.batches import commit, lock_of
from sentinel_rag.storage.postgres.connecting import LARGE_S, Connector, Lost, StateConnection
from sentinel_rag.storage.postgres.readers import Readers

T = TypeVar("T")

MAX_BATCH = 256
ATTEMPTS = 3
PAUSE_S = 0.02
RETRY_S = 0.5
"""How often to try to come back while nobody calls."""


_log = logging.getLogger(__name__)


class _Lasting(Job[Any]):
    """A job that is tried again until it is done; nobody waits for it."""


class PostgresDatabase:
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

    def __enter__(self) -> PostgresDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
