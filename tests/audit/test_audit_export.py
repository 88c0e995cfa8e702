"""An exported file proves itself with the public key alone, and every change of it is found."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel_rag.audit import (
    Database,
    Exported,
    Journal,
    JournalReader,
    PublicKey,
    Sealing,
    SessionChanged,
    SigningKey,
    Verification,
    export_records,
    verify_export,
)
from sentinel_rag.contracts.errors import UnavailableError

START = datetime(2026, 1, 1, tzinfo=UTC)
JOURNAL = "journal.sqlite"


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """Each record is one hour after the one before."""
    hours = iter(range(10_000))
    sealing = Sealing.of_folder(folder)
    with (
        Database(folder / JOURNAL) as database,
        closing(Journal(database, clock=lambda: START + timedelta(hours=next(hours)), sealing=sealing)) as journal,
    ):
        yield journal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records 1 to 20, sealed after 6, 12 and 20, the first 12 in a segment; record 13 says so."""
    with open_journal(tmp_path) as journal:
        for number in range(1, 20):
            journal.append_now(
                SessionChanged(audit_id=f"größe {number}\n", key_id="k", session_id="s", change="opened")
            )
            if number == 6:
                journal.seal_now()
            if number == 12:
                journal.archive.rotate()
    return tmp_path


def export(folder: Path, since: datetime | None = None, until: datetime | None = None) -> tuple[bytes, Exported]:
    target = io.BytesIO()
    done = export_records(folder / JOURNAL, target, since=since, until=until)
    return target.getvalue(), done


def check(content: bytes, folder: Path) -> Verification:
    return verify_export(io.BytesIO(content), PublicKey.load(folder / "audit-signing.pub"))


def records(content: bytes) -> list[int]:
    return [json.loads(line)["seq"] for line in content.splitlines() if b'"kind"' in line]


def at(folder: Path, seq: int) -> datetime:
    [entry] = JournalReader(folder / JOURNAL).read(seq - 1, 1)
    return datetime.fromisoformat(entry.record["at"])


@pytest.mark.requirement("AUD-2")
def test_the_whole_journal_exported_proves_itself(folder: Path) -> None:
    content, done = export(folder)
    assert (done.records, done.first, done.head.seq, done.sealed) == (20, 1, 20, 20)
    found = check(content, folder)
    assert (found.intact, found.first, found.records, found.sealed, found.unsealed) == (True, 1, 20, 20, 0)
    assert found.head == JournalReader(folder / JOURNAL).verify().head
    kept = [entry.record for entry in JournalReader(folder / JOURNAL).read(0, 100)]
    assert [json.loads(line) for line in content.splitlines() if b'"kind"' in line] == kept


def test_a_window_goes_on_to_the_checkpoint_that_proves_it(folder: Path) -> None:
    content, done = export(folder, since=at(folder, 3), until=at(folder, 5))
    assert records(content) == [3, 4, 5, 6]
    assert (done.first, done.sealed) == (3, 6)
    found = check(content, folder)
    assert (found.intact, found.first, found.head.seq, found.unsealed) == (True, 3, 6, 0)
    content, done = export(folder, since=at(folder, 15))
    assert records(content) == list(range(15, 21))
    content, done = export(folder, since=at(folder, 20) + timedelta(days=1))
    assert (done.records, done.first, records(content)) == (0, None, [])
    assert check(content, folder).intact
    assert export(folder, until=START - timedelta(days=1))[1].records == 0


def test_records_without_a_checkpoint_are_exported_and_counted(folder: Path) -> None:
    with Database(folder / JOURNAL) as database:
        journal = Journal(database)
        for number in range(3):
            journal.append_now(SessionChanged(audit_id=f"late {number}", key_id="k", session_id="s", change="opened"))
    content, done = export(folder)
    assert (done.head.seq, done.sealed) == (23, 20)
    assert check(content, folder).unsealed == 3


@pytest.mark.requirement("AUD-2")
def test_every_change_of_an_exported_file_is_found(folder: Path, tmp_path: Path) -> None:
    content, _ = export(folder)
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines):
        without = lines[:number] + lines[number + 1 :]
        twice = [*lines[: number + 1], *lines[number:]]
        swapped = [*lines[:number], *reversed(lines[number : number + 2]), *lines[number + 2 :]]
        edited = [*lines[:number], line.replace(b'"v":1', b'"v":2'), *lines[number + 1 :]]
        garbled = [*lines[:number], b"{nothing\n", *lines[number + 1 :]]
        cut = lines[:number]
        for changed in (without, twice, swapped, edited, garbled, cut):
            if changed == lines or (changed == twice and b'"checkpoint"' in line):
                continue  # the same proof said twice takes nothing away
            found = check(b"".join(changed), folder)
            if changed == without and b'"checkpoint"' in line:
                # What it alone proved is called unsealed; the next checkpoint proves what the others did.
                assert (found.intact, found.unsealed > 0) == (True, number == len(lines) - 2)
            else:
                assert not found.intact, (number, changed)
                assert found.problem


def test_an_export_signed_by_nobody_or_by_another_proves_nothing(folder: Path, tmp_path: Path) -> None:
    content, _ = export(folder)
    bare = b"".join(line for line in content.splitlines(keepends=True) if b'"checkpoint"' not in line)
    assert "no checkpoint" in check(bare, folder).problem
    other = tmp_path / "other"
    other.mkdir()
    found = verify_export(io.BytesIO(content), SigningKey.open(other).public)
    assert (found.intact, "another key" in found.problem) == (False, True)
    for nonsense in (b"", b"[]\n", b"hello\n", b"\xff\xfe\n", b'{"export":{"v":99}}\n', b"null\n"):
        assert not check(nonsense, folder).intact


def test_there_is_nothing_to_export_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no audit journal yet"):
        export(tmp_path)
