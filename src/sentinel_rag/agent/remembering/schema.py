"""The tables of the conversation store, as numbered steps. A file of a newer version is refused, never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sentinel_rag.contracts.errors import UnavailableError


def _first(connection: sqlite3.Connection) -> None:
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


def _second(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN shown TEXT")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _second)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this version. Raises UnavailableError for one that a newer version wrote."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise UnavailableError(
            "The conversations were written by a newer version of Sentinel RAG.",
            next_step="Use that version, or set SENTINEL_HOME to another folder.",
        )
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()  # another process may have been first
        for step in MIGRATIONS[version:]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
