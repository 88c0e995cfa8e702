"""A new file that another process is just making is waited for, whichever store it belongs to.

SQLite refuses the change to its write-ahead log at once where another connection writes, whatever wait is set. So of
two programs that began at the same moment in a new home, one said that its file was locked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store.key_file import KeyFile
from sentinel_rag.knowledge.stores.rows.schema import open_file
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
