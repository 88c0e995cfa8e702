"""The tables of the conversation store, as numbered steps."""

from __future__ import annotations

from sentinel_rag.records import Connection, Migration


def _first(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE conversation ("
        "id TEXT PRIMARY KEY, started_at TEXT NOT NULL, used_at TEXT NOT NULL, title TEXT NOT NULL, "
        "workspace TEXT, timezone TEXT, verbosity TEXT, "
        "state TEXT NOT NULL, carried TEXT NOT NULL, cleared_turns INTEGER NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX conversation_by_use ON conversation (used_at)")
    connection.execute(
        "CREATE TABLE turn ("
        "conversation_id TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, number INTEGER NOT NULL, "
        "asked_at TEXT NOT NULL, question TEXT NOT NULL, outcome TEXT, answer TEXT NOT NULL, facts TEXT NOT NULL, "
        "memory TEXT, PRIMARY KEY (conversation_id, number)) STRICT, WITHOUT ROWID"
    )


def _second(connection: Connection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN shown TEXT")


def _third(connection: Connection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN results TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second, _third)
