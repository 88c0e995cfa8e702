"""How many rows of which tables were told for a person, so that ten narrow queries are not one forbidden wide one.

Counted in the transaction that records the outcome of the call, before anything of it is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.audit import RecordConnection, Work
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.policy.model import Volume

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
