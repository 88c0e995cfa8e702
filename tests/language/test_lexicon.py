"""The words of each language are whole, and none says two things that cannot both be."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from sentinel_rag.language.lexicon import LANGUAGES, fold, language_data, lexicon_of, words_in

TABLES = {
    "numbers": 20,
    "fractions": 2,
    "months": 12,
    "time_units": 5,
    "size_units": 1,
    "dates": 6,
    "states": 3,
    "spoken": 3,
    "claims": 27,
    "deeds": 3,
    "acts": 18,
    "outcomes": 17,
    "places": 3,
    "columns": 6,
    "things": 9,
    "orders": 6,
    "scope": 12,
}
CONTRADICTIONS = {
    "universal": {"negative", "not", "exclusive"},
    "least": {"most"},
    "over": {"under"},
    "from": {"to"},
    "i": {"negative", "not"},
}


def words_of(value: Any) -> set[str]:
    """All words of an entry, of whatever depth."""
    if isinstance(value, Mapping):
        return set().union(*map(words_of, value.values())) if value else set()
    return set(words_in(value))


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_language_has_each_table(name: str) -> None:
    data = language_data(name)
    assert set(TABLES) | {"plain", "abbreviations", "zones"} == set(data)
    english = language_data("en")
    for table, least in TABLES.items():
        assert len(data[table]) >= least, table
        if table not in ("numbers", "fractions", "size_units"):
            assert set(data[table]) == set(english[table]), table


@pytest.mark.parametrize("name", LANGUAGES)
def test_no_word_of_a_language_says_two_things_that_exclude_each_other(name: str) -> None:
    data = language_data(name)
    groups = {
        table: set(words_in(words)) for group in ("claims", "deeds", "places") for table, words in data[group].items()
    }
    for table, others in CONTRADICTIONS.items():
        for other in others:
            assert not groups[table] & groups[other], (table, other)
    for table in ("numbers", "fractions", "time_units", "size_units", "months"):
        assert all(isinstance(words, str) for words in data[table].values())
        for (one, first), (two, second) in combinations(data[table].items(), 2):
            assert not set(words_in(first)) & set(words_in(second)), (table, one, two)
    for domain, values in data["states"].items():
        for (one, first), (two, second) in combinations(values.items(), 2):
            assert not set(words_in(first)) & set(words_in(second)), (domain, one, two)
    for first, second in combinations([words_of(data[table]) for table in ("numbers", "fractions", "time_units")], 2):
        assert not first & second


@pytest.mark.parametrize("name", LANGUAGES)
def test_an_entry_holds_words_and_no_pattern(name: str) -> None:
    for table in TABLES:
        for word in words_of(language_data(name)[table]):
            word = word.removesuffix("*") if table == "scope" else word
            assert not set(word) & set("[](){}*+?^$|\\"), word
            assert fold(word) == word


def test_the_words_of_a_sentences_own_language_win() -> None:
    english = lexicon_of(["he", "signed", "in", "once", "from", "the", "new", "address"])
    spanish = lexicon_of(["hay", "once", "alertas", "en", "el", "incidente"])
    assert "once" not in english.numbers
    assert spanish.numbers["once"] == 11
