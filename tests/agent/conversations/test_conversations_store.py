"""The file of conversations: what is written is read; it is private, bounded, deletes for good and says what ails."""

from __future__ import annotations

import sqlite3
import stat
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support import fork_server

from sentinel_rag.agent.conversations import store as store_module
from sentinel_rag.agent.conversations.store import (
    ConversationDeletedError,
    ConversationStore,
    StoredConversation,
    StoredTurn,
)
from sentinel_rag.contracts.conversations import CarriedFact, Preferences, Verbosity
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from waiting import WAIT_S

FACT = CarriedFact("Incident 38 is High.", "2024-07-02T10:00:00Z", "query_incidents", "c1", "/rows/0/severity")
TURN = StoredTurn(
    1, "2024-07-02T10:00:00Z", "list open incidents", "answered", "10 incidents match.", (FACT,), {"messages": [1]}
)
WHOLE = StoredConversation(
    "session-0001", Preferences("emea", "Europe/Berlin", Verbosity.SHORT), {"listed": ["38"]}, (FACT,), 0, (TURN,)
)


class Calendar:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2024, 7, 2, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agent" / "conversations.db"


@pytest.fixture
def store(file: Path, calendar: Calendar) -> Iterator[ConversationStore]:
    made = ConversationStore(file, clock=calendar, keep_days=30, keep=3)
    yield made
    made.close()


def _kept(store: ConversationStore) -> list[str]:
    return [entry.conversation_id for entry in store.list()]


def _save(store: ConversationStore, conversation_id: str) -> None:
    store.save(replace(WHOLE, conversation_id=conversation_id), known=False)


def test_what_is_written_is_read_again_by_another_process(store: ConversationStore, file: Path) -> None:
    store.save(WHOLE, known=False)
    later = replace(WHOLE, turns=(replace(TURN, number=2, question="and now? \ud800"),), cleared_turns=1)
    store.save(later, known=True)
    with closing(ConversationStore(file, clock=datetime.now)) as other:
        read = other.load("session-0001")
    assert read == replace(later, turns=(TURN, replace(TURN, number=2, question="and now? ?")))
    (entry,) = store.list()
    assert (entry.title, entry.turns, entry.preferences) == ("list open incidents", 2, WHOLE.preferences)


def test_results_are_kept_and_read_where_they_are_asked_for(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = tuple({"call_id": f"c{n}", "tool": "query_alerts", "result": {"rows": [{"n": n}] * 50}} for n in (1, 2))
    kept = replace(WHOLE, turns=(replace(TURN, results=entries),))
    store.save(kept, known=False)
    assert store.load("session-0001", with_results=True) == kept
    assert store.load("session-0001") == WHOLE
    monkeypatch.setattr(store_module, "MAX_RESULTS", 600)
    store.save(kept, known=True)
    read = store.load("session-0001", with_results=True)
    assert read is not None
    assert read.turns[0].results == entries[:1]


def test_a_conversation_may_begin_with_what_is_no_text(store: ConversationStore) -> None:
    """Half of a surrogate pair, as a paste from a broken program has it."""
    store.save(replace(WHOLE, turns=(replace(TURN, question="\ud800 list \x00 incidents"),)), known=False)
    (entry,) = store.list()
    assert entry.title == "? list \x00 incidents"


def test_only_the_owner_may_read_the_file_and_its_neighbours(store: ConversationStore, file: Path) -> None:
    store.save(WHOLE, known=False)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()} == {0o600}


def test_looking_makes_no_file(store: ConversationStore, file: Path) -> None:
    assert (store.list(), store.count(), store.load("session-0001")) == ((), 0, None)
    with pytest.raises(UsageError, match="No conversation begins"):
        store.find("session")
    assert not file.parent.exists()


def test_an_id_is_found_by_its_beginning(store: ConversationStore) -> None:
    for conversation_id in ("abcd-1111", "abzz-2222"):
        _save(store, conversation_id)
    assert store.find("abc") == "abcd-1111"
    for beginning in ("ab", "x", "", "%", "_"):
        with pytest.raises(UsageError, match=r"begins? with"):
            store.find(beginning)


def test_a_deleted_conversation_leaves_no_byte_of_it(store: ConversationStore, file: Path) -> None:
    secret = "a question about the merger with Contoso"
    store.save(replace(WHOLE, turns=(replace(TURN, question=secret, answer=secret * 300),)), known=False)
    _save(store, "session-0002")
    assert store.delete("session-0001")
    assert not store.delete("session-0001")
    store.close()
    left = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert secret.encode() not in left
    assert b"session-0001" not in left
    assert b"session-0002" in left


def test_a_deleted_conversation_does_not_come_back_by_the_next_turn(store: ConversationStore) -> None:
    store.save(WHOLE, known=False)
    store.delete("session-0001")
    with pytest.raises(ConversationDeletedError):
        store.save(WHOLE, known=True)
    assert _kept(store) == []


def test_the_oldest_go_when_there_are_too_many(store: ConversationStore, calendar: Calendar) -> None:
    for number in range(5):
        calendar.now += timedelta(minutes=1)
        _save(store, f"session-000{number}")
    assert _kept(store) == ["session-0004", "session-0003", "session-0002"]


def test_single_questions_go_before_conversations(store: ConversationStore, calendar: Calendar) -> None:
    store.save(replace(WHOLE, turns=(TURN, replace(TURN, number=2))), known=False)
    for number in range(5):
        calendar.now += timedelta(minutes=1)
        _save(store, f"question-{number}")
    assert _kept(store) == ["question-4", "question-3", "session-0001"]


def test_a_conversation_goes_some_days_after_its_last_question(store: ConversationStore, calendar: Calendar) -> None:
    _save(store, "session-old")
    _save(store, "session-used")
    calendar.now += timedelta(days=20)
    store.save(replace(WHOLE, conversation_id="session-used"), known=True)
    calendar.now += timedelta(days=11)
    _save(store, "session-new")
    assert _kept(store) == ["session-new", "session-used"]


def test_a_locked_file_is_told_and_used_again_once_it_is_free(
    store: ConversationStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "WAIT_FOR_LOCK_S", 0.01)
    store.save(WHOLE, known=False)
    store.close()
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="is locked by another program") as caught:
            store.save(WHOLE, known=True)
        assert "next question tries again" in caught.value.next_step
        other.execute("ROLLBACK")
    other.close()
    store.save(WHOLE, known=True)


@pytest.mark.parametrize("content", [b"this was a database once" * 400, b"SQLite format 3\x00" + b"\xff" * 8_000])
def test_a_damaged_file_is_told_and_left_as_it_is(store: ConversationStore, file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(UnavailableError, match="is damaged"):
        store.save(WHOLE, known=False)
    assert file.read_bytes() == content


def test_damaged_pages_of_a_used_file_are_told(store: ConversationStore, file: Path) -> None:
    store.save(replace(WHOLE, turns=(replace(TURN, answer="x" * 100_000),)), known=False)
    store.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(UnavailableError, match="is damaged"):
        store.load("session-0001")


def test_a_file_of_a_newer_version_is_not_touched(store: ConversationStore, file: Path) -> None:
    store.save(WHOLE, known=False)
    store.close()
    with sqlite3.connect(file) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(UnavailableError, match="newer version"):
        store.load("session-0001")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("a file where the folder should be")
    store = ConversationStore(tmp_path / "agent" / "conversations.db", clock=Calendar())
    with pytest.raises(UnavailableError, match="cannot be opened"):
        store.save(WHOLE, known=False)


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_told_and_what_was_there_stays(store: ConversationStore, file: Path) -> None:
    store.save(WHOLE, known=False)
    store.close()
    program = """
        import resource, sys
        from dataclasses import replace
        from datetime import UTC, datetime
        from pathlib import Path
        from sentinel_rag.agent.conversations.store import ConversationStore, StoredTurn
        from sentinel_rag.contracts.errors import UnavailableError
        store = ConversationStore(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
        whole = store.load("session-0001")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        big = replace(whole, turns=(StoredTurn(2, "2024-07-02T10:00:00Z", "q", "answered", "x" * 1_000_000),))
        try:
            store.save(big, known=True)
        except UnavailableError as error:
            print(error)
        store.save(replace(big, turns=(replace(big.turns[0], answer="small"),)), known=True)
    """
    done = fork_server.run([sys.executable, "-c", textwrap.dedent(program), file], text=True, timeout=WAIT_S)
    assert "cannot be written (is the disk full?)" in done.stdout, done.stderr
    stored = store.load("session-0001")
    assert stored is not None
    assert [turn.answer for turn in stored.turns] == ["10 incidents match.", "small"]


def test_chats_of_several_processes_share_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "WAIT_FOR_LOCK_S", 60.0)  # SQLite gives turns to nobody in particular

    def converse(name: int) -> None:
        store = ConversationStore(file, clock=lambda: datetime.now(UTC))
        for number in range(1, 11):
            turn = replace(TURN, number=number)
            store.save(replace(WHOLE, conversation_id=f"session-{name}", turns=(turn,)), known=number > 1)
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(converse, range(4)))
    with closing(ConversationStore(file, clock=Calendar())) as other:
        entries = other.list()
    assert sorted((entry.conversation_id, entry.turns) for entry in entries) == [(f"session-{n}", 10) for n in range(4)]
