"""Puts every change of a key into the journal, once, also those made while no gateway ran.

The key file notes a change in the transaction that makes it; a running gateway records what is new before it
answers the next request, another one at its start. How far the journal has come is written in the transaction of the
record itself, so neither a crash nor a second gateway leaves a change out or records it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import anyio
import anyio.to_thread

from sentinel_rag.audit import Journal, RecordConnection, StateDatabase
from sentinel_rag.gateway.store.keys import KeyStore


def _tables(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE key_journal (store_id TEXT PRIMARY KEY, seen INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )


MIGRATIONS = (_tables,)


class KeyJournal:
    """What is new in `keys` goes into `journal`, whose file is `database`."""

    def __init__(self, keys: KeyStore, database: StateDatabase, journal: Journal) -> None:
        self._keys = keys
        self._journal = journal
        self._one_at_a_time = anyio.Lock()
        database.migrate("keys", MIGRATIONS)
        self._seen: int = database.run_now(self._begin)

    async def catch_up(self) -> None:
        """Record what is new. Raises UnavailableError if it cannot be recorded; it stays new then."""
        if self._keys.last_change <= self._seen:
            return
        async with self._one_at_a_time:
            while changes := await anyio.to_thread.run_sync(self._keys.changes, self._seen):
                for number, event in changes:
                    with suppress(_Recorded):
                        await self._journal.append(event, alongside=self._claim(number))
                    self._seen = number

    def _begin(self, connection: RecordConnection) -> int:
        connection.execute("INSERT INTO key_journal VALUES (?, 0) ON CONFLICT DO NOTHING", [self._keys.store_id])
        row = connection.execute("SELECT seen FROM key_journal WHERE store_id = ?", [self._keys.store_id]).fetchone()
        return int(row[0])

    def _claim(self, number: int) -> Callable[[RecordConnection], object]:
        def work(connection: RecordConnection) -> None:
            claimed = connection.execute(
                "UPDATE key_journal SET seen = ? WHERE store_id = ? AND seen < ?", [number, self._keys.store_id, number]
            ).rowcount
            if not claimed:
                raise _Recorded

        return work


class _Recorded(Exception):
    """Another gateway has recorded this change."""
