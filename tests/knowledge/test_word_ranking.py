"""The ranking by words of the stores that keep rows in SQLite: what counts more, and what takes no place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_contract import document, put

from sentinel_rag.knowledge.question_words import query_terms, word_pairs
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import LocalStore, Wanted


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


def test_telling_words_side_by_side_are_pairs() -> None:
    assert word_pairs("Copied from the Domain Controller, domain controller") == (
        ("domain", "controller"),
        ("controller", "domain"),
    )
    assert word_pairs("who is it") == ()
    assert len(word_pairs(" ".join(f"w{n}" for n in range(500)))) == 48
    assert query_terms("srv-file-01 is the file server") == (
        "srv-file-01",
        "srv",
        "file",
        "server",
        "srv file",
        "file 01",
        "file server",
    )


@pytest.mark.requirement("KNOW-3")
def test_words_side_by_side_and_words_of_headings_count_more(store: LocalStore) -> None:
    put(store, document("parted", "The domain of the house is run by a controller."), model=None)
    put(store, document("phrase", "The house is run by its domain controller, too."), model=None)
    assert KnowledgeSearch(store, None).search("domain controller", Wanted()).hits[0].chunk.document_id == "phrase"
    put(store, document("text", "Retention of logs."), document("retention", "Of logs, what else."), model=None)
    assert KnowledgeSearch(store, None).search("retention", Wanted()).hits[0].chunk.document_id == "retention"


def test_a_question_without_filters_is_ranked_as_with_one_that_lets_all_through(store: LocalStore) -> None:
    """The two are asked of SQLite in different ways; what a caller may not read takes no place in either."""
    secret = {"readers": frozenset({"tier3"})}
    put(
        store,
        *(document(f"open{n}", f"mailbox rule {'x ' * n}") for n in range(12)),
        *(document(f"secret{n}", "mailbox rule mailbox rule", **secret) for n in range(30)),
        model=None,
    )
    found = store.by_words("mailbox rule", Wanted(), 10)
    assert len(found) == 10
    chunks = store.load([each.key for each in found], frozenset())
    assert [chunk.document_id for chunk in chunks] == [f"open{n}" for n in range(10)]
    for readers in (frozenset[str](), frozenset({"tier3"})):
        for limit in (1, 5, 12, 42, 100):
            broad = store.by_words("mailbox rule", Wanted(readers=readers), limit)
            filtered = store.by_words("mailbox rule", Wanted(readers=readers, severities=frozenset({""})), limit)
            assert broad == filtered
