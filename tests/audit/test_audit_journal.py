"""The journal as its owner and its readers see it, and what is left of it after kill -9."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import fork_server
from tests.support.records import call_intent

from sentinel_rag.audit import (
    GENESIS,
    CallOutcome,
    DamagedJournal,
    Database,
    Durability,
    Journal,
    JournalReader,
    OutcomeStatus,
    SessionChanged,
)
from sentinel_rag.contracts.errors import UnavailableError


def outcome(audit_id: str) -> CallOutcome:
    return CallOutcome(audit_id=audit_id, status=OutcomeStatus.SUCCESS, rows=1)


def opened(audit_id: str) -> SessionChanged:
    return SessionChanged(audit_id=audit_id, key_id="key", session_id="session", change="opened")


@pytest.mark.anyio
async def test_a_record_is_there_for_others_once_append_returns(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        journal = Journal(database)
        assert await journal.head() == GENESIS
        head = await journal.append(opened("a"))
        [entry] = JournalReader(database.path).read()
        assert (entry.seq, entry.digest) == (head.seq, head.digest)
        assert entry.record["previous"] == GENESIS.digest.hex()
        assert await journal.find("a") == [entry]
        assert await journal.find("b") == []
        assert (await journal.verify(head)).intact


@pytest.mark.anyio
async def test_what_happens_alongside_is_in_the_same_transaction(tmp_path: Path) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise RuntimeError("no")

    with Database(tmp_path / "j.sqlite") as database:
        journal = Journal(database)
        await journal.append(opened("a"), alongside=lambda connection: connection.execute("CREATE TABLE whole (x)"))
        with pytest.raises(RuntimeError, match="no"):
            await journal.append(opened("b"), alongside=fails)
        tables = await database.run(
            lambda connection: {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        )
        assert "whole" in tables
        assert "half" not in tables
        assert [entry.audit_id for entry in await journal.read()] == ["a"]


@pytest.mark.anyio
async def test_appends_of_one_moment_share_a_commit_and_all_are_kept(tmp_path: Path) -> None:
    with Database(tmp_path / "j.sqlite") as database:
        journal = Journal(database)
        heads = await asyncio.gather(*(journal.append(opened(str(number))) for number in range(500)))
        assert sorted(head.seq for head in heads) == list(range(1, 501))
        verification = await journal.verify()
        assert (verification.intact, verification.records) == (True, 500)


@pytest.mark.anyio
async def test_two_writers_with_one_file_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Database(path) as first, Database(path) as second:
        one, two = Journal(first), Journal(second)
        for number in range(20):
            await asyncio.gather(one.append(opened(f"1-{number}")), two.append(opened(f"2-{number}")))
        verification = await one.verify()
        assert (verification.intact, verification.records) == (True, 40)


@pytest.mark.requirement("AUD-1")
@pytest.mark.anyio
async def test_an_intent_without_an_outcome_reads_as_unknown_and_a_restart_says_so(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Database(path) as database:
        journal = Journal(database)
        await journal.append(call_intent("done"))
        await journal.append(outcome("done"))
        await journal.append(call_intent("cut"))
    assert [entry.outcome for entry in JournalReader(path).read()] == [
        OutcomeStatus.SUCCESS,
        None,
        OutcomeStatus.UNKNOWN,
    ]
    with Database(path) as database:
        journal = Journal(database)
        assert journal.interrupted == 1
        first, second = await journal.find("cut")
        assert (first.kind, first.outcome) == ("intent", OutcomeStatus.UNKNOWN)
        assert (second.kind, second.record["status"]) == ("outcome", "unknown")
        assert (await journal.verify()).intact
    with Database(path) as database:
        assert Journal(database).interrupted == 0


WRITER = """
import asyncio, sys
from pathlib import Path
from sentinel_rag.audit import Database, Durability, Journal, SessionChanged

async def main() -> None:
    with Database(Path(sys.argv[1]), durability=Durability(sys.argv[2])) as database:
        journal = Journal(database)
        async def worker(name: int) -> None:
            for number in range(100_000):
                event = SessionChanged(audit_id=f"{name}-{number}", key_id="k", session_id="s", change="opened")
                head = await journal.append(event)
                print(head.seq, head.digest.hex(), event.audit_id, flush=True)
        await asyncio.gather(*(worker(name) for name in range(8)))

asyncio.run(main())
"""


@pytest.mark.requirement("AUD-3")
@pytest.mark.parametrize("durability", list(Durability))
@pytest.mark.parametrize("after", [1, 57, 400])
def test_kill_9_loses_no_acknowledged_record(tmp_path: Path, durability: Durability, after: int) -> None:
    path = tmp_path / "j.sqlite"
    process = fork_server.Process(
        [sys.executable, "-c", WRITER, str(path), durability.value], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().split() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    rest = [line.split() for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    process.wait()
    reader = JournalReader(path)
    kept = {str(entry.seq): entry for page in range(50) for entry in reader.read(page * 1_000, 1_000)}
    for seq, digest, audit_id in [*acknowledged, *rest]:
        assert (kept[seq].digest.hex(), kept[seq].audit_id) == (digest, audit_id)
    with Database(path, durability=durability) as database:
        asyncio.run(Journal(database).append(opened("after")))
    assert reader.verify().intact


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "j.sqlite"
    previous = os.umask(0)
    try:
        with Database(path) as database:
            asyncio.run(Journal(database).append(opened("a")))
            modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert modes == {0o600}
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(previous)


def test_a_file_that_is_no_journal_a_missing_one_and_a_newer_one_are_named(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"this is not a database, but it is long enough to be taken for one" * 20)
    with pytest.raises(UnavailableError, match="not a journal") as refused:
        Database(foreign)
    assert refused.value.next_step
    with pytest.raises(UnavailableError, match="no audit journal yet"):
        JournalReader(tmp_path / "missing.sqlite").read()
    newer = tmp_path / "newer.sqlite"
    with Database(newer) as database:
        Journal(database)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
        connection.commit()
    with Database(newer) as database, pytest.raises(UnavailableError, match="newer version"):
        Journal(database)


def test_a_locked_file_is_reported_and_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentinel_rag.storage.group_commit.BUSY_MILLISECONDS", 50)
    path = tmp_path / "j.sqlite"
    with Database(path) as database:
        journal = Journal(database)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(UnavailableError, match="locked"):
                asyncio.run(journal.append(opened("a")))
            other.execute("ROLLBACK")
        asyncio.run(journal.append(opened("b")))
        assert [entry.audit_id for entry in JournalReader(path).read()] == ["b"]


def test_a_damaged_record_is_an_error_and_not_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Database(path) as database:
        asyncio.run(Journal(database).append(opened("a")))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE journal SET record = x'7b'")
        connection.commit()
    with pytest.raises(DamagedJournal, match="Record 1"):
        JournalReader(path).read()


def test_a_closed_database_says_so_and_closing_finishes_what_was_submitted(tmp_path: Path) -> None:
    database = Database(tmp_path / "j.sqlite")
    done = threading.Event()
    database.run_now(lambda connection: connection.execute("CREATE TABLE t (x)"))
    waiting = threading.Thread(target=lambda: (database.run_now(lambda c: c.execute("SELECT 1")), done.set()))
    waiting.start()
    waiting.join()
    database.close()
    database.close()
    assert done.is_set()
    with pytest.raises(UnavailableError, match="closed"):
        database.run_now(lambda connection: None)


def test_a_page_ends_before_it_is_too_large_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentinel_rag.audit.reader.MAX_PAGE_BYTES", 1_000)
    path = tmp_path / "j.sqlite"

    async def fill() -> None:
        with Database(path) as database:
            journal = Journal(database)
            for number in range(10):
                await journal.append(opened(f"{number}" * 400))

    asyncio.run(fill())
    reader = JournalReader(path)
    seen: list[int] = []
    while page := reader.read(seen[-1] if seen else 0, 100):
        assert len(page) <= 3
        seen += [entry.seq for entry in page]
    assert seen == list(range(1, 11))
    assert [entry.seq for entry in reader.last(2)] == [9, 10]
