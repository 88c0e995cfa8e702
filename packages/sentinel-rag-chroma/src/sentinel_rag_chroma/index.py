"""Chroma kept up with the rows: records are there before a row tells of them, and go after the row has gone.

So every row has its record at every moment, also after a kill. What Chroma has beyond that is never found, since what
it finds is looked up in the rows; `settle` removes it when the store is opened, and adds what Chroma may have lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.rows import AT_ONCE, ChunkRow, SpaceRow, forget_unused_vectors
from sentinel_rag_chroma.collections import ChromaFailedError, VectorCollections
from sentinel_rag_chroma.records import RECORD_ID, chunk_of, record_id, records_of

_SAME = 1e-4
_NEXT_STEP = "Open the store again: its index is made again from the rows."
_FORGET_ABOVE = 4_096
"""Kept vectors of texts that are gone from which on they are dropped, if they are also more than those in use."""


class ChromaIndex:
    """The `VectorIndex` of rows whose vectors lie in `collections`."""

    def __init__(self, collections: VectorCollections) -> None:
        self._collections = collections
        self._put: set[tuple[Collection, str]] = set()
        self._going: set[tuple[Collection, str]] = set()
        self._left: set[tuple[Collection, str]] = set()
        self._next: SpaceRow | None = None

    def add(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        if self._collections.given_up:
            return
        if self._collections.space != held.space:
            self._collections.adopt(held.space)
        # Noted first: of a part that fails, some may be there.
        fresh = {(chunk.collection, record_id(chunk)) for chunk in chunks}
        self._put |= fresh
        self._left -= fresh  # an id comes again where a failed write is tried again
        for collection, records in records_of(connection, held, [chunk.id for chunk in chunks]):
            self._collections.upsert(collection, records)

    def drop(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        self._going |= {(chunk.collection, record_id(chunk)) for chunk in chunks}
        kept = connection.execute("SELECT count(*) FROM vector").fetchone()[0]
        used = connection.execute("SELECT count(DISTINCT hash) FROM chunk").fetchone()[0] if chunks else kept
        if kept - used > max(_FORGET_ABOVE, used):
            forget_unused_vectors(connection)

    def replace(self, connection: sqlite3.Connection, held: SpaceRow) -> None:
        if self._collections.given_up:
            return
        self._next = held
        self._collections.begin_next(held.space)
        chunks = [row[0] for row in connection.execute("SELECT id FROM chunk ORDER BY id")]
        for collection, records in records_of(connection, held, chunks):
            self._collections.upsert(collection, records, into_next=True)

    def committed(self) -> None:
        if self._next is not None:
            try:
                self._collections.swap(self._next.space)
            except ChromaFailedError:  # the rows have the new vectors already: they answer
                self._collections.give_up()
            self._next, self._left = None, set()
        self._put = set()
        self._discard(self._going)
        self._going = set()

    def rolled_back(self) -> None:
        if self._next is not None:
            with suppress(UnavailableError):  # the next `begin_next`, or opening, drops them
                self._collections.drop_next()
            self._next = None
        self._discard(self._put)
        self._put, self._going = set(), set()

    def _discard(self, records: set[tuple[Collection, str]]) -> None:
        """Delete records that no row tells of. Where Chroma fails they do no harm, and the next change tries again."""
        self._left |= records
        if not self._left:
            return
        with suppress(UnavailableError):
            for collection in Collection:
                self._collections.delete(collection, [each for where, each in self._left if where is collection])
            self._left = set()


def settle(
    connection: sqlite3.Connection, held: SpaceRow | None, collections: VectorCollections, *, thorough: bool
) -> None:
    """Make the collections what the rows say, whatever a kill, a copy or a hand has left there. `thorough`: look at
    each vector too, since Chroma tells ids from another file than its graph; ChromaFailedError where that lacks some.
    """
    if held is None:
        collections.clear()
        return
    collections.adopt(held.space)
    for collection, wanted in _record_ids(connection).items():
        there = collections.ids(collection)
        collections.delete(collection, there - wanted.keys())
        if thorough:
            _look_at(connection, held, collections, collection, sorted(there & wanted.keys()))
        lacking = sorted(chunk for record, chunk in wanted.items() if record not in there)
        for where, records in records_of(connection, held, lacking):
            collections.upsert(where, records)


def _look_at(
    connection: sqlite3.Connection,
    held: SpaceRow,
    collections: VectorCollections,
    collection: Collection,
    records: Sequence[str],
) -> None:
    import numpy as np

    for start in range(0, len(records), AT_ONCE):
        part = records[start : start + AT_ONCE]
        there = collections.vectors(collection, part)
        rows = connection.execute(
            f"SELECT {RECORD_ID}, v.data FROM chunk c JOIN document d ON d.id = c.document JOIN vector v "
            f"ON v.hash = c.hash AND v.space = ? WHERE c.id IN ({', '.join('?' * len(part))})",
            [held.number, *map(chunk_of, part)],
        )
        for record, data in rows:
            wanted = np.frombuffer(data, dtype="<f4")
            if record not in there or not np.allclose(there[record], wanted, atol=_SAME):
                raise ChromaFailedError("Chroma's graph lacks vectors of its records.", next_step=_NEXT_STEP)


def _record_ids(connection: sqlite3.Connection) -> Mapping[Collection, Mapping[str, int]]:
    found: dict[Collection, dict[str, int]] = {each: {} for each in Collection}
    rows = connection.execute(f"SELECT d.collection, {RECORD_ID} FROM document d JOIN chunk c ON c.document = d.id")
    for collection, record in rows:
        found[Collection(collection)][record] = chunk_of(record)
    return found
