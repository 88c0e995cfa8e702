"""Connections to PostgreSQL, a few that threads share: each piece of work is one transaction on one of them.

A connection that was lost is replaced and the work is done once more: a transaction is whole or not at all, and what
the store does may be done twice. Whatever fails is said in a sentence that holds no password and no row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import Connection, errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.stores.pgvector.schema import bring_up, extension_schema
from sentinel_rag.knowledge.stores.pgvector.wire import register_vectors

T = TypeVar("T")
Work = Callable[[Connection[Any]], T]

MOST_CONNECTIONS = 4
CONNECT_S = 10
READ_S = 30
WRITE_S = 600
LOCK_S = 30
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_KEEPALIVES = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


class PgvectorPool:
    """Connections to the database at `url` whose search path is `schema`; the tables are made by the first. Raises
    UnavailableError where it cannot be reached or used."""

    def __init__(self, url: str, schema: str) -> None:
        self._schema = schema
        self._scrub = _Scrub(url)
        self._conninfo = _conninfo(url)
        self._free: list[Connection[Any]] = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False
        with self._told():
            connection = self._connect(make=True)
        self._free.append(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def read(self, work: Work[T]) -> T:
        """What `work` returns, all of whose queries see one moment."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._run(work, f"{begin}; SET LOCAL statement_timeout = '{READ_S}s'")

    def write(self, work: Work[T], *, alone: bool = True) -> T:
        """What `work` returns; its changes are made whole or, on an error, not at all. `alone`: no other process
        changes documents meanwhile."""
        begin = f"BEGIN; SET LOCAL statement_timeout = '{WRITE_S}s'; SET LOCAL lock_timeout = '{LOCK_S}s'"

        def locked(connection: Connection[Any]) -> T:
            if alone:
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 6))", [self._schema])
            return work(connection)

        return self._run(locked, begin)

    def _run(self, work: Work[T], begin: str) -> T:
        if not self._room.acquire(timeout=READ_S):
            raise UnavailableError(
                "All connections to the knowledge store are busy.", next_step="Ask again when less is going on."
            )
        try:
            with self._told():
                try:
                    return self._once(work, begin)
                except _LostError:
                    return self._once(work, begin)
        finally:
            self._room.release()

    def _once(self, work: Work[T], begin: str) -> T:
        with self._lock:
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = self._connect()
        try:
            connection.execute(begin)
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            if connection.broken or isinstance(error, errors.AdminShutdown):
                self._drop(connection)
                if isinstance(error, psycopg.Error):
                    raise _LostError(str(error)) from error
            else:
                self._give_back(connection)
                if isinstance(error, errors.DeadlockDetected | errors.SerializationFailure):
                    raise _LostError(str(error)) from error
            raise
        self._give_back(connection)
        return result

    def _give_back(self, connection: Connection[Any]) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.close()

    def _drop(self, connection: Connection[Any]) -> None:
        """This one and those that wait: what ended one has most likely ended all."""
        with self._lock:
            lost, self._free = [connection, *self._free], []
        for each in lost:
            with suppress(psycopg.Error):
                each.close()

    def _connect(self, *, make: bool = False) -> Connection[Any]:
        # Nothing is prepared: plans must fit each filter, and poolers in between know no prepared statements.
        connection = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None)
        try:
            extension = extension_schema(connection)
            connection.execute(
                sql.SQL("SET search_path TO {}, {}").format(sql.Identifier(self._schema), sql.Identifier(extension))
            )
            connection.execute("SET client_min_messages = warning")
            if make:
                bring_up(connection, self._schema)
            register_vectors(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """PostgreSQL's errors as sentences for a person."""
        try:
            yield
        except errors.QueryCanceled:
            raise UnavailableError(
                "The knowledge store in PostgreSQL took too long and was interrupted.",
                next_step="Ask again when its server is less busy, or narrow the question.",
            ) from None
        except errors.LockNotAvailable:
            raise UnavailableError(
                "The knowledge store in PostgreSQL is being written by another process.",
                next_step="Wait for it to end, then try again.",
            ) from None
        except (errors.DiskFull, errors.OutOfMemory):
            raise UnavailableError(
                "The server of the knowledge store has no room left; nothing was changed.",
                next_step="Make room there, then ingest again: it goes on.",
            ) from None
        except errors.InsufficientPrivilege as error:
            raise UnavailableError(
                f"PostgreSQL refuses this to the knowledge store's user: {self._scrub.said(error)}.",
                next_step="Grant it the schema SENTINEL_KNOWLEDGE_SCHEMA, or create that as its owner.",
            ) from None
        except (_LostError, psycopg.OperationalError) as error:
            raise UnavailableError(
                f"The knowledge store in PostgreSQL cannot be reached: {self._scrub.said(error)}.",
                next_step="Check that its server runs, and SENTINEL_KNOWLEDGE_URL.",
            ) from None
        except psycopg.Error as error:
            raise UnavailableError(
                f"The knowledge store in PostgreSQL cannot be used: {self._scrub.said(error)}.",
                next_step="Check the schema SENTINEL_KNOWLEDGE_SCHEMA and the log of its server.",
            ) from None


class _LostError(Exception):
    """The connection, or the transaction, ended under the work."""


class _Scrub:
    """What PostgreSQL said, without the password of `url`."""

    def __init__(self, url: str) -> None:
        given = urlsplit(url).password
        self._secrets = {url, *filter(None, (given, unquote(given or "")))}
        with suppress(psycopg.Error):
            self._secrets |= {str(value) for name, value in conninfo_to_dict(url).items() if "password" in name}

    def said(self, error: Exception) -> str:
        """The first line: what comes behind it can quote rows."""
        primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        text = (primary or str(error) or type(error).__name__).strip().split("\n")[0]
        for secret in sorted(filter(None, self._secrets), key=len, reverse=True):
            text = text.replace(secret, "********")
        return text.rstrip(".")


def _conninfo(url: str) -> str:
    """The address with what it does not say itself: that a network which went silent is noticed, and, where it leads to
    another machine, that TLS is demanded. Raises UnavailableError for one that PostgreSQL's client does not
    understand."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # its text quotes the address
        raise UnavailableError(
            "SENTINEL_KNOWLEDGE_URL is no address that PostgreSQL's client understands.",
            next_step="Write postgresql://USER:PASSWORD@HOST/DATABASE; percent-encode special characters.",
        ) from None
    added = dict(_KEEPALIVES)
    host = str(parts.get("host") or "")
    if host and not host.startswith("/") and host not in _LOOPBACK:
        added["sslmode"] = "require"
    return make_conninfo(url, **{name: value for name, value in added.items() if name not in parts})
