"""Whatever a text or a number is, PostgreSQL keeps it and finds it as SQLite does, and it is never a piece of SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import RecordConnection
from sentinel_rag.storage.postgres import PostgresDatabase

HOSTILE = (
    "\x00",
    "\x01",
    "\x010",
    "\x011\x00",
    "'; DROP TABLE text_law; --",
    "$1",
    "%s",
    "?",
    "\\",
    "E'\\x00'",
    "\u202e\ufeff",
    "\ud800",
    "x" * 70_000,
)
texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=30), st.text(st.sampled_from("\x00\x0101'?$%"), max_size=9)
)
numbers = st.one_of(st.integers(-(2**63) - 2, 2**63 + 2), st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1]))
COLUMNS = "CREATE TABLE text_law (name TEXT PRIMARY KEY, number INTEGER NOT NULL, content BLOB NOT NULL) STRICT"


@pytest.fixture(scope="module")
def database(postgres_states: EmptyStates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresDatabase]:
    with PostgresDatabase(postgres_states.fresh(tmp_path_factory.mktemp("law"))) as opened:
        opened.run_now(lambda connection: connection.execute(COLUMNS))
        yield opened


def written(connection: RecordConnection, name: str, number: int, content: bytes) -> object:
    """What a store sees that writes a row and reads it back; the kind of error where it cannot."""
    try:
        connection.execute("DELETE FROM text_law", [])
        first = connection.execute(
            "INSERT INTO text_law VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [name, number, content]
        ).rowcount
        again = connection.execute(
            "INSERT INTO text_law VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [name, number, content]
        ).rowcount
        found = connection.execute("SELECT name, number, content FROM text_law WHERE name = ?", [name]).fetchall()
        other = connection.execute("SELECT count(*) FROM text_law WHERE name = ?", [name + "x"]).fetchone()
        total = connection.execute("SELECT count(*) FROM text_law").fetchone()
    except (UnicodeEncodeError, OverflowError) as error:
        return type(error)
    return first, again, found, tuple(other), tuple(total)


@pytest.mark.requirement("OPS-5")
@settings(max_examples=60)
@given(texts, numbers, st.binary(max_size=40))
def test_a_row_comes_back_as_it_was_written_or_is_refused_as_sqlite_refuses_it(
    database: PostgresDatabase, name: str, number: int, content: bytes
) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as local:
        local.execute(COLUMNS)
        expected = written(local, name, number, content)
    assert database.run_now(lambda connection: written(connection, name, number, content)) == expected
