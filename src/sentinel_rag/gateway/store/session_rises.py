"""The writes by which sessions rise: one by its id, or all of a key that a label would raise, however many they are.

A key can have thousands of open sessions, and whoever raises them holds up every gateway of the state meanwhile, so the
rows are found and changed by the database itself. `sessions` decides what rises; nothing here is read back.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from functools import cache

from sentinel_rag.audit import RecordConnection, put
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.query_results import format_time

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
