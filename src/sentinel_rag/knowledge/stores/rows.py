"""The SQLite file of stores on this machine: documents, chunks, their words, and vectors kept by their text's hash.

A store adds what it searches vectors by (`VectorIndex`). That is made of these rows, so the file is all of the truth.

The tables of knowledge in SQLite, the conditions over them, and the vectors and slots that they keep.

The reading side of the rows: words by FTS5, chunks by key, and what the store holds; vectors are another's.

One connection and what was remembered from it, used by one thread at a time. What is remembered holds for one revision
of the file, so another process's write is seen by the next call.

The writing side of the rows: documents in and out, vectors kept, everything embedded anew.

Each call is one transaction, so that another process finds a document whole or not at all. Several processes may write:
each waits for the other's transaction. Nothing here is done without the `state` row being raised.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import Chunk, head_of, search_text
from sentinel_rag.knowledge.documents import EVERYONE, Collection, Document, Facets
from sentinel_rag.knowledge.question_words import query_terms
from sentinel_rag.knowledge.stores.port import (
    MOST_RESULTS,
    RE_EMBED_BATCH,
    EmbedTexts,
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
from sentinel_rag.storage import begin_write_ahead
from sentinel_rag.storage.sqlite import connect, create_private

# Search text is indexed by FTS5 beside the rows it belongs to. Readers are kept as audiences: a set of names that many
# documents share is stored once, so a permission is one comparison for each row; filters read an index and not the
# rows. Every write raises `revision`, by which readers know that what they remember is old.
VERSION = 1
BUSY_MILLISECONDS = 30_000

_TABLES = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, space INTEGER, file INTEGER NOT NULL,
    slots INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, NULL, 0, 0);
CREATE TABLE space (
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, dimensions INTEGER NOT NULL, UNIQUE (model, dimensions));
CREATE TABLE vector (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX vector_hash ON vector (hash, space);
CREATE TABLE audience (id INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
CREATE TABLE audience_name (name TEXT NOT NULL, audience INTEGER NOT NULL, PRIMARY KEY (name, audience)) WITHOUT ROWID;
CREATE TABLE document (
    id INTEGER PRIMARY KEY, collection TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL,
    severity TEXT NOT NULL, status TEXT NOT NULL, classification TEXT NOT NULL, time REAL, facets TEXT NOT NULL,
    label TEXT NOT NULL, audience INTEGER NOT NULL, content_hash TEXT NOT NULL, etag TEXT NOT NULL,
    UNIQUE (collection, name));
CREATE INDEX document_filter ON document (collection, audience, severity, status, classification, time);
CREATE TABLE tag (
    kind TEXT NOT NULL, value TEXT NOT NULL, document INTEGER NOT NULL,
    PRIMARY KEY (kind, value, document)) WITHOUT ROWID;
CREATE INDEX tag_document ON tag (document);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, number INTEGER NOT NULL, path TEXT NOT NULL,
    place INTEGER NOT NULL, head TEXT NOT NULL, body TEXT NOT NULL, hash BLOB NOT NULL, slot INTEGER);
CREATE INDEX chunk_document ON chunk (document, slot);
CREATE INDEX chunk_hash ON chunk (hash);
CREATE UNIQUE INDEX chunk_slot ON chunk (slot) WHERE slot IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5 (
    head, body, content = 'chunk', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TRIGGER words_in AFTER INSERT ON chunk BEGIN
    INSERT INTO words (rowid, head, body) VALUES (new.id, new.head, new.body);
END;
CREATE TRIGGER words_out AFTER DELETE ON chunk BEGIN
    INSERT INTO words (words, rowid, head, body) VALUES ('delete', old.id, old.head, old.body);
END;
"""


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to the store at `path`, which is made where there is none, readable by its owner only.

    Raises UnavailableError for a file that is no store, is of a newer version, or cannot be opened.
    """
    connection: sqlite3.Connection | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_private(path)
        connection = connect(path, busy_s=BUSY_MILLISECONDS / 1e3)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            begin_write_ahead(connection)
            _make(connection)
        elif version > VERSION:
            raise UnavailableError(
                f"{path.name} was written by a newer version of Sentinel RAG (schema {version}, known is {VERSION}).",
                next_step="Install the newer version, or name another file.",
            )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA mmap_size = 1073741824")
        connection.execute("PRAGMA cache_size = -65536")
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        raise unavailable(error, path) from None
    except UnavailableError:
        assert connection is not None
        connection.close()
        raise
    except OSError as error:
        raise UnavailableError(
            f"The knowledge store {path.name} cannot be opened: {error.strerror or error}.",
            next_step="Check the folder's owner and permissions.",
        ) from None
    return connection


def _make(connection: sqlite3.Connection) -> None:
    """The tables, by whichever of several processes comes first."""
    with transaction(connection):
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in _statements(_TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _statements(script: str) -> Iterator[str]:
    """Each statement by itself, since `executescript` would end the transaction."""
    statement = ""
    for line in script.strip().split("\n"):
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
    """One transaction: a writing one waits for other writers, a reading one sees one moment throughout."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back when the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def unavailable(error: sqlite3.Error, path: Path) -> UnavailableError:
    """What an SQLite error means to a person."""
    text = str(error)
    if "locked" in text or "busy" in text:
        return UnavailableError(
            f"The knowledge store {path.name} is being written by another process.",
            next_step="Wait for it to end, then try again.",
        )
    if "not a database" in text or "malformed" in text or "no such" in text or "no column" in text:
        return UnavailableError(
            f"{path.name} is no knowledge store, or is damaged.",
            next_step="Move the file away and ingest again: knowledge is rebuilt from its sources.",
        )
    if "full" in text:
        return UnavailableError(
            f"The disk is full; {path.name} keeps what it had.", next_step="Make room, then ingest again: it goes on."
        )
    return UnavailableError(
        f"The knowledge store {path.name} cannot be used: {text}.", next_step="Check the file and its folder."
    )


AT_ONCE = 500
"""Parameters of one statement."""


def kept_vectors(connection: sqlite3.Connection, number: int, search_hashes: SomeOf[str]) -> dict[str, bytes]:
    """The vectors that are kept for these hashes."""
    found: dict[str, bytes] = {}
    hashes = [bytes.fromhex(each) for each in search_hashes]
    for start in range(0, len(hashes), AT_ONCE):
        part = hashes[start : start + AT_ONCE]
        rows = connection.execute(
            f"SELECT hash, data FROM vector WHERE space = ? AND hash IN ({', '.join('?' * len(part))})",
            [number, *part],
        )
        found |= {search_hash.hex(): data for search_hash, data in rows}
    return found


def forget_unused_vectors(connection: sqlite3.Connection) -> None:
    """Drop the vectors of texts that no chunk has any more."""
    connection.execute("DELETE FROM vector WHERE hash NOT IN (SELECT hash FROM chunk)")


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A space and its number in the table `space`."""

    number: int
    space: VectorSpace


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk's row by its id, with its document's collection and content hash, and the hash of its text, in hex."""

    id: int
    collection: Collection
    search_hash: str
    content_hash: str


class VectorIndex(Protocol):
    """Each call but the last two gets the connection of a writing transaction. An error ends that transaction."""

    def add(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Chunks that came in; the vectors of `held` are kept for all of them, else KeyError."""
        ...

    def drop(self, connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[ChunkRow]) -> None:
        """Chunks whose rows are gone."""
        ...

    def replace(self, connection: sqlite3.Connection, held: SpaceRow) -> None:
        """All chunks with the vectors of `held`, in place of everything before."""
        ...

    def committed(self) -> None:
        """The transaction is durable."""
        ...

    def rolled_back(self) -> None:
        """Nothing of the transaction happened."""
        ...


def conditions(wanted: Wanted) -> tuple[str, list[object]]:
    """A condition that holds for the documents that may be found, and its parameters. Permission is always part."""
    parts: list[str] = []
    values: list[object] = []
    for part, given in _parts(wanted):
        parts.append(part)
        values += given
    return " AND ".join(parts), values


def _parts(wanted: Wanted) -> Iterator[tuple[str, SomeOf[object]]]:
    readers = sorted({EVERYONE, *wanted.readers})
    yield f"d.audience IN (SELECT audience FROM audience_name WHERE name IN ({_marks(readers)}))", readers
    yield f"d.collection IN ({_marks(wanted.collections)})", sorted(wanted.collections)
    for column, chosen in (
        ("severity", wanted.severities),
        ("status", wanted.statuses),
        ("classification", wanted.classifications),
    ):
        if chosen:
            yield f"d.{column} COLLATE NOCASE IN ({_marks(chosen)})", sorted(chosen)
    for kind, chosen in (("technique", wanted.techniques), ("tactic", wanted.tactics)):
        if chosen:
            # A technique's tag is stored under its parent too, so one comparison finds sub-techniques.
            given = sorted(value.upper() if kind == "technique" else value for value in chosen)
            yield f"d.id IN (SELECT document FROM tag WHERE kind = ? AND value IN ({_marks(given)}))", [kind, *given]
    if wanted.since is not None:
        yield "d.time >= ?", [wanted.since.timestamp()]
    if wanted.until is not None:
        yield "d.time <= ?", [wanted.until.timestamp()]


def _marks(values: SomeOf[object]) -> str:
    return ", ".join("?" * len(values))


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


class RowWriter:
    """Changes to the store file at `path` and to the index made of it, one at a time. Raises UnavailableError where
    SQLite or the disk fails."""

    def __init__(self, path: Path, index: VectorIndex) -> None:
        self._path = path
        self._index = index
        self._lock = threading.Lock()
        self._connection = open_file(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        wanted = frozenset(search_hashes)
        with self.change(write=False) as connection:
            held = connection.execute(
                "SELECT id FROM space WHERE model = ? AND dimensions = ?", [space.model, space.dimensions]
            ).fetchone()
            return wanted if held is None else wanted.difference(kept_vectors(connection, held[0], wanted))

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        import numpy as np

        with self.change(write=False) as connection:
            held = connection.execute(
                "SELECT id FROM space WHERE model = ? AND dimensions = ?", [space.model, space.dimensions]
            ).fetchone()
            found = {} if held is None else kept_vectors(connection, held[0], search_hashes)
        return {search_hash: np.frombuffer(data, dtype="<f4") for search_hash, data in found.items()}

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        from sentinel_rag.knowledge.stores.vector_arrays import unit

        rows = []
        for search_hash, vector in vectors.items():
            if vector.shape != (space.dimensions,):
                raise ValueError(f"a vector of {space} has the shape {vector.shape}")
            rows.append((bytes.fromhex(search_hash), unit(vector)[0].astype("<f4").tobytes()))
        with self.change() as connection:
            number = _space_number(connection, space)
            connection.executemany(
                "INSERT OR IGNORE INTO vector (space, hash, data) VALUES (?, ?, ?)", [(number, *row) for row in rows]
            )

    def put(self, entries: Sequence[StoreEntry], space: VectorSpace | None) -> None:
        with self.change() as connection:
            held = current_space(connection)
            any_document = connection.execute("SELECT 1 FROM document LIMIT 1").fetchone() is not None
            if (held.space if held else None) != space and (held is not None or any_document):
                raise mismatch(held.space if held else None, space)
            if space is not None and held is None:
                held = SpaceRow(_space_number(connection, space), space)
                connection.execute("UPDATE state SET space = ?", [held.number])
            gone: list[ChunkRow] = []
            new: list[ChunkRow] = []
            for entry in {(each.document.collection, each.document.id): each for each in entries}.values():
                gone += _remove(connection, entry.document.collection, [entry.document.id])[1]
                new += _insert(connection, entry)
            if held is not None:
                self._index.add(connection, held, new)
                self._index.drop(connection, held, gone)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        with self.change() as connection:
            removed, gone = _remove(connection, collection, list(dict.fromkeys(ids)))
            held = current_space(connection)
            if removed and held is not None:
                self._index.drop(connection, held, gone)
            return removed

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = RE_EMBED_BATCH) -> int:
        embedded = 0
        while True:
            with self.change(write=False) as connection:
                texts = dict(_without_vector(connection, space, batch))
            if not texts:
                break
            vectors = embed(list(texts.values()))
            self.keep_vectors(space, dict(zip(texts, vectors, strict=True)))
            embedded += len(texts)
        with self.change() as connection:
            number = _space_number(connection, space)
            # Another process may have put documents since the last look.
            if next(iter(_without_vector(connection, space, 1)), None) is None:
                connection.execute("UPDATE state SET space = ?", [number])
                self._index.replace(connection, SpaceRow(number, space))
                connection.execute("DELETE FROM vector WHERE space <> ?", [number])
                connection.execute("DELETE FROM space WHERE id <> ?", [number])
                return embedded
        return embedded + self.re_embed(space, embed, batch=batch)

    @contextmanager
    def change(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction of this thread alone, seen by others when it is whole."""
        with self._lock:
            try:
                try:
                    with transaction(self._connection, write=write):
                        yield self._connection
                        if write:
                            self._connection.execute("UPDATE state SET revision = revision + 1")
                except BaseException:
                    if write:
                        self._index.rolled_back()
                    raise
                if write:
                    self._index.committed()
            except sqlite3.Error as error:
                raise unavailable(error, self._path) from None
            except OSError as error:
                raise UnavailableError(
                    f"The vectors of {self._path.name} cannot be written: {error.strerror or error}.",
                    next_step="Make room or check permissions, then try again: nothing was changed.",
                ) from None


def _space_number(connection: sqlite3.Connection, space: VectorSpace) -> int:
    connection.execute("INSERT OR IGNORE INTO space (model, dimensions) VALUES (?, ?)", [space.model, space.dimensions])
    row = connection.execute(
        "SELECT id FROM space WHERE model = ? AND dimensions = ?", [space.model, space.dimensions]
    ).fetchone()
    return int(row[0])


def current_space(connection: sqlite3.Connection) -> SpaceRow | None:
    """The space whose vectors the store is searched by, or None while it holds none."""
    row = connection.execute(
        "SELECT space.id, model, dimensions FROM state JOIN space ON space.id = state.space"
    ).fetchone()
    return None if row is None else SpaceRow(row[0], VectorSpace(row[1], row[2]))


def _without_vector(connection: sqlite3.Connection, space: VectorSpace, limit: int) -> Iterator[tuple[str, str]]:
    """Search hashes and texts of chunks that have no vector in `space`, each text once."""
    rows = connection.execute(
        "SELECT c.hash, c.head, c.body FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM vector v JOIN space s "
        "ON s.id = v.space WHERE v.hash = c.hash AND s.model = ? AND s.dimensions = ?) GROUP BY c.hash LIMIT ?",
        [space.model, space.dimensions, limit],
    )
    for search_hash, head, body in rows:
        yield search_hash.hex(), search_text(head, body, search_hash.hex())


def _remove(
    connection: sqlite3.Connection, collection: Collection, names: Sequence[str]
) -> tuple[int, Sequence[ChunkRow]]:
    """How many documents were there, and the chunks that went with them."""
    removed = 0
    gone: list[ChunkRow] = []
    for name in names:
        row = connection.execute(
            "SELECT id, audience, content_hash FROM document WHERE collection = ? AND name = ?",
            [collection.value, name],
        ).fetchone()
        if row is None:
            continue
        document, audience, content_hash = row
        rows = connection.execute("DELETE FROM chunk WHERE document = ? RETURNING id, hash", [document])
        gone += [ChunkRow(chunk, collection, search_hash.hex(), content_hash) for chunk, search_hash in rows.fetchall()]
        connection.execute("DELETE FROM tag WHERE document = ?", [document])
        connection.execute("DELETE FROM document WHERE id = ?", [document])
        if connection.execute("SELECT 1 FROM document WHERE audience = ? LIMIT 1", [audience]).fetchone() is None:
            connection.execute("DELETE FROM audience WHERE id = ?", [audience])
            connection.execute("DELETE FROM audience_name WHERE audience = ?", [audience])
        removed += 1
    return removed, gone


def _insert(connection: sqlite3.Connection, entry: StoreEntry) -> list[ChunkRow]:
    """The rows of a document; those of its chunks."""
    document = entry.document
    content_hash = entry.version.content_hash
    facets = document.facets
    number = connection.execute(
        "INSERT INTO document (collection, name, title, source, severity, status, classification, time, facets, label, "
        "audience, content_hash, etag) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            document.collection.value,
            document.id,
            document.title,
            document.source,
            facets.severity,
            facets.status,
            facets.classification,
            None if facets.time is None else facets.time.timestamp(),
            json.dumps(facets.to_dict()),
            json.dumps(document.label.to_dict()),
            _audience(connection, document),
            content_hash,
            entry.version.etag,
        ],
    ).lastrowid
    assert number is not None
    tags = {("tactic", tactic) for tactic in facets.tactics}
    for technique in facets.techniques:
        tags |= {("technique", technique.upper()), ("technique", technique.upper().partition(".")[0])}
    connection.executemany("INSERT INTO tag VALUES (?, ?, ?)", [(*tag, number) for tag in sorted(tags)])
    found: list[ChunkRow] = []
    for chunk in entry.chunks:
        row = connection.execute(
            "INSERT INTO chunk (document, number, path, place, head, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                number,
                chunk.number,
                json.dumps(chunk.path),
                chunk.place,
                head_of(chunk),
                chunk.text,
                bytes.fromhex(chunk.search_hash),
            ],
        ).lastrowid
        assert row is not None
        found.append(ChunkRow(row, document.collection, chunk.search_hash, content_hash))
    return found


def _audience(connection: sqlite3.Connection, document: Document) -> int:
    """The number of the document's set of readers."""
    names = json.dumps(sorted(document.readers))
    row = connection.execute("SELECT id FROM audience WHERE names = ?", [names]).fetchone()
    if row is not None:
        return int(row[0])
    number = connection.execute("INSERT INTO audience (names) VALUES (?)", [names]).lastrowid
    assert number is not None
    connection.executemany("INSERT INTO audience_name VALUES (?, ?)", [(name, number) for name in document.readers])
    return number
