"""The store in PostgreSQL: for teams, whose gateways share what they know; any number of processes read and write.

Words are ranked by BM25 as in the local store. Vectors are compared exactly up to `EXACT_BELOW` chunks that a filter
lets through, and over an HNSW index beyond.
"""

from __future__ import annotations

from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.pgvector.connections import Connections
from sentinel_rag.knowledge.stores.pgvector.reading import Reading
from sentinel_rag.knowledge.stores.pgvector.writing import Writing
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

EXACT_BELOW = 5_000


class PgVectorStore:
    """A `KnowledgeStore` in the schema `schema` of the database at `url` (postgresql://...), made where there is none.
    Threads may share it; close it or use `with`. Raises UnavailableError; no text of its errors holds a password."""

    def __init__(self, url: str, schema: str, *, exact_below: int = EXACT_BELOW) -> None:
        self._connections = Connections(url, schema)
        self._reading = Reading(self._connections, exact_below=exact_below)
        self._writing = Writing(self._connections, exact_below=exact_below)

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
        return self._reading.missing_vectors(space, search_hashes)

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        self._writing.keep_vectors(space, vectors)

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        return self._reading.kept_vectors(space, search_hashes)

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[Entry]:
        return self._reading.entries(collection, ids)

    def put(self, entries: Sequence[Entry], space: VectorSpace | None) -> None:
        self._writing.put(entries, space)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        return self._writing.remove(collection, ids)

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[Found]:
        return self._reading.by_words(query, wanted, limit)

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[Found]:
        return self._reading.by_vector(space, vector, wanted, limit)

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
        self._connections.close()
