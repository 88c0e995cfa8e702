"""Read words by BM25 and vectors exactly or over an HNSW index; each query holds permission and filters."""

from __future__ import annotations

import json
import math
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from psycopg import Connection

from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import Chunk, search_text
from sentinel_rag.knowledge.documents import EVERYONE, Collection, Document, Facets
from sentinel_rag.knowledge.question_words import query_terms
from sentinel_rag.knowledge.stores.pgvector.connections import PgvectorPool, storable, told
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
from sentinel_rag.knowledge.stores.vector_arrays import unit

# `Wanted` as SQL over `document d`, in one place for words, vectors and loading, so that they cannot differ. One text
# for all filters: one that is not set is NULL, which the planner folds away, since nothing is prepared.
CONDITIONS = """
d.readers && %(readers)s::text[] AND d.collection = ANY(%(collections)s::text[])
AND (%(severities)s::text[] IS NULL OR d.severity = ANY(%(severities)s::text[]))
AND (%(statuses)s::text[] IS NULL OR d.status = ANY(%(statuses)s::text[]))
AND (%(classifications)s::text[] IS NULL OR d.classification = ANY(%(classifications)s::text[]))
AND (%(techniques)s::text[] IS NULL OR d.techniques && %(techniques)s::text[])
AND (%(tactics)s::text[] IS NULL OR d.tactics && %(tactics)s::text[])
AND (%(since)s::double precision IS NULL OR d.time >= %(since)s::double precision)
AND (%(until)s::double precision IS NULL OR d.time <= %(until)s::double precision)
"""


def values_of(wanted: Wanted) -> Mapping[str, object]:
    """The parameters of `CONDITIONS`. Permission is always among them."""
    return {
        "readers": sorted(storable(name) for name in {EVERYONE, *wanted.readers}),
        "collections": sorted(each.value for each in wanted.collections),
        "severities": _folded(wanted.severities),
        "statuses": _folded(wanted.statuses),
        "classifications": _folded(wanted.classifications),
        # A technique is stored with its parent, so one comparison finds sub-techniques.
        "techniques": sorted(storable(each.upper()) for each in wanted.techniques) or None,
        "tactics": sorted(map(storable, wanted.tactics)) or None,
        "since": None if wanted.since is None else wanted.since.timestamp(),
        "until": None if wanted.until is None else wanted.until.timestamp(),
    }


def filter_text(text: str) -> str:
    """A severity, status or classification as it is compared: without regard to case."""
    return storable(text.casefold())


def _folded(values: Iterable[str]) -> list[str] | None:
    return sorted(map(filter_text, values)) or None


K1, B = 1.2, 0.75
# Words are parted here, so that the parser of PostgreSQL never sees an address or a path, and stemmed there. How often
# a word stands in a text is read off `ts_rank`: for one word that is the sum of 1/i² over its places, by pi²/6. A
# phrase counts as one place. What stands in the title or a heading (weight A, before the text) counts twice. k1 = 1.2
# and b = 0.75: all of this as in the local store.
MOST_RANKED = 5_000
"""Rows that are ranked: as many as the rarest words have, and always those of the rarest."""
_LONGEST = 100
_MOST_PLACES = 30
_WORD = re.compile(r"[^\W_]+")
_LIMIT = math.pi**2 / 6
_SUMS = list(accumulate(1 / place**2 for place in range(1, _MOST_PLACES + 1)))
EDGES = [(sum_ - 0.4 / (place + 1) ** 2) / _LIMIT for place, sum_ in enumerate(_SUMS)]
"""The least rank of a word that stands in a text once, twice and so on; a little under it, since ranks are float4."""


def words_of(text: str) -> list[str]:
    """The words in order, in lower case and without accents."""
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return [word[:_LONGEST] for word in _WORD.findall(plain.lower())]


_TIMES = "width_bucket(ts_rank('{{{0}}}', c.words, {1})::float8, %(edges)s::float8[])"
_LEXEME = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase of a question as a tsquery, and in how many chunks it is. `single`: a word."""

    query: str
    single: bool
    chunks: int

    def weight(self, chunks: int) -> float:
        """How much it tells among so many chunks (inverse document frequency)."""
        return max(1e-6, math.log((chunks - self.chunks + 0.5) / (self.chunks + 0.5))) if chunks else 1e-6


def telling_terms(terms: Sequence[Term]) -> Sequence[Term]:
    """The rarest terms that are anywhere, as many as `MOST_RANKED` allows, but one."""
    taken: list[Term] = []
    left = MOST_RANKED
    for term in sorted((each for each in terms if each.chunks), key=lambda each: each.chunks):
        if taken and term.chunks > left:
            break
        taken.append(term)
        left -= term.chunks
    return taken


def bm25(terms: Sequence[Term], chunks: int, mean_length: float) -> tuple[str, dict[str, object]]:
    """BM25 of the row `c` as an SQL expression, and its parameters."""
    parts: list[str] = []
    values: dict[str, object] = {"edges": EDGES, "mean": mean_length}
    shape = f"{K1} * ({1 - B} + {B} * c.length / %(mean)s::float8)"
    for number, term in enumerate(terms):
        query = f"%(term{number})s::tsquery"
        times = (
            f"{_TIMES.format('1,1,1,1', query)} + {_TIMES.format('0,0,0,1', query)}"
            if term.single
            else f"2 * (c.words @@ %(head{number})s::tsquery)::int + (c.words @@ %(text{number})s::tsquery)::int"
        )
        parts.append(
            f"(SELECT %(weight{number})s::float8 * {K1 + 1} * t / (t + {shape}) FROM (SELECT {times} AS t) s{number})"
        )
        values[f"term{number}"] = term.query
        values[f"head{number}"] = _LEXEME.sub(r"\g<0>:A", term.query)
        values[f"text{number}"] = _LEXEME.sub(r"\g<0>:D", term.query)
        values[f"weight{number}"] = term.weight(chunks)
    return " + ".join(parts), values


def any_of(terms: Sequence[Term]) -> str:
    """The tsquery that any of the terms satisfies."""
    return " | ".join(f"({term.query})" for term in terms)


# Permission and filters are part of each query. Where a filter lets few chunks through, all of them are compared, so
# that nothing is missed; over many the index is asked, which searches on until enough pass the filter.
_REMEMBERED = 64
_SEARCHED_AT_ONCE = 200
"""Candidates of one pass over the HNSW index (`hnsw.ef_search`)."""
_CHUNK = "c.id, d.collection, d.name, d.title, d.source, d.facets, d.label, c.number, c.path, c.place, c.body"
"""What `_stored` makes a chunk of."""
_VECTORS = (
    "FROM kept_vector v JOIN chunk c ON c.hash = v.hash JOIN document d ON d.id = c.document WHERE v.space = %(space)s"
)


@dataclass(frozen=True, slots=True)
class PgvectorState:
    """What the `state` row says. `number` is that of the space."""

    revision: int
    number: int | None
    space: VectorSpace | None
    chunks: int
    words: int
    indexed: bool


class PgvectorReader:
    """Questions to the database. `exact_below`: so many chunks are compared one by one. Raises UnavailableError."""

    def __init__(self, connections: PgvectorPool, *, exact_below: int) -> None:
        self._connections = connections
        self._exact_below = exact_below
        self._lock = threading.Lock()
        self._let_through: OrderedDict[tuple[int, Wanted], int] = OrderedDict()

    def state(self) -> StoreState:
        def work(connection: Connection[Any]) -> StoreState:
            rows = connection.execute("SELECT collection, count(*), sum(chunks) FROM document GROUP BY collection")
            counts = {name: (documents, int(chunks)) for name, documents, chunks in rows}
            return StoreState(
                moment(connection).space,
                {each: counts.get(each.value, (0, 0))[0] for each in Collection},
                {each: counts.get(each.value, (0, 0))[1] for each in Collection},
            )

        return self._connections.read(work)

    def versions(self, collection: Collection) -> Mapping[str, Version]:
        def work(connection: Connection[Any]) -> Mapping[str, Version]:
            rows = connection.execute(
                "SELECT name, content_hash, etag FROM document WHERE collection = %s", [collection.value]
            )
            return {told(name): Version(content_hash, told(etag)) for name, content_hash, etag in rows}

        return self._connections.read(work)

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        wanted = frozenset(search_hashes)

        def work(connection: Connection[Any]) -> frozenset[str]:
            rows = connection.execute(
                "SELECT v.hash FROM kept_vector v JOIN space s ON s.id = v.space "
                "WHERE s.model = %s AND s.dimensions = %s AND v.hash = ANY(%s)",
                [space.model, space.dimensions, [bytes.fromhex(each) for each in wanted]],
            )
            return wanted.difference(bytes(search_hash).hex() for (search_hash,) in rows)

        return self._connections.read(work)

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        def work(connection: Connection[Any]) -> Mapping[str, Vector]:
            cursor = connection.cursor(binary=True)
            rows = cursor.execute(
                "SELECT v.hash, v.data FROM kept_vector v JOIN space s ON s.id = v.space "
                "WHERE s.model = %s AND s.dimensions = %s AND v.hash = ANY(%s)",
                [space.model, space.dimensions, [bytes.fromhex(each) for each in search_hashes]],
            )
            return {bytes(search_hash).hex(): data for search_hash, data in rows}

        return self._connections.read(work)

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[StoreEntry]:
        def work(connection: Connection[Any]) -> Mapping[str, StoreEntry]:
            rows = connection.execute(
                "SELECT id, name, title, source, facets, label, readers, content_hash, etag FROM document "
                "WHERE collection = %s AND name = ANY(%s)",
                [collection.value, [storable(each) for each in ids]],
            ).fetchall()
            chunks = _chunks(connection, [row[0] for row in rows])
            return {told(row[1]): _entry(collection, row, chunks.get(row[0], ())) for row in rows}

        found = self._connections.read(work)
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        phrases = [" ".join(words) for term in query_terms(query) if (words := words_of(term))]
        if not phrases or limit <= 0:
            return ()
        limit = min(limit, MOST_RESULTS)

        def work(connection: Connection[Any]) -> Sequence[StoreHit]:
            now = moment(connection)
            terms = [term for term in _terms(connection, phrases) if term.chunks]
            telling = telling_terms(terms)
            found = _ranked(connection, now, telling, wanted, limit)
            if len(found) >= limit or len(telling) == len(terms):
                return found
            # The rare ones find too little, or the filter lets too little of it through: the common words decide.
            return _ranked(connection, now, terms, wanted, limit)

        return self._connections.read(work)

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        query = unit(vector)[0]
        limit = min(limit, MOST_RESULTS)

        def work(connection: Connection[Any]) -> Sequence[StoreHit]:
            now = moment(connection)
            if now.space is None or limit <= 0:
                return ()
            if now.space != space:
                raise mismatch(now.space, space)
            if now.indexed and self._count(connection, now.revision, wanted) > self._exact_below:
                found = _nearest_over_index(connection, now, query, wanted, limit)
                if len(found) == limit:
                    return found
            # Also where the index gave up: it searches on for so long only, and the filter lets more through.
            return _nearest_exactly(connection, now, query, wanted, limit)

        return self._connections.read(work)

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        numbers = [key for key in keys if isinstance(key, int)]

        def work(connection: Connection[Any]) -> Mapping[int, StoredChunk]:
            rows = connection.execute(
                f"SELECT {_CHUNK} FROM chunk c JOIN document d ON d.id = c.document "
                f"WHERE c.id = ANY(%(keys)s) AND {CONDITIONS}",
                {**values_of(Wanted(readers=readers)), "keys": numbers},
            )
            return {row[0]: _stored(row) for row in rows}

        found = self._connections.read(work)
        return [found[key] for key in numbers if key in found]

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        def work(connection: Connection[Any]) -> Sequence[StoredChunk]:
            rows = connection.execute(
                f"SELECT {_CHUNK} FROM document d JOIN chunk c ON c.document = d.id "
                f"WHERE d.name = %(name)s AND {CONDITIONS} ORDER BY c.number",
                {
                    **values_of(Wanted(readers=readers, collections=frozenset({collection}))),
                    "name": storable(document_id),
                },
            )
            return [_stored(row) for row in rows]

        return self._connections.read(work)

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        def work(connection: Connection[Any]) -> Mapping[Collection, int]:
            rows = connection.execute(
                f"SELECT d.collection, count(*) FROM document d WHERE {CONDITIONS} GROUP BY d.collection",
                values_of(Wanted(readers=readers)),
            )
            found = dict(rows.fetchall())
            return {each: found.get(each.value, 0) for each in Collection}

        return self._connections.read(work)

    def _count(self, connection: Connection[Any], revision: int, wanted: Wanted) -> int:
        """How many chunks a filter lets through, remembered for one revision."""
        key = (revision, wanted)
        with self._lock:
            if key in self._let_through:
                self._let_through.move_to_end(key)
                return self._let_through[key]
        row = connection.execute(
            f"SELECT coalesce(sum(d.chunks), 0) FROM document d WHERE {CONDITIONS}", values_of(wanted)
        ).fetchone()
        assert row is not None
        with self._lock:
            self._let_through[key] = int(row[0])
            while len(self._let_through) > _REMEMBERED:
                self._let_through.popitem(last=False)
        return int(row[0])


def moment(connection: Connection[Any]) -> PgvectorState:
    row = connection.execute(
        "SELECT revision, space, model, dimensions, chunks, words, indexed FROM state "
        "LEFT JOIN space ON space.id = state.space"
    ).fetchone()
    assert row is not None
    space = None if row[1] is None else VectorSpace(row[2], row[3])
    return PgvectorState(row[0], row[1], space, row[4], row[5], row[6])


def _terms(connection: Connection[Any], phrases: Sequence[str]) -> Iterator[Term]:
    """Each phrase as a term, with in how many chunks it is; of a phrase of several words no more than matter."""
    rows = connection.execute(
        """
        SELECT query::text, numnode(query) = 1, CASE
            WHEN numnode(query) = 0 THEN 0
            WHEN numnode(query) = 1 THEN coalesce(
                (SELECT w.chunks FROM word w WHERE w.lexeme = (tsvector_to_array(to_tsvector('stems', text)))[1]), 0)
            ELSE (SELECT count(*) FROM (SELECT FROM chunk c WHERE c.words @@ query LIMIT %(most)s) few) END
        FROM (SELECT phraseto_tsquery('stems', text) AS query, text, place
              FROM unnest(%(phrases)s::text[]) WITH ORDINALITY AS given (text, place)) each ORDER BY place
        """,
        {"phrases": list(phrases), "most": MOST_RANKED + 1},
    )
    for query, single, chunks in rows.fetchall():
        yield Term(query, single, chunks)


def _ranked(
    connection: Connection[Any], now: PgvectorState, terms: Sequence[Term], wanted: Wanted, limit: int
) -> Sequence[StoreHit]:
    if not terms or not now.chunks:
        return ()
    score, values = bm25(terms, now.chunks, max(1.0, now.words / now.chunks))
    rows = connection.execute(
        f"SELECT c.id, {score} AS score FROM chunk c JOIN document d ON d.id = c.document "
        f"WHERE c.words @@ %(any)s::tsquery AND {CONDITIONS} ORDER BY score DESC, c.id LIMIT %(limit)s",
        {**values, **values_of(wanted), "any": any_of(terms), "limit": limit},
    )
    return [StoreHit(key, score) for key, score in rows]


def _nearest_exactly(
    connection: Connection[Any], now: PgvectorState, query: Vector, wanted: Wanted, limit: int
) -> Sequence[StoreHit]:
    rows = connection.execute(
        f"SELECT c.id, v.data <#> %(query)s AS distance {_VECTORS} AND {CONDITIONS} "
        "ORDER BY distance, c.id LIMIT %(limit)s",
        {**values_of(wanted), "query": query, "space": now.number, "limit": limit},
    )
    return [StoreHit(key, -distance) for key, distance in rows]


def _nearest_over_index(
    connection: Connection[Any], now: PgvectorState, query: Vector, wanted: Wanted, limit: int
) -> Sequence[StoreHit]:
    assert now.space is not None
    connection.execute(
        f"SET LOCAL hnsw.ef_search = {max(_SEARCHED_AT_ONCE, limit)}; SET LOCAL hnsw.iterative_scan = strict_order"
    )
    # The planner does not know how far the index must be searched, and might sort all rows instead.
    ways = ("enable_sort", "enable_hashjoin", "enable_mergejoin")
    connection.execute("; ".join(f"SET LOCAL {way} = off" for way in ways))
    data = f"v.data::vector({now.space.dimensions})"
    rows = connection.execute(
        # The number stands in the text, so that the planner sees that the index, which is of this space alone, fits.
        f"SELECT c.id, {data} <#> %(query)s AS distance {_VECTORS} AND v.space = {now.number} AND {CONDITIONS} "
        "ORDER BY distance LIMIT %(limit)s",
        {**values_of(wanted), "query": query, "space": now.number, "limit": limit},
    ).fetchall()
    connection.execute("; ".join(f"SET LOCAL {way} = on" for way in ways))
    return [StoreHit(key, -distance) for key, distance in rows]


def _chunks(connection: Connection[Any], documents: Sequence[int]) -> Mapping[int, Sequence[Chunk]]:
    rows = connection.execute(
        "SELECT document, number, path, place, body, head, hash FROM chunk WHERE document = ANY(%s) "
        "ORDER BY document, number",
        [list(documents)],
    )
    found: dict[int, list[Chunk]] = {}
    for document, number, path, place, body, head, search_hash in rows:
        text = search_text(told(head), told(body), bytes(search_hash).hex())
        found.setdefault(document, []).append(Chunk(number, tuple(json.loads(path)), place, told(body), text))
    return found


def _entry(collection: Collection, row: Sequence[Any], chunks: Sequence[Chunk]) -> StoreEntry:
    document = Document(
        id=told(row[1]),
        collection=collection,
        title=told(row[2]),
        source=told(row[3]),
        sections=(),
        facets=Facets.from_dict(json.loads(row[4])),
        label=Label.from_dict(json.loads(row[5])),
        readers=frozenset(map(told, row[6])),
        etag=told(row[8]),
    )
    return StoreEntry(document, tuple(chunks), row[7])


def _stored(row: Sequence[Any]) -> StoredChunk:
    return StoredChunk(
        key=row[0],
        collection=Collection(row[1]),
        document_id=told(row[2]),
        title=told(row[3]),
        source=told(row[4]),
        facets=Facets.from_dict(json.loads(row[5])),
        label=Label.from_dict(json.loads(row[6])),
        number=row[7],
        path=tuple(json.loads(row[8])),
        place=row[9],
        text=told(row[10]),
    )
