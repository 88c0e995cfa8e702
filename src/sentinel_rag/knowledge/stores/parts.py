"""A store put together of its four sides, which are all that one store does differently from another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from types import TracebackType
from typing import Self

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import (
    RE_EMBED_BATCH,
    EmbedTexts,
    StoredChunk,
    StoreEntry,
    StoreHit,
    StoreReading,
    StoreState,
    StoreWriting,
    Vector,
    VectorKeeping,
    VectorSearch,
    VectorSpace,
    Version,
    Wanted,
)


class StoreOfParts:
    """A `KnowledgeStore` whose calls go to the side that answers them; `close` lets go of them all. Threads may share
    it where they may share the sides; close it or use `with`."""

    def __init__(
        self,
        reading: StoreReading,
        writing: StoreWriting,
        *,
        vectors: VectorSearch,
        kept: VectorKeeping,
        close: Callable[[], None],
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._vectors = vectors
        self._kept = kept
        self._close = close

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
        return self._kept.missing_vectors(space, search_hashes)

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        self._writing.keep_vectors(space, vectors)

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        return self._kept.kept_vectors(space, search_hashes)

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[StoreEntry]:
        return self._reading.entries(collection, ids)

    def put(self, entries: Sequence[StoreEntry], space: VectorSpace | None) -> None:
        self._writing.put(entries, space)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        return self._writing.remove(collection, ids)

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        return self._reading.by_words(query, wanted, limit)

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        return self._vectors.by_vector(space, vector, wanted, limit)

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        return self._reading.load(keys, readers)

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        return self._reading.document_chunks(collection, document_id, readers)

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        return self._reading.readable(readers)

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = RE_EMBED_BATCH) -> int:
        return self._writing.re_embed(space, embed, batch=batch)

    def close(self) -> None:
        self._close()
