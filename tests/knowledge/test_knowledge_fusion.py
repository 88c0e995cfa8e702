"""Two rankings to one: what counts, and what does not."""

from __future__ import annotations

import pytest

from sentinel_rag.knowledge.search import DOCUMENT, WORDS, fused, stretched

APART = {name: name for name in "abcdef"}


def order(words: dict[str, float], meaning: dict[str, float], documents: dict[str, str] | None = None) -> list[str]:
    return [item for item, _ in fused(words, meaning, documents or APART)]


@pytest.mark.requirement("KNOW-3")
def test_what_both_rankings_have_comes_before_what_one_has() -> None:
    assert order({"a": 9.0, "b": 8.0}, {"b": 0.6, "c": 0.59})[0] == "b"
    assert fused({"a": 9.0}, {"a": 0.6}, APART) == [("a", pytest.approx(1.0))]


def test_a_near_miss_is_told_from_one_that_is_far_behind() -> None:
    """By places alone, both questions would have the same answer."""
    meaning = {"b": 0.60, "c": 0.55, "a": 0.20, "d": 0.1}
    assert order({"a": 12.0, "b": 11.9, "d": 1.0}, meaning)[0] == "b"
    assert order({"a": 40.0, "b": 3.0, "d": 1.0}, {"b": 0.60, "a": 0.59, "c": 0.2})[0] == "a"


def test_only_differences_within_a_ranking_count_and_not_its_scale() -> None:
    words, meaning = {"a": 9.0, "b": 7.0, "c": 1.0}, {"c": 0.7, "b": 0.6, "d": 0.1}
    larger = {item: 100 * score + 5_000 for item, score in words.items()}
    assert fused(larger, meaning, APART) == [
        (item, pytest.approx(score)) for item, score in fused(words, meaning, APART)
    ]


def test_a_document_found_by_words_in_one_chunk_and_by_meaning_in_another_is_lifted() -> None:
    words, meaning = {"a": 9.0, "b": 9.0, "f": 1.0}, {"c": 0.6, "d": 0.6, "f": 0.1}
    assert order(words, meaning, APART | {"b": "one", "d": "one"})[:1] == ["d"]
    scores = dict(fused(words, meaning, APART | {"b": "one", "d": "one"}))
    assert scores["d"] - scores["c"] == pytest.approx(DOCUMENT * WORDS)


@pytest.mark.parametrize("first", [True, False])
def test_one_ranking_alone_decides_where_the_other_is_empty(first: bool) -> None:
    ranking = {"b": 3.0, "a": 2.0}
    legs = (ranking, {}) if first else ({}, ranking)
    assert fused(*legs, APART) == [("b", pytest.approx(1.0)), ("a", pytest.approx(1 / 3))]
    assert fused({}, {}, APART) == []


def test_the_last_of_a_ranking_still_counts_more_than_what_it_lacks() -> None:
    assert stretched({"a": 4.0, "b": 2.0}) == {"a": 1.0, "b": pytest.approx(1 / 3)}
    assert stretched({"a": -0.2, "b": -0.2}) == {"a": 1.0, "b": 1.0}
    assert stretched({}) == {}
