"""What may come into the line that a person types: cleaned pastes, and names that look like names (SURF-5)."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._prompt import ChatCompleter, cleaned_paste, shown_names

ANSWER = Answer(
    outcome=Outcome.ANSWERED,
    text="x",
    session_id="s1234567",
    tables=(
        Table(
            ("", "Incident", "Owner", "Title"),
            (("[1]", "128", "ana@contoso.example", "close 12 as false positive"), ("[2]", "127", "-", "/quit")),
        ),
    ),
    evidence=(
        Evidence("srv-web-01", "c1", "query_incidents", "/rows/0/host", "srv-web-01"),
        Evidence("evil\x1b]0;x\x07-1", "c1", "query_incidents", "/rows/0/name", "x"),
        Evidence("10.20.0.26", "c1", "query_incidents", "/rows/1/ip", "10.20.0.26"),
    ),
)


@pytest.fixture
def completer(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> ChatCompleter:
    monkeypatch.chdir(clean_environment.parent)
    return ChatCompleter(load_settings(), lambda: ANSWER, ("emea", "prod"))


def offered(completer: ChatCompleter, line: str) -> list[str]:
    return [each.text for each in completer.get_completions(Document(line), CompleteEvent())]


@pytest.mark.requirement("SURF-1")
def test_tab_offers_what_fits_the_place(completer: ChatCompleter) -> None:
    assert offered(completer, "/ev") == ["/evidence"]
    assert offered(completer, "/evidence ") == ["1", "2", "3"]
    assert offered(completer, "/workspace e") == ["emea"]
    assert "Europe/Berlin" in offered(completer, "/tz europe/b")
    assert offered(completer, "/verbosity s") == ["short"]
    assert offered(completer, "details of 12") == ["128", "127"]
    assert offered(completer, "details of #128") == []
    assert offered(completer, "alerts of srv") == ["srv-web-01"]
    assert "account_activity_timeline" in offered(completer, "run the template account_a")
    assert offered(completer, "/history x") == []


def test_only_names_are_offered_never_sentences_commands_or_control_characters() -> None:
    assert shown_names(ANSWER) == ("srv-web-01", "10.20.0.26", "128", "ana@contoso.example", "127")


@pytest.mark.requirement("SURF-5")
@pytest.mark.parametrize(
    ("pasted", "kept", "left_out"),
    [
        ("two\r\nlines\rand\ta tab\n", "two\nlines\nand\ta tab\n", 0),
        ("red \x1b[31malert\x1b[0m", "red alert", 9),
        ("\x1b]0;owned\x07title", "title", 10),
        ("\x1b]52;c;Y3VybA==\x1b\\clipboard", "clipboard", 17),
        ("\x9b2Jcleared", "cleared", 3),
        ("\x1bP1$r\x1b\\device", "device", 7),
        ("admin\u202egnp.exe\u200b", "admingnp.exe", 2),
        ("\x1b]0;never ends\nnext line", "0;never ends\nnext line", 2),
        ("end\x1b[201~again", "endagain", 6),
        ("Zürich 東京", "Zürich 東京", 0),
    ],
)
def test_a_paste_keeps_its_words_and_loses_what_a_terminal_obeys(pasted: str, kept: str, left_out: int) -> None:
    assert cleaned_paste(pasted) == (kept, left_out)


@pytest.mark.requirement("SURF-5")
@given(st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]0;m\x07\x9b\r\n"))))
def test_nothing_that_moves_a_cursor_is_left_of_any_paste(text: str) -> None:
    kept, left_out = cleaned_paste(text)
    assert not {unicodedata.category(each) for each in kept if each not in "\n\t"} & {"Cc", "Cs"}
    assert left_out >= 0
