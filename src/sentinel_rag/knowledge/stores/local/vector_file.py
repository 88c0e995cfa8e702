"""The vectors of the local store as one array in a file that readers map into memory.

The file is derived: SQLite holds every vector too, and says in the same transaction how many slots of which file count.
So a slot that a reader is told of was written before; what a crash left behind the last slot is written over; a file
that is lost, or was left behind when the store was copied, is made again. A slot that was told is never changed: freed
ones are left until the array is packed into a new file. Float32, unit length, one row a slot.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
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
