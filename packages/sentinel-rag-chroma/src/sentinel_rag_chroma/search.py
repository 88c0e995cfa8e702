"""The vector leg: Chroma's graph is asked for the nearest among the records that the rows let through.

Who may read and what is filtered, the rows decide, by the same SQL as for words; Chroma gets the ids that are left, so
nothing else takes a place. Where few are left the graph finds too little of what is near, and slowly: up to `EXACT`
chunks, every vector is compared instead. The same is done where Chroma answers with less than there is.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import MOST_RESULTS, StoreHit, Vector, VectorSpace, Wanted, mismatch
from sentinel_rag.knowledge.stores.rows import RowReader, conditions, moment_of
from sentinel_rag_chroma.collections import VectorCollections
from sentinel_rag_chroma.records import RECORD_ID, chunk_of

if TYPE_CHECKING:
    import numpy as np

EXACT = 4_096
"""Chunks that a filter lets through up to which each is compared: some 25 ms, where the graph takes as long."""
_REMEMBERED = 8
_PART = 2_000

Allowed = Mapping[Collection, Sequence[str] | None]
"""The records that a filter lets through, by collection; None is all of them. A collection without any is left out."""


class ChromaSearch:
    """The vector leg over `collections`, which are made of the rows that `reading` reads."""

    def __init__(self, reading: RowReader, collections: VectorCollections) -> None:
        self._reading = reading
        self._collections = collections
        self._allowed: OrderedDict[tuple[int, Wanted], tuple[int, Allowed]] = OrderedDict()

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        from sentinel_rag.knowledge.stores.vector_arrays import unit

        query = unit(vector)[0]
        limit = min(limit, MOST_RESULTS)
        with self._reading.snapshot() as connection:
            moment = moment_of(connection)
            if moment.space is None or limit <= 0:
                return ()
            if moment.space != space:
                raise mismatch(moment.space, space)
            count, allowed = self._let_through(connection, moment.revision, wanted)
            if count <= EXACT:
                return _compared(connection, query, wanted, limit)
        found: dict[str, float] = {}
        for collection, ids in allowed.items():
            told = self._collections.nearest(collection, space, query, limit, ids)
            if told is None:
                break
            found |= told
        with self._reading.snapshot() as connection:
            now = moment_of(connection).space
            if now != space:
                raise mismatch(now, space)
            there = _still_there(connection, found, wanted)
            if len(there) < min(limit, count):
                return _compared(connection, query, wanted, limit)
        best = sorted(there, key=lambda record: (-found[record], chunk_of(record)))[:limit]
        return [StoreHit(chunk_of(record), found[record]) for record in best]

    def close(self) -> None:
        self._collections.close()

    def _let_through(self, connection: sqlite3.Connection, revision: int, wanted: Wanted) -> tuple[int, Allowed]:
        """How many chunks a filter lets through, and their records if they are too many to compare."""
        key = (revision, wanted)
        if key in self._allowed:
            self._allowed.move_to_end(key)
            return self._allowed[key]
        condition, values = conditions(wanted)
        counted = "SELECT d.collection, count(*) FROM document d JOIN chunk c ON c.document = d.id"
        through = dict(connection.execute(f"{counted} WHERE {condition} GROUP BY d.collection", values))
        count = sum(through.values())
        allowed: dict[Collection, Sequence[str] | None] = {}
        if count > EXACT:
            every = dict(connection.execute(f"{counted} GROUP BY d.collection"))
            for name in sorted(through):
                rows = connection.execute(
                    f"SELECT {RECORD_ID} FROM document d JOIN chunk c ON c.document = d.id "
                    f"WHERE {condition} AND d.collection = ?",
                    [*values, name],
                )
                whole = through[name] == every[name]
                allowed[Collection(name)] = None if whole else [row[0] for row in rows]
        self._allowed[key] = count, allowed
        while len(self._allowed) > _REMEMBERED:
            self._allowed.popitem(last=False)
        return count, allowed


def _still_there(connection: sqlite3.Connection, records: Mapping[str, float], wanted: Wanted) -> list[str]:
    """Those records whose rows are there in this version and may be found: Chroma may be behind, never ahead."""
    condition, values = conditions(wanted)
    chunks = [chunk_of(record) for record in records]
    rows = connection.execute(
        f"SELECT {RECORD_ID} FROM chunk c CROSS JOIN document d ON d.id = c.document "
        f"WHERE c.id IN ({', '.join('?' * len(chunks))}) AND {condition}",
        [*chunks, *values],
    )
    return [record for (record,) in rows if record in records]


def _compared(connection: sqlite3.Connection, query: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
    """The nearest by comparing with every vector that a filter lets through, part by part."""
    import numpy as np

    from sentinel_rag.knowledge.stores.vector_arrays import nearest

    condition, values = conditions(wanted)
    rows = connection.execute(
        "SELECT c.id, v.data FROM document d JOIN chunk c ON c.document = d.id JOIN state JOIN vector v "
        f"ON v.hash = c.hash AND v.space = state.space WHERE {condition}",
        values,
    )
    best: list[StoreHit] = []
    while part := rows.fetchmany(_PART):
        array = np.frombuffer(b"".join(data for _, data in part), dtype="<f4").reshape(len(part), len(query))
        every: np.ndarray[tuple[int], np.dtype[np.int64]] = np.arange(len(part))
        places, scores = nearest(array, query, every, limit)
        found = (StoreHit(part[place][0], float(score)) for place, score in zip(places, scores, strict=True))
        best = sorted([*best, *found], key=lambda each: (-each.score, each.key))[:limit]
    return best
