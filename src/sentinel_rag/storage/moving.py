"""Records of a file into another place, once: all of them in one transaction, into tables that are empty."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.storage.file import RecordFile
from sentinel_rag.storage.port import Records


def move_records(source: RecordFile, target: Records, tables: Sequence[str]) -> dict[str, int]:
    """Copy `tables`, those that others refer to first; how many rows of each. The file stays as it is.

    Raises UsageError if the target holds rows already, UnavailableError if either cannot be used.
    """
    moved: dict[str, int] = {}
    with source.transaction(reads=True) as old, target.transaction() as new:
        for table in tables:
            if new.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:
                raise UsageError(
                    f"{target.name} holds records already, so those of {source.name} were not moved.",
                    next_step="Name another SENTINEL_DATABASE_SCHEMA, or put that file away.",
                )
            columns = [name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")]
            marks = ", ".join("?" * len(columns))
            rows = old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
            new.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
            moved[table] = len(rows)
    return moved
