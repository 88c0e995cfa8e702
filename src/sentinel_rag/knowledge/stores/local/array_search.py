"""Vectors found by an exact scan of the mapped array; the scan itself runs outside the lock of the rows.

What is remembered (the array, which slots a filter lets through) holds for one revision of the file, so another
process's write is seen by the next call.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.knowledge.stores.port import MOST_RESULTS, StoreHit, Vector, VectorSpace, Wanted, mismatch
from sentinel_rag.knowledge.stores.rows.filters import conditions
from sentinel_rag.knowledge.stores.rows.reading import RowReader, RowStoreState, moment_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Slots = NDArray[np.int64]

_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class Allowed:
    """The slots that a filter lets through, ascending, and the chunk of each."""

    slots: Slots
    chunks: Slots


class ArraySearch:
    """The vector leg of the store at `path`, whose rows `reading` reads."""

    def __init__(self, path: Path, reading: RowReader) -> None:
        self._path = path
        self._reading = reading
        self._array: tuple[tuple[int, int, int], Vector] | None = None
        self._allowed: OrderedDict[tuple[int, Wanted], Allowed] = OrderedDict()

    def close(self) -> None:
        self._array = None

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        from sentinel_rag.knowledge.stores.rows.comparing import nearest
        from sentinel_rag.knowledge.stores.unit_vectors import unit

        found = self.compared(space, wanted)
        if found is None:
            return ()
        array, allowed = found
        places, scores = nearest(array, unit(vector)[0], allowed.slots, min(limit, MOST_RESULTS))
        return [StoreHit(int(allowed.chunks[place]), float(score)) for place, score in zip(places, scores, strict=True)]

    def compared(self, space: VectorSpace, wanted: Wanted) -> tuple[Vector, Allowed] | None:
        """The array of this moment and what a filter lets through of it; None while there are no vectors."""
        with self._reading.snapshot() as connection:
            moment = moment_of(connection)
            if moment.space is None:
                return None
            if moment.space != space:
                raise mismatch(moment.space, space)
            return self._vectors(connection, moment), self._let_through(connection, moment, wanted)

    def _vectors(self, connection: sqlite3.Connection, moment: RowStoreState) -> Vector:
        """The array of this moment: mapped, or put together from the rows where the file is not what it should be."""
        from sentinel_rag.knowledge.stores.local.vector_file import file_of, mapped

        assert moment.space is not None
        which = (moment.file, moment.slots, moment.space.dimensions)
        if self._array is None or self._array[0] != which:
            array = mapped(file_of(self._path, moment.file), moment.slots, moment.space.dimensions)
            self._array = (which, _from_rows(connection, moment) if array is None else array)
        return self._array[1]

    def _let_through(self, connection: sqlite3.Connection, moment: RowStoreState, wanted: Wanted) -> Allowed:
        """The slots of the chunks that may be found. As text, since 100,000 rows one by one take four times as long."""
        import numpy as np

        key = (moment.revision, wanted)
        if key in self._allowed:
            self._allowed.move_to_end(key)
            return self._allowed[key]
        condition, values = conditions(wanted)
        slots, chunks = connection.execute(
            "SELECT group_concat(slot), group_concat(id) FROM (SELECT c.slot AS slot, c.id AS id FROM document d "
            f"JOIN chunk c ON c.document = d.id WHERE c.slot IS NOT NULL AND {condition})",
            values,
        ).fetchone()
        numbers = np.fromstring(slots or "", dtype=np.int64, sep=",")
        order = np.argsort(numbers)
        found = Allowed(numbers[order], np.fromstring(chunks or "", dtype=np.int64, sep=",")[order])
        self._allowed[key] = found
        while len(self._allowed) > _REMEMBERED:
            self._allowed.popitem(last=False)
        return found


def _from_rows(connection: sqlite3.Connection, moment: RowStoreState) -> Vector:
    import numpy as np

    assert moment.space is not None
    array = np.zeros((moment.slots, moment.space.dimensions), dtype=np.float32)
    rows = connection.execute(
        "SELECT c.slot, v.data FROM chunk c JOIN state ON 1 JOIN vector v ON v.hash = c.hash AND v.space = state.space "
        "WHERE c.slot IS NOT NULL"
    )
    for slot, data in rows:
        array[slot] = np.frombuffer(data, dtype="<f4")
    return array
