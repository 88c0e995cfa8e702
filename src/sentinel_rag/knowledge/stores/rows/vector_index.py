"""The port to what a store on this machine searches vectors by: made of the rows, and never behind what a reader sees.

`Writing` calls it inside its transaction, before rows are told of, and once more when the transaction has ended.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import VectorSpace


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A space and its number in the table `space`."""

    number: int
    space: VectorSpace


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk's row by its id, with its document's collection and content hash, and the hash of its text, in hex."""

    id: int
    collection: Collection
    search_hash: str
    content_hash: str


class VectorIndex(Protocol):
    """Each call but the last two gets the connection of a writing transaction. An error ends that transaction."""

    def add(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Chunks that came in; the vectors of `held` are kept for all of them, else KeyError."""
        ...

    def drop(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Chunks whose rows are gone."""
        ...

    def replace(self, connection: sqlite3.Connection, held: SpaceRow) -> None:
        """All chunks with the vectors of `held`, in place of everything before."""
        ...

    def committed(self) -> None:
        """The transaction is durable."""
        ...

    def rolled_back(self) -> None:
        """Nothing of the transaction happened."""
        ...
