"""Looks into the database: reads that need no transaction of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from sentinel_rag.audit import Database
from sentinel_rag.contracts.errors import UnavailableError

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "journal.sqlite") as opened:
        opened.run_now(lambda connection: connection.execute("CREATE TABLE word (text TEXT)"))
        yield opened


def words(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM word ORDER BY rowid")]


def write(text: str, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO word VALUES (?)", [text])


async def test_a_look_does_not_wait_for_another_process_that_writes(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO word VALUES ('unfinished')")
        assert await database.look(words) == []
        other.execute("COMMIT")
        assert await database.look(words) == ["unfinished"]


async def test_a_look_sees_what_was_submitted_before_it(database: Database) -> None:
    seen: list[list[str]] = []

    async def look() -> None:
        seen.append(await database.look(words))

    async with anyio.create_task_group() as group:
        group.start_soon(database.run, lambda connection: write("first", connection))
        group.start_soon(look)
        group.start_soon(database.run, lambda connection: write("second", connection))
    assert seen[0][:1] == ["first"]


async def test_a_look_into_a_closed_database_is_refused(database: Database) -> None:
    database.close()
    with pytest.raises(UnavailableError, match="is closed"):
        await database.look(words)


async def test_a_look_that_fails_says_so_and_the_next_one_works(database: Database) -> None:
    with pytest.raises(UnavailableError, match="no such table"):
        await database.look(lambda connection: connection.execute("SELECT * FROM nowhere").fetchall())
    assert await database.look(words) == []
