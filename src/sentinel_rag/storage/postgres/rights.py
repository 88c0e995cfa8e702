"""What the role of a running gateway may do in the schema: add to the journal and never change it.

The role that owns the tables makes them and removes old records; it is used for that and no more. This is a second
lock: what proves the journal is its chain and its signatures, whoever holds which right.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors, sql

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.storage.port import PostgresPlace
from sentinel_rag.storage.postgres.connecting import Connector

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
