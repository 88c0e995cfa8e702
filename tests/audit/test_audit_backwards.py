"""Reading the journal from its newest record on: in pages, filtered, over segments, and never all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from sentinel_rag.audit import Database, Journal, JournalEntry, JournalReader, RecordFilter, Sealing, SessionChanged
from sentinel_rag.audit import reader as reading

CALLS = 9


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> JournalReader:
    """Records of three sessions by turns, in two segments and the live file."""
    folder = tmp_path_factory.mktemp("journal")
    with (
        Database(folder / "journal.sqlite") as database,
        closing(
            Journal(
                database,
                clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
                sealing=Sealing.of_folder(folder),
                segment_records=10**9,
            )
        ) as journal,
    ):
        for number in range(CALLS):
            event = SessionChanged(
                audit_id=f"a-{number}", key_id=f"key-{number % 2}", session_id=f"session-{number % 3}", change="opened"
            )
            journal.append_now(event)
            if number in (3, 6):
                journal.archive.rotate()
    return JournalReader(folder / "journal.sqlite")


def pages(journal: JournalReader, wanted: RecordFilter, limit: int) -> Iterator[tuple[JournalEntry, ...]]:
    before: int | None = None
    while True:
        found = journal.back(wanted, before, limit)
        yield found.entries
        if found.next_before is None:
            return
        assert before is None or found.next_before < before
        before = found.next_before


@pytest.mark.requirement("AUD-1")
@pytest.mark.parametrize("limit", [1, 2, 5, 1_000])
def test_pages_backwards_are_the_journal_with_no_record_twice_or_left_out(journal: JournalReader, limit: int) -> None:
    every = journal.read(0, 1_000)
    assert len(every) == CALLS + 2  # with what tells of the segments
    told = list(pages(journal, RecordFilter(), limit))
    assert [entry for page in told for entry in page] == every[::-1]
    assert max(map(len, told)) <= limit


@pytest.mark.parametrize(
    ("wanted", "calls"),
    [
        (RecordFilter(session_id="session-1"), [7, 4, 1]),
        (RecordFilter(keys=frozenset({"key-1"})), [7, 5, 3, 1]),
        (RecordFilter(keys=frozenset({"key-1"}), session_id="session-1"), [7, 1]),
        (RecordFilter(kind="session", keys=frozenset({"key-0"})), [8, 6, 4, 2, 0]),
        (RecordFilter(keys=frozenset({"key-9"}), sessions=frozenset({"session-1"})), [7, 4, 1]),
        (RecordFilter(incident="1"), []),
        (RecordFilter(kind="intent"), []),
        (RecordFilter(session_id="session"), []),  # the whole value, not a part of it
    ],
)
def test_a_rare_record_costs_several_short_questions(
    journal: JournalReader, monkeypatch: pytest.MonkeyPatch, wanted: RecordFilter, calls: list[int]
) -> None:
    monkeypatch.setattr(reading, "MAX_LOOKED_AT", 2)
    told = list(pages(journal, wanted, 10))
    assert [entry.audit_id for page in told for entry in page] == [f"a-{number}" for number in calls]
    assert len(told) >= (CALLS + 2) // 2
    monkeypatch.undo()
    assert [len(page) for page in pages(journal, wanted, 10)] == [len(calls)]


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        ({"incident": "127"}, True),
        ({"incident": "1270"}, False),
        ({"comment": "127"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_record_is_of_the_incident_that_its_call_named(arguments: object, accepted: bool) -> None:
    assert RecordFilter(incident="127").accepts({"kind": "intent", "arguments": arguments}) is accepted
