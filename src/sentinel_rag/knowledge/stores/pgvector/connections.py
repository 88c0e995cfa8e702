"""Connections to PostgreSQL, the schema of the store, and its values on the wire."""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import psycopg
from psycopg import Connection, errors, sql
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.postgres.connecting import connection_text, said_without, secrets_of

if TYPE_CHECKING:
    from psycopg.abc import Buffer


# The form (pgvector, `vector_send`): two big-endian 16-bit numbers, the dimensions and 0, then a float4 for each.
# PostgreSQL has no NUL in a text; a code point that is no character, and so in no text, stands before its substitute.
_MARK = "\U0010ffff"


def storable(text: str) -> str:
    """The text without NUL; `told` gives it back."""
    return text.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0") if "\0" in text or _MARK in text else text


def told(text: str) -> str:
    """The text that `storable` was given."""
    return text.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK) if _MARK in text else text


def register_vectors(connection: Connection[Any]) -> None:
    """Arrays of shape (dimensions,) go in and come out of columns of the type `vector`, which must be there."""
    info = TypeInfo.fetch(connection, "vector")
    assert info is not None
    # psycopg asks the class for the number of its type, and each database gives `vector` its own.
    connection.adapters.register_dumper(np.ndarray, type("VectorDumper", (_VectorDumper,), {"oid": info.oid}))
    connection.adapters.register_loader(info.oid, _VectorLoader)


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer:
        return struct.pack(">HH", len(obj), 0) + np.asarray(obj, dtype=">f4").tobytes()


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        return np.frombuffer(bytes(data)[4:], dtype=">f4").astype(np.float32)


# A word's rows are counted in `word`, since BM25 needs to know how rare it is; `kept_vector` holds each text's vector
# once, by the hash of the text. The row of `state` is raised by every change, by which readers know that what they
# remember is old. The dictionary `stem` has no stop words: a question's words are chosen before.
OLDEST_EXTENSION = (0, 8)
"""The first pgvector that searches on where a filter lets too little through."""

_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('sentinel-rag knowledge schema', 0))"
"""Held while tables are made, by all schemas alike: that is rare, and it comes before there is anything to lock."""

STEPS = (
    """
CREATE TABLE state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), revision bigint NOT NULL DEFAULT 0, space int,
    chunks bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0, removed bigint NOT NULL DEFAULT 0,
    indexed boolean NOT NULL DEFAULT false);
INSERT INTO state DEFAULT VALUES;
CREATE TABLE space (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, model text NOT NULL, dimensions int NOT NULL,
    UNIQUE (model, dimensions));
CREATE TABLE document (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection text NOT NULL, name text NOT NULL,
    title text NOT NULL, source text NOT NULL, severity text NOT NULL, status text NOT NULL,
    classification text NOT NULL, techniques text[] NOT NULL, tactics text[] NOT NULL, time double precision,
    readers text[] NOT NULL, facets text NOT NULL, label text NOT NULL, content_hash text NOT NULL, etag text NOT NULL,
    chunks int NOT NULL, UNIQUE (collection, name));
CREATE INDEX document_facets ON document (severity, status, classification);
CREATE INDEX document_time ON document (time);
CREATE INDEX document_readers ON document USING gin (readers);
CREATE INDEX document_techniques ON document USING gin (techniques);
CREATE INDEX document_tactics ON document USING gin (tactics);
CREATE TABLE chunk (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document bigint NOT NULL REFERENCES document ON DELETE CASCADE, number int NOT NULL, path text NOT NULL,
    place int NOT NULL, head text NOT NULL, body text NOT NULL, hash bytea NOT NULL, length int NOT NULL,
    words tsvector NOT NULL) WITH (toast_tuple_target = 4080);
CREATE INDEX chunk_document ON chunk (document);
CREATE INDEX chunk_hash ON chunk (hash);
CREATE INDEX chunk_words ON chunk USING gin (words);
CREATE TABLE kept_vector (
    space int NOT NULL REFERENCES space ON DELETE CASCADE, hash bytea NOT NULL, data vector NOT NULL,
    kept timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (hash, space)) WITH (toast_tuple_target = 8160);
ALTER TABLE kept_vector ALTER COLUMN data SET STORAGE MAIN;
CREATE TABLE word (lexeme text COLLATE "C" PRIMARY KEY, chunks bigint NOT NULL) WITH (fillfactor = 70);
CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = snowball, language = english);
CREATE TEXT SEARCH CONFIGURATION stems (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION stems ALTER MAPPING FOR
    asciiword, word, numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart WITH stem;
""",
)


def extension_schema(connection: Connection[Any]) -> str:
    """Where the extension `vector` lies, made where it is allowed. Raises UnavailableError."""
    query = (
        "SELECT extversion, nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE extname = 'vector'"
    )
    row = connection.execute(query).fetchone()
    if row is None:
        try:
            with connection.transaction():
                connection.execute(_ONE_AT_A_TIME)
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except (errors.InsufficientPrivilege, errors.UndefinedFile, errors.FeatureNotSupported):
            raise UnavailableError(
                "The database of the knowledge store lacks the extension vector (pgvector).",
                next_step="Install pgvector 0.8 or newer on its server, then run there: CREATE EXTENSION vector",
            ) from None
        except errors.UniqueViolation:  # someone else made it at the same moment
            pass
        row = connection.execute(query).fetchone()
        assert row is not None
    version, schema = row
    if tuple(int(part) for part in re.findall(r"\d+", str(version))[:2]) < OLDEST_EXTENSION:
        raise UnavailableError(
            f"The database of the knowledge store has pgvector {version}; 0.8 or newer is needed.",
            next_step="Update the extension on its server: ALTER EXTENSION vector UPDATE",
        )
    return str(schema)


def bring_up(connection: Connection[Any], schema: str) -> None:
    """Make the schema's tables, or bring them to this version, by whichever of several processes comes first. The
    search path leads to `schema`. Raises UnavailableError for a schema of a newer version, or of something else."""
    held = _version(connection, schema)
    if held < len(STEPS):
        with connection.transaction():
            connection.execute(_ONE_AT_A_TIME)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            held = _version(connection, schema)
            if held == 0:
                connection.execute("CREATE TABLE schema_version (version int NOT NULL)")
                connection.execute("INSERT INTO schema_version VALUES (0)")
            for step in STEPS[held:]:
                connection.execute(step)
            connection.execute("UPDATE schema_version SET version = %s", [max(held, len(STEPS))])
    if held > len(STEPS):
        raise UnavailableError(
            f"The schema {schema} was written by a newer version of Sentinel RAG (version {held}, known is "
            f"{len(STEPS)}).",
            next_step="Install the newer version, or name another schema: SENTINEL_KNOWLEDGE_SCHEMA.",
        )


def _version(connection: Connection[Any], schema: str) -> int:
    """0 for a schema without tables of ours."""
    names = {
        name
        for (name,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename IN ('schema_version', 'document')",
            [schema],
        )
    }
    if names == {"document"}:
        raise UnavailableError(
            f"The schema {schema} holds tables of something else.",
            next_step="Name another schema: SENTINEL_KNOWLEDGE_SCHEMA.",
        )
    if "schema_version" not in names:
        return 0
    row = connection.execute(
        sql.SQL("SELECT version FROM {}").format(sql.Identifier(schema, "schema_version"))
    ).fetchone()
    return 0 if row is None else int(row[0])


T = TypeVar("T")
# A connection that was lost is replaced and the work is done once more: a transaction is whole or not at all, and what
# the store does may be done twice. Whatever fails is said in a sentence that holds no password and no row.
Work = Callable[[Connection[Any]], T]

MOST_CONNECTIONS = 4
CONNECT_S = 10
READ_S = 30
WRITE_S = 600
LOCK_S = 30
_KEEPALIVES = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


class PgvectorPool:
    """Connections to the database at `url` whose search path is `schema`; the tables are made by the first. Raises
    UnavailableError where it cannot be reached or used."""

    def __init__(self, url: str, schema: str) -> None:
        self._schema = schema
        self._secrets = secrets_of(url)
        self._conninfo = connection_text(url, _KEEPALIVES, setting="SENTINEL_KNOWLEDGE_URL")
        self._free: list[Connection[Any]] = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False
        with self._told():
            connection = self._connect(make=True)
        self._free.append(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def read(self, work: Work[T]) -> T:
        """What `work` returns, all of whose queries see one moment."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._run(work, f"{begin}; SET LOCAL statement_timeout = '{READ_S}s'")

    def write(self, work: Work[T], *, alone: bool = True) -> T:
        """What `work` returns; its changes are made whole or, on an error, not at all. `alone`: no other process
        changes documents meanwhile."""
        begin = f"BEGIN; SET LOCAL statement_timeout = '{WRITE_S}s'; SET LOCAL lock_timeout = '{LOCK_S}s'"

        def locked(connection: Connection[Any]) -> T:
            if alone:
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 6))", [self._schema])
            return work(connection)

        return self._run(locked, begin)

    def _run(self, work: Work[T], begin: str) -> T:
        if not self._room.acquire(timeout=READ_S):
            raise UnavailableError(
                "All connections to the knowledge store are busy.", next_step="Ask again when less is going on."
            )
        try:
            with self._told():
                try:
                    return self._once(work, begin)
                except _LostError:
                    return self._once(work, begin)
        finally:
            self._room.release()

    def _once(self, work: Work[T], begin: str) -> T:
        with self._lock:
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = self._connect()
        try:
            connection.execute(begin)
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            if connection.broken or isinstance(error, errors.AdminShutdown):
                self._drop(connection)
                if isinstance(error, psycopg.Error):
                    raise _LostError(str(error)) from error
            else:
                self._give_back(connection)
                if isinstance(error, errors.DeadlockDetected | errors.SerializationFailure):
                    raise _LostError(str(error)) from error
            raise
        self._give_back(connection)
        return result

    def _give_back(self, connection: Connection[Any]) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.close()

    def _drop(self, connection: Connection[Any]) -> None:
        """This one and those that wait: what ended one has most likely ended all."""
        with self._lock:
            lost, self._free = [connection, *self._free], []
        for each in lost:
            with suppress(psycopg.Error):
                each.close()

    def _connect(self, *, make: bool = False) -> Connection[Any]:
        # Nothing is prepared: plans must fit each filter, and poolers in between know no prepared statements.
        connection = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=CONNECT_S, prepare_threshold=None)
        try:
            extension = extension_schema(connection)
            connection.execute(
                sql.SQL("SET search_path TO {}, {}").format(sql.Identifier(self._schema), sql.Identifier(extension))
            )
            connection.execute("SET client_min_messages = warning")
            if make:
                bring_up(connection, self._schema)
            register_vectors(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """PostgreSQL's errors as sentences for a person."""
        try:
            yield
        except errors.QueryCanceled:
            raise UnavailableError(
                "The knowledge store in PostgreSQL took too long and was interrupted.",
                next_step="Ask again when its server is less busy, or narrow the question.",
            ) from None
        except errors.LockNotAvailable:
            raise UnavailableError(
                "The knowledge store in PostgreSQL is being written by another process.",
                next_step="Wait for it to end, then try again.",
            ) from None
        except (errors.DiskFull, errors.OutOfMemory):
            raise UnavailableError(
                "The server of the knowledge store has no room left; nothing was changed.",
                next_step="Make room there, then ingest again: it goes on.",
            ) from None
        except errors.InsufficientPrivilege as error:
            raise UnavailableError(
                f"PostgreSQL refuses this to the knowledge store's user: {said_without(self._secrets, error)}.",
                next_step="Grant it the schema SENTINEL_KNOWLEDGE_SCHEMA, or create that as its owner.",
            ) from None
        except (_LostError, psycopg.OperationalError) as error:
            raise UnavailableError(
                f"The knowledge store in PostgreSQL cannot be reached: {said_without(self._secrets, error)}.",
                next_step="Check that its server runs, and SENTINEL_KNOWLEDGE_URL.",
            ) from None
        except psycopg.Error as error:
            raise UnavailableError(
                f"The knowledge store in PostgreSQL cannot be used: {said_without(self._secrets, error)}.",
                next_step="Check the schema SENTINEL_KNOWLEDGE_SCHEMA and the log of its server.",
            ) from None


class _LostError(Exception):
    """The connection, or the transaction, ended under the work."""
