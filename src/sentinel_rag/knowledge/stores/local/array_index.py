"""The array of the local store, kept up with the rows: a slot for each chunk, freed ones packed away.

Called by `RowWriter` in its transaction; the `state` row says in it how many slots of which file count, so that a
reader maps what the rows of its moment have.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from sentinel_rag.knowledge.stores.rows.kept_vectors import AT_ONCE, forget_unused_vectors, kept_vectors
from sentinel_rag.knowledge.stores.rows.vector_index import ChunkRow, SpaceRow
from sentinel_rag.knowledge.stores.rows.writing import RowWriter, current_space

_PACK_ABOVE = 4_096
"""Freed slots from which on packing is worth it, if they are also more than the slots in use."""


class ArrayIndex:
    """The `VectorIndex` of the store at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Give new chunks the slots behind the last, and write their vectors there."""
        import numpy as np

        from sentinel_rag.knowledge.stores.local.vector_file import append, file_of

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

        from sentinel_rag.knowledge.stores.local.vector_file import append, array_files, file_of

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
    from sentinel_rag.knowledge.stores.local.vector_file import file_of, mapped

    if mapped(file_of(path, file), slots, held.space.dimensions) is not None:
        return
    with writing.change() as connection:
        held = current_space(connection)
        if held is not None:
            index.replace(connection, held)
