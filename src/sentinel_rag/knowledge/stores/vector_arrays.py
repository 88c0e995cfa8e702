"""Vectors as arrays: of unit length, the nearest of them, and the file that readers map into memory.

The file of the local store is derived: SQLite holds every vector too, and says in the same transaction how many slots
of which file count. So a slot that a reader is told of was written before; what a crash left behind the last slot is
written over; a file that is lost is made again. A slot that was told is never changed: freed ones are left until the
array is packed into a new file. Float32, one row a slot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Vectors at length 1, so that a dot product is the cosine; shared by the stores. One that has that length already is
# left as it is, to the bit: it can go from store to store.
Vectors = NDArray[np.float32]
_SAME_LENGTH = 1e-6


def unit(vectors: Vectors) -> Vectors:
    """The vectors, shape (n, dimensions), at length 1; a zero one stays zero. Raises ValueError for one that is not
    finite."""
    given = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    if not np.isfinite(given).all():
        raise ValueError("a vector holds a value that is no number")
    lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    kept = (lengths == 0) | (np.abs(lengths - 1) < _SAME_LENGTH)
    return np.divide(given, np.where(kept, 1.0, lengths)).astype(np.float32)


def nearest(
    vectors: Vectors, query: Vectors, slots: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Vectors]:
    """The `limit` best of `slots` (ascending) by dot product, as positions in `slots`, best first, and their scores.
    Exact: every one of them is compared. Ties go to the earlier slot."""
    if len(slots) == 0 or limit <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    # Row by row: a product with the whole matrix wakes BLAS's threads, which then spin and take more than they give.
    if len(slots) == len(vectors):
        scores = np.vecdot(vectors, query)
    elif len(slots) > len(vectors) // 4:  # reading all in order is cheaper than picking a quarter
        scores = np.vecdot(vectors, query)[slots]
    else:
        scores = np.vecdot(vectors[slots], query)
    if len(scores) > limit:
        best = np.argpartition(scores, len(scores) - limit)[-limit:]
        # argpartition chooses among equals at the edge by chance; the earlier slot shall win.
        edge = scores[best].min()
        above = best[scores[best] > edge]
        equal = np.flatnonzero(scores == edge)[: limit - len(above)]
        best = np.concatenate((above, equal))
    else:
        best = np.arange(len(scores))
    order = np.lexsort((best, -scores[best]))
    return best[order].astype(np.int64), scores[best[order]]


_BYTES = 4


def file_of(store: Path, number: int) -> Path:
    """The array file of that number, beside the store."""
    return store.with_name(f"{store.name}.vectors-{number}")


def append(path: Path, slots: int, vectors: Vectors) -> None:
    """Write `vectors` (n, dimensions) behind the first `slots` rows. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        file.seek(slots * vectors.shape[1] * _BYTES)
        file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
        file.flush()
        # Before SQLite tells of the slots: after a power cut it must not tell of rows that never reached the disk.
        os.fsync(file.fileno())


def mapped(path: Path, slots: int, dimensions: int) -> Vectors | None:
    """The first `slots` rows, read on use; None if the file is not there or too short."""
    if slots == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    try:
        if path.stat().st_size < slots * dimensions * _BYTES:
            return None
        array = np.memmap(path, dtype="<f4", mode="r", shape=(slots, dimensions))
    except (OSError, ValueError):
        return None
    return array.view(np.ndarray)


def array_files(store: Path) -> Iterator[tuple[int, Path]]:
    """Every array file of a store, with its number."""
    for path in store.parent.glob(f"{store.name}.vectors-*"):
        number = path.name.rpartition("-")[2]
        if number.isdigit():
            yield int(number), path
