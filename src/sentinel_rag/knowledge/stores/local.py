"""The default store: words by FTS5, vectors scanned exactly, in one SQLite file and an array made of it."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sentinel_rag.knowledge.stores.port import (
    MOST_RESULTS,
    StoreHit,
    StoreOfParts,
    Vector,
    VectorSearch,
    VectorSpace,
    Wanted,
    mismatch,
)
from sentinel_rag.knowledge.stores.rows import (
    AT_ONCE,
    ChunkRow,
    RowReader,
    RowStoreState,
    RowWriter,
    SpaceRow,
    conditions,
    current_space,
    forget_unused_vectors,
    kept_vectors,
    moment_of,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Slots = NDArray[np.int64]


_PACK_ABOVE = 4_096
"""Freed slots from which on packing is worth it, if they are also more than the slots in use."""


class ArrayIndex:
    """The `VectorIndex` of the store at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Give new chunks the slots behind the last, and write their vectors there."""
        import numpy as np

        from sentinel_rag.knowledge.stores.vector_arrays import append, file_of

        if not chunks:
            return
        data = kept_vectors(connection, held.number, {chunk.search_hash for chunk in chunks})
        file, slots = connection.execute("SELECT file, slots FROM state").fetchone()
        array = np.frombuffer(b"".join(data[chunk.search_hash] for chunk in chunks), dtype="<f4")
        append(file_of(self._path, file), slots, array.reshape(len(chunks), held.space.dimensions))
        connection.executemany(
            "UPDATE chunk SET slot = ? WHERE id = ?",
            [(slots + place, chunk.id) for place, chunk in enumerate(chunks)],
        )
        connection.execute("UPDATE state SET slots = ?", [slots + len(chunks)])

    def drop(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Write the array anew without its freed slots, where these are the larger part."""
        slots = connection.execute("SELECT slots FROM state").fetchone()[0]
        used = connection.execute("SELECT count(*) FROM chunk WHERE slot IS NOT NULL").fetchone()[0]
        if slots - used > max(_PACK_ABOVE, used):
            self.replace(connection, held)
            forget_unused_vectors(connection)

    def replace(self, connection: sqlite3.Connection, held: SpaceRow) -> None:
        """All vectors into an array file of a new number, one slot a chunk. The file before stays for readers of the
        moment before; older ones go."""
        import numpy as np

        from sentinel_rag.knowledge.stores.vector_arrays import append, array_files, file_of

        before = connection.execute("SELECT file FROM state").fetchone()[0]
        fresh = max([before, *(each for each, _ in array_files(self._path))]) + 1
        connection.execute("UPDATE chunk SET slot = NULL")
        slots, packed = 0, list[int]()
        rows = connection.execute(
            "SELECT c.id, v.data FROM chunk c JOIN vector v ON v.hash = c.hash AND v.space = ? ORDER BY c.id",
            [held.number],
        )
        while part := rows.fetchmany(AT_ONCE):
            array = np.frombuffer(b"".join(data for _, data in part), dtype="<f4")
            append(file_of(self._path, fresh), slots, array.reshape(len(part), held.space.dimensions))
            slots += len(part)
            packed += [chunk for chunk, _ in part]
        connection.executemany("UPDATE chunk SET slot = ? WHERE id = ?", enumerate(packed))
        connection.execute("UPDATE state SET file = ?, slots = ?", [fresh, slots])
        for each, path in array_files(self._path):
            if each < before:
                with suppress(OSError):  # a reader on a system that locks mapped files; the next packing removes it
                    path.unlink()

    def committed(self) -> None:
        """The array was written before; nothing is left to do."""

    def rolled_back(self) -> None:
        """What was written lies behind the last slot that counts; the next write goes over it."""


def repair(path: Path, writing: RowWriter, index: ArrayIndex) -> None:
    """Make the array file again if it is lost or was cut. Without numpy, which is no part of the default install,
    nothing searches by vectors, and the array waits for an installation that has it."""
    with writing.change(write=False) as connection:
        held = current_space(connection)
        file, slots = connection.execute("SELECT file, slots FROM state").fetchone()
    if held is None or find_spec("numpy") is None:
        return
    from sentinel_rag.knowledge.stores.vector_arrays import file_of, mapped

    if mapped(file_of(path, file), slots, held.space.dimensions) is not None:
        return
    with writing.change() as connection:
        held = current_space(connection)
        if held is not None:
            index.replace(connection, held)


# What is remembered (the array, which slots a filter lets through) holds for one revision of the file, so another
# process's write is seen by the next call.
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
        from sentinel_rag.knowledge.stores.vector_arrays import nearest, unit

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
        from sentinel_rag.knowledge.stores.vector_arrays import file_of, mapped

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


class RowVectorSearch(VectorSearch, Protocol):
    """The vector side over the rows of one store."""

    def close(self) -> None:
        """Let go of files."""
        ...


class RowStore(StoreOfParts):
    """A `KnowledgeStore` of these parts, all of one file. Threads may share it; close it or use `with`."""

    def __init__(self, path: Path, reading: RowReader, writing: RowWriter, vectors: RowVectorSearch) -> None:
        def close() -> None:
            vectors.close()
            reading.close()
            writing.close()

        self.path = path
        super().__init__(reading, writing, vectors=vectors, kept=writing, close=close)


class LocalStore(RowStore):
    """A `KnowledgeStore` in the file `path`, made where there is none. Threads may share it; close it or use `with`."""

    def __init__(self, path: Path) -> None:
        index = ArrayIndex(path)
        writing = RowWriter(path, index)
        try:
            repair(path, writing, index)
            reading = RowReader(path)
        except BaseException:
            writing.close()
            raise
        super().__init__(path, reading, writing, ArraySearch(path, reading))
