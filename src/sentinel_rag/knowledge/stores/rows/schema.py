"""The tables of the local store, and how its file is opened.

Search text is indexed by FTS5 beside the rows it belongs to. Readers are kept as audiences: a set of names that many
documents share is stored once, so a permission is one comparison for each row; filters read an index and not the rows.
Every write raises `revision`, by which readers know that what they remember is old.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage import begin_write_ahead
from sentinel_rag.storage.sqlite import connect, create_private

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
