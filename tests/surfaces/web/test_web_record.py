"""The record of conversations: what a process that ended leaves, its bounds, and damaged files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from running_web import RunningWeb

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.web import SignInTerms
from sentinel_rag.surfaces.web.turns import ConversationRecord, Event, TurnState

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_what_was_being_answered_when_the_process_ended_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "record.sqlite"
    with closing(ConversationRecord(file, clock=lambda: NOW)) as first:
        first.open("c" * 16, "dana", "a question")
        conversation = first.find("c" * 16, "dana")
        assert conversation is not None
        first.begin("t" * 16, conversation, "r-1", "a question")
        done = first.begin("d" * 16, conversation, None, "another")
        first.end(done.turn_id, TurnState.ANSWERED, {"answer": "x"}, [Event("text", {"text": "x"})])
    assert file.stat().st_mode & 0o077 == 0
    with closing(ConversationRecord(file, clock=lambda: NOW)) as second:
        cut_off = second.turn_of_request("r-1", "dana")
        kept = second.turn("d" * 16, "dana")
        assert cut_off is not None
        assert kept is not None
        assert (cut_off.state, cut_off.answer, cut_off.number) == (TurnState.STOPPED, None, 1)
        assert (kept.state, kept.answer, kept.events) == (
            TurnState.ANSWERED,
            {"answer": "x"},
            (Event("text", {"text": "x"}),),
        )
        assert second.turn("d" * 16, "erin") is None


def test_a_turn_that_was_cut_off_is_told_of_as_stopped_over_the_api(web: RunningWeb) -> None:
    dana = web.person("dana-cut-off")
    session_id = dana.ask("say hello")["session_id"]
    conversation = web.web.record.find(session_id, web.accounts["dana-cut-off"].user_id)
    assert conversation is not None
    web.web.record.begin("f" * 24, conversation, "r-cut", "say cut off")
    with web.web.record._records.transaction() as run:
        run.execute("UPDATE turn SET state = 'stopped' WHERE turn_id = ?", ["f" * 24])
    [event] = dana.events("GET", f"/turns/{'f' * 24}/events")
    assert (event["type"], event["data"]["reason"]) == ("error", "stopped")
    again = dana.post("/chat", {"message": "say cut off", "request_id": "r-cut"})
    assert (again.status, again.body["reason"]) == (409, "stopped")
    assert "say cut off" not in [question for _, question in web.analyst.asked]


def test_old_conversations_go_by_the_bounds(tmp_path: Path) -> None:
    now = NOW
    with closing(ConversationRecord(tmp_path / "r.sqlite", clock=lambda: now, keep_days=7)) as record:
        record.open("old-conversation", "dana", "x")
        record.open("of-another-person", "erin", "x")
        now = NOW + timedelta(days=8)
        record.open("new-conversation", "dana", "x" * 500)
        [left] = record.list("dana", 10)
        assert (left.conversation_id, len(left.title)) == ("new-conversation", 80)
        assert record.list("erin", 10) == ()


def test_a_conversation_is_found_by_words_of_its_title_or_a_question(tmp_path: Path) -> None:
    with closing(ConversationRecord(None, clock=lambda: NOW)) as record:
        for conversation_id, person in (("of-dana-of-mail", "dana"), ("of-dana-of-hosts", "dana"), ("of-erin", "erin")):
            record.open(conversation_id, person, f"about {conversation_id}")
        for turn_id, conversation_id, person, question in (
            ("t" * 16, "of-dana-of-hosts", "dana", "Who is on SRV-FILE_01?"),
            ("u" * 16, "of-erin", "erin", "Who is on SRV-FILE_01?"),
        ):
            found = record.find(conversation_id, person)
            assert found is not None
            record.begin(turn_id, found, None, question)
        for words, expected in (
            ("srv-file_01", ["of-dana-of-hosts"]),
            ("MAIL", ["of-dana-of-mail"]),
            ("", ["of-dana-of-hosts", "of-dana-of-mail"]),
            ("srv-fileX01", []),  # no sign of a pattern is one here
            ("%", []),
        ):
            assert sorted(each.conversation_id for each in record.list("dana", 10, words)) == expected, words


def test_words_with_capitals_beyond_ascii_are_found_as_they_were_typed(tmp_path: Path) -> None:
    with closing(ConversationRecord(tmp_path / "record.sqlite", clock=lambda: NOW)) as record:
        record.open("c" * 16, "dana", "What did Åsa Öberg do?")
        assert [each.conversation_id for each in record.list("dana", 10, "Åsa Öberg")] == ["c" * 16]


def test_without_a_file_it_lives_as_long_as_the_process(tmp_path: Path) -> None:
    with closing(ConversationRecord(None, clock=lambda: NOW)) as record:
        record.open("c" * 16, "dana", "x")
        assert len(record.list("dana", 10)) == 1
        record.delete("c" * 16)
        assert record.list("dana", 10) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_conversation_leaves_no_word_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    with closing(ConversationRecord(file, clock=lambda: NOW)) as record:
        record.open("c" * 16, "dana", "the words that go")
        conversation = record.find("c" * 16, "dana")
        assert conversation is not None
        record.begin("t" * 16, conversation, None, "the words that go")
        record.delete("c" * 16)
        assert b"the words that go" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_files_that_are_not_as_they_should_be_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "bad.sqlite").write_text("this is no database" * 100)
    with pytest.raises(UnavailableError, match="is damaged"):
        ConversationRecord(tmp_path / "bad.sqlite", clock=lambda: NOW)
    with closing(ConversationRecord(tmp_path / "new.sqlite", clock=lambda: NOW)):
        pass
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer version"):
        ConversationRecord(tmp_path / "new.sqlite", clock=lambda: NOW)


@pytest.mark.parametrize(
    ("url", "name", "secure"),
    [
        ("https://sentinel.example.com", "sentinel.example.com", True),
        ("https://Sentinel.Example.com:8443", "sentinel.example.com", True),
        ("https://[2001:db8::1]:8443", "2001:db8::1", True),
        ("http://localhost:8080", "localhost", False),
    ],
)
def test_the_public_address_is_a_name_that_the_surface_goes_by(url: str, name: str, secure: bool) -> None:
    terms = SignInTerms(public_url=url)
    assert set(terms.hosts) == {"127.0.0.1", "localhost", "::1", name}
    assert terms.secure is secure
