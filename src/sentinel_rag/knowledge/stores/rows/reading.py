"""The reading side of the rows: words by FTS5, chunks by key, and what the store holds; vectors are another's.

One connection and what was remembered from it, used by one thread at a time. What is remembered holds for one revision
of the file, so another process's write is seen by the next call.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import Chunk, search_text
from sentinel_rag.knowledge.documents import Collection, Document, Facets
from sentinel_rag.knowledge.question_words import query_terms
from sentinel_rag.knowledge.stores.port import (
    MOST_RESULTS,
    StoredChunk,
    StoreEntry,
    StoreHit,
    StoreState,
    VectorSpace,
    Version,
    Wanted,
)
from sentinel_rag.knowledge.stores.rows.schema import conditions, open_file, transaction, unavailable

_MOST_TERMS = 10_000
_RANKED_ROWS = 5_000
_RANK = "bm25(2.0, 1.0)"
"""A word of the title or a heading counts twice."""
_AT_ONCE = 500
"""Parameters of one statement."""
_CHUNK = "c.id, d.collection, d.name, d.title, d.source, d.facets, d.label, c.number, c.path, c.place, c.body"
"""What `_stored` makes a chunk of."""


@dataclass(frozen=True, slots=True)
class RowStoreState:
    """What the `state` row says: the revision, the space of the vectors, and which array file holds how many slots
    (of the local store)."""

    revision: int
    space: VectorSpace | None
    file: int
    slots: int


class RowReader:
    """Questions to the store file at `path`. Raises UnavailableError where SQLite fails."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = open_file(path)
        self._rows_of_term: dict[tuple[int, str], int] = {}

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def state(self) -> StoreState:
        with self.snapshot() as connection:
            documents = dict(connection.execute("SELECT collection, count(*) FROM document GROUP BY collection"))
            chunks = dict(
                connection.execute(
                    "SELECT collection, count(*) FROM chunk JOIN document ON document.id = document GROUP BY collection"
                )
            )
            return StoreState(
                moment_of(connection).space,
                {each: documents.get(each.value, 0) for each in Collection},
                {each: chunks.get(each.value, 0) for each in Collection},
            )

    def versions(self, collection: Collection) -> Mapping[str, Version]:
        with self.snapshot() as connection:
            rows = connection.execute(
                "SELECT name, content_hash, etag FROM document WHERE collection = ?", [collection.value]
            )
            return {name: Version(content_hash, etag) for name, content_hash, etag in rows}

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        terms = match_terms(query)
        if not terms or limit <= 0:
            return ()
        limit = min(limit, MOST_RESULTS)
        with self.snapshot() as connection:
            telling = self._telling(connection, terms)
            if (best := _best(connection, telling, wanted, limit)) is not None:
                return best
            found = _ranked(connection, telling, wanted, limit)
            if len(found) >= limit or len(telling) == len(terms):
                return found
            # The filter lets too few of them through, so the common words decide after all.
            return _ranked(connection, terms, wanted, limit, narrow=True)

    def _telling(self, connection: sqlite3.Connection, terms: Sequence[str]) -> Sequence[str]:
        """The rarest terms, as many as `_RANKED_ROWS` allows. Ranking a row costs 3 microseconds, and a word that a
        tenth of all rows have hardly moves BM25; in a small store all terms are taken."""
        revision = moment_of(connection).revision
        rows: list[tuple[int, int, str]] = []
        for place, term in enumerate(terms):
            if (revision, term) not in self._rows_of_term:
                if len(self._rows_of_term) >= _MOST_TERMS:
                    self._rows_of_term.clear()
                count = connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", [term]).fetchone()[0]
                self._rows_of_term[revision, term] = count
            rows.append((self._rows_of_term[revision, term], place, term))
        taken: list[str] = []
        left = _RANKED_ROWS
        for count, _, term in sorted(rows):
            if taken and count > left:
                break
            taken += [term] if count else []
            left -= count
        return taken or terms

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        numbers = [key for key in keys if isinstance(key, int)]
        condition, values = conditions(Wanted(readers=readers))
        marks = ", ".join("?" * len(numbers))
        with self.snapshot() as connection:
            rows = connection.execute(
                # CROSS, since SQLite would begin with all documents that the filter lets through.
                f"SELECT {_CHUNK} FROM chunk c CROSS JOIN document d ON d.id = c.document "
                f"WHERE c.id IN ({marks}) AND {condition}",
                [*numbers, *values],
            )
            found = {row[0]: _stored(row) for row in rows}
        return [found[key] for key in numbers if key in found]

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        condition, values = conditions(Wanted(readers=readers, collections=frozenset({collection})))
        with self.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {_CHUNK} FROM document d JOIN chunk c ON c.document = d.id "
                f"WHERE d.name = ? AND {condition} ORDER BY c.number",
                [document_id, *values],
            )
            return [_stored(row) for row in rows]

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[StoreEntry]:
        found: dict[str, StoreEntry] = {}
        with self.snapshot() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                part = ids[start : start + _AT_ONCE]
                rows = connection.execute(
                    "SELECT d.id, d.name, d.title, d.source, d.facets, d.label, names, d.content_hash, d.etag "
                    "FROM document d JOIN audience ON audience.id = d.audience "
                    f"WHERE d.collection = ? AND d.name IN ({', '.join('?' * len(part))})",
                    [collection.value, *part],
                )
                for number, name, title, source, facets, label, readers, content_hash, etag in rows.fetchall():
                    document = Document(
                        id=name,
                        collection=collection,
                        title=title,
                        source=source,
                        sections=(),
                        facets=Facets.from_dict(json.loads(facets)),
                        label=Label.from_dict(json.loads(label)),
                        readers=frozenset(json.loads(readers)),
                        etag=etag,
                    )
                    found[name] = StoreEntry(document, tuple(_chunks(connection, number)), content_hash)
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        condition, values = conditions(Wanted(readers=readers))
        with self.snapshot() as connection:
            found = dict(
                connection.execute(
                    f"SELECT d.collection, count(*) FROM document d WHERE {condition} GROUP BY d.collection", values
                )
            )
        return {each: found.get(each.value, 0) for each in Collection}

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """The connection, at one moment of the file; this thread's alone meanwhile."""
        with self._lock:
            try:
                with transaction(self._connection, write=False):
                    yield self._connection
            except sqlite3.Error as error:
                raise unavailable(error, self._path) from None


def _best(connection: sqlite3.Connection, terms: Sequence[str], wanted: Wanted, limit: int) -> list[StoreHit] | None:
    """What `_ranked` finds, at half its cost, where only permissions filter: the best rows of all, and of these the
    permitted ones. None where that may leave some out."""
    if replace(wanted, readers=frozenset()) != Wanted():
        return None
    condition, values = conditions(wanted)
    rows = connection.execute(
        "SELECT w.id, w.score FROM (SELECT rowid AS id, -rank AS score FROM words WHERE words MATCH ? "
        f"AND rank MATCH '{_RANK}' ORDER BY rank, rowid LIMIT ?) w "
        f"CROSS JOIN chunk c ON c.id = w.id CROSS JOIN document d ON d.id = c.document WHERE {condition} "
        "ORDER BY w.score DESC, w.id LIMIT ?",
        [match_expression(terms), 2 * limit, *values, limit],
    )
    found = [StoreHit(key, score) for key, score in rows]
    return found if len(found) == limit else None


def _ranked(
    connection: sqlite3.Connection, terms: Sequence[str], wanted: Wanted, limit: int, *, narrow: bool = False
) -> list[StoreHit]:
    """The best rows by BM25 for any of the terms, permission and filters in the query. `narrow`: the filter lets few
    rows through, so they are gathered first and the many that match are compared with them."""
    condition, values = conditions(wanted)
    if narrow:
        # The plus keeps SQLite from asking FTS5 for each row by itself.
        join = ""
        condition = f"+w.rowid IN (SELECT c.id FROM document d JOIN chunk c ON c.document = d.id WHERE {condition})"
    else:
        join = "CROSS JOIN chunk c ON c.id = w.rowid CROSS JOIN document d ON d.id = c.document"
    rows = connection.execute(
        f"SELECT w.rowid, -w.rank FROM words w {join} WHERE w.words MATCH ? AND w.rank MATCH '{_RANK}' AND {condition} "
        "ORDER BY w.rank, w.rowid LIMIT ?",
        [match_expression(terms), *values, limit],
    )
    return [StoreHit(key, score) for key, score in rows]


def moment_of(connection: sqlite3.Connection) -> RowStoreState:
    """The `state` row as this connection sees it now."""
    revision, file, slots, model, dimensions = connection.execute(
        "SELECT revision, file, slots, model, dimensions FROM state LEFT JOIN space ON space.id = state.space"
    ).fetchone()
    return RowStoreState(revision, None if model is None else VectorSpace(model, dimensions), file, slots)


def _chunks(connection: sqlite3.Connection, document: int) -> Iterator[Chunk]:
    rows = connection.execute(
        "SELECT number, path, place, body, head, hash FROM chunk WHERE document = ? ORDER BY number", [document]
    )
    for number, path, place, body, head, search_hash in rows:
        yield Chunk(number, tuple(json.loads(path)), place, body, search_text(head, body, search_hash.hex()))


def _stored(row: Sequence[Any]) -> StoredChunk:
    return StoredChunk(
        key=row[0],
        collection=Collection(row[1]),
        document_id=row[2],
        title=row[3],
        source=row[4],
        facets=Facets.from_dict(json.loads(row[5])),
        label=Label.from_dict(json.loads(row[6])),
        number=row[7],
        path=tuple(json.loads(row[8])),
        place=row[9],
        text=row[10],
    )


# A question as an FTS5 query: its terms as alternatives, each quoted, so that nothing in it is syntax.
#
# What has points or dashes inside (an address, a technique, a path) is a phrase of its parts in order.


_PARTS = re.compile(r"\w+")


def match_terms(text: str) -> tuple[str, ...]:
    """The FTS5 terms for a question, each a quoted word or phrase; none if it holds no word."""
    return tuple(dict.fromkeys(f'"{" ".join(_PARTS.findall(term))}"' for term in query_terms(text)))


def match_expression(terms: Iterable[str]) -> str:
    """The FTS5 expression that any of the terms satisfies."""
    return " OR ".join(terms)
