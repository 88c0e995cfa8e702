"""The words of human languages, as data: `words/LANGUAGE.toml` holds one language, another file is another language.

A word of one language may mean something else in another (Spanish `once`). So the words of a sentence's own language
win: `lexicon_of` guesses it by its ordinary words, and takes all languages together where it cannot.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sentinel_rag.language.text import toml_beside

LANGUAGES = ("en", "de", "es", "fr")
CANONICAL = {
    "severity": ("High", "Medium", "Low", "Informational"),
    "status": ("New", "Active", "Closed", "Resolved", "InProgress"),
    "classification": ("TruePositive", "FalsePositive", "BenignPositive", "Undetermined"),
}
"""Values of Sentinel's enumerations, which stand in rows as they are in any language."""
_INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\u00ad")
)
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "đ": "d", "Đ": "d", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe"}
)


def fold(text: str) -> str:
    """The text without case, accents, and invisible characters; its length may change."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text.translate(_INVISIBLE).translate(_LETTERS))
    return "".join(each for each in text if not unicodedata.combining(each)).casefold()


@dataclass(frozen=True)
class Lexicon:
    """Words of one or more languages, folded. `claims` are sets of words by the name of their table."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    fractions: Mapping[str, float] = field(default_factory=dict)
    time_units: Mapping[str, int] = field(default_factory=dict)
    size_units: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """A word with the states that it may say, each as domain and value."""
    spoken: Mapping[str, tuple[tuple[tuple[str, ...], str, str], ...]] = field(default_factory=dict)
    """Phrases by their first word: all words, domain, value."""
    claims: Mapping[str, frozenset[str]] = field(default_factory=dict)
    more_than: frozenset[tuple[str, ...]] = frozenset()
    at_least: frozenset[tuple[str, ...]] = frozenset()
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    things: Mapping[str, str] = field(default_factory=dict)
    """A thing that is counted, with its class (alert, incident, ..., other)."""
    concepts: Mapping[str, str] = field(default_factory=dict)
    """A word for an act or an outcome, with the concept that it says (`blockiert`: block)."""
    orders: Mapping[str, str] = field(default_factory=dict)
    """A word by which a text asks for something, with what it asks for (`ignorieren`: ignore)."""
    number_of: frozenset[str] = frozenset()
    """Words before the number that names a thing (`incident 124`)."""

    def has(self, table: str, word: str) -> bool:
        """Whether a claims table holds the word."""
        return word in self.claims.get(table, ())


@dataclass(frozen=True)
class _Language:
    name: str
    plain: frozenset[str]
    data: Mapping[str, Any]


def words_in(value: str | list[str]) -> list[str]:
    """The folded words of a table's entry; an array holds phrases."""
    return [fold(word) for word in value.split()] if isinstance(value, str) else [fold(phrase) for phrase in value]


def language_data(name: str) -> Mapping[str, Any]:
    """The tables of a language's file, spelled as written there."""
    return toml_beside(__package__, f"words/{name}.toml")


@cache
def _languages() -> tuple[_Language, ...]:
    return tuple(
        _Language(name, frozenset(words_in(language_data(name)["plain"])), language_data(name)) for name in LANGUAGES
    )


@cache
def _built(first: str) -> Lexicon:
    """All languages together; where `first` knows a word, only what it means there counts."""
    languages = sorted(_languages(), key=lambda language: language.name != first)
    own = _vocabulary(languages[0]) if first else frozenset()
    tables: dict[str, dict[Any, Any]] = {
        name: {}
        for name in (
            "numbers",
            "fractions",
            "time_units",
            "size_units",
            "states",
            "spoken",
            "things",
            "concepts",
            "orders",
        )
    }
    sets: dict[str, set[str]] = {}
    columns: dict[str, set[str]] = {}
    bounds: dict[str, set[tuple[str, ...]]] = {"more_than": set(), "at_least": set()}
    number_of: set[str] = set()
    for language in languages:
        hidden = own if first and language.name != first else frozenset()

        def seen(value: str | list[str], hidden: frozenset[str] = hidden) -> list[str]:
            return [word for word in words_in(value) if word not in hidden]

        data = language.data
        for table, make in (("numbers", int), ("fractions", float), ("time_units", int), ("size_units", int)):
            for value, words in data[table].items():
                for word in seen(words):
                    tables[table].setdefault(word, make(value))
        for domain, values in data["states"].items():
            for value, words in values.items():
                for word in seen(words):
                    tables["states"].setdefault(word, {})[domain, value] = None
        for domain, values in data["spoken"].items():
            for value, phrases in values.items():
                for phrase in phrases:
                    parts = tuple(fold(phrase).split())
                    tables["spoken"].setdefault(parts[0], {})[parts, domain, value] = None
        for group in ("acts", "outcomes"):
            for concept, words in data[group].items():
                for word in seen(words):
                    tables["concepts"].setdefault(word, concept)
                    sets.setdefault(group, set()).add(word)
        for group in ("claims", "deeds", "places"):
            for name, words in data[group].items():
                if name in bounds:
                    bounds[name].update(tuple(phrase.split()) for phrase in words_in(words))
                else:
                    sets.setdefault(name, set()).update(seen(words))
        for order, words in data["orders"].items():
            tables["orders"].update(dict.fromkeys(seen(words), order))
        for name, words in data["columns"].items():
            columns.setdefault(name, set()).update(seen(words))
        for name, words in data["things"].items():
            if name == "number":
                number_of.update(seen(words))
                continue
            for word in seen(words):
                tables["things"].setdefault(word, name)
    return Lexicon(
        numbers=tables["numbers"],
        fractions=tables["fractions"],
        time_units=tables["time_units"],
        size_units=tables["size_units"],
        states={word: tuple(meanings) for word, meanings in tables["states"].items()},
        spoken={word: tuple(phrases) for word, phrases in tables["spoken"].items()},
        claims={name: frozenset(words) for name, words in sets.items()},
        **{name: frozenset(phrases) for name, phrases in bounds.items()},
        columns={name: frozenset(words) for name, words in columns.items()},
        things=tables["things"],
        concepts=tables["concepts"],
        orders=tables["orders"],
        number_of=frozenset(number_of),
    )


def _vocabulary(language: _Language) -> frozenset[str]:
    """All single words of a language's tables."""
    found = set(language.plain)

    def collect(value: Any) -> None:
        if isinstance(value, str):
            found.update(words_in(value))
        elif isinstance(value, Mapping):
            for part in value.values():
                collect(part)

    # Words of scope are a question's, which no sentence of an answer is read with
    collect({name: table for name, table in language.data.items() if name != "scope"})
    return frozenset(found)


def language_of(words: Iterable[str]) -> str:
    """The language of a text by its folded words (`en`, `de`, ...); empty where they do not tell."""
    bag = set(words)
    counts = sorted(((len(bag & language.plain), language.name) for language in _languages()), reverse=True)
    sure = counts[0][0] >= 2 and counts[0][0] > counts[1][0]
    return counts[0][1] if sure else ""


def lexicon_of(words: Iterable[str]) -> Lexicon:
    """The lexicon of a sentence by its folded words."""
    return _built(language_of(words))


def everything() -> Lexicon:
    """All languages together."""
    return _built("")


@cache
def concept_starts(concept: str) -> tuple[str, ...]:
    """How words of a concept begin, in all languages: a row may say it in another one than the sentence."""
    words = {
        word
        for language in _languages()
        for group in ("acts", "outcomes")
        for word in words_in(language.data[group].get(concept, ""))
    }
    return tuple(sorted({word[: max(4, len(word) - 2)] for word in words}))


@cache
def plain_words() -> frozenset[str]:
    """The ordinary words of all languages."""
    return frozenset().union(*(language.plain for language in _languages()))


@cache
def months() -> Mapping[str, int]:
    """Names of months, spelled as written and folded, with their number."""
    found: dict[str, int] = {}
    for name in LANGUAGES:
        for number, words in language_data(name)["months"].items():
            for word in words.split():
                found[word.casefold()] = found[fold(word)] = int(number)
    return found


@cache
def date_names() -> frozenset[str]:
    """Names of months and of days of the week, folded."""
    weekdays = (word for name in LANGUAGES for word in words_in(language_data(name)["dates"]["weekdays"]))
    return frozenset((*months(), *weekdays))


@cache
def zones() -> Mapping[str, int]:
    """Letters of time zones with their minutes east of UTC."""
    return {
        word: int(minutes)
        for name in LANGUAGES
        for minutes, words in language_data(name)["zones"].items()
        for word in words.split()
    }


@cache
def date_words(table: str) -> tuple[str, ...]:
    """Words of a table of `dates` (at, of, before, month_first, ...) of all languages, as written, longest first."""
    found = {
        word
        for name in LANGUAGES
        for word in (
            language_data(name)["dates"][table].split()
            if isinstance(language_data(name)["dates"][table], str)
            else language_data(name)["dates"][table]
        )
    }
    return tuple(sorted(found, key=lambda word: (-len(word), word)))


@cache
def abbreviations() -> frozenset[str]:
    """Words whose full stop ends no sentence, folded, without it."""
    return frozenset(word for name in LANGUAGES for word in words_in(language_data(name)["abbreviations"]))


class Words:
    """Words and beginnings of words (`geschlossen*`)."""

    def __init__(self, text: str = "") -> None:
        words = text.split()
        self._whole = frozenset(word for word in words if word[-1] != "*")
        self._beginnings = tuple(word[:-1] for word in words if word[-1] == "*")

    def __contains__(self, word: str) -> bool:
        return word in self._whole or word.startswith(self._beginnings)


@cache
def scope_words() -> Mapping[str, Mapping[str, Words]]:
    """By language the tables of `scope`, those inside others by both names (`units.day`)."""
    found: dict[str, dict[str, Words]] = {}
    for language in LANGUAGES:
        found[language] = tables = {}
        for name, words in language_data(language)["scope"].items():
            inner = {f"{name}.{part}": each for part, each in words.items()} if isinstance(words, Mapping) else {}
            tables.update({part: Words(each) for part, each in (inner or {name: words}).items()})
    return found
