"""The writing side of the rows: documents in and out, vectors kept, everything embedded anew.

Each call is one transaction, so that another process finds a document whole or not at all. Several processes may write:
each waits for the other's transaction. Nothing here is done without the `state` row being raised.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.chunking import head_of, search_text
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.stores.port import RE_EMBED_BATCH, EmbedTexts, StoreEntry, Vector, VectorSpace, mismatch
from sentinel_rag.knowledge.stores.rows.schema import (
    ChunkRow,
    SpaceRow,
    VectorIndex,
    kept_vectors,
    open_file,
    transaction,
    unavailable,
)


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
