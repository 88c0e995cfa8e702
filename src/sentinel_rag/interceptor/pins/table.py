"""Where pins are stored: one row a tool, with the accepted definition and, if there is one, the changed one that waits.

Everything here is work for the writer thread of the state's database, to be done beside the record that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from sentinel_rag.audit import Connection, StateDatabase
from sentinel_rag.interceptor.pins.definition import Definition

Key = tuple[str, str]
"""Server and tool."""

Write = Callable[[Connection], object]


def _tables(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, sha256 TEXT NOT NULL, definition BLOB NOT NULL, "
        "waiting_sha256 TEXT, waiting_definition BLOB, PRIMARY KEY (server, tool)) STRICT, WITHOUT ROWID"
    )


MIGRATIONS = (_tables,)


class PinTable:
    """The table in `database`."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database
        database.migrate("pins", MIGRATIONS)

    def load(self) -> tuple[dict[Key, Definition], dict[Key, Definition]]:
        """The accepted definitions and those that wait. Blocks; for the start."""
        return self._database.run_now(_read)

    async def read(self) -> tuple[dict[Key, Definition], dict[Key, Definition]]:
        """The same, as another gateway with this database may have left it."""
        return await self._database.run(_read)

    async def run(self, write: Write) -> None:
        """A write that no record goes with."""
        await self._database.run(write)

    @staticmethod
    def accept(key: Key, definition: Definition) -> Write:
        """Make this the accepted definition; nothing waits any more."""
        return lambda connection: connection.execute(
            "INSERT INTO pin VALUES (?, ?, ?, ?, NULL, NULL) ON CONFLICT (server, tool) DO UPDATE SET "
            "sha256 = excluded.sha256, definition = excluded.definition, waiting_sha256 = NULL, "
            "waiting_definition = NULL",
            [*key, definition.sha256, definition.encoded],
        )

    @staticmethod
    def wait(key: Key, definition: Definition | None) -> Write:
        """Keep a changed definition for a person to look at; None if it changed back."""
        values = [None, None] if definition is None else [definition.sha256, definition.encoded]
        return lambda connection: connection.execute(
            "UPDATE pin SET waiting_sha256 = ?, waiting_definition = ? WHERE server = ? AND tool = ?", [*values, *key]
        )


def _read(connection: Connection) -> tuple[dict[Key, Definition], dict[Key, Definition]]:
    rows = connection.execute(
        "SELECT server, tool, sha256, definition, waiting_sha256, waiting_definition FROM pin"
    ).fetchall()
    accepted = {(row[0], row[1]): Definition(row[2], json.loads(row[3])) for row in rows}
    waiting = {(row[0], row[1]): Definition(row[4], json.loads(row[5])) for row in rows if row[4] is not None}
    return accepted, waiting
