"""The tables of the journal: numbered steps that run once in the life of a file.

`tests/audit/corpus` keeps files of every earlier number.
"""

from __future__ import annotations

from sentinel_rag.storage.port import RecordConnection

RECORDS = (
    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, audit_id TEXT NOT NULL, kind TEXT NOT NULL, "
    "record BLOB NOT NULL, hash BLOB NOT NULL) STRICT"
)
RECORDS_INDEX = "CREATE INDEX journal_audit_id ON journal (audit_id, kind)"
CHECKPOINTS = "CREATE TABLE checkpoint (seq INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT"


def _records_and_open_calls(connection: RecordConnection) -> None:
    connection.execute(RECORDS)
    connection.execute(RECORDS_INDEX)
    # Calls without an outcome yet: bounded by the calls in flight, so a restart finds them without reading history.
    connection.execute("CREATE TABLE open_call (audit_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID")


def _instances_checkpoints_and_segments(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE open_call ADD COLUMN instance TEXT NOT NULL DEFAULT ''")
    connection.execute(CHECKPOINTS)
    connection.execute(
        "CREATE TABLE segment (first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, last_hash BLOB NOT NULL, "
        "file TEXT NOT NULL, last_at TEXT NOT NULL) STRICT"
    )


MIGRATIONS = (_records_and_open_calls, _instances_checkpoints_and_segments)
