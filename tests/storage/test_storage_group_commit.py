"""How jobs become durable: in the loop's own thread where that cannot wait, else in the writer's; and never out of
order."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from sentinel_rag.audit import Database, Durability
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage import group_commit


def where(connection: sqlite3.Connection) -> int:
    assert connection.in_transaction
    return threading.get_ident()


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE t (x INTEGER)")


def insert(number: int, connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO t VALUES (?)", [number])


def rows(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT x FROM t ORDER BY rowid")]


@pytest.mark.anyio
async def test_a_commit_needs_no_other_thread_unless_it_waits_for_the_disk(tmp_path: Path) -> None:
    with Database(tmp_path / "process.sqlite") as database:
        assert await database.run(where) == threading.get_ident()
    with Database(tmp_path / "power.sqlite", durability=Durability.POWER) as database:
        assert await database.run(where) != threading.get_ident()


@pytest.mark.anyio
async def test_what_is_submitted_in_one_turn_is_one_transaction(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database, closing(sqlite3.connect(database.path)) as other:
        await database.run(table)

        def version() -> int:
            return int(other.execute("PRAGMA data_version").fetchone()[0])

        seen: set[int] = set()

        async def one(number: int) -> None:
            await database.run(lambda connection: insert(number, connection))
            seen.add(version())

        version()
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(one, number)
        assert len(seen) == 1
        assert sorted(await database.run(rows)) == list(range(40))


@pytest.mark.anyio
async def test_the_loop_goes_on_while_another_process_writes(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        await database.run(table)
        with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            done: list[int] = []

            async def write(number: int) -> None:
                await database.run(lambda connection: insert(number, connection))
                done.append(number)

            async with anyio.create_task_group() as group:
                group.start_soon(write, 1)
                for _ in range(50):
                    await anyio.lowlevel.checkpoint()
                group.start_soon(write, 2)  # behind the first, which waits: it must not overtake it
                for _ in range(50):
                    await anyio.lowlevel.checkpoint()
                assert done == []
                other.execute("ROLLBACK")
            assert await database.run(rows) == [1, 2]
            # And once nothing waits any more, the loop's own thread commits again.
            assert await database.run(where) == threading.get_ident()


@pytest.mark.anyio
async def test_a_job_whose_caller_has_gone_is_done_and_in_its_place(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        await database.run(table)
        with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as group:

                async def intent() -> None:
                    await database.run(lambda connection: insert(1, connection))

                group.start_soon(intent)
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            other.execute("ROLLBACK")
        await database.run(lambda connection: insert(2, connection))
        assert await database.run(rows) == [1, 2]


@pytest.mark.anyio
@pytest.mark.parametrize("durability", list(Durability))
async def test_a_job_that_fails_harms_no_other(tmp_path: Path, durability: Durability) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        insert(99, connection)
        raise LookupError("mine")

    with Database(tmp_path / "j.sqlite", durability=durability) as database:
        await database.run(table)
        results = await asyncio.gather(
            *(database.run(lambda c, n=number: fails(c) if n % 3 == 0 else insert(n, c)) for number in range(200)),
            return_exceptions=True,
        )
        assert [isinstance(result, LookupError) for result in results] == [n % 3 == 0 for n in range(200)]
        assert sorted(await database.run(rows)) == [n for n in range(200) if n % 3]
        with pytest.raises(LookupError):
            await database.run(fails)
        assert 99 not in await database.run(rows)


def test_loops_and_threads_share_one_file(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        database.run_now(table)

        async def many(base: int) -> None:
            await asyncio.gather(*(database.run(lambda c, n=n: insert(base + n, c)) for n in range(100)))

        def plain(base: int) -> None:
            for number in range(50):
                database.run_now(lambda c, n=number: insert(base + n, c))

        threads = [threading.Thread(target=asyncio.run, args=[many(base)]) for base in (0, 1_000, 2_000)]
        threads += [threading.Thread(target=plain, args=[base]) for base in (10_000, 20_000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(database.run_now(rows))) == 400


@pytest.mark.anyio
async def test_a_full_disk_is_an_error_and_not_a_loss(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        await database.run(table)
        pages = await database.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await database.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 2}"))
        stored = 0
        with pytest.raises(UnavailableError, match="full") as refused:
            for stored in range(100_000):  # noqa: B007  # its last value is what fitted
                await database.run(lambda c: c.execute("INSERT INTO t VALUES (zeroblob(500))"))
        assert refused.value.next_step
        assert len(await database.run(rows)) == stored


@pytest.mark.anyio
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_removed_under_way_is_noticed(tmp_path: Path, replaced: bool) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        await database.run(table)
        database.path.unlink()
        if replaced:
            database.path.write_bytes(b"")
        with pytest.raises(UnavailableError, match="removed or replaced"):
            await database.run(lambda connection: insert(1, connection))
        with pytest.raises(UnavailableError, match="removed or replaced"):
            await anyio.to_thread.run_sync(database.run_now, rows)
        if replaced:
            database.path.unlink()


def test_the_upkeep_of_a_file_that_was_taken_away_ends_with_its_database_and_not_before(tmp_path: Path) -> None:
    """An error of its thread would fail this test; a file that comes back is looked after again."""
    path = tmp_path / "j.sqlite"
    with closing(sqlite3.connect(tmp_path / "other.sqlite", check_same_thread=False)) as connection:
        upkeep = group_commit.WalUpkeep(path, connection, threading.Lock())
        upkeep.committed(group_commit.AFTER_JOBS)
        with closing(sqlite3.connect(path)) as made:
            made.execute("PRAGMA journal_mode = WAL")
        upkeep.committed(group_commit.AFTER_JOBS)
        upkeep.close()


@pytest.mark.anyio
async def test_the_log_stays_small_however_much_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "AFTER_JOBS", 100)
    with Database(tmp_path / "j.sqlite") as database:
        await database.run(table)
        log = tmp_path / "j.sqlite-wal"
        most = 0
        for _ in range(3_000):  # without upkeep about 24 MB
            await database.run(lambda c: c.execute("INSERT INTO t VALUES (zeroblob(1000))"))
            most = max(most, os.stat(log).st_size)
        assert most < 12_000_000
        assert len(await database.run(rows)) == 3_000


def test_a_database_closed_in_its_own_loop_keeps_what_was_submitted(tmp_path: Path) -> None:
    database = Database(tmp_path / "j.sqlite")
    database.run_now(table)

    async def submit_and_close() -> None:
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(database.run(lambda c, n=n: insert(n, c))) for n in range(5)]
            await asyncio.sleep(0)
            database.close()
        assert all(job.done() for job in jobs)
        with pytest.raises(UnavailableError, match="closed"):
            await database.run(rows)

    asyncio.run(submit_and_close())
    with Database(tmp_path / "j.sqlite") as again:
        assert again.run_now(rows) == [0, 1, 2, 3, 4]
