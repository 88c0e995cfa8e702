"""The tables of sessions and of what lives and dies with them, and the writes by which sessions rise.

A key can have thousands of open sessions, and whoever raises them holds up every gateway of the state meanwhile, so the
rows are found and changed by the database itself. Rows told for a person are counted in the transaction that records
the call, so that ten narrow queries are not one forbidden wide one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any

from sentinel_rag.audit import RecordConnection, Work, put
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.policy.model import Volume

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


def _agents_that_hand_on_what_they_remember(connection: RecordConnection) -> None:
    """`since` is the time since when the key has not been silent for longer than its agent may remember."""
    connection.execute(
        "CREATE TABLE agent_memory (key_id TEXT PRIMARY KEY, since TEXT NOT NULL, used_at TEXT NOT NULL) "
        "STRICT, WITHOUT ROWID"
    )


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
    _agents_that_hand_on_what_they_remember,
)


def remembered_since(connection: RecordConnection, key_id: str, since: str) -> str:
    """When a session must have been used last for the key's agent to know of it, `since` when it remembers what it has
    not repeated: whatever it knew while it was in use it may have repeated in a newer session."""
    row = connection.execute("SELECT since, used_at FROM agent_memory WHERE key_id = ?", [key_id]).fetchone()
    return since if row is None or row[1] < since else min(str(row[0]), since)


def note_use(connection: RecordConnection, key_id: str, now: str, *, since: str, stale: str) -> None:
    """Note that the key's agent is in use; `stale` is the time before which the note is written anew."""
    row = connection.execute("SELECT used_at FROM agent_memory WHERE key_id = ?", [key_id]).fetchone()
    if row is not None and stale <= row[0]:
        return
    connection.execute(
        "INSERT INTO agent_memory VALUES (?1, ?2, ?3) ON CONFLICT (key_id) DO UPDATE SET used_at = excluded.used_at, "
        "since = CASE WHEN agent_memory.used_at < ?2 THEN ?2 ELSE agent_memory.since END",
        [key_id, since, now],
    )


def person_of(connection: RecordConnection, session_id: str) -> str | None:
    """The key of the person who opened the session; None for one that an agent opened by itself, or that is unknown."""
    row = connection.execute("SELECT user_key_id FROM session WHERE session_id = ?", [session_id]).fetchone()
    return None if row is None else row[0]


Cause = tuple[str, str, datetime]
"""The audit id and the tool of the call that raises, and when."""


class Opener(Enum):
    """Who opened a session; as the partial indexes of the table say it."""

    AGENT = "user_key_id IS NULL"
    PERSON = "user_key_id IS NOT NULL"


def raise_one(connection: RecordConnection, session_id: str, label: Label, cause: Cause) -> None:
    """Raise a session in the file to `label`."""
    audit_id, tool, now = cause
    levels = [label.sensitivity.value, label.integrity.value]
    put(connection, "UPDATE session SET sensitivity = ?, integrity = ? WHERE session_id = ?", [*levels, session_id])
    note = [session_id, audit_id, tool, *levels, format_time(now)]
    put(connection, "INSERT INTO session_raise VALUES (?, ?, ?, ?, ?, ?)", note)


def raise_below(connection: RecordConnection, opener: Opener, key_id: str, label: Label, cause: Cause) -> None:
    """Raise the open sessions of a key, opened by `opener`, to the join of their own label and `label`, each with a
    note of the cause; those that are as high already cost nothing."""
    statements = _statements(opener, label)
    if statements is not None:
        note, rise = statements
        audit_id, tool, now = cause
        put(connection, note, [key_id, audit_id, tool, format_time(now)])
        put(connection, rise, [key_id])


@cache
def _statements(opener: Opener, label: Label) -> tuple[str, str] | None:
    """The note of what will rise, and the rise; None where `label` raises nothing. The labels below it stand there one
    by one, since each is a look-up in the index of the open sessions."""
    lower = [
        Label(sensitivity, integrity)
        for sensitivity in Sensitivity
        for integrity in Integrity
        if not label.flows_to(Label(sensitivity, integrity))
    ]
    if not lower:
        return None
    place = f"FROM session WHERE key_id = ?1 AND {opener.value} AND closed_at IS NULL"
    note = " UNION ALL ".join(
        f"SELECT session_id, ?2, ?3, {max(low.sensitivity, label.sensitivity)}, {max(low.integrity, label.integrity)}, "
        f"?4 {place} AND {_has(low)}"
        for low in lower
    )
    those = " UNION ALL ".join(f"SELECT session_id {place} AND {_has(low)}" for low in lower)
    return (
        f"INSERT INTO session_raise (session_id, audit_id, tool, sensitivity, integrity, at) {note}",
        f"UPDATE session SET sensitivity = {_higher('sensitivity', label.sensitivity)}, "  # noqa: S608  # numbers and our own columns
        f"integrity = {_higher('integrity', label.integrity)} WHERE session_id IN ({those})",
    )


def _has(label: Label) -> str:
    return f"sensitivity = {label.sensitivity.value} AND integrity = {label.integrity.value}"


def _higher(column: str, level: Sensitivity | Integrity) -> str:
    """The greater of a column and a level; the engines name that function differently."""
    return f"CASE WHEN {column} < {level.value} THEN {level.value} ELSE {column} END"


KEPT = timedelta(days=31)
"""As long as a volume may look back."""


class VolumeExceeded(Exception):
    """More would be read than a volume lets a person read without another one; nothing was counted."""

    def __init__(self, volume: Volume) -> None:
        super().__init__(volume.name)
        self.volume = volume


def tables_of(value: Any) -> frozenset[str]:
    """The tables that a result says it covers; what a server of the product tells."""
    coverage = value.get("coverage") if isinstance(value, dict) else None
    told = coverage.get("tables") if isinstance(coverage, dict) else None
    return frozenset(each for each in told if isinstance(each, str)) if isinstance(told, list) else frozenset()


def counted_as(tables: Collection[str], volumes: Iterable[Volume]) -> tuple[str, ...]:
    """The tables under which the rows of a result are counted, at least one of each volume that it touches.

    Of a result over several tables nobody can say which row is of which, so one table stands for all of a volume; where
    volumes share only some of their tables, rows may count twice, which asks a person earlier and never later.
    """
    chosen: set[str] = set()
    for volume in volumes:
        if touched := volume.tables.intersection(tables):
            chosen |= set() if chosen & volume.tables else {min(touched)}
    return tuple(sorted(chosen))


def count(whose: str, places: Collection[str], rows: int, now: datetime, volumes: Collection[Volume]) -> Work[object]:
    """Count rows for a person under `places`. Raises VolumeExceeded where that is more than one of `volumes` allows."""

    def write(connection: RecordConnection) -> None:
        for volume in volumes:
            since = format_time(now - timedelta(seconds=volume.seconds))
            read = sum(
                connection.execute(
                    "SELECT coalesce(sum(rows), 0) FROM rows_read WHERE whose = ? AND place = ? AND at >= ?",
                    [whose, table, since],
                ).fetchone()[0]
                for table in sorted(volume.tables)
            )
            if read + rows > volume.rows:
                raise VolumeExceeded(volume)
        connection.execute("DELETE FROM rows_read WHERE whose = ? AND at < ?", [whose, format_time(now - KEPT)])
        for place in places:
            connection.execute("INSERT INTO rows_read VALUES (?, ?, ?, ?)", [whose, place, format_time(now), rows])

    return write
