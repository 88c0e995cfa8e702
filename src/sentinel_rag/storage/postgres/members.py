"""Who uses a schema at this moment, what the role of a gateway may do there, and how both look from outside."""

from __future__ import annotations

import secrets
from typing import Any

import psycopg
from psycopg import errors, sql

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.storage.port import PostgresPlace, RecordConnection
from sentinel_rag.storage.postgres.connecting import Connector, StateConnection
from sentinel_rag.storage.postgres.database import PostgresDatabase

# Which gateways use a schema at this moment: each holds a lock of its own number as long as its writer is connected.
# The lock is of the session, so it ends with the process, kill -9 included, and a gateway that starts can tell the
# calls of one that died from those of one that runs beside it. It is a shared one: a writer that comes back takes it at
# once, although the server may not have noticed yet that its earlier connection is gone.
_HELD = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid = ?::bigint::oid AND objid = ?::bigint::oid)"
)


def _tables(connection: RecordConnection) -> None:
    connection.execute("CREATE TABLE gateway (instance_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID")


MIGRATIONS = (_tables,)


class PostgresInstance:
    """This process's membership among those who use `database`. See `storage.sqlite.Instance`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.instance_id = secrets.token_hex(8)
        self._database = database
        database.migrate("gateways", MIGRATIONS)
        database.greet(self._join)
        database.before_close(
            lambda connection: connection.execute("DELETE FROM gateway WHERE instance_id = ?", [self.instance_id])
        )

    def close(self) -> None:
        """Nothing: who closes the database has left."""

    def is_live(self, instance_id: str) -> bool:
        """True while the gateway that joined under that id runs and is connected; this one included."""
        with self._database.reading() as connection:
            return is_held(connection, instance_id)

    def alone(self) -> bool:
        """True if no other gateway uses the schema."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT instance_id FROM gateway").fetchall()
            return all(each == self.instance_id or not is_held(connection, each) for (each,) in rows)

    def take_over(self) -> tuple[str, ...]:
        """The ids of gateways that ended without leaving. Each is told to one caller only, once."""

        def work(connection: RecordConnection) -> tuple[str, ...]:
            rows = connection.execute("SELECT instance_id FROM gateway ORDER BY instance_id").fetchall()
            left = [each for (each,) in rows if each != self.instance_id and not is_held(connection, each)]
            connection.executemany("DELETE FROM gateway WHERE instance_id = ?", [(each,) for each in left])
            return tuple(left)

        return self._database.run_now(work)

    def _join(self, raw: psycopg.Connection[Any]) -> None:
        """The lock first: nobody may take this gateway for one that died."""
        hold(raw, self.instance_id)
        raw.execute("INSERT INTO gateway VALUES (%s) ON CONFLICT DO NOTHING", [self.instance_id])


def hold(raw: psycopg.Connection[Any], instance_id: str) -> None:
    """Show others, for as long as this connection lives, that the process of that id does."""
    number = int.from_bytes(bytes.fromhex(instance_id), "big", signed=True)
    raw.execute("SELECT pg_advisory_lock_shared(%s)", [number])


def is_held(connection: RecordConnection, instance_id: str) -> bool:
    """Whether the process of that id is connected. A number of 64 bits is listed as two halves."""
    try:
        number = int(instance_id, 16)
    except ValueError:  # of a journal that came from a file, whose gateway wrote no id
        return False
    return bool(connection.execute(_HELD, [number >> 32, number & 0xFFFFFFFF]).fetchone()[0])


def living(connection: RecordConnection) -> int:
    """How many gateways are connected now."""
    rows = connection.execute("SELECT instance_id FROM gateway").fetchall()
    return sum(is_held(connection, each) for (each,) in rows)


def look_at(place: PostgresPlace) -> tuple[str, bool, bool, int]:
    """Version, encrypted, ready, gateways. Raises StateAway."""
    connector = Connector(place)
    raw = connector.connect(read_only=True)
    try:
        version = raw.info.parameter_status("server_version") or "of an unknown version"
        encrypted = raw.pgconn.ssl_in_use
        ready = raw.execute("SELECT to_regclass('journal')").fetchone() != (None,)
        return version.split(" ")[0], encrypted, ready, living(StateConnection(raw)) if ready else 0
    except psycopg.Error as error:
        raise connector.away(error) from None
    finally:
        raw.close()


# The role that owns the tables makes them and removes old records; it is used for that and no more. This is a second
# lock: what proves the journal is its chain and its signatures, whoever holds which right.
APPENDED = ("journal", "checkpoint")
"""Tables that a running gateway reads and adds to."""


def grant_to(place: PostgresPlace, role: str) -> None:
    """Let `role` run gateways in the schema of `place`, whose tables are made. Raises UsageError if there is no such
    role or this one may not grant, StateAway if the database cannot be used."""
    connector = Connector(place)
    raw = connector.connect()
    try:
        with raw.transaction():
            for statement in _grants(raw, place.schema, role):
                raw.execute(statement)
    except errors.UndefinedObject:
        raise UsageError(
            f"PostgreSQL has no role {role!r}.", next_step="Make it first: CREATE ROLE ... LOGIN PASSWORD ..."
        ) from None
    except errors.InsufficientPrivilege as error:
        raise connector.away(error) from None
    except psycopg.Error as error:
        raise connector.away(error) from None
    finally:
        raw.close()


def _grants(raw: psycopg.Connection[Any], schema: str, role: str) -> list[sql.Composed]:
    names = [name for (name,) in raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])]
    where, who = sql.Identifier(schema), sql.Identifier(role)
    grants = [sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(where, who)]
    for name in names:
        table = sql.Identifier(schema, name)
        grants.append(sql.SQL("REVOKE ALL ON {} FROM {}").format(table, who))
        rights = sql.SQL("SELECT, INSERT" if name in APPENDED else "SELECT, INSERT, UPDATE, DELETE")
        grants.append(sql.SQL("GRANT {} ON {} TO {}").format(rights, table, who))
    return grants
