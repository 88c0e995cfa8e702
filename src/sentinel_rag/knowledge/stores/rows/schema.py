"""The tables of knowledge in SQLite, the conditions over them, and the vectors and slots that they keep."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import EVERYONE, Collection
from sentinel_rag.knowledge.stores.port import VectorSpace, Wanted
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
