"""The tables in PostgreSQL, as numbered steps: each brings a schema from one version to the next.

A word's rows are counted in `word`, since BM25 needs to know how rare it is; `kept_vector` holds each text's vector
once, by the hash of the text. The row of `state` is raised by every change, by which readers know that what they
remember is old. The dictionary `stem` has no stop words: a question's words are chosen before.
"""

from __future__ import annotations

import re
from typing import Any

from psycopg import Connection, errors, sql

from sentinel_rag.contracts.errors import UnavailableError

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
