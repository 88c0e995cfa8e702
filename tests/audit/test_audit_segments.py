"""Rotation and retention: readers see one journal, the chain stays provable, and no step is one that must not fail."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support import fork_server
from tests.support.records import call_intent

from sentinel_rag.audit import (
    CallOutcome,
    DamagedJournal,
    Database,
    Journal,
    JournalEntry,
    JournalReader,
    OutcomeStatus,
    RecordFilter,
    Sealing,
    SessionChanged,
    Verification,
)
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.sqlite import exclusive
from waiting import WAIT_S

START = datetime(2026, 1, 1, tzinfo=UTC)


class Calendar:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def opened(audit_id: str, session_id: str = "session") -> SessionChanged:
    return SessionChanged(audit_id=audit_id, key_id="key", session_id=session_id, change="opened")


@contextmanager
def open_journal(folder: Path, clock: Calendar | None = None, *, segment_records: int = 10**9) -> Iterator[Journal]:
    folder.mkdir(exist_ok=True)
    with (
        Database(folder / "journal.sqlite") as database,
        closing(
            Journal(
                database,
                clock=clock or Calendar(),
                sealing=Sealing.of_folder(folder),
                segment_records=segment_records,
            )
        ) as journal,
    ):
        yield journal


def reader(folder: Path) -> JournalReader:
    return JournalReader(folder / "journal.sqlite")


def live_rows(folder: Path) -> list[int]:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
        return [row[0] for row in connection.execute("SELECT seq FROM journal ORDER BY seq")]


def test_reading_looks_through_segments(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.append_now(call_intent("across"))
        journal.append_now(call_intent("cut"))
        first = journal.archive.rotate()
        assert first is not None
        assert (first.first, first.last) == (1, 2)
        journal.append_now(CallOutcome(audit_id="across", status=OutcomeStatus.SUCCESS, rows=1))
        second = journal.archive.rotate()
        assert second is not None
        assert (second.first, second.last) == (3, 4)
        journal.append_now(opened("live", "other"))
    found = reader(tmp_path)
    assert live_rows(tmp_path) == [5, 6]
    entries = found.read(0, 100)
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert [entry.outcome for entry in entries[:2]] == [OutcomeStatus.SUCCESS, OutcomeStatus.UNKNOWN]
    assert [entry.kind for entry in found.find("across")] == ["intent", "outcome"]
    assert found.read(1, 3) == entries[1:4]
    assert found.last(4) == entries[2:]
    assert [entry.seq for entry in found.search(RecordFilter(tool="query_incidents"), 10)] == [1, 2]
    assert [entry.seq for entry in found.search(RecordFilter(session_id="other"), 10)] == [6]
    for segment in (first, second):
        assert (tmp_path / "segments" / segment.file).stat().st_mode & 0o077 == 0


def test_a_call_that_is_open_while_its_intent_moves_is_still_closed_by_the_next_start(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.append_now(call_intent("cut"))
        journal.archive.rotate()
    with open_journal(tmp_path) as journal:
        assert journal.interrupted == 1
    assert [entry.outcome for entry in reader(tmp_path).find("cut")] == [OutcomeStatus.UNKNOWN, None]


@pytest.mark.requirement("AUD-2")
def test_pruning_removes_whole_old_segments_and_says_so_under_a_signature(tmp_path: Path) -> None:
    clock = Calendar()
    with open_journal(tmp_path, clock) as journal:
        for month in range(4):
            clock.now = START + timedelta(days=30 * month)
            for number in range(3):
                journal.append_now(opened(f"{month}-{number}"))
            journal.archive.rotate()
        clock.now = START + timedelta(days=100)
        assert journal.archive.prune(START - timedelta(days=1)) == []
        gone = journal.archive.prune(clock.now - timedelta(days=50))
        assert [(segment.first, segment.last) for segment in gone] == [(1, 3), (4, 7)]
        assert journal.archive.prune(clock.now - timedelta(days=50)) == []
    found = reader(tmp_path).verify()
    assert (found.intact, found.first, found.pruned_through, found.unsealed) == (True, 8, 7, 0)
    kept = reader(tmp_path).read(0, 100)
    assert kept[0].seq == 8
    assert kept[-1].record["kind"] == "pruned"
    assert (kept[-1].record["first"], kept[-1].record["through"]) == (1, 7)
    assert sorted(path.name for path in (tmp_path / "segments").glob("*.sqlite")) == [
        "000000000008-000000000011.sqlite",
        "000000000012-000000000015.sqlite",
    ]
    # Until nothing but the live file is left; then it goes on.
    with open_journal(tmp_path, clock) as journal:
        journal.archive.rotate()
        journal.archive.prune(clock.now + timedelta(days=1))
        journal.append_now(opened("after"))
    found = reader(tmp_path).verify()
    assert (found.intact, found.pruned_through) == (True, 17)
    assert list((tmp_path / "segments").glob("*.sqlite")) == []
    with open_journal(tmp_path, clock) as journal:
        assert journal.archive.rotate() is not None
    assert reader(tmp_path).verify().intact


def test_a_running_journal_begins_new_segments_by_itself(tmp_path: Path) -> None:
    async def append(journal: Journal, first: int, count: int) -> None:
        await asyncio.gather(*(journal.append(opened(f"{number}")) for number in range(first, first + count)))

    with open_journal(tmp_path, segment_records=100) as journal:
        asyncio.run(append(journal, 0, 150))
        while not journal.archive.segments():
            asyncio.run(append(journal, 1_000, 10))
            journal.seal_now()
        asyncio.run(append(journal, 2_000, 20))
    found = reader(tmp_path).verify()
    assert found.intact, found.problem
    seen: list[int] = []
    while page := reader(tmp_path).read(seen[-1] if seen else 0, 1_000):
        seen += [entry.seq for entry in page]
    assert seen == list(range(1, found.records + 1))


def test_verify_beside_rotation_and_pruning_never_cries_wolf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentinel_rag.audit.files.STREAM_PAGE", 3)
    done = threading.Event()
    found: list[Verification] = []

    def verify() -> None:
        while not done.is_set():
            found.append(reader(tmp_path).verify())

    with open_journal(tmp_path) as journal:
        journal.append_now(opened("first"))
        watcher = threading.Thread(target=verify)
        watcher.start()
        for turn in range(12):
            for number in range(5):
                journal.append_now(opened(f"{turn}-{number}"))
            journal.archive.rotate()
            if turn % 3 == 2:
                journal.archive.prune(START + timedelta(days=1))
        done.set()
        watcher.join()
    assert [verification.problem for verification in found if not verification.intact] == []
    assert reader(tmp_path).verify().pruned_through > 60


def test_one_moves_at_a_time_and_the_other_is_told(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.append_now(opened("a"))
        (tmp_path / "segments").mkdir()
        lock = exclusive(tmp_path / "segments" / "moving.lock")
        assert lock is not None
        with closing(lock), pytest.raises(UnavailableError, match="right now"):
            journal.archive.rotate()
        assert journal.archive.rotate() is not None


def test_an_empty_journal_has_nothing_to_move_and_a_gap_is_not_moved(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        assert journal.archive.rotate() is None
        for number in range(5):
            journal.append_now(opened(f"{number}"))
        with closing(sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)) as connection:
            connection.execute("DELETE FROM journal WHERE seq = 3")
        with pytest.raises(DamagedJournal, match="missing"):
            journal.archive.rotate()
        assert live_rows(tmp_path) == [1, 2, 4, 5]


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir(parents=True)
    foreign = tmp_path / "segments" / "notes.sqlite"
    foreign.write_text("mine")
    with open_journal(tmp_path) as journal:
        journal.append_now(opened("a"))
        journal.archive.rotate()
        journal.archive.prune(START + timedelta(days=9_999))
    assert foreign.read_text() == "mine"


MOVER = """
import os, signal, sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from sentinel_rag.audit import Database, Journal, Sealing, files, journal as writing

folder, stop_at = Path(sys.argv[1]), int(sys.argv[2])
files.DELETE_ROWS = 4
lines = 0

def count(frame, event, argument):
    global lines
    if frame.f_code.co_filename not in (writing.__file__, files.__file__):
        return None
    lines += event == "line"
    if lines == stop_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return count

with Database(folder / "journal.sqlite") as database:
    with closing(Journal(database, sealing=Sealing.of_folder(folder))) as journal:
        sys.settrace(count)
        journal.archive.rotate()
        journal.archive.prune(datetime(9999, 1, 1, tzinfo=UTC))
        sys.settrace(None)
print(lines)
"""
KILLS = 12


def move(folder: Path, stop_at: int) -> subprocess.CompletedProcess[str]:
    return fork_server.run([sys.executable, "-c", MOVER, str(folder), str(stop_at)], text=True, timeout=WAIT_S)


@pytest.mark.requirement("AUD-3")
def test_kill_9_at_any_line_of_rotation_and_pruning_loses_nothing(tmp_path: Path) -> None:
    """A segment exists already, so that pruning has something at once; then the process dies at every n-th line."""
    whole = tmp_path / "whole"
    with open_journal(whole) as journal:
        for number in range(5):
            journal.append_now(opened(f"old-{number}"))
        journal.archive.rotate()
        for number in range(9):
            journal.append_now(opened(f"new-{number}"))
    all_records = reader(whole).read(0, 100)
    rehearsal = tmp_path / "rehearsal"
    shutil.copytree(whole, rehearsal)
    total = int(move(rehearsal, -1).stdout)
    assert reader(rehearsal).verify().pruned_through == 15
    for kill in range(KILLS):
        stop_at = 1 + kill * total // KILLS
        folder = tmp_path / f"at-{stop_at}"
        shutil.copytree(whole, folder)
        assert move(folder, stop_at).returncode == -signal.SIGKILL
        check_what_is_left(folder, all_records, f"killed at line {stop_at} of {total}")
        # The next start finishes, and the work can be done again.
        assert move(folder, -1).returncode == 0
        check_what_is_left(folder, all_records, f"after line {stop_at} of {total}, gone on")
        files = {path.name for path in (folder / "segments").iterdir()}
        assert files == {"moving.lock"}, stop_at


def check_what_is_left(folder: Path, all_records: list[JournalEntry], when: str) -> None:
    found = reader(folder).verify()
    assert found.intact, f"{when}: {found.problem}"
    kept = reader(folder).read(0, 100)
    assert kept[0].seq == found.pruned_through + 1, when
    # What is gone was pruned; everything else is there, unchanged.
    old = [entry for entry in kept if entry.seq <= len(all_records)]
    assert old == all_records[found.pruned_through :], when
