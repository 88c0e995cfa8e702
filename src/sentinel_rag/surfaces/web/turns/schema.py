"""The tables of the record of conversations, as numbered steps."""

from __future__ import annotations

from sentinel_rag.storage import Migration, RecordConnection


def _first(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE conversation (conversation_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, "
        "session_id TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX conversation_person ON conversation (user_id, used_at)")
    connection.execute(
        "CREATE TABLE turn (turn_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL "
        "REFERENCES conversation ON DELETE CASCADE, number INTEGER NOT NULL, user_id TEXT NOT NULL, "
        "request_id TEXT, question TEXT NOT NULL, state TEXT NOT NULL, asked_at TEXT NOT NULL, answer TEXT, "
        "events TEXT, UNIQUE (conversation_id, number), UNIQUE (user_id, request_id)) STRICT"
    )


def _second(connection: RecordConnection) -> None:
    """Which surface answers a turn, while it does."""
    connection.execute("ALTER TABLE turn ADD COLUMN surface TEXT")


def _third(connection: RecordConnection) -> None:
    """What the person thought of the answer, as JSON."""
    connection.execute("ALTER TABLE turn ADD COLUMN opinion TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second, _third)
