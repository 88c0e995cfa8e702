"""Where pins are stored: one row a tool, with the accepted definition and, if there is one, the changed one that waits.

Everything here is work for the writer thread of the state's database, to be done beside the record that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from sentinel_rag.audit import RecordConnection, StateDatabase
from sentinel_rag.gateway.pins.definition import Definition

Key = tuple[str, str]
"""Server and tool."""

Write = Callable[[RecordConnection], object]


def _tables(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, sha256 TEXT NOT NULL, definition BLOB NOT NULL, "
        "waiting_sha256 TEXT, waiting_definition BLOB, PRIMARY KEY (server, tool)) STRICT, WITHOUT ROWID"
    )


def _accepted_by_a_person(connection: RecordConnection) -> None:
    """Whether an administrator has read and accepted the definition, and not only the first listing."""
    connection.execute("ALTER TABLE pin ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0")


MIGRATIONS = (_tables, _accepted_by_a_person)


@dataclass(frozen=True, slots=True)
class Stored:
    """The accepted definitions, those that wait, and of which accepted ones a person has said so."""

    accepted: dict[Key, Definition]
    waiting: dict[Key, Definition]
    vouched: set[Key]


class PinTable:
    """The table in `database`."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database
        database.migrate("pins", MIGRATIONS)

    def load(self) -> Stored:
        """What is stored. Blocks; for the start."""
        return self._database.run_now(_read)

    async def read(self) -> Stored:
        """The same, as another gateway with this database may have left it."""
        return await self._database.run(_read)

    async def run(self, write: Write) -> None:
        """A write that no record goes with."""
        await self._database.run(write)

    @staticmethod
    def accept(key: Key, definition: Definition, *, vouched: bool = False) -> Write:
        """Make this the accepted definition; nothing waits any more. `vouched`: a person says so."""
        return lambda connection: connection.execute(
            "INSERT INTO pin (server, tool, sha256, definition, vouched) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (server, tool) DO UPDATE SET sha256 = excluded.sha256, definition = excluded.definition, "
            "vouched = excluded.vouched, waiting_sha256 = NULL, waiting_definition = NULL",
            [*key, definition.sha256, definition.encoded, int(vouched)],
        )

    @staticmethod
    def wait(key: Key, definition: Definition | None) -> Write:
        """Keep a changed definition for a person to look at; None if it changed back."""
        values = [None, None] if definition is None else [definition.sha256, definition.encoded]
        return lambda connection: connection.execute(
            "UPDATE pin SET waiting_sha256 = ?, waiting_definition = ? WHERE server = ? AND tool = ?", [*values, *key]
        )


def _read(connection: RecordConnection) -> Stored:
    rows = connection.execute(
        "SELECT server, tool, sha256, definition, waiting_sha256, waiting_definition, vouched FROM pin"
    ).fetchall()
    return Stored(
        accepted={(row[0], row[1]): Definition(row[2], json.loads(row[3])) for row in rows},
        waiting={(row[0], row[1]): Definition(row[4], json.loads(row[5])) for row in rows if row[4] is not None},
        vouched={(row[0], row[1]) for row in rows if row[6]},
    )
