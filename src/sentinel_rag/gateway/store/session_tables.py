"""The tables of sessions and of what lives and dies with them, step by step; see `audit.Database.migrate`."""

from __future__ import annotations

from sentinel_rag.audit import RecordConnection

PART_BYTES = 100
"""What a hidden value takes beside its own bytes and those of its path: many small ones take room too."""

RANK = "(sensitivity * 2 + integrity)"
"""One number for a label, as an index has it: so that no engine takes that index for the open sessions of a label."""


def _sessions(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE session (session_id TEXT PRIMARY KEY, key_id TEXT NOT NULL, opened_at TEXT NOT NULL, "
        "closed_at TEXT, sensitivity INTEGER NOT NULL, integrity INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX session_key ON session (key_id, opened_at)")


def _information_flow(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE session ADD COLUMN used_at TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE session ADD COLUMN user_key_id TEXT")
    connection.execute("ALTER TABLE session ADD COLUMN results INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE session SET used_at = opened_at")
    connection.execute("DROP INDEX session_key")
    connection.execute("CREATE INDEX session_key ON session (key_id, used_at)")
    connection.execute(
        "CREATE TABLE session_raise (session_id TEXT NOT NULL, audit_id TEXT NOT NULL, tool TEXT NOT NULL, "
        "sensitivity INTEGER NOT NULL, integrity INTEGER NOT NULL, at TEXT NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX session_raise_session ON session_raise (session_id)")
    connection.execute(
        "CREATE TABLE named_value (session_id TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, "
        "source TEXT NOT NULL, PRIMARY KEY (session_id, kind, text)) STRICT, WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE handle (session_id TEXT NOT NULL, result INTEGER NOT NULL, pointer TEXT NOT NULL, "
        "value BLOB NOT NULL, sensitivity INTEGER NOT NULL, integrity INTEGER NOT NULL, "
        "PRIMARY KEY (session_id, result, pointer)) STRICT"
    )
    connection.execute(
        "CREATE TABLE resource_label (resource TEXT PRIMARY KEY, sensitivity INTEGER NOT NULL, "
        "integrity INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )


def _sessions_that_rise_together(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE INDEX session_of_agent ON session (key_id, sensitivity, integrity) "
        "WHERE user_key_id IS NULL AND closed_at IS NULL"
    )
    connection.execute(
        "UPDATE session SET (sensitivity, integrity) = (SELECT max(sensitivity), max(integrity) FROM session AS other "
        "WHERE other.key_id = session.key_id) WHERE user_key_id IS NULL AND closed_at IS NULL"
    )


def _sessions_of_persons_that_rise(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE INDEX session_of_person ON session (key_id, sensitivity, integrity) "
        "WHERE user_key_id IS NOT NULL AND closed_at IS NULL"
    )


def _sessions_of_keys_that_have_many(connection: RecordConnection) -> None:
    connection.execute(f"CREATE INDEX session_seen ON session (key_id, {RANK}, used_at)")
    connection.execute("CREATE INDEX session_opener ON session (key_id, user_key_id, used_at)")
    connection.execute("DROP INDEX session_key")


def _sessions_that_stand_for_a_key(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE standing_session (key_id TEXT PRIMARY KEY, session_id TEXT NOT NULL, used_at TEXT NOT NULL) "
        "STRICT, WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX standing_session_used ON standing_session (used_at)")


def _sessions_that_count_what_they_hide(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE session ADD COLUMN hidden_bytes INTEGER NOT NULL DEFAULT 0")
    connection.execute(
        f"UPDATE session SET hidden_bytes = (SELECT sum(length(value) + length(pointer) + {PART_BYTES}) FROM handle "  # noqa: S608  # a number
        "WHERE handle.session_id = session.session_id) "
        "WHERE EXISTS (SELECT 1 FROM handle WHERE handle.session_id = session.session_id)"
    )
    connection.execute("CREATE INDEX session_hides ON session (used_at) WHERE hidden_bytes > 0")


def _sessions_that_know_what_was_said_last(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE session ADD COLUMN words TEXT NOT NULL DEFAULT ''")


def _rows_that_were_read(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE rows_read (whose TEXT NOT NULL, place TEXT NOT NULL, at TEXT NOT NULL, rows INTEGER NOT NULL) "
        "STRICT"
    )
    connection.execute("CREATE INDEX rows_read_of ON rows_read (whose, place, at)")


MIGRATIONS = (
    _sessions,
    _information_flow,
    _sessions_that_rise_together,
    _sessions_of_persons_that_rise,
    _sessions_of_keys_that_have_many,
    _sessions_that_stand_for_a_key,
    _sessions_that_count_what_they_hide,
    _sessions_that_know_what_was_said_last,
    _rows_that_were_read,
)


def person_of(connection: RecordConnection, session_id: str) -> str | None:
    """The key of the person who opened the session; None for one that an agent opened by itself, or that is unknown."""
    row = connection.execute("SELECT user_key_id FROM session WHERE session_id = ?", [session_id]).fetchone()
    return None if row is None else row[0]
