"""The reading side: words by the service's BM25, vectors compared one by one, chunks by key. Nothing here writes.

Each question first asks which puts are under way, so that it sees all of a put or nothing; permission and filters are
part of the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import (
    MOST_RESULTS,
    StoredChunk,
    StoreEntry,
    StoreHit,
    StoreState,
    Vector,
    VectorSpace,
    Version,
    Wanted,
    mismatch,
)
from sentinel_rag_azure_search.definition import vector_field
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.kept_vectors import parts
from sentinel_rag_azure_search.odata import all_of, conditions, literal, one_of
from sentinel_rag_azure_search.plain_text import original
from sentinel_rag_azure_search.puts import Moment, moment_of
from sentinel_rag_azure_search.records import (
    CHUNK,
    CHUNK_FIELDS,
    ENTRY_FIELDS,
    HEAD,
    document_key,
    entries_of,
    our_records,
    stored_chunk,
)
from sentinel_rag_azure_search.wire import TEXT_ROWS
from sentinel_rag_azure_search.word_query import search_expression


class Reading:
    """Questions to the index of chunks; threads may share it."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    def state(self) -> StoreState:
        moment = moment_of(self._index)

        def counts(kind: str) -> dict[Collection, int]:
            return {
                each: self._index.count(
                    all_of((f"kind eq '{kind}'", f"collection eq {literal(each.value)}", moment.seen))
                )
                for each in Collection
            }

        return StoreState(moment.space, counts(HEAD), counts(CHUNK))

    def versions(self, collection: Collection) -> Mapping[str, Version]:
        condition = all_of(
            (f"kind eq '{HEAD}'", f"collection eq {literal(collection.value)}", moment_of(self._index).seen)
        )
        rows = self._index.rows(condition, ("document", "content_hash", "etag"))
        return {
            original(record["document"]): Version(record["content_hash"], original(record["etag"])) for record in rows
        }

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        seen = moment_of(self._index).seen
        return {
            each: self._index.count(all_of((f"kind eq '{HEAD}'", seen, *conditions(_of(each, readers)))))
            for each in Collection
        }

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        condition = all_of(
            (
                f"kind eq '{CHUNK}'",
                f"document_key eq {literal(document_key(collection, document_id))}",
                moment_of(self._index).seen,
                *conditions(_of(collection, readers)),
            )
        )
        with our_records():
            chunks = [stored_chunk(record) for record in self._index.rows(condition, CHUNK_FIELDS, page=TEXT_ROWS)]
        return sorted(chunks, key=lambda chunk: chunk.number)

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[StoreEntry]:
        seen = moment_of(self._index).seen
        found: dict[str, StoreEntry] = {}
        for part in parts(document_key(collection, each) for each in dict.fromkeys(ids)):
            rows = self._index.rows(f"{one_of('document_key', part)} and {seen}", ENTRY_FIELDS, page=TEXT_ROWS)
            with our_records():
                found |= {entry.document.id: entry for entry in entries_of(rows)}
        return [found[each] for each in dict.fromkeys(ids) if each in found]

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        expression = search_expression(query)
        if not expression or limit <= 0 or not wanted.collections:
            return ()
        return self._found(
            moment_of(self._index),
            wanted,
            {
                "search": expression,
                "searchFields": "search_text",
                "queryType": "simple",
                "searchMode": "any",
                "top": min(limit, MOST_RESULTS),
            },
        )

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        moment = moment_of(self._index)
        if moment.space is None:
            return ()
        if moment.space != space:
            raise mismatch(moment.space, space)
        if limit <= 0 or not wanted.collections or not vector.any():
            return ()
        return self._found(
            moment,
            wanted,
            {
                "vectorQueries": [
                    {
                        "kind": "vector",
                        "vector": numbers(vector),
                        "fields": vector_field(space),
                        "k": min(limit, MOST_RESULTS),
                        "exhaustive": True,
                    }
                ],
                "vectorFilterMode": "preFilter",
                "top": min(limit, MOST_RESULTS),
            },
        )

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        named = list(dict.fromkeys(key for key in keys if isinstance(key, str)))
        if not named:
            return []
        allowed = all_of((f"kind eq '{CHUNK}'", moment_of(self._index).seen, *conditions(Wanted(readers=readers))))
        with our_records():
            found = {
                record["key"]: stored_chunk(record)
                for part in parts(named)
                for record in self._index.rows(f"{one_of('key', part)} and {allowed}", CHUNK_FIELDS, page=TEXT_ROWS)
            }
        return [found[key] for key in named if key in found]

    def _found(self, moment: Moment, wanted: Wanted, query: Mapping[str, object]) -> Sequence[StoreHit]:
        condition = all_of((f"kind eq '{CHUNK}'", moment.seen, *conditions(wanted)))
        answer = self._index.search({**query, "filter": condition, "select": "key"})
        return [StoreHit(record["key"], float(record["@search.score"])) for record in answer["value"]]


def _of(collection: Collection, readers: frozenset[str]) -> Wanted:
    return Wanted(readers=readers, collections=frozenset({collection}))


def numbers(vector: Vector) -> list[float]:
    """A vector as JSON takes it, in the fewest digits that mean the same float32."""
    return [float(str(each)) for each in vector.astype("<f4")]
