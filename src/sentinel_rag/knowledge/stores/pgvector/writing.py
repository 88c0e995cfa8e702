"""The writing side: each change is one transaction, and those that change documents wait for one another.

Vectors lie under the hash of their text, so they are kept before the documents that need them and outlive them for a
while. From `exact_below` chunks on, an HNSW index is built over those of the store's space. Nothing of documents is
changed without the row of `state` being raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from psycopg import Connection

from sentinel_rag.knowledge.chunking import head_of, search_text
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.pgvector.connections import PgvectorPool, storable, told
from sentinel_rag.knowledge.stores.pgvector.reading import filter_text, moment, words_of
from sentinel_rag.knowledge.stores.port import RE_EMBED_BATCH, EmbedTexts, StoreEntry, Vector, VectorSpace, mismatch
from sentinel_rag.knowledge.stores.vector_arrays import unit

MOST_INDEXED_DIMENSIONS = 2_000
"""An HNSW index of pgvector takes no more; larger vectors are compared one by one."""
_TIDY_ABOVE = 4_096
"""Removed chunks from which on unused vectors are looked for, if they are also more than the chunks in use."""


class PgvectorWriter:
    """Changes to the database. Raises UnavailableError."""

    def __init__(self, connections: PgvectorPool, *, exact_below: int) -> None:
        self._connections = connections
        self._exact_below = exact_below

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        rows = []
        for search_hash, vector in sorted(vectors.items()):  # in one order, so that two who keep the same never wait
            if vector.shape != (space.dimensions,):
                raise ValueError(f"a vector of {space} has the shape {vector.shape}")
            rows.append((bytes.fromhex(search_hash), unit(vector)[0]))

        def work(connection: Connection[Any]) -> None:
            number = _space_number(connection, space)
            connection.cursor().executemany(
                f"INSERT INTO kept_vector (space, hash, data) VALUES ({number}, %s, %s) ON CONFLICT DO NOTHING", rows
            )

        self._connections.write(work, alone=False)

    def put(self, entries: Sequence[StoreEntry], space: VectorSpace | None) -> None:
        latest = {(each.document.collection, each.document.id): each for each in entries}

        def work(connection: Connection[Any]) -> None:
            held = moment(connection)
            any_document = connection.execute("SELECT 1 FROM document LIMIT 1").fetchone() is not None
            if held.space != space and (held.space is not None or any_document):
                raise mismatch(held.space, space)
            if space is not None:
                number = _space_number(connection, space)
                connection.execute("UPDATE state SET space = %s", [number])
                _require_vectors(connection, number, latest.values())
            for collection in Collection:
                _remove(connection, collection, [name for of, name in latest if of is collection])
            _insert(connection, list(latest.values()))
            _tidy(connection)
            self._index(connection)
            _raise_revision(connection)

        self._connections.write(work)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        names = list(dict.fromkeys(ids))

        def work(connection: Connection[Any]) -> int:
            removed = _remove(connection, collection, names)
            if removed:
                _tidy(connection)
                _raise_revision(connection)
            return removed

        return self._connections.write(work)

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = RE_EMBED_BATCH) -> int:
        embedded = 0
        while True:
            after = b""
            while texts := self._without_vector(space, after, batch):
                vectors = embed(list(texts.values()))
                self.keep_vectors(space, dict(zip(texts, vectors, strict=True)))
                embedded += len(texts)
                after = bytes.fromhex(max(texts))
            if self._connections.write(lambda connection: self._take_over(connection, space)):
                return embedded

    def _without_vector(self, space: VectorSpace, after: bytes, batch: int) -> Mapping[str, str]:
        """Search hashes, behind `after`, and texts of chunks that have no vector in `space`, each text once."""

        def work(connection: Connection[Any]) -> Mapping[str, str]:
            return dict(_without_vector(connection, space, after, batch))

        return self._connections.read(work)

    def _take_over(self, connection: Connection[Any], space: VectorSpace) -> bool:
        """Make `space` the store's; False if another process put documents that lack its vectors meanwhile."""
        number = _space_number(connection, space)
        if next(_without_vector(connection, space, b"", 1), None) is not None:
            return False
        held = moment(connection).number
        if held is not None and held != number:
            connection.execute(f"DROP INDEX IF EXISTS vector_near_{held}")
            connection.execute("UPDATE state SET indexed = false")
        connection.execute("UPDATE state SET space = %s", [number])
        connection.execute("DELETE FROM kept_vector WHERE space <> %s", [number])
        connection.execute("DELETE FROM space WHERE id <> %s", [number])
        self._index(connection)
        _raise_revision(connection)
        return True

    def _index(self, connection: Connection[Any]) -> None:
        """Build the HNSW index of the store's space, once there are so many chunks that comparing all is slow."""
        now = moment(connection)
        if now.space is None or now.indexed or now.chunks <= self._exact_below:
            return
        if now.space.dimensions > MOST_INDEXED_DIMENSIONS:
            return
        connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '256MB'")
        # Of unit vectors the inner product ranks as the cosine does, and is the cheaper.
        connection.execute(
            f"CREATE INDEX IF NOT EXISTS vector_near_{now.number} ON kept_vector "
            f"USING hnsw ((data::vector({now.space.dimensions})) vector_ip_ops) "
            f"WITH (ef_construction = 100) WHERE space = {now.number}"
        )
        connection.execute("UPDATE state SET indexed = true")


def _raise_revision(connection: Connection[Any]) -> None:
    connection.execute("UPDATE state SET revision = revision + 1")


def _space_number(connection: Connection[Any], space: VectorSpace) -> int:
    query = "SELECT id FROM space WHERE model = %s AND dimensions = %s"
    values = [space.model, space.dimensions]
    row = connection.execute(query, values).fetchone()
    if row is None:
        connection.execute("INSERT INTO space (model, dimensions) VALUES (%s, %s) ON CONFLICT DO NOTHING", values)
        row = connection.execute(query, values).fetchone()
    assert row is not None
    return int(row[0])


def _require_vectors(connection: Connection[Any], number: int, entries: Iterable[StoreEntry]) -> None:
    """KeyError with a search hash for which no vector is kept."""
    hashes = {bytes.fromhex(chunk.search_hash) for entry in entries for chunk in entry.chunks}
    row = connection.execute(
        "SELECT hash FROM unnest(%s::bytea[]) AS asked (hash) WHERE NOT EXISTS "
        "(SELECT FROM kept_vector v WHERE v.space = %s AND v.hash = asked.hash) LIMIT 1",
        [list(hashes), number],
    ).fetchone()
    if row is not None:
        raise KeyError(bytes(row[0]).hex())


def _remove(connection: Connection[Any], collection: Collection, names: Sequence[str]) -> int:
    """Take documents out, with their share of the counts."""
    if not names:
        return 0
    rows = connection.execute(
        "SELECT id, chunks FROM document WHERE collection = %s AND name = ANY(%s)",
        [collection.value, [storable(name) for name in names]],
    ).fetchall()
    documents = [number for number, _ in rows]
    if not documents:
        return 0
    connection.execute(
        "UPDATE word w SET chunks = w.chunks - gone.chunks FROM (SELECT lexeme, count(*) AS chunks "
        "FROM chunk, unnest(words) WHERE document = ANY(%s) GROUP BY lexeme) gone WHERE w.lexeme = gone.lexeme",
        [documents],
    )
    connection.execute("DELETE FROM word WHERE chunks <= 0")
    connection.execute(
        "UPDATE state SET chunks = state.chunks - gone.chunks, words = state.words - gone.words, "
        "removed = removed + gone.chunks FROM (SELECT count(*) AS chunks, coalesce(sum(length), 0) AS words "
        "FROM chunk WHERE document = ANY(%s)) gone",
        [documents],
    )
    connection.execute("DELETE FROM document WHERE id = ANY(%s)", [documents])
    return len(documents)


def _insert(connection: Connection[Any], entries: Sequence[StoreEntry]) -> None:
    cursor = connection.cursor()
    numbers: list[int] = []
    cursor.executemany(
        "INSERT INTO document (collection, name, title, source, severity, status, classification, techniques, tactics, "
        "time, readers, facets, label, content_hash, etag, chunks) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
        [_document_row(entry) for entry in entries],
        returning=True,
    )
    for _ in entries:
        row = cursor.fetchone()
        assert row is not None
        numbers.append(row[0])
        cursor.nextset()
    connection.cursor().executemany(
        "INSERT INTO chunk (document, number, path, place, head, body, hash, length, words) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, "
        "setweight(to_tsvector('stems', %s), 'A') || to_tsvector('stems', %s))",
        [row for number, entry in zip(numbers, entries, strict=True) for row in _chunk_rows(number, entry)],
    )
    connection.execute(
        "INSERT INTO word (lexeme, chunks) SELECT lexeme, count(*) FROM chunk, unnest(words) "
        "WHERE document = ANY(%s) GROUP BY lexeme ON CONFLICT (lexeme) DO UPDATE SET "
        "chunks = word.chunks + excluded.chunks",
        [numbers],
    )
    connection.execute(
        "UPDATE state SET chunks = state.chunks + new.chunks, words = state.words + new.words FROM (SELECT count(*) "
        "AS chunks, coalesce(sum(length), 0) AS words FROM chunk WHERE document = ANY(%s)) new",
        [numbers],
    )


def _document_row(entry: StoreEntry) -> tuple[object, ...]:
    document = entry.document
    facets = document.facets
    techniques = {each.upper() for each in facets.techniques}
    return (
        document.collection.value,
        storable(document.id),
        storable(document.title),
        storable(document.source),
        filter_text(facets.severity),
        filter_text(facets.status),
        filter_text(facets.classification),
        sorted(storable(each) for each in techniques | {each.partition(".")[0] for each in techniques}),
        sorted(set(map(storable, facets.tactics))),
        None if facets.time is None else facets.time.timestamp(),
        sorted(map(storable, document.readers)),
        json.dumps(facets.to_dict()),
        json.dumps(document.label.to_dict()),
        entry.version.content_hash,
        storable(entry.version.etag),
        len(entry.chunks),
    )


def _chunk_rows(document: int, entry: StoreEntry) -> Iterator[tuple[object, ...]]:
    for chunk in entry.chunks:
        head, body = words_of(head_of(chunk)), words_of(chunk.text)
        yield (
            document,
            chunk.number,
            json.dumps(chunk.path),
            chunk.place,
            storable(head_of(chunk)),
            storable(chunk.text),
            bytes.fromhex(chunk.search_hash),
            len(head) + len(body),
            " ".join(head),
            " ".join(body),
        )


def _without_vector(
    connection: Connection[Any], space: VectorSpace, after: bytes, limit: int
) -> Iterator[tuple[str, str]]:
    rows = connection.execute(
        "SELECT DISTINCT ON (c.hash) c.hash, c.head, c.body FROM chunk c WHERE c.hash > %s AND NOT EXISTS "
        "(SELECT FROM kept_vector v JOIN space s ON s.id = v.space WHERE v.hash = c.hash AND s.model = %s "
        "AND s.dimensions = %s) ORDER BY c.hash LIMIT %s",
        [after, space.model, space.dimensions, limit],
    ).fetchall()
    for search_hash, head, body in rows:
        name = bytes(search_hash).hex()
        yield name, search_text(told(head), told(body), name)


def _tidy(connection: Connection[Any]) -> None:
    """Take out vectors that no chunk has, where many chunks went. Those of the last day stay: documents that need them
    may be about to come."""
    row = connection.execute("SELECT removed > greatest(%s, chunks) FROM state", [_TIDY_ABOVE]).fetchone()
    assert row is not None
    if row[0]:
        connection.execute(
            "DELETE FROM kept_vector v WHERE v.kept < now() - interval '1 day' AND NOT EXISTS "
            "(SELECT FROM chunk c WHERE c.hash = v.hash)"
        )
        connection.execute("UPDATE state SET removed = 0")
