"""One connection to PostgreSQL: how it is opened, what it is told first, and what its errors mean to a person.

Nothing that is said here holds a password, an address or a row.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.port import PostgresPlace, StateAway
from sentinel_rag.storage.postgres.dialect import adapt, statement

CONNECT_S = 5
STATEMENT_S = 15
LOCK_S = 10
IDLE_S = 10
"""How long a transaction may do nothing, before the server ends it: a gateway that hangs holds up the others no
longer."""

LARGE_S = 600
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)
"""What is acknowledged outlives the server, and its synchronous replicas; what promises more is left as it is."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_WHERE = re.compile(
    r'(?:connection failed: )?(?:connection )?to server (?:at "[^"]*"(?: \([^)]*\))?, port \S+|on socket "[^"]*") '
    r"failed: |(?<=host name )\"[^\"]*\" |(?<=resolve host )'[^']*'"
)
"""How libpq and psycopg begin to say why a connection could not be made."""
_WATCHFUL = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    # Of several hosts the one that takes writes, so that a fail-over is followed.
    "target_session_attrs": "read-write",
    "application_name": "sentinel-rag",
}


class Lost(Exception):
    """The connection ended under the work. `in_commit`: while it was being committed, so that nobody knows whether it
    was."""

    def __init__(self, error: Exception, *, in_commit: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.in_commit = in_commit


class StateConnection:
    """A connection as the stores use it; see `storage.port.Connection`. Not for two threads at once.

    What is `put` travels with the next statement: a write whose result nobody needs costs no way there and back.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.known: dict[str, Any] = {}
        """What is true in this transaction and need not be asked again; see `known_of`."""
        self._put: list[tuple[str, Sequence[Any]]] = []

    def execute(self, question: str, parameters: Sequence[Any] = (), /) -> psycopg.RawCursor[Any]:
        if not self._put:
            return self._run(question, parameters)
        with self.raw.pipeline():
            self._send_put()
            return self._run(question, parameters)

    def executemany(self, question: str, parameters: Any, /) -> psycopg.RawCursor[Any]:
        self.steer()
        cursor = psycopg.RawCursor(self.raw)
        cursor.executemany(statement(question), list(parameters))
        return cursor

    def put(self, question: str, parameters: Sequence[Any], /) -> None:
        """`execute` for a write whose result nobody needs; it is done before the next statement, or the commit."""
        self._put.append((question, parameters))

    def steer(self, *statements: str) -> psycopg.Cursor[Any] | None:
        """Do what was put, and then these statements without values; the cursor of the last."""
        last = None
        with self.raw.pipeline():
            self._send_put()
            for each in statements:
                last = self.raw.execute(each, prepare=False)
        return last

    def forget(self) -> None:
        """What was put and what is known holds no longer: its transaction, or a part of it, was undone."""
        self._put.clear()
        self.known.clear()

    def _send_put(self) -> None:
        waiting, self._put = self._put, []
        for question, parameters in waiting:
            self._run(question, parameters)

    def _run(self, question: str, parameters: Sequence[Any]) -> psycopg.RawCursor[Any]:
        cursor = psycopg.RawCursor(self.raw)
        if parameters:
            cursor.execute(statement(question), parameters, binary=True)
        else:  # several statements at once, where a table needs more than one
            cursor.execute(statement(question))
        return cursor


class Connector:
    """Opens connections to `place` and turns its errors into sentences, in which `setting` is where the address stands
    and `holds` what lies there."""

    def __init__(
        self, place: PostgresPlace, *, setting: str = "SENTINEL_DATABASE_URL", holds: str = "the gateway's state"
    ) -> None:
        self.place = place
        self._setting = setting
        self._holds = holds
        self.conninfo = _conninfo(place.url, setting)
        self._secrets = _secrets(place.url)
        self._made = threading.Event()

    def connect(self, *, read_only: bool = False) -> psycopg.Connection[Any]:
        """A connection in autocommit mode whose search path is the schema, which is made if it is missing.

        Raises StateAway.
        """
        try:
            connection = psycopg.connect(self.conninfo, autocommit=True, connect_timeout=CONNECT_S)
        except psycopg.Error as error:
            raise self.away(error) from None
        try:
            adapt(connection)
            settings = [
                f"SET search_path TO {sql.Identifier(self.place.schema).as_string()}",
                "SET client_min_messages = warning",
                _DURABLE,
                f"SET statement_timeout = '{STATEMENT_S}s'",
                f"SET lock_timeout = '{LOCK_S}s'",
                f"SET idle_in_transaction_session_timeout = '{IDLE_S}s'",
                *(["SET default_transaction_read_only = on"] if read_only else []),
            ]
            connection.execute("; ".join(settings))
            if not read_only and not self._made.is_set():
                _make_schema(connection, self.place.schema)
                self._made.set()
        except psycopg.Error as error:
            connection.close()
            raise self.away(error) from None
        return connection

    def away(self, error: Exception) -> StateAway:
        """`error` of PostgreSQL as a sentence for the operator, without a secret or a row."""
        if isinstance(error, Lost):
            error = error.error
        said = self._said(error)
        if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
            return StateAway(
                f"The database of {self._holds} is too busy: another program holds it.",
                next_step="Try again; if it stays, look at pg_stat_activity for what holds a lock.",
            )
        if isinstance(error, errors.InsufficientPrivilege | errors.InvalidSchemaName | errors.UndefinedTable):
            return StateAway(
                f"PostgreSQL refuses this to the role of {self._setting}: {said}.",
                next_step="Run `sentinel database prepare` as the owner of the schema, or give the schema to that "
                "role: docs/postgresql.md.",
            )
        if isinstance(error, errors.DiskFull | errors.OutOfMemory):
            return StateAway(
                f"The server of {self._holds} has no room left; nothing was written.",
                next_step="Make room there; it goes on by itself.",
            )
        return StateAway(
            f"The database of {self._holds} cannot be reached: {said}.",
            next_step=f"Check that PostgreSQL runs, and {self._setting}; it goes on by itself once it is back.",
        )

    def _said(self, error: Exception) -> str:
        """The first line: what comes behind it can quote rows. Where the server is stays unsaid, for this is told to
        people who ask questions."""
        primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        text = (primary or str(error) or type(error).__name__).strip().split("\n")[0]
        text = _WHERE.sub("", text)
        for secret in self._secrets:
            text = text.replace(secret, "********")
        return text.rstrip(".")


def is_lost(connection: psycopg.Connection[Any], error: BaseException) -> bool:
    """Whether `connection` is of no more use after `error`: it broke, or its server takes no writes any more."""
    return (
        connection.closed
        or connection.broken
        or isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.ReadOnlySqlTransaction)
    )


def _make_schema(connection: psycopg.Connection[Any], schema: str) -> None:
    """Where the role may not make one, its owner has made it: nothing is asked of a database that is ready."""
    there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone()
    if there is None:
        # Of two that make it at once the second finds it.
        with suppress(errors.DuplicateSchema, errors.UniqueViolation):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))


def _secrets(url: str) -> list[str]:
    given = urlsplit(url).password
    found = {url, *filter(None, (given, unquote(given or "")))}
    with suppress(psycopg.Error):
        found |= {str(value) for name, value in conninfo_to_dict(url).items() if "password" in name}
    return sorted(filter(None, found), key=len, reverse=True)


def _conninfo(url: str, setting: str) -> str:
    """The address with what it does not say itself: that a network which went silent is noticed, and, where it leads to
    another machine, that TLS is demanded. Raises UnavailableError for one that PostgreSQL's client does not
    understand."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # its text quotes the address
        raise UnavailableError(
            f"{setting} is no address that PostgreSQL's client understands.",
            next_step="Write postgresql://USER:PASSWORD@HOST/DATABASE; percent-encode special characters.",
        ) from None
    added = dict(_WATCHFUL)
    hosts = [each for name in ("host", "hostaddr") for each in str(parts.get(name) or "").split(",")]
    if any(host and not host.startswith("/") and host not in _LOOPBACK for host in hosts):
        added["sslmode"] = "require"
    return make_conninfo(url, **{name: value for name, value in added.items() if name not in parts})
