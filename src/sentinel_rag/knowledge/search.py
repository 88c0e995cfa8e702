"""Search: words and meaning fused, equal texts told once, and each hit says where it stands and why it was found.

Above is the executor that serves it. Without an embedding model, or while it cannot answer, words alone are searched
and the answer says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.labels import Label, join_all
from sentinel_rag.knowledge.attack import known_techniques
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.embedding.port import Embedder
from sentinel_rag.knowledge.fusion import fused
from sentinel_rag.knowledge.question_words import query_words
from sentinel_rag.knowledge.stores.port import KnowledgeStore, StoredChunk, Wanted

DEPTH = 50
"""Places of each ranking that are fused."""
MOST_HITS = 50
LONGEST_QUERY = 8_000
_AT_ONCE = 20
_TECHNIQUE = re.compile(r"\bT\d{4}(?:\.\d{3})?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Similarity:
    """Why a chunk was found. Places count from 1, None where that ranking lacks it. `words`, `techniques` and
    `entities` are those of the question that the chunk or its document holds."""

    by_words: int | None
    by_meaning: int | None
    words: tuple[str, ...]
    techniques: tuple[str, ...]
    entities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk that was found. `score` compares hits of one answer only."""

    chunk: StoredChunk
    score: float
    why: Similarity

    @property
    def citation(self) -> str:
        """What an answer names as its source: `incident-42`, or the file and the headings down to the section."""
        if self.chunk.collection is Collection.INCIDENTS:
            return self.chunk.source
        return " > ".join((self.chunk.source, *self.chunk.path))


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first, with sentences on what the search could not do."""

    hits: tuple[Hit, ...]
    remarks: tuple[str, ...] = ()

    @property
    def label(self) -> Label:
        """The join of the labels of all hits."""
        return join_all(hit.chunk.label for hit in self.hits)


class KnowledgeSearch:
    """Searches one store with one model, or with words alone where `embedder` is None."""

    def __init__(self, store: KnowledgeStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    def search(self, query: str, wanted: Wanted, *, limit: int = 10, per_document: int = 3) -> SearchAnswer:
        """The best chunks for a question, at most `per_document` of one document and each text once.

        Raises UnavailableError if the store cannot be read, and EmbeddingMismatchError if it holds another model's
        vectors: ranking by those would be by chance.
        """
        query = query[:LONGEST_QUERY]
        spelled = _with_names(query)
        words = [found.key for found in self._store.by_words(spelled, wanted, DEPTH)]
        near, remarks = self._near(spelled, wanted)
        place_by_words = {key: place for place, key in enumerate(words, 1)}
        place_by_meaning = {key: place for place, key in enumerate(near, 1)}
        hits: list[Hit] = []
        for chunk, score in self._loaded(fused([near, words]), wanted.readers):
            if len(hits) >= min(limit, MOST_HITS):
                break
            if _is_new(chunk, hits, per_document):
                why = _similarity(query, chunk, place_by_words.get(chunk.key), place_by_meaning.get(chunk.key))
                hits.append(Hit(chunk, score, why))
        return SearchAnswer(tuple(hits), tuple(remarks))

    def _loaded(
        self, best: Sequence[tuple[int | str, float]], readers: frozenset[str]
    ) -> Iterator[tuple[StoredChunk, float]]:
        """The chunks in their order, read a few at a time: most searches need the first few only."""
        for start in range(0, len(best), _AT_ONCE):
            part = dict(best[start : start + _AT_ONCE])
            for chunk in self._store.load(list(part), readers):
                yield chunk, part[chunk.key]

    def _near(self, query: str, wanted: Wanted) -> tuple[Sequence[int | str], list[str]]:
        if self._embedder is None:
            return (), ["Searched by words only: no embedding model is in use."]
        if not query.strip():
            return (), []
        try:
            vector = self._embedder.embed_query(query)
        except SentinelError as error:
            return (), [f"Searched by words only: {error}"]
        return [found.key for found in self._store.by_vector(self._embedder.space, vector, wanted, DEPTH)], []


def _with_names(query: str) -> str:
    """The question with the names of techniques that it cites by id: texts speak of web shells, not of T1505.003."""
    known = known_techniques()
    named = dict.fromkeys(name.upper() for name in _TECHNIQUE.findall(query))
    return " ".join((query, *(known[name].name for name in named if name in known)))


def _is_new(chunk: StoredChunk, hits: Sequence[Hit], per_document: int) -> bool:
    """Whether it says something that no hit before it does."""
    text = " ".join(chunk.text.split()).casefold()
    if any(text == " ".join(hit.chunk.text.split()).casefold() for hit in hits):
        return False
    of_document = Counter((hit.chunk.collection, hit.chunk.document_id) for hit in hits)
    return of_document[(chunk.collection, chunk.document_id)] < per_document


def _similarity(query: str, chunk: StoredChunk, by_words: int | None, by_meaning: int | None) -> Similarity:
    said = " ".join((chunk.title, *chunk.path, chunk.text)).casefold()
    asked = query.casefold()
    return Similarity(
        by_words,
        by_meaning,
        tuple(word for word in query_words(query) if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)),
        tuple(dict.fromkeys(_shared_techniques(query, chunk.facets.techniques))),
        tuple(name for name in chunk.facets.entities if len(name) > 2 and name.casefold() in asked),
    )


def _shared_techniques(query: str, techniques: Sequence[str]) -> Iterator[str]:
    """Techniques of the document that the question names, itself or by their parent."""
    named = {name.upper() for name in _TECHNIQUE.findall(query)}
    for technique in techniques:
        if technique in named or technique.partition(".")[0] in named:
            yield technique
