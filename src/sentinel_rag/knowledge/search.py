"""Search: words and meaning fused, equal texts told once, and each hit says where it stands and why it was found.

A document whose title or file a question names comes before those that only mention its words. Of incidents the recent
ones come a little earlier (`recency`), and those that recur come once (`recurrence`). Above is the tool server that
serves it. Without an embedding model, or while it cannot answer, words alone are searched and the answer says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.labels import BOTTOM, Label, join_all
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.documents.model import encodable
from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.question_words import meanings_of, named_share, query_words
from sentinel_rag.knowledge.stores.port import KnowledgeStore, StoredChunk, StoreHit, Vector, Wanted
from sentinel_rag.language.attack import known_tactics, known_techniques
from sentinel_rag.language.notes import CodedNote, note

DEPTHS = (100, 300, 1_000)
"""Places of each ranking that are fused; the next depth is used where the one before is full and leaves too few hits,
since one noisy rule can take the first hundred places."""
DEPTH = DEPTHS[0]
MOST_HITS = 50
LONGEST_QUERY = 8_000
_TECHNIQUE = re.compile(r"\bT\d{4}(?:\.\d{3})?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Similarity:
    """Why a chunk was found. Places count from 1, None where that ranking lacks it. `words`, `techniques`, `entities`
    and `tactics` are those of the question, or of the incident it asks about, that the chunk or its document holds."""

    by_words: int | None
    by_meaning: int | None
    words: tuple[str, ...]
    techniques: tuple[str, ...]
    entities: tuple[str, ...]
    tactics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One chunk that was found. `score` compares hits of one answer only. `alike` cites the other incidents that were
    found and tell the same, best first; `alike_label` is the join of their labels."""

    chunk: StoredChunk
    score: float
    why: Similarity
    alike: tuple[str, ...] = ()
    alike_label: Label = BOTTOM

    @property
    def citation(self) -> str:
        """What an answer names as its source: `incident-42`, or the file and the headings down to the section."""
        return citation_of(self.chunk)

    @property
    def label(self) -> Label:
        """The label of all that the hit tells: its chunk, and that others are like it."""
        return self.chunk.label.join(self.alike_label)


def citation_of(chunk: StoredChunk) -> str:
    """See `SearchHit.citation`."""
    if chunk.collection is Collection.INCIDENTS:
        return chunk.source
    return " > ".join((chunk.source, *chunk.path))


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first, with notes on what the search could not do."""

    hits: tuple[SearchHit, ...]
    remarks: tuple[CodedNote, ...] = ()

    @property
    def label(self) -> Label:
        """The join of the labels of all hits."""
        return join_all(hit.label for hit in self.hits)


class KnowledgeSearch:
    """Searches one store with one model, or with words alone where `embedder` is None. `clock` tells how old an
    incident is."""

    def __init__(self, store: KnowledgeStore, embedder: Embedder | None, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock

    def search(
        self,
        query: str,
        wanted: Wanted,
        *,
        limit: int = 10,
        per_document: int = 3,
        like: Facets | None = None,
        without: tuple[Collection, str] | None = None,
    ) -> SearchAnswer:
        """The best chunks for a question, at most `per_document` of one document and each text once. `like` are the
        facets of an incident that the question is about: what a hit shares with it is part of its `why`. `without`
        leaves one document out, by its id: that incident itself, which would stand for all that recur with it.

        A question without a word finds nothing, and the answer says so.

        Raises UnavailableError if the store cannot be read, and EmbeddingMismatchError if it holds another model's
        vectors: ranking by those would be by chance.
        """
        query = encodable(query[:LONGEST_QUERY])
        if not query_words(query):  # signs alone are near to something, and mean nothing
            return SearchAnswer((), (note("no_word"),))
        limit = min(limit, MOST_HITS)
        spelled = spelled_out(query)
        vector, remarks = self._vector(spelled)
        for depth in DEPTHS:
            words = self._store.by_words(spelled, wanted, depth)
            near = self._near(vector, wanted, depth)
            hits = self._hits(query, words, near, wanted.readers, limit, per_document, like, without)
            cut = max(len(words), len(near)) >= depth
            if len(hits) >= limit or not cut or not any(hit.alike for hit in hits):
                break
        return SearchAnswer(tuple(hits), (*remarks, *_recurring(hits, at_least=cut)))

    def _hits(
        self,
        query: str,
        by_words: Sequence[StoreHit],
        by_meaning: Sequence[StoreHit],
        readers: frozenset[str],
        limit: int,
        per_document: int,
        like: Facets | None,
        without: tuple[Collection, str] | None,
    ) -> list[SearchHit]:
        keys = list(dict.fromkeys(found.key for found in (*by_words, *by_meaning)))
        loaded = self._store.load(keys, readers)
        chunks = {chunk.key: chunk for chunk in loaded if (chunk.collection, chunk.document_id) != without}
        now = self._clock()
        words, near = _aged(_named(by_words, chunks, query), chunks, now), _aged(by_meaning, chunks, now)
        place_by_words = {key: place for place, key in enumerate(words, 1)}
        place_by_meaning = {key: place for place, key in enumerate(near, 1)}
        documents = {key: (chunk.collection, chunk.document_id) for key, chunk in chunks.items()}
        hits: list[SearchHit] = []
        for key, score in _sharing(fused(words, near, documents), chunks, like):
            chunk = chunks[key]
            told = next((place for place, hit in enumerate(hits) if recurs(hit.chunk, chunk)), None)
            if told is not None:
                citations = dict.fromkeys((*hits[told].alike, citation_of(chunk)))
                label = hits[told].alike_label.join(chunk.label)
                hits[told] = replace(hits[told], alike=tuple(citations), alike_label=label)
            elif len(hits) < limit and _is_new(chunk, hits, per_document):
                why = _similarity(query, chunk, place_by_words.get(key), place_by_meaning.get(key), like)
                hits.append(SearchHit(chunk, score, why))
        return hits

    def _vector(self, query: str) -> tuple[Vector | None, tuple[CodedNote, ...]]:
        if self._embedder is None:
            return None, (by_words_alone(why="no embedding model is in use."),)
        try:
            return self._embedder.embed_query(query), ()
        except SentinelError as error:
            return None, (by_words_alone(why=str(error)),)

    def _near(self, vector: Vector | None, wanted: Wanted, depth: int) -> Sequence[StoreHit]:
        if self._embedder is None or vector is None:
            return ()
        return self._store.by_vector(self._embedder.space, vector, wanted, depth)


def by_words_alone(*, why: str = "", because: str = "") -> CodedNote:
    """What is said of a search without vectors; whoever knows more says `because` of what, with what helps."""
    return note("searched_by_words", why=why, because=because)


def spelled_out(query: str) -> str:
    """The question with the names of techniques that it cites by id, since texts speak of web shells and not of
    T1505.003, and with what event numbers, programs and abbreviations in it mean."""
    known = known_techniques()
    named = dict.fromkeys(name.upper() for name in _TECHNIQUE.findall(query))
    return " ".join((query, *(known[name].name for name in named if name in known), *meanings_of(query)))


def _is_new(chunk: StoredChunk, hits: Sequence[SearchHit], per_document: int) -> bool:
    """Whether it says something that no hit before it does."""
    text = " ".join(chunk.text.split()).casefold()
    if any(text == " ".join(hit.chunk.text.split()).casefold() for hit in hits):
        return False
    of_document = Counter((hit.chunk.collection, hit.chunk.document_id) for hit in hits)
    return of_document[(chunk.collection, chunk.document_id)] < per_document


def _named(ranking: Sequence[StoreHit], chunks: Mapping[int | str, StoredChunk], query: str) -> Sequence[StoreHit]:
    """A ranking by words in which a document that the question names comes before those that only mention it: it gains
    as much of the best score as it is named."""
    best = max((found.score for found in ranking), default=0.0)
    names = {key: (chunk.title, chunk.source) for key, chunk in chunks.items()}
    shares = {name: named_share(query, *name) for name in set(names.values())}
    return [
        replace(found, score=found.score + best * shares[names[found.key]]) if found.key in names else found
        for found in ranking
    ]


def _sharing(
    ranking: Sequence[tuple[int | str, float]], chunks: Mapping[int | str, StoredChunk], like: Facets | None
) -> Sequence[tuple[int | str, float]]:
    """A ranking in which a document gains by the part of the techniques of `like` that it is about; one that few
    documents have counts most. An incident of several stages has the words of its first one most: by words alone the
    playbook of its last one would not be found."""
    if like is None or not like.techniques:
        return ranking
    documents = {(each.collection, each.document_id): _with_parents(each.facets.techniques) for each in chunks.values()}
    weights = {
        each: math.log(1.0 + len(documents) / sum(each in about for about in documents.values()))
        for each in set(like.techniques)
        if any(each in about for about in documents.values())
    }
    whole = sum(weights.values()) or 1.0
    share = {
        name: sum(weight for each, weight in weights.items() if each in about) / whole
        for name, about in documents.items()
    }
    scored = [
        (key, (score + SHARED * share[chunks[key].collection, chunks[key].document_id]) / (1.0 + SHARED))
        for key, score in ranking
    ]
    return sorted(scored, key=lambda pair: -pair[1])


def _with_parents(techniques: Sequence[str]) -> frozenset[str]:
    return frozenset((*techniques, *(each.partition(".")[0] for each in techniques)))


def _aged(
    ranking: Sequence[StoreHit], chunks: Mapping[int | str, StoredChunk], now: datetime
) -> Mapping[int | str, float]:
    """A ranking as keys with their scores, best first, those of incidents with their age in them."""
    scores: dict[int | str, float] = {}
    for found in ranking:
        chunk = chunks.get(found.key)
        if chunk is None:  # it was replaced or removed since it was found
            continue
        score = found.score
        if chunk.collection is Collection.INCIDENTS:
            score -= abs(score) * (1.0 - recency_factor(chunk.facets.time, now))
        scores[found.key] = score
    return dict(sorted(scores.items(), key=lambda pair: -pair[1]))


def _recurring(hits: Sequence[SearchHit], *, at_least: bool) -> Iterator[CodedNote]:
    """`at_least`: the rankings went on where they were left, so there may be more."""
    for hit in hits:
        if hit.alike:
            yield note("more_alike", citation=hit.citation, least=at_least, count=len(hit.alike), alike=hit.alike[:3])


def _similarity(
    query: str, chunk: StoredChunk, by_words: int | None, by_meaning: int | None, like: Facets | None
) -> Similarity:
    said = " ".join((chunk.title, *chunk.path, chunk.text)).casefold()
    asked = query.casefold()
    like = like or Facets()
    like_entities = {name.casefold() for name in like.entities}
    letters = re.sub(r"[\s_-]+", "", asked)
    tactics = {*like.tactics, *(tactic for tactic in known_tactics() if tactic.casefold() in letters)}
    return Similarity(
        by_words,
        by_meaning,
        tuple(word for word in query_words(query) if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)),
        tuple(dict.fromkeys(_shared_techniques(query, like.techniques, chunk.facets.techniques))),
        tuple(
            name
            for name in chunk.facets.entities
            if len(name) > 2 and (name.casefold() in like_entities or name.casefold() in asked)
        ),
        tuple(tactic for tactic in chunk.facets.tactics if tactic in tactics),
    )


def _shared_techniques(query: str, like: Sequence[str], techniques: Sequence[str]) -> Iterator[str]:
    """Techniques of the document that the question or the incident asked about names, itself or by their parent."""
    named = {name.upper() for name in (*_TECHNIQUE.findall(query), *like)}
    for technique in techniques:
        if technique in named or technique.partition(".")[0] in named:
            yield technique


# Two rankings to one: their scores, each stretched between 0 and 1, are added by weight.
#
# By scores and not by places (reciprocal ranks), since places do not tell a near miss from one that is far behind: a
# question in plain words has a first place by words too, and it means little. Measured against reciprocal ranks in
# `python -m bench knowledge_quality`. Convex combination: Bruch, Gai and Ingber, ACM TOIS 2023.


T = TypeVar("T", bound=Hashable)

WORDS = 0.45
"""The part of words in the sum; the rest is that of meaning. From 0.35 to 0.5 hardly anything changes."""
DOCUMENT = 0.3
"""The part of a chunk's score that its document's best chunk gives: what speaks for the document by words in one
chunk and by meaning in another speaks for both."""

SHARED = 1.0
"""How much all techniques of the incident that is asked about count beside the two rankings together: techniques tell
which playbook is meant, words which of its parts."""


def fused(
    words: Mapping[T, float], meaning: Mapping[T, float], documents: Mapping[T, Hashable]
) -> list[tuple[T, float]]:
    """Every item of two rankings (item to score, higher is better, of any scale) with its sum, from 0 to 1, best first.
    `documents` tells what items belong together. Where a ranking is empty the other one decides alone. Among equals the
    one that fits better by meaning, and then the one that came first, comes first."""
    part = WORDS if words and meaning else float(bool(words))
    legs = ((part, stretched(words)), (1.0 - part, stretched(meaning)))
    items = list(dict.fromkeys((*meaning, *words)))
    best: list[dict[Hashable, float]] = [{}, {}]
    for (_, scores), best_of in zip(legs, best, strict=True):
        for item, score in scores.items():
            best_of[documents[item]] = max(score, best_of.get(documents[item], 0.0))
    sums = {
        item: sum(
            weight * ((1.0 - DOCUMENT) * scores.get(item, 0.0) + DOCUMENT * best_of.get(documents[item], 0.0))
            for (weight, scores), best_of in zip(legs, best, strict=True)
        )
        for item in items
    }
    return sorted(sums.items(), key=lambda pair: -pair[1])


def stretched(scores: Mapping[T, float]) -> dict[T, float]:
    """The scores between 0 and 1: the best is 1, and 0 lies one average step below the last, since the last was found
    and what a ranking lacks was not."""
    if not scores:
        return {}
    best, last = max(scores.values()), min(scores.values())
    if best == last:
        return dict.fromkeys(scores, 1.0)
    zero = last - (best - last) / len(scores)
    return {item: (score - zero) / (best - zero) for item, score in scores.items()}


# How much an incident's age counts in search: a little, so that of two that fit alike the recent one comes first.
#
# Names, addresses and tools of a campaign are of use for weeks; how a case was judged and closed is of use for years.
# So an old incident never loses more than `WEIGHT` of its score in a ranking (BM25, cosine): one that fits better by
# more than that stays ahead however old it is. Playbooks do not age.


HALF_LIFE_DAYS = 30.0
"""After so many days half of what age can take is taken; after the 90 days that are read in by default, seven
eighths."""
WEIGHT = 0.1


def recency_factor(created: datetime | None, now: datetime) -> float:
    """What the score of an incident is multiplied with, from `1 - WEIGHT` to 1. An unknown time counts as long ago, one
    in the future as now."""
    if created is None:
        return 1.0 - WEIGHT
    age_days = max(0.0, (now - created).total_seconds() / 86_400)
    # Beyond this, the power is 0 anyway; so far back is no number of days that a float holds well.
    return 1.0 - WEIGHT * (1.0 - math.pow(0.5, min(age_days / HALF_LIFE_DAYS, 1_000.0)))


# Incidents that recur: the same title and entities every hour, closed the same way. One of them is a hit, the others
# are counted with it, so that a noisy rule does not push what else fits out of an answer.


_SHARED = 0.8
"""Entities in common, of all that the two have. A process id or a port differs each time."""


def recurs(one: StoredChunk, other: StoredChunk) -> bool:
    """Whether the two are of different incidents that tell the same. One that was closed otherwise tells something else
    (the real one among forty false alarms), and without entities nothing says that it is the same."""
    if one.collection is not Collection.INCIDENTS or other.collection is not Collection.INCIDENTS:
        return False
    if one.document_id == other.document_id or one.facets.classification != other.facets.classification:
        return False
    if " ".join(one.title.split()).casefold() != " ".join(other.title.split()).casefold():
        return False
    mine = {name.casefold() for name in one.facets.entities}
    theirs = {name.casefold() for name in other.facets.entities}
    return bool(mine) and len(mine & theirs) >= _SHARED * len(mine | theirs)


LONGEST = 6_000
"""Characters of the question. The beginning tells most: title, techniques and names come first."""
_MOST_ENTITIES = 60


def question_of(chunks: Sequence[StoredChunk], query: str | None = None) -> str:
    """The question that finds what is like the document of these chunks, `query` first. Needs one chunk at least."""
    return " ".join(_parts(chunks, query))[:LONGEST]


def _parts(chunks: Sequence[StoredChunk], query: str | None) -> Iterator[str]:
    first = chunks[0]
    if query:
        yield f"{query}."
    yield f"{first.title}."
    yield from first.facets.techniques
    yield from first.facets.tactics
    yield from first.facets.entities[:_MOST_ENTITIES]
    for chunk in chunks:
        yield " ".join(chunk.text.split())
