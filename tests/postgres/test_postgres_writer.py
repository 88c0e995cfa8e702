"""The writer in PostgreSQL keeps what the one of a file keeps: order, one transaction for what comes together, and no
job harms another. Its reader pages as the one of a file does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import Journal, JournalReader, RecordConnection, RecordFilter, SessionChanged, StateAway
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.postgres import PostgresDatabase

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-5")]


def insert(number: int, connection: RecordConnection) -> None:
    connection.execute("INSERT INTO t VALUES (?)", [number])


def rows(connection: RecordConnection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT x FROM t ORDER BY rowid").fetchall()]


def newest_transaction(connection: RecordConnection) -> int:
    return int(connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()[0])


@pytest.fixture
def database(postgres_states: EmptyStates, tmp_path: Path) -> Iterator[PostgresDatabase]:
    with PostgresDatabase(postgres_states.fresh(tmp_path)) as opened:
        opened.run_now(lambda connection: connection.execute("CREATE TABLE t (x INTEGER UNIQUE) STRICT"))
        yield opened


async def test_jobs_keep_their_order_and_share_transactions(database: PostgresDatabase) -> None:
    held, go = threading.Event(), threading.Event()

    def hold(_: RecordConnection) -> None:
        held.set()
        go.wait()

    async def one(number: int) -> int:
        return await database.run(lambda connection: (insert(number, connection), newest_transaction(connection))[1])

    first = asyncio.ensure_future(database.run(hold))  # awaited below
    await asyncio.to_thread(held.wait)
    waiting = [asyncio.ensure_future(one(number)) for number in range(40)]
    await asyncio.sleep(0)
    go.set()
    transactions = set(await asyncio.gather(*waiting))
    await first
    assert len(transactions) == 1
    assert database.run_now(rows) == list(range(40))


async def test_a_job_that_fails_harms_no_other(database: PostgresDatabase) -> None:
    def fails(connection: RecordConnection) -> None:
        insert(1_000, connection)
        raise LookupError("mine")

    def violates(connection: RecordConnection) -> None:
        insert(2_000, connection)
        insert(2_000, connection)

    def swallows(connection: RecordConnection) -> str:
        insert(3_000, connection)
        try:
            insert(3_000, connection)
        except psycopg.Error:
            return "as if it had gone well"
        return "no"

    kinds = (fails, violates, swallows)
    results = await asyncio.gather(
        *(database.run(lambda c, n=n: insert(n, c) if n % 4 else kinds[n // 4 % 3](c)) for n in range(120)),
        return_exceptions=True,
    )
    expected = [None if n % 4 else (LookupError, StateAway, StateAway)[n // 4 % 3] for n in range(120)]
    assert [None if result is None else type(result) for result in results] == expected
    assert sorted(database.run_now(rows)) == [n for n in range(120) if n % 4]
    for alone in kinds:
        with pytest.raises((LookupError, StateAway)):
            await database.run(alone)
    assert max(database.run_now(rows)) < 1_000


async def test_what_a_job_puts_is_its_own_and_fails_with_it(database: PostgresDatabase) -> None:
    """A write whose result nobody waits for still counts: with its job, and before the commit."""

    def puts(number: int, connection: RecordConnection) -> str:
        connection.put("INSERT INTO t VALUES (?)", [number])  # type: ignore[attr-defined]
        return "done"

    with pytest.raises(StateAway):
        await asyncio.gather(database.run(lambda c: puts(1, c)), database.run(lambda c: (puts(2, c), puts(2, c))))
    assert database.run_now(rows) == [1]
    with pytest.raises(StateAway):
        await database.run(lambda c: puts(1, c))
    assert await database.run(lambda c: (puts(3, c), rows(c))) == ("done", [1, 3])


async def test_what_is_submitted_before_the_end_is_done_and_nothing_after(
    postgres_states: EmptyStates, tmp_path: Path
) -> None:
    place = postgres_states.fresh(tmp_path)
    database = PostgresDatabase(place)
    database.run_now(lambda connection: connection.execute("CREATE TABLE t (x INTEGER) STRICT"))
    last = asyncio.ensure_future(database.run(lambda connection: insert(7, connection)))
    await asyncio.sleep(0)
    database.close()
    database.close()
    await last
    with pytest.raises(UnavailableError, match="closed"):
        database.run_now(rows)
    with PostgresDatabase(place) as again:
        assert again.run_now(rows) == [7]


async def test_a_schema_of_a_newer_version_is_left_alone(postgres_states: EmptyStates, tmp_path: Path) -> None:
    with PostgresDatabase(postgres_states.fresh(tmp_path)) as database:
        done: list[int] = []
        steps = [lambda _, number=number: done.append(number) for number in range(3)]
        database.migrate("law", steps[:2])
        database.migrate("law", steps)
        assert done == [0, 1, 2]
        with pytest.raises(UnavailableError, match="newer version"):
            database.migrate("law", steps[:2])


async def test_two_that_start_at_once_make_the_tables_once(postgres_states: EmptyStates, tmp_path: Path) -> None:
    place = postgres_states.fresh(tmp_path)
    done: list[int] = []

    def start() -> None:
        with PostgresDatabase(place) as database:
            database.migrate("law", [lambda connection: done.append(connection.execute("SELECT 1").fetchone()[0])])

    await asyncio.gather(*(asyncio.to_thread(start) for _ in range(4)))
    assert done == [1]


@pytest.mark.requirement("AUD-1")
async def test_the_journal_is_read_in_pages_both_ways(postgres_states: EmptyStates, tmp_path: Path) -> None:
    place = postgres_states.place(tmp_path / "state")
    with PostgresDatabase(place) as database, closing(Journal(database)) as journal:
        for number in range(300):
            journal.append_now(
                SessionChanged(audit_id=f"a-{number}", key_id="k", session_id=f"s-{number % 3}", change="opened")
            )
    reader = JournalReader(place)
    every = reader.read(0, 1_000)
    assert [entry.seq for entry in every] == list(range(1, 301))
    assert reader.read(290, 5) == every[290:295]
    assert reader.last(4) == every[-4:]
    assert reader.find("a-17") == [every[17]]
    assert reader.find("a-\x00'; DROP TABLE journal; --") == []
    told, before = [], None
    while True:
        found = reader.back(RecordFilter(session_id="s-1"), before, 7)
        told += found.entries
        if found.next_before is None:
            break
        before = found.next_before
    assert told == [entry for entry in reversed(every) if entry.record["session_id"] == "s-1"]
