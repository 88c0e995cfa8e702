"""A store of rows in one file, as the port has it, with the vector search that it is given."""

from __future__ import annotations

from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import (
    EmbedTexts,
    Entry,
    Found,
    StoredChunk,
    StoreState,
    Vector,
    VectorSpace,
    Version,
    Wanted,
)
from sentinel_rag.knowledge.stores.rows.reading import Reading
from sentinel_rag.knowledge.stores.rows.writing import Writing


class VectorSearch(Protocol):
    """The vector leg over the rows of one store."""

    def nearest(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[Found]:
        """As `KnowledgeStore.by_vector`."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


class RowStore:
    """A `KnowledgeStore` of these parts, all of one file. Threads may share it; close it or use `with`."""

    def __init__(self, path: Path, reading: Reading, writing: Writing, vectors: VectorSearch) -> None:
        self.path = path
        self._reading = reading
        self._writing = writing
        self._vectors = vectors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def state(self) -> StoreState:
        return self._reading.state()

    def versions(self, collection: Collection) -> Mapping[str, Version]:
        return self._reading.versions(collection)

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        return self._writing.missing_vectors(space, search_hashes)

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        self._writing.keep_vectors(space, vectors)

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        return self._writing.kept_vectors(space, search_hashes)

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[Entry]:
        return self._reading.entries(collection, ids)

    def put(self, entries: Sequence[Entry], space: VectorSpace | None) -> None:
        self._writing.put(entries, space)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        return self._writing.remove(collection, ids)

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[Found]:
        return self._reading.by_words(query, wanted, limit)

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[Found]:
        return self._vectors.nearest(space, vector, wanted, limit)

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        return self._reading.load(keys, readers)

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        return self._reading.document_chunks(collection, document_id, readers)

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        return self._reading.readable(readers)

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = 64) -> int:
        return self._writing.re_embed(space, embed, batch=batch)

    def close(self) -> None:
        self._vectors.close()
        self._reading.close()
        self._writing.close()
