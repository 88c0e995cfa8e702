"""Retention in a database: old records are deleted once a signed record says so. Nothing moves into segments there.

The record of the removal is signed before the rows go, and they go in one transaction. So whoever dies in between
leaves a whole journal, and pruning again ends what was begun.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import datetime

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.audit.events import AppendRecord
from sentinel_rag.audit.segments import Segment
from sentinel_rag.audit.upkeep_events import RecordsPruned
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.storage.port import RecordConnection, StateDatabase


class TableArchive:
    """The records of the journal in `database`. Its methods block; none belongs into an event loop."""

    def __init__(self, database: StateDatabase, *, record: AppendRecord, seal: Callable[[], ChainHead]) -> None:
        self._database = database
        self._record = record
        self._seal = seal

    def segments(self) -> list[Segment]:
        """None: the records of a database stay in its table."""
        return []

    def rotate(self, *, at_least: int = 1) -> Segment | None:
        """Raises UsageError: there are no files to begin anew."""
        raise UsageError(
            "A journal in PostgreSQL is one table and has no segments.",
            next_step="To remove old records: sentinel audit prune; to keep a copy: sentinel audit export.",
        )

    def prune(self, older_than: datetime) -> list[Segment]:
        """Remove the oldest records, all of them older than `older_than`, up to a signed place; what was removed, as
        one segment without a file. What is left proves itself and says what was removed.

        Raises UsageError if this role may not remove records; then nothing says so.
        """
        with self._database.reading() as connection:
            if not connection.execute("SELECT has_table_privilege('journal', 'DELETE')").fetchone()[0]:
                raise UsageError(
                    "The role that this gateway runs with may not remove records.",
                    next_step="Set SENTINEL_DATABASE_URL to the owner's address for this command.",
                )
            gone = _up_to_a_checkpoint(connection, older_than)
        if gone is None:
            return []
        event = RecordsPruned(
            audit_id=str(uuid.uuid4()),
            first=gone.first,
            through=gone.last,
            through_hash=gone.last_hash.hex(),
            older_than=format_time(older_than),
        )
        self._record(event)
        self._seal()
        self._database.aside(lambda connection: _remove(connection, gone.last))
        return [gone]

    def sealed(self, head: ChainHead) -> None:
        """Told of each checkpoint; there is nothing to do."""

    def resume(self) -> None:
        """There is nothing that an earlier process could have left half done."""

    def close(self) -> None:
        """There is nothing to stop."""


def _up_to_a_checkpoint(connection: RecordConnection, older_than: datetime) -> Segment | None:
    """The oldest records, up to the last signed one that is old enough; None if there is none.

    Times of records do not go back, apart from clocks that differ between gateways, so the search may halve: what is
    found is checked to be old by itself.
    """
    first = connection.execute("SELECT min(seq) FROM journal").fetchone()[0]
    if first is None:
        return None
    places = [
        row[0]
        for row in connection.execute(
            "SELECT c.seq FROM checkpoint c JOIN journal j ON j.seq = c.seq ORDER BY c.seq"
        ).fetchall()
    ]
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if _time_of(connection, places[middle]) < older_than:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return None
    last = places[low - 1]
    digest, record = connection.execute("SELECT hash, record FROM journal WHERE seq = ?", [last]).fetchone()
    return Segment(first, last, digest, "", str(json.loads(record)["at"]))


def _time_of(connection: RecordConnection, seq: int) -> datetime:
    return parse_time(
        json.loads(connection.execute("SELECT record FROM journal WHERE seq = ?", [seq]).fetchone()[0])["at"]
    )


def _remove(connection: RecordConnection, through: int) -> None:
    """The checkpoint of the last one stays: it is the signed boundary."""
    connection.execute("DELETE FROM journal WHERE seq <= ?", [through])
    connection.execute("DELETE FROM checkpoint WHERE seq < ? AND seq > 0", [through])
