"""The writing side of the local store: documents in and out, vectors kept, everything embedded anew.

Each call is one transaction, so that another process finds a document whole or not at all. Several processes may write:
each waits for the other's transaction. Nothing here is done without the `state` row being raised.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.stores.local.schema import open_file, transaction, unavailable
from sentinel_rag.knowledge.stores.port import EmbedTexts, Entry, Vector, VectorSpace, mismatch

_PACK_ABOVE = 4_096
"""Freed slots from which on packing is worth it, if they are also more than the slots in use."""
_AT_ONCE = 500
"""Parameters of one statement."""


class Writing:
    """Changes to the store file at `path`, one at a time. Raises UnavailableError where SQLite or the disk fails."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = open_file(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        wanted = frozenset(search_hashes)
        with self._change(write=False) as connection:
            held = connection.execute(
                "SELECT id FROM space WHERE model = ? AND dimensions = ?", [space.model, space.dimensions]
            ).fetchone()
            return wanted if held is None else wanted.difference(_kept(connection, held[0], wanted))

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        import numpy as np

        with self._change(write=False) as connection:
            held = connection.execute(
                "SELECT id FROM space WHERE model = ? AND dimensions = ?", [space.model, space.dimensions]
            ).fetchone()
            found = {} if held is None else _kept(connection, held[0], search_hashes)
        return {search_hash: np.frombuffer(data, dtype="<f4") for search_hash, data in found.items()}

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        from sentinel_rag.knowledge.stores.unit_vectors import unit

        rows = []
        for search_hash, vector in vectors.items():
            if vector.shape != (space.dimensions,):
                raise ValueError(f"a vector of {space} has the shape {vector.shape}")
            rows.append((bytes.fromhex(search_hash), unit(vector)[0].astype("<f4").tobytes()))
        with self._change() as connection:
            number = _space_number(connection, space)
            connection.executemany(
                "INSERT OR IGNORE INTO vector (space, hash, data) VALUES (?, ?, ?)", [(number, *row) for row in rows]
            )

    def put(self, entries: Sequence[Entry], space: VectorSpace | None) -> None:
        with self._change() as connection:
            number, held = _current_space(connection)
            any_document = connection.execute("SELECT 1 FROM document LIMIT 1").fetchone() is not None
            if held != space and (held is not None or any_document):
                raise mismatch(held, space)
            if space is not None and number is None:
                number = _space_number(connection, space)
                connection.execute("UPDATE state SET space = ?", [number])
            new: list[tuple[int, str]] = []
            for entry in {(each.document.collection, each.document.id): each for each in entries}.values():
                _remove(connection, entry.document.collection, [entry.document.id])
                new += _insert(connection, entry)
            if space is not None and number is not None:
                self._fill_slots(connection, number, space, new)
                self._pack(connection, number, space)

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        with self._change() as connection:
            removed = _remove(connection, collection, list(dict.fromkeys(ids)))
            number, space = _current_space(connection)
            if removed and space is not None and number is not None:
                self._pack(connection, number, space)
            return removed

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int) -> int:
        embedded = 0
        while True:
            with self._change(write=False) as connection:
                texts = dict(_without_vector(connection, space, batch))
            if not texts:
                break
            vectors = embed(list(texts.values()))
            self.keep_vectors(space, dict(zip(texts, vectors, strict=True)))
            embedded += len(texts)
        with self._change() as connection:
            number = _space_number(connection, space)
            # Another process may have put documents since the last look.
            if next(iter(_without_vector(connection, space, 1)), None) is None:
                connection.execute("UPDATE state SET space = ?", [number])
                self._write_array(connection, number, space)
                connection.execute("DELETE FROM vector WHERE space <> ?", [number])
                connection.execute("DELETE FROM space WHERE id <> ?", [number])
                return embedded
        return embedded + self.re_embed(space, embed, batch=batch)

    def repair(self) -> None:
        """Make the array file again if it is lost or was cut."""
        from sentinel_rag.knowledge.stores.local.vector_file import file_of, mapped

        with self._change(write=False) as connection:
            number, space = _current_space(connection)
            file, slots = connection.execute("SELECT file, slots FROM state").fetchone()
        if space is None or mapped(file_of(self._path, file), slots, space.dimensions) is not None:
            return
        with self._change() as connection:
            number, space = _current_space(connection)
            if space is not None and number is not None:
                self._write_array(connection, number, space)

    def _fill_slots(
        self, connection: sqlite3.Connection, number: int, space: VectorSpace, chunks: Sequence[tuple[int, str]]
    ) -> None:
        """Give new chunks (id, search hash) the slots behind the last, and write their vectors there."""
        import numpy as np

        from sentinel_rag.knowledge.stores.local.vector_file import append, file_of

        if not chunks:
            return
        data = _kept(connection, number, {search_hash for _, search_hash in chunks})
        file, slots = connection.execute("SELECT file, slots FROM state").fetchone()
        array = np.frombuffer(b"".join(data[search_hash] for _, search_hash in chunks), dtype="<f4")
        append(file_of(self._path, file), slots, array.reshape(len(chunks), space.dimensions))
        connection.executemany(
            "UPDATE chunk SET slot = ? WHERE id = ?",
            [(slots + place, chunk) for place, (chunk, _) in enumerate(chunks)],
        )
        connection.execute("UPDATE state SET slots = ?", [slots + len(chunks)])

    def _pack(self, connection: sqlite3.Connection, number: int, space: VectorSpace) -> None:
        """Write the array anew without its freed slots, where these are the larger part."""
        slots = connection.execute("SELECT slots FROM state").fetchone()[0]
        used = connection.execute("SELECT count(*) FROM chunk WHERE slot IS NOT NULL").fetchone()[0]
        if slots - used > max(_PACK_ABOVE, used):
            self._write_array(connection, number, space)
            connection.execute("DELETE FROM vector WHERE hash NOT IN (SELECT hash FROM chunk)")

    def _write_array(self, connection: sqlite3.Connection, number: int, space: VectorSpace) -> None:
        """All vectors into an array file of a new number, one slot a chunk. The file before stays for readers of the
        moment before; older ones go."""
        import numpy as np

        from sentinel_rag.knowledge.stores.local.vector_file import append, array_files, file_of

        before = connection.execute("SELECT file FROM state").fetchone()[0]
        fresh = max([before, *(each for each, _ in array_files(self._path))]) + 1
        connection.execute("UPDATE chunk SET slot = NULL")
        slots, packed = 0, list[int]()
        rows = connection.execute(
            "SELECT c.id, v.data FROM chunk c JOIN vector v ON v.hash = c.hash AND v.space = ? ORDER BY c.id", [number]
        )
        while part := rows.fetchmany(_AT_ONCE):
            array = np.frombuffer(b"".join(data for _, data in part), dtype="<f4")
            append(file_of(self._path, fresh), slots, array.reshape(len(part), space.dimensions))
            slots += len(part)
            packed += [chunk for chunk, _ in part]
        connection.executemany("UPDATE chunk SET slot = ? WHERE id = ?", enumerate(packed))
        connection.execute("UPDATE state SET file = ?, slots = ?", [fresh, slots])
        for each, path in array_files(self._path):
            if each < before:
                with suppress(OSError):  # a reader on a system that locks mapped files; the next packing removes it
                    path.unlink()

    @contextmanager
    def _change(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                with transaction(self._connection, write=write):
                    yield self._connection
                    if write:
                        self._connection.execute("UPDATE state SET revision = revision + 1")
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


def _current_space(connection: sqlite3.Connection) -> tuple[int | None, VectorSpace | None]:
    row = connection.execute(
        "SELECT space.id, model, dimensions FROM state JOIN space ON space.id = state.space"
    ).fetchone()
    return (None, None) if row is None else (row[0], VectorSpace(row[1], row[2]))


def _kept(connection: sqlite3.Connection, number: int, search_hashes: SomeOf[str]) -> dict[str, bytes]:
    """The vectors that are kept for these hashes."""
    found: dict[str, bytes] = {}
    hashes = [bytes.fromhex(each) for each in search_hashes]
    for start in range(0, len(hashes), _AT_ONCE):
        part = hashes[start : start + _AT_ONCE]
        rows = connection.execute(
            f"SELECT hash, data FROM vector WHERE space = ? AND hash IN ({', '.join('?' * len(part))})",
            [number, *part],
        )
        found |= {search_hash.hex(): data for search_hash, data in rows}
    return found


def _without_vector(connection: sqlite3.Connection, space: VectorSpace, limit: int) -> Iterator[tuple[str, str]]:
    """Search hashes and texts of chunks that have no vector in `space`, each text once."""
    rows = connection.execute(
        "SELECT c.hash, c.head, c.body FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM vector v JOIN space s "
        "ON s.id = v.space WHERE v.hash = c.hash AND s.model = ? AND s.dimensions = ?) GROUP BY c.hash LIMIT ?",
        [space.model, space.dimensions, limit],
    )
    for search_hash, head, body in rows:
        yield search_hash.hex(), f"{head}\n\n{body}"


def _remove(connection: sqlite3.Connection, collection: Collection, names: Sequence[str]) -> int:
    removed = 0
    for name in names:
        row = connection.execute(
            "SELECT id, audience FROM document WHERE collection = ? AND name = ?", [collection.value, name]
        ).fetchone()
        if row is None:
            continue
        document, audience = row
        connection.execute("DELETE FROM chunk WHERE document = ?", [document])
        connection.execute("DELETE FROM tag WHERE document = ?", [document])
        connection.execute("DELETE FROM document WHERE id = ?", [document])
        if connection.execute("SELECT 1 FROM document WHERE audience = ? LIMIT 1", [audience]).fetchone() is None:
            connection.execute("DELETE FROM audience WHERE id = ?", [audience])
            connection.execute("DELETE FROM audience_name WHERE audience = ?", [audience])
        removed += 1
    return removed


def _insert(connection: sqlite3.Connection, entry: Entry) -> list[tuple[int, str]]:
    """The rows of a document; the ids of its chunks with their search hashes."""
    document = entry.document
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
            entry.version.content_hash,
            entry.version.etag,
        ],
    ).lastrowid
    assert number is not None
    tags = {("tactic", tactic) for tactic in facets.tactics}
    for technique in facets.techniques:
        tags |= {("technique", technique.upper()), ("technique", technique.upper().partition(".")[0])}
    connection.executemany("INSERT INTO tag VALUES (?, ?, ?)", [(*tag, number) for tag in sorted(tags)])
    found: list[tuple[int, str]] = []
    for chunk in entry.chunks:
        head = chunk.search_text.removesuffix(f"\n\n{chunk.text}")
        row = connection.execute(
            "INSERT INTO chunk (document, number, path, place, head, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                number,
                chunk.number,
                json.dumps(chunk.path),
                chunk.place,
                head,
                chunk.text,
                bytes.fromhex(chunk.search_hash),
            ],
        ).lastrowid
        assert row is not None
        found.append((row, chunk.search_hash))
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
