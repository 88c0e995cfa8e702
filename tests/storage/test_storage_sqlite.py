"""Files of SQLite: how each is opened, and who else uses a state folder."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import fork_server

from sentinel_rag.audit import Instance, JournalReader, OutcomeStatus
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store import open_state
from sentinel_rag.gateway.store.keys import KeyFile
from sentinel_rag.gateway.store.state import INSTANCES_FOLDER, JOURNAL_FILE
from sentinel_rag.knowledge.stores.rows import open_file
from sentinel_rag.storage import RecordFile, begin_write_ahead, sqlite
from sentinel_rag.storage.group_commit import Database


def opened_records(path: Path) -> None:
    records = RecordFile(path, [lambda run: run.execute("CREATE TABLE kept (x)")], what="The test's file", busy_s=1.0)
    try:
        with records.transaction() as run:
            run.execute("INSERT INTO kept VALUES (1)")
    finally:
        records.close()


STORES: dict[str, Callable[[Path], None]] = {
    "records": opened_records,
    "journal": lambda path: Database(path).close(),
    "keys": lambda path: KeyFile(path).connection.close(),
    "knowledge": lambda path: open_file(path).close(),
}


class Hours:
    """The time for whoever waits: it passes while they sleep, and `then` happens once they have slept `after` times."""

    def __init__(self, after: int, then: Callable[[], object]) -> None:
        self.slept = 0
        self._after = after
        self._then = then

    def monotonic(self) -> float:
        return self.slept * sqlite.PAUSE_S

    def sleep(self, _: float) -> None:
        self.slept += 1
        if self.slept == self._after:
            self._then()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program, which has begun to make the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        path.chmod(0o600)
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.mark.parametrize("store", STORES)
def test_whoever_comes_second_waits_for_the_first(
    store: str, path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(3, lambda: writer.execute("ROLLBACK"))
    monkeypatch.setattr(sqlite, "time", hours)
    STORES[store](path)
    assert hours.slept == 3
    with closing(sqlite3.connect(path)) as afterwards:
        assert afterwards.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_stays_locked_is_told_after_the_wait(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours(-1, writer.commit)
    monkeypatch.setattr(sqlite, "time", hours)
    with pytest.raises(UnavailableError, match="The test's file is locked by another program"):
        opened_records(path)
    assert hours.slept == 1.0 / sqlite.PAUSE_S


def test_another_fault_is_told_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Hours(-1, lambda: None)
    monkeypatch.setattr(sqlite, "time", hours)
    path.write_bytes(b"no database at all, but long enough to be read as the head of one" * 20)
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.DatabaseError, match="not a database"):
        begin_write_ahead(connection)
    assert hours.slept == 0


OTHER = """
import asyncio, sys
from pathlib import Path
from sentinel_rag.audit import SessionChanged
from sentinel_rag.gateway.store import open_state
from tests.support.records import call_intent

with open_state(Path(sys.argv[1])) as state:
    asyncio.run(state.journal.append(call_intent("theirs")))
    print(state.instance.instance_id, flush=True)
    for line in sys.stdin:
        for number in range(int(line)):
            asyncio.run(state.journal.append(
                SessionChanged(audit_id=f"theirs-{number}", key_id="k", session_id="s", change="opened")
            ))
        print("done", flush=True)
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    process = fork_server.Process(
        [sys.executable, "-c", OTHER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def outcome_of(folder: Path, audit_id: str) -> OutcomeStatus | None:
    return JournalReader(folder / JOURNAL_FILE).find(audit_id)[0].outcome


@pytest.mark.requirement("AUD-1")
def test_a_call_of_a_process_that_runs_is_left_alone_and_one_that_died_is_closed(tmp_path: Path) -> None:
    process, name = start(tmp_path)
    try:
        with open_state(tmp_path) as state:
            assert state.journal.interrupted == 0
            assert state.instance.is_live(name)
            assert not state.instance.alone()
            assert len(JournalReader(tmp_path / JOURNAL_FILE).find("theirs")) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open_state(tmp_path) as state:
            assert state.journal.interrupted == 1
            assert not state.instance.is_live(name)
            assert state.instance.alone()
        assert outcome_of(tmp_path, "theirs") is OutcomeStatus.UNKNOWN
        assert len(JournalReader(tmp_path / JOURNAL_FILE).find("theirs")) == 2
        assert list((tmp_path / INSTANCES_FOLDER).iterdir()) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.requirement("AUD-2")
def test_two_processes_that_write_at_once_make_one_sealed_chain(tmp_path: Path) -> None:
    process, _ = start(tmp_path)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with open_state(tmp_path) as state:

            async def append(count: int) -> None:
                for number in range(count):
                    await state.sessions.claim(f"ours-{number}", "key")

            process.stdin.write("400\n")
            process.stdin.flush()
            asyncio.run(append(400))
            assert process.stdout.readline() == "done\n"
            found = JournalReader(tmp_path / JOURNAL_FILE).verify()
            assert found.intact, found.problem
            assert found.records == 801
    finally:
        process.kill()
        process.communicate()


def test_who_died_is_told_to_one_only(tmp_path: Path) -> None:
    source = "import sys; from pathlib import Path; from sentinel_rag.audit import Instance; "
    source += "i = Instance(Path(sys.argv[1])); print(i.instance_id, flush=True); sys.stdin.read()"
    process = fork_server.Process(
        [sys.executable, "-c", source, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    with Instance(tmp_path) as one, Instance(tmp_path) as two:
        assert one.take_over() == two.take_over() == ()
        assert one.is_live(two.instance_id)
        process.kill()
        process.communicate()
        assert sorted([one.take_over(), two.take_over()]) == [(), (name,)]
        two.close()
        assert one.alone()
        assert not one.is_live(two.instance_id)
