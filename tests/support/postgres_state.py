"""A gateway's state in PostgreSQL for one test: the schema of the test before, with nothing in it.

New tables for each test would take longer than the tests do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
from psycopg import sql

from sentinel_rag.audit import PostgresPlace
from sentinel_rag.gateway.store import open_state

_KEPT = ("schema_version", "key_store")


class EmptyStates:
    """Hands out places in one schema of the database at `url`, one after another. `folder` is its own."""

    def __init__(self, url: str, folder: Path, schema: str = "state") -> None:
        self._url = url
        self._folder = folder
        self._schema = schema
        self._emptying = b""
        self._made = 0

    def fresh(self, folder: Path) -> PostgresPlace:
        """A schema of its own that is not made yet, for a state that begins or moves."""
        self._made += 1
        return PostgresPlace(self._url, f"{self._schema}_{self._made}", folder)

    def place(self, folder: Path) -> PostgresPlace:
        """An empty state whose secrets are in `folder`; whoever had the one before has closed it."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            if not self._emptying:
                open_state(self._folder, postgres=PostgresPlace(self._url, self._schema, self._folder)).close()
                names = connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename = 'api_key'",
                    [self._schema],
                ).fetchall()
                parts = [
                    sql.SQL("DELETE FROM {}.{}").format(sql.Identifier(self._schema), sql.Identifier(name))
                    for (name,) in names
                    if name not in _KEPT
                ]
                self._emptying = sql.SQL("; ").join(parts).as_bytes(connection)
            connection.execute(self._emptying)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._folder / "keys.pepper", folder)
        return PostgresPlace(self._url, self._schema, folder)
