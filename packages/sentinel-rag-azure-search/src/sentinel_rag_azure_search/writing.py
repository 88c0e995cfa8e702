"""The writing side: documents in and out, vectors kept, everything embedded anew. Indexes are made by the first write.

Documents go by `puts`, all of a call or none of it. One writer at a time in a process, and one open put in the service.
"""

from __future__ import annotations

import threading
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import RE_EMBED_BATCH, EmbedTexts, StoreEntry, Vector, VectorSpace, mismatch
from sentinel_rag_azure_search.definition import (
    knowledge_index,
    vector_field,
    vector_field_definition,
    vectors_index,
)
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.kept_vectors import KeptVectors, parts
from sentinel_rag_azure_search.odata import one_of
from sentinel_rag_azure_search.plain_text import original
from sentinel_rag_azure_search.puts import Puts, moment_of
from sentinel_rag_azure_search.reading import numbers
from sentinel_rag_azure_search.records import CHUNK, HEAD, Record, document_key, records_of
from sentinel_rag_azure_search.wire import TEXT_ROWS

_ROUNDS = 5


class Writing:
    """Changes to the two indexes, one at a time; threads may share it."""

    def __init__(self, chunks: SearchIndex, vectors: SearchIndex, puts: Puts) -> None:
        self._chunks = chunks
        self._vectors = vectors
        self._puts = puts
        self._kept = KeptVectors(vectors)
        self._defined: set[str] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Delete what this process replaced; where that fails, the next writer does."""
        with self._lock:
            if self._defined:
                self._tidy(last=True)

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        with self._lock:
            return self._kept.missing(space, search_hashes)

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        with self._lock:
            self._define_vectors()
            self._kept.keep(space, vectors)

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        with self._lock:
            return self._kept.fetch(space, search_hashes)

    def put(self, entries: Sequence[StoreEntry], space: VectorSpace | None) -> None:
        latest = {(each.document.collection, each.document.id): each for each in entries}
        with self._lock:
            self._check_space(space)
            hashes = {chunk.search_hash for each in latest.values() for chunk in each.chunks}
            vectors = {} if space is None else self._kept.fetch(space, hashes)
            if space is not None and len(vectors) < len(hashes):
                raise KeyError(min(hashes - vectors.keys()))
            self._define_chunks(space)
            with self._puts.opened() as put:
                # Whoever wrote meanwhile may have decided the space.
                held = self._check_space(space)
                names = [document_key(*each) for each in latest]
                put.retire([record["key"] for record in self._current(names)])
                put.bring(
                    _with_vector(record, space, vectors)
                    for each in latest.values()
                    for record in records_of(each, put.name)
                )
                if space is not None and held is None:
                    put.settle()
                    self._puts.set_space(space)
            self._tidy()

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        names = [document_key(collection, each) for each in dict.fromkeys(ids)]
        with self._lock:
            if not any(True for _ in self._current(names)):
                return 0
            self._define_chunks(None)
            with self._puts.opened() as put:
                gone = list(self._current(names))
                put.retire([record["key"] for record in gone])
            self._tidy()
        return sum(record["kind"] == HEAD for record in gone)

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = RE_EMBED_BATCH) -> int:
        with self._lock:
            self._define_vectors()
            self._define_chunks(space)
            done: set[str] = set()
            embedded = self._embed_missing(space, embed, batch)
            self._fill(space, done)
            with self._puts.opened():
                # What came since the first look; from here on nothing can.
                embedded += self._embed_missing(space, embed, batch)
                self._fill(space, done)
                self._puts.set_space(space)
            self._kept.forget_other_spaces(space)
        return embedded

    def _check_space(self, space: VectorSpace | None) -> VectorSpace | None:
        """The space that is held; raises EmbeddingMismatchError if `space` may not join it."""
        moment = moment_of(self._chunks)
        if moment.space == space:
            return moment.space
        if moment.space is not None or self._chunks.count(f"kind eq '{HEAD}' and {moment.seen}"):
            raise mismatch(moment.space, space)
        return None

    def _current(self, names: Iterable[str]) -> Iterator[Record]:
        """Keys and kinds of all records of these documents that count. Only this process's put is open."""
        for part in parts(names):
            yield from self._chunks.rows(f"{one_of('document_key', part)} and retired eq null", ("kind",))

    def _embed_missing(self, space: VectorSpace, embed: EmbedTexts, batch: int) -> int:
        """Embed every text that has no vector of `space` yet; returns how many those were."""
        hashes = {record["search_hash"] for record in self._all_chunks(("search_hash",))}
        missing = sorted(self._kept.missing(space, hashes))
        for start in range(0, len(missing), batch):
            part = missing[start : start + batch]
            condition = f"{one_of('search_hash', part)} and kind eq '{CHUNK}'"
            rows = self._chunks.rows(condition, ("search_hash", "search_text"), page=TEXT_ROWS)
            texts = {record["search_hash"]: original(record["search_text"]) for record in rows}
            if texts:
                self._kept.keep(space, dict(zip(texts, embed(list(texts.values())), strict=True)))
        return len(missing)

    def _fill(self, space: VectorSpace, done: set[str]) -> None:
        """Write the kept vectors of `space` into every chunk that is not among `done`, which grows by them."""
        fresh = [record for record in self._all_chunks(("search_hash",)) if record["key"] not in done]
        for start in range(0, len(fresh), 200):
            part = fresh[start : start + 200]
            vectors = self._kept.fetch(space, {record["search_hash"] for record in part})
            self._chunks.merge(
                {"key": record["key"], vector_field(space): numbers(vectors[record["search_hash"]])} for record in part
            )
        done.update(record["key"] for record in fresh)

    def _all_chunks(self, fields: Sequence[str]) -> Iterator[Record]:
        return self._chunks.rows(f"kind eq '{CHUNK}' and retired eq null", fields)

    def _tidy(self, *, last: bool = False) -> None:
        """Delete what was replaced, and the vectors that no chunk needs any more. Where that fails, a later one does:
        what was put counts all the same."""
        with suppress(SentinelError):
            gone = self._puts.sweep(last=last)
            space = moment_of(self._chunks).space if gone else None
            if space is None:
                return
            for part in parts(gone):
                used = self._chunks.rows(f"{one_of('search_hash', part)} and retired eq null", ("search_hash",))
                self._kept.forget(space, set(part) - {record["search_hash"] for record in used})

    def _define_vectors(self) -> None:
        if "vectors" not in self._defined:
            if self._vectors.definition() is None:
                self._vectors.define(vectors_index(self._vectors.name), etag=None)
            self._defined.add("vectors")

    def _define_chunks(self, space: VectorSpace | None) -> None:
        """Make the index of chunks, and its field for the vectors of `space`."""
        wanted = "" if space is None else vector_field(space)
        if wanted in self._defined:
            return
        for _ in range(_ROUNDS):
            held = self._chunks.definition()
            definition: dict[str, Any] = dict(held or knowledge_index(self._chunks.name))
            names = {field["name"] for field in definition["fields"]}
            ours = {field["name"] for field in knowledge_index(self._chunks.name)["fields"]}
            if not ours <= names:
                raise UnavailableError(
                    f"The index {self._chunks.name} was made by something else.",
                    next_step="Set SENTINEL_AZURE_SEARCH_INDEX to a name of its own.",
                    code="azure_search_other_index",
                )
            if held is not None and (space is None or wanted in names):
                self._defined |= {"", wanted}
                return
            if space is not None:
                definition["fields"] = [*definition["fields"], vector_field_definition(space)]
            etag = None if held is None else str(definition.get("@odata.etag", "*"))
            told = {name: value for name, value in definition.items() if not name.startswith("@odata.")}
            self._chunks.define(told, etag=etag)
        raise UnavailableError(
            f"The index {self._chunks.name} is being changed by somebody else.", next_step="Try again."
        )


def _with_vector(record: Record, space: VectorSpace | None, vectors: Mapping[str, Vector]) -> Record:
    if space is None or record["kind"] != CHUNK:
        return record
    return {**record, vector_field(space): numbers(vectors[record["search_hash"]])}
