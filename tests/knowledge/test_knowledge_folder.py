"""A folder of playbooks and the store that follows it: what goes, goes; what cannot be read now, stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_contract import by_words
from word_embedder import WordEmbedder

from sentinel_rag.knowledge.documents import Collection, FileOutcome
from sentinel_rag.knowledge.ingestion import FolderReport, ingest_folder
from sentinel_rag.knowledge.stores import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "books"
    (made / "cloud").mkdir(parents=True)
    (made / "a.md").write_text("# A\n\napple\n")
    (made / "b.md").write_text("# B\n\nplum\n")
    (made / "cloud" / "c.md").write_text("# C\n\ncherry\n")
    return made


def brought_in(store: LocalStore, folder: Path, *, replaces: bool = True) -> FolderReport:
    return ingest_folder(store, WordEmbedder(), folder, replaces=replaces)


def held(store: LocalStore) -> list[str]:
    return sorted(store.versions(Collection.PLAYBOOKS))


@pytest.mark.requirement("KNOW-2")
def test_the_store_follows_the_folder(store: LocalStore, folder: Path) -> None:
    first = brought_in(store, folder)
    assert (first.ingested.added, first.told) == (3, ())
    assert held(store) == ["a.md", "b.md", "cloud/c.md"]
    (folder / "a.md").write_text("# A\n\napricot\n")
    (folder / "b.md").unlink()
    (folder / "d.md").write_text("# D\n\ndate\n")
    second = brought_in(store, folder)
    counts = second.ingested
    assert (counts.added, counts.changed, counts.unchanged, counts.removed) == (1, 1, 1, 1)
    assert [by_words(store, word) for word in ("apple", "apricot", "plum", "date")] == [[], ["a.md"], [], ["d.md"]]


@pytest.mark.requirement("KNOW-2")
def test_what_the_folder_does_not_hold_stays_unless_the_person_asks(
    store: LocalStore, folder: Path, tmp_path: Path
) -> None:
    brought_in(store, folder)
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.md").write_text("# Mine\n\nquince\n")
    report = brought_in(store, own, replaces=False)
    assert (report.ingested.added, report.ingested.removed, report.beyond) == (1, 0, 3)
    assert held(store) == ["a.md", "b.md", "cloud/c.md", "mine.md"]
    report = brought_in(store, own, replaces=True)
    assert (report.ingested.removed, report.beyond, held(store)) == (3, 0, ["mine.md"])


def test_a_file_that_cannot_be_read_now_keeps_its_version_and_is_told(store: LocalStore, folder: Path) -> None:
    brought_in(store, folder)
    (folder / "a.md").write_bytes(b"half\0written")
    (folder / "notes.docx").write_bytes(b"PK")
    report = brought_in(store, folder)
    assert [(each.source, each.outcome) for each in report.told] == [
        ("a.md", FileOutcome.BROKEN),
        ("notes.docx", FileOutcome.NOT_KNOWN),
    ]
    assert [each.source for each in report.faults] == ["a.md"]
    assert (report.ingested.removed, by_words(store, "apple")) == (0, ["a.md"])


def test_a_file_that_was_emptied_is_gone(store: LocalStore, folder: Path) -> None:
    brought_in(store, folder)
    (folder / "a.md").write_text("")
    report = brought_in(store, folder)
    assert [each.outcome for each in report.faults] == [FileOutcome.EMPTY]
    assert (report.ingested.removed, held(store)) == (1, ["b.md", "cloud/c.md"])


@pytest.mark.parametrize("how", ["absent", "empty"])
def test_a_folder_that_is_away_removes_nothing(store: LocalStore, folder: Path, tmp_path: Path, how: str) -> None:
    """A share that is not mounted is an empty folder, or none."""
    brought_in(store, folder)
    away = tmp_path / "away"
    if how == "empty":
        away.mkdir()
    report = brought_in(store, away)
    assert [each.outcome for each in report.faults] == [FileOutcome.NOTHING_THERE]
    assert (report.ingested.removed, len(held(store))) == (0, 3)
