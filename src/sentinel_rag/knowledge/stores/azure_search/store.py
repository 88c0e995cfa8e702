"""The store on Azure AI Search: for teams that share knowledge, and for what does not fit one machine.

Everything is in the service; nothing is kept here. The first write makes the indexes. A write returns when it can be
found, and then every later question of this process finds it; those of others do so as soon as their replica has it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from types import TracebackType
from typing import Self

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.azure_search.connection import SearchConnection
from sentinel_rag.knowledge.stores.azure_search.index import SearchIndex
from sentinel_rag.knowledge.stores.azure_search.puts import LEASE_S, Puts
from sentinel_rag.knowledge.stores.azure_search.reading import Reading
from sentinel_rag.knowledge.stores.azure_search.writing import Writing
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


class AzureSearchStore:
    """A `KnowledgeStore` behind `connection`, which it closes. Threads may share it; close it or use `with`.

    `visible_within_s`: a write that cannot be found by then failed. `lease_s`: what a killed process left open is
    undone so long after it began. `patience_s`: how long a write waits for another process's.
    """

    def __init__(
        self,
        connection: SearchConnection,
        *,
        visible_within_s: float = 60.0,
        lease_s: float = LEASE_S,
        patience_s: float = 60.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._connection = connection
        session = uuid.uuid4().hex
        name = connection.endpoint.index
        chunks = SearchIndex(connection, name, session, visible_within_s=visible_within_s)
        vectors = SearchIndex(connection, f"{name}-vectors", session, visible_within_s=visible_within_s)
        timed = {} if clock is None else {"clock": clock}
        self._reading = Reading(chunks)
        self._writing = Writing(chunks, vectors, Puts(chunks, lease_s=lease_s, patience_s=patience_s, **timed))

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
        self._writing.close()
        self._connection.close()
