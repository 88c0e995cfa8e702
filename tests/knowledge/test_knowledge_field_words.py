"""The list of the field's own words: that it is well made, and that a question finds what it holds in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from store_contract import document, put

from sentinel_rag.knowledge.question_words import field_words, meanings_of
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import LocalStore, Wanted


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


def lines() -> list[str]:
    text = (files("sentinel_rag.knowledge") / "field_words.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_each_line_is_terms_and_a_meaning_and_no_term_is_there_twice() -> None:
    terms = []
    for line in lines():
        said, meaning = line.split("\t")
        assert said == said.strip(), line
        assert meaning, line
        assert meaning == meaning.strip(), line
        terms += said.split(", ")
    assert all(term and term == " ".join(term.split()) for term in terms)
    assert sorted({term.casefold() for term in terms}) == sorted(term.casefold() for term in terms)
    assert len(field_words()) == len(terms) > 350


def test_a_meaning_says_more_than_its_term() -> None:
    for term, meaning in field_words().items():
        assert meanings_of(f"what is {term}?")[:1] == (meaning,), term
        assert set(re.findall(r"\w+", meaning.casefold())) - set(re.findall(r"\w+", term)), term


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("Event ID: 4769 with encryption type 0x17", "Kerberos service ticket requested"),
        ("EventID=1102 on the server", "security event log cleared"),
        ("eid 104", "security event log cleared"),
        ("a 4625 every second", "failed logon, wrong password"),
        ("logon\ntype  10 at night", "remote desktop, RDP"),
        ("RUNDLL32.EXE comsvcs.dll", "LSASS memory dump, credential dumping"),
        ("files on ADMIN$", "administrative shares, SMB"),
        ("New-InboxRule by the user", "mailbox rule created, email hiding or forwarding"),
    ],
)
def test_terms_are_found_as_people_write_them(question: str, meaning: str) -> None:
    assert meaning in meanings_of(question)


@pytest.mark.parametrize(
    "question", ["14625 users", "54624", "the sambar", "800 mails of 104 senders", "", "dcs", "rats"]
)
def test_numbers_and_parts_of_words_mean_nothing(question: str) -> None:
    assert meanings_of(question) == ()


def test_a_long_question_is_not_drowned_in_meanings() -> None:
    everything = " ".join(field_words())
    assert len(meanings_of(everything)) == 8


@pytest.mark.requirement("KNOW-3")
def test_a_question_in_words_of_logs_finds_a_text_in_words_of_people(store: LocalStore) -> None:
    put(
        store,
        document("tickets", "Somebody asks for a service ticket of Kerberos."),
        document("mail", "Somebody asks for a refund by mail."),
        model=None,
    )
    hits = KnowledgeSearch(store, None).search("4769", Wanted()).hits
    assert [hit.chunk.document_id for hit in hits] == ["tickets"]
    assert hits[0].why.words == ()
