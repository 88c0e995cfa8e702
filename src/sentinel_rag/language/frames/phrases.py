"""Phrases of a language as data, looked up with tolerance for spelling, and the best cover of words by them.

`LANGUAGE.toml` beside this module: a section is a type, a key a value, a list the phrases that mean it; `(a|b|)` stands
for a, b or nothing. No word of any language stands in code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from typing import Any

from sentinel_rag.language.lexicon import fold, language_data
from sentinel_rag.language.text import toml_beside
from sentinel_rag.language.times.kinds import MONTHS, WEEKDAYS

LANGUAGES = ("en", "de", "es", "fr")
WORD = re.compile(r"[^\W_]+|\+|[<>]=?")
Sense = tuple[str, str]
"""A type and a value, such as ("severity", "High")."""
SETTINGS = ("spoken", "ordinal", "polar", "beside", "adverb", "finite")
"""Sections of words that make numbers, of those with which a question for yes or no begins, and of what shows a clause
or an adverb. `instead` holds phrases that are read for others, above all of time, `kept` words never mended."""
FORMS = ("endings", "written", "compound", "nouns")
"""Sections of how words take other forms: `endings` that stand for one another (each list those of one paradigm),
letters that are `written` for others ("ae"), what joins the parts of a `compound`; of `nouns` whether they have a
`capital`, and the endings of words that stand `before` them and qualify them."""
ANY_NUMBER = "0"
"""Stands for any number in a phrase that is read for another ("des 0 derniers jours")."""
ANY_OF_TIME = ("0weekday", "0month", "0yyyy")
"""Stand for any day of the week, any month and any year of four digits."""
_NAMES_OF_TIME: Mapping[str, Mapping[str, int]] = {"0weekday": WEEKDAYS, "0month": MONTHS}
SILENT = ("f", "pad", "definite", "one", "aside")
"""Types of words that mean nothing by themselves."""
_UNKNOWN, _KNOWN, _LONGER = 3.0, 1.0, 0.01
_SHORTEST_STEM, _SHORTEST_PART = 4, 4
_MOST_COUNTED = 10
"""The largest number whose word alone names nothing: "one" and "three" count."""
_GLUED = ("tactic", "status", "class")
"""Types of phrases that are also written as one word."""
_BORROWED = 3
"""Words of the longest English phrases that sentences of other languages hold, apart from names of products."""


def expand(pattern: str) -> list[str]:
    """Every phrase that a pattern such as "(show|list) me (all|) incident(|s)" stands for; groups may hold groups."""
    return _alternatives(_PARTS.findall(pattern)[::-1])


_PARTS = re.compile(r"[()|]|[^()|]+")


def _alternatives(parts: list[str]) -> list[str]:
    """What the parts up to the end of a group stand for, the last part first; takes them off the list."""
    told, made = [], [""]
    while parts and (part := parts.pop()) != ")":
        if part == "|":
            told += made
            made = [""]
        else:
            texts = _alternatives(parts) if part == "(" else [part]
            made = [f"{head}{text}" for head in made for text in texts]
    return told + made


@cache
def phrases_of(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Every phrase of a pattern as its folded words; nothing for an empty one."""
    return tuple(words for phrase in expand(fold(pattern)) if (words := _words_in(phrase)))


def _words_in(folded: str) -> tuple[str, ...]:
    """Its words. Nearly all phrases hold letters and spaces alone, which is told twice as fast as signs are found."""
    return tuple(folded.split() if folded.replace(" ", "").isalnum() else WORD.findall(folded))


def words_of(phrase: str) -> tuple[str, ...]:
    """The folded words of a phrase."""
    return tuple(WORD.findall(fold(phrase)))


@dataclass(frozen=True, slots=True)
class Item:
    """A stretch of the text with its senses, the likeliest first."""

    senses: tuple[Sense, ...]
    text: str
    start: int
    end: int

    @property
    def type(self) -> str:
        """The type of the likeliest sense."""
        return self.senses[0][0]

    def sense(self, type_: str, values: frozenset[str] | None = None) -> Sense | None:
        """The first sense of that type, with one of the values where they are told."""
        return next((one for one in self.senses if one[0] == type_ and (values is None or one[1] in values)), None)

    @property
    def silent(self) -> bool:
        """True for words that mean nothing by themselves."""
        return all(sense[0] in SILENT for sense in self.senses)


@dataclass(frozen=True)
class PhraseBook:
    """The phrases of one language, with those of English for what it has no word for."""

    language: str
    phrases: Mapping[tuple[str, ...], tuple[Sense, ...]]
    instead: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = field(default_factory=dict)
    """Phrases that are read for others, by their first word, the longest first: those of time as the reader of times
    knows them, slips of short words."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    digits: Mapping[str, int] = field(default_factory=dict)
    """Words for nought and one, which are numbers only beside others ("one oh six")."""
    dots: frozenset[str] = frozenset()
    """Words for the signs of a name that is spelled ("m dot keller")."""
    inside: str = ""
    """What joins two numbers within one word."""
    joined: frozenset[tuple[str, ...]] = frozenset()
    """Phrases of which a time would take a word ("sign in yesterday", French "est")."""
    words: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    longest: int = 0
    by_length: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """The words that a slip may have meant, by their length, with the letters that they hold."""
    endings: tuple[tuple[str, ...], ...] = ()
    """Endings that stand for one another, the longest of a paradigm first."""
    written: tuple[tuple[str, str], ...] = ()
    """Letters as they are written and as they are meant."""
    compound: tuple[str, ...] = ()
    """What may stand between the parts of one word; empty for a language that makes no compounds."""
    qualifying: tuple[str, ...] = ()
    """Endings of words that qualify a noun behind them, and are of no title."""
    capitals: bool = False
    """Whether nouns are written with a capital, and not names alone."""
    _mended: dict[str, str] = field(default_factory=dict)

    @cached_property
    def longest_joined(self) -> int:
        """The number of words of the longest phrase of which a time would take one."""
        return max(map(len, self.joined), default=0)

    def knows(self, *words: str) -> bool:
        """Whether the words together are a phrase."""
        return words in self.phrases

    def senses(self, *words: str) -> tuple[Sense, ...]:
        """What the words mean together."""
        return self.phrases.get(words, ())

    def mend(self, word: str, *, name: bool = False) -> str:
        """The word of the language that it is a form of, its parts, or the one that is a slip away; else `word`.

        What may be a `name` is taken for no slip.
        """
        if word in self.words or word in self.kept or word in self.numbers or len(word) < 4 or not word.isalpha():
            return word
        if name:
            return self._form_of(word) or word
        if word not in self._mended:
            if len(self._mended) > 4096:
                self._mended.clear()
            self._mended[word] = self._form_of(word) or self._parts_of(word) or self._nearest(word)
        return self._mended[word]

    def _form_of(self, word: str) -> str:
        """The known word of which this is another form; empty if there is none, or several that say other things."""
        meant = word
        for letters, others in self.written:
            meant = meant.replace(letters, others)
        if meant in self.words:
            return meant
        found = {
            meant[: len(meant) - len(ending)] + other: None
            for paradigm in self.endings
            for ending in paradigm
            if meant.endswith(ending) and len(meant) - len(ending) >= _SHORTEST_STEM
            for other in paradigm
        }
        known = [one for one in found if one in self.words and one not in self.kept]
        told = [one for one in known if (one,) in self.phrases] or known
        agree = len({self.senses(one)[:1] for one in told}) == 1
        return min(told, key=lambda one: abs(len(one) - len(meant))) if agree else ""

    def _parts_of(self, word: str) -> str:
        """The two known words of which this is made, as two; empty if it is no compound."""
        if not self.compound or len(word) < 2 * _SHORTEST_PART:
            return ""
        for place in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
            first, head = self._part(word[:place]), word[place:]
            head = head if head in self.words else self._form_of(head)
            if first and self._says(head) and not (self._silent(first) and self._silent(head)):
                return f"{first} {head}"
        return ""

    def _part(self, part: str) -> str:
        """The word that is the first part of a compound, with or without what joins it."""
        shorter = [part.removesuffix(joint) for joint in self.compound if part.endswith(joint)]
        forms = (part, *shorter, *(part + joint for joint in self.compound))
        return next((one for one in forms if len(one) >= _SHORTEST_PART and self._says(one)), "")

    def _says(self, word: str) -> bool:
        """Whether the word alone means something, be it a time."""
        return (word,) in self.phrases or any(phrase == (word,) for phrase, _ in self.instead.get(word, ()))

    def _silent(self, word: str) -> bool:
        return bool(self.senses(word)) and all(type_ in SILENT for type_, _ in self.senses(word))

    def _nearest(self, word: str) -> str:
        far = 1 if len(word) < 8 else 2
        letters = _letters(word)
        near: list[tuple[float, str]] = []
        lengths = range(len(word) - far, len(word) + far + 1)
        for known, mask in (one for length in lengths for one in self.by_length.get(length, ())):
            # Each step changes two letters at most; counting them is forty times cheaper than the distance.
            if (mask ^ letters).bit_count() > 2 * far:
                continue
            turned = len(known) == len(word) and sorted(known) == sorted(word)
            if len(word) == 4 and not turned:
                continue
            steps = distance(word, known, far)
            if steps <= far:
                near.append(
                    (steps + 0.5 * (known[0] != word[0]) - 0.3 * turned - 0.2 * (set(known) == set(word)), known)
                )
        near.sort()
        if not near or near[0][0] > far + 0.2:
            return word
        clear = len(near) == 1 or near[1][0] > near[0][0] or _same_stem(near[0][1], near[1][1])
        return near[0][1] if clear else word

    def cover(self, words: Sequence[str], spans: Sequence[tuple[int, int]], text: str) -> tuple[float, list[Item]]:
        """The cheapest cover of `words` and its cost: long phrases cost least, an unknown word most."""
        best: list[tuple[float, int, tuple[Sense, ...]]] = [(0.0, 0, ())]
        for end in range(1, len(words) + 1):
            options: list[tuple[float, int, tuple[Sense, ...]]] = []
            for start in range(max(0, end - self.longest), end):
                senses = self.phrases.get(tuple(words[start:end]), ())
                if not senses and end - start > 1:
                    continue
                cost = _UNKNOWN if not senses else _KNOWN - _LONGER * (end - start)
                number = None if senses else self.counts(words[start])
                if number is not None:
                    digits = (("digits", str(number)),) if words[start].isdigit() or number > _MOST_COUNTED else ()
                    senses, cost = (("num", str(number)), *digits), _KNOWN
                options.append((best[start][0] + cost, start, senses or (("text", words[start]),)))
            best.append(min(options, key=lambda option: option[0]))
        items: list[Item] = []
        end = len(words)
        while end:
            _, start, senses = best[end]
            begin, stop = spans[start][0], spans[end - 1][1]
            items.append(Item(senses, text[begin:stop], begin, stop))
            end = start
        return best[-1][0], items[::-1]

    def counts(self, word: str) -> int | None:
        """The number that a word alone says; a letter may be another word than nought."""
        number = self.number(word)
        return 0 if number is None and len(word) > 2 and self.digits.get(word) == 0 else number

    def number(self, word: str) -> int | None:
        """The value of digits or of a number word, also of one that joins two ("dreiundzwanzig")."""
        if word.isdecimal():
            return int(word)
        if word in self.numbers:
            return self.numbers[word]
        one, joint, tens = word.partition(self.inside) if self.inside else (word, "", "")
        units = self.numbers.get(one, self.digits.get(one, 0))
        return units + self.numbers[tens] if joint and units and self.numbers.get(tens, 0) >= 20 else None

    def of_time(self, wanted: str, word: str) -> str:
        """The English day of the week or month, or the year that a word says, where one of those is wanted."""
        if wanted == "0yyyy":
            return word if len(word) == 4 and word.isdecimal() and word[:2] in ("19", "20") else ""
        names = _NAMES_OF_TIME.get(wanted, {})
        said = next((one for phrase, one in self.instead.get(word, ()) if len(phrase) == 1), word)
        return next((name for name, value in names.items() if value == names[said]), "") if said in names else ""

    def known(self, words: Iterable[str]) -> int:
        """How many of the words the language has."""
        return sum(word in self.words or word in self.numbers for word in words)


@cache
def sections(language: str) -> Mapping[str, Mapping[str, Any]]:
    """The sections of a language's files, as written; those of conversations go on the others."""
    told: dict[str, dict[str, Any]] = {}
    for name in (language, f"talk_{language}"):
        read = toml_beside(__package__, f"{name}.toml")
        for type_, entries in read.items():
            section = told.setdefault(type_, {})
            section.update({value: [*section.get(value, ()), *patterns] for value, patterns in entries.items()})
    return told


@cache
def settings(language: str, name: str) -> frozenset[str]:
    """The words that tell the part of what stands behind them, such as "to" and "with"."""
    patterns = [each for one in ("en", language) for each in sections(one).get("beside", {}).get(name, ())]
    return frozenset(" ".join(phrase) for pattern in patterns for phrase in phrases_of(pattern))


@cache
def phrase_book(language: str) -> PhraseBook:
    """The phrases of a language. Where it knows a word, what English means by that word does not count."""
    phrases: dict[tuple[str, ...], tuple[Sense, ...]] = {}
    instead: dict[tuple[str, ...], str] = {}
    numbers: dict[str, int] = {}
    digits: dict[str, int] = {}
    kept: set[str] = set()
    joined: set[tuple[str, ...]] = set()
    everyday: set[str] = set()
    own: set[str] = set()
    alone: set[str] = set()
    forms = sections(language).get
    for name in dict.fromkeys((language, "en")):
        told = set(phrases)
        for type_, entries in sections(name).items():
            if type_ in FORMS or (name != language and type_ == "pad"):
                continue  # what pads an English sentence may restrict another ("Paris")
            borrowed = name != language and type_ not in ("instead", "product")
            is_kept = type_ == "kept" or type_ in SETTINGS
            for value, patterns in entries.items():
                sense = ((type_, value),)
                for phrase in chain.from_iterable(map(phrases_of, patterns)):
                    if borrowed and len(phrase) > _BORROWED:
                        continue
                    if type_ == "instead":
                        instead.setdefault(phrase, value)
                    elif type_ == "joined":
                        joined.add(phrase)
                    elif is_kept:
                        kept.update(phrase)
                        if (type_, value) == ("kept", "words"):
                            everyday.update(phrase)
                        if type_ == "spoken" and value.isdecimal():
                            digits.setdefault(phrase[0], int(value))
                    elif phrase not in told and not (len(phrase) == 1 and phrase[0] in alone):
                        _add(phrases, phrase, sense)
        for phrase, month in _months(name):
            instead.setdefault(phrase, month)
        for value, said in language_data(name)["numbers"].items():
            for word in fold(said).split():
                if word not in own:
                    numbers.setdefault(word, int(value))
        own |= {word for phrase in (*phrases, *instead) for word in phrase}
        alone |= {phrase[0] for phrase in (*phrases, *instead) if len(phrase) == 1}
    for phrase, senses in list(phrases.items()):
        glued = ("".join(phrase),)
        if 1 < len(phrase) <= _BORROWED and senses[0][0] in _GLUED and glued not in phrases:
            phrases[glued] = senses  # as the rows write it: "LateralMovement"
            own.update(glued)
        if {("op", "trend"), ("topic", "ingest")} & {*senses}:  # "weekly counts" tells the step too
            _add(phrases, phrase, tuple(one for word in phrase for one in phrases.get((word,), ()) if one[0] == "unit"))
    single = {phrase[0]: words_of(said) for phrase, said in instead.items() if len(phrase) == 1}
    for phrase, senses in list(phrases.items()):
        # A sentence is looked up when its words of time are English already ("mis à day").
        if not single.keys().isdisjoint(phrase):
            changed = tuple(word for one in phrase for word in single.get(one, (one,)))
            _add(phrases, changed, senses)
    # A word that repeats ("twice") counts nothing, and a number that is also a word of the language is that word.
    numbers = {word: value for word, value in numbers.items() if (word,) not in phrases}
    return PhraseBook(
        language,
        phrases,
        _by_first_word(instead),
        numbers,
        digits,
        frozenset(word for one in (language, "en") for word in sections(one).get("spoken", {}).get("dot", ())),
        next(iter(sections(language).get("spoken", {}).get("inside", ())), ""),
        frozenset(joined),
        frozenset(own),
        frozenset(kept),
        max(map(len, phrases)),
        _by_length(own | (kept - everyday)),  # a slip of an everyday word says as little as the word
        _endings(language),
        tuple((letters, value) for value, all_ in forms("written", {}).items() for letters in all_),
        tuple(one for all_ in forms("compound", {}).values() for one in all_),
        tuple(forms("nouns", {}).get("before", ())),
        "capital" in forms("nouns", {}),
    )


def _add(phrases: dict[tuple[str, ...], tuple[Sense, ...]], phrase: tuple[str, ...], senses: tuple[Sense, ...]) -> None:
    """Give a phrase those senses that it has not."""
    known = phrases.get(phrase)
    phrases[phrase] = senses if known is None else known + tuple(one for one in senses if one not in known)


def _endings(language: str) -> tuple[tuple[str, ...], ...]:
    """The paradigms of a language, the longest endings first."""
    told = sections(language).get("endings", {}).values()
    return tuple(tuple(sorted((fold(one) for one in all_), key=lambda one: -len(one))) for all_ in told)


Tables = Iterable[Iterable[tuple[str, Mapping[str, Sequence[str]]]]]
"""Types with the patterns of their values, in tables: what one says, no later one says again."""


def phrases_alone(language: str, tables: Tables) -> PhraseBook:
    """A book that looks up the phrases of the tables and the numbers of a language, and mends nothing."""
    phrases: dict[tuple[str, ...], tuple[Sense, ...]] = {}
    for table in tables:
        told = set(phrases)
        for type_, entries in table:
            for value, patterns in entries.items():
                for phrase in chain.from_iterable(map(phrases_of, patterns)):
                    if phrase not in told:
                        _add(phrases, phrase, ((type_, value),))
    return _PhrasesAlone(language, phrases, longest=max(map(len, phrases)))


class _PhrasesAlone(PhraseBook):
    """The whole book of the language is made when a word is met that may be a number."""

    def counts(self, word: str) -> int | None:
        if word.isdecimal():
            return int(word)
        words, inside = _number_words(self.language)
        return phrase_book(self.language).counts(word) if word in words or (inside and inside in word) else None


@cache
def _number_words(language: str) -> tuple[frozenset[str], str]:
    """The words that numbers are made of in a language and in English, and what joins two within one word."""
    told: list[str] = []
    for name in (language, "en"):
        told += language_data(name)["numbers"].values()
        told += chain(*(said for value, said in sections(name)["spoken"].items() if value.isdecimal()))
    inside = "".join(sections(language)["spoken"].get("inside", ()))
    return frozenset(word for text in told for phrase in phrases_of(text) for word in phrase), inside


@cache
def side_book(name: str, language: str) -> PhraseBook:
    """The phrases of a file of its own (`NAME.toml`) in a language, with those of English."""
    told = toml_beside(__package__, f"{name}.toml")
    return phrases_alone(language, (told.get(each, {}).items() for each in dict.fromkeys((language, "en"))))


def _months(language: str) -> Iterable[tuple[tuple[str, ...], str]]:
    """The months of a language by their English names, also behind the words for "of" and "month of"."""
    data = language_data(language)
    if language == "en":
        return
    joints = [*data["dates"]["of"].split(), *sections(language).get("spoken", {}).get("month", ())]
    for number, said in data["months"].items():
        month = language_data("en")["months"][number].split()[0]
        for word in said.split():
            yield words_of(word), month
            for joint in joints:
                yield words_of(f"{joint} {word}"), month


def _by_first_word(instead: Mapping[tuple[str, ...], str]) -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
    for phrase, said in sorted(instead.items(), key=lambda pair: -len(pair[0])):
        found[phrase[0]].append((phrase, said))
    return {word: tuple(phrases) for word, phrases in found.items()}


def _by_length(words: Iterable[str]) -> dict[int, tuple[tuple[str, int], ...]]:
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for word in sorted(words):
        if len(word) > 3 and word.isalpha():
            found[len(word)].append((word, _letters(word)))
    return {length: tuple(all_) for length, all_ in found.items()}


def _letters(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) % 61)
    return mask


def _same_stem(a: str, b: str) -> bool:
    """True for two words of one stem ("alert", "alerts")."""
    return a.startswith(b) or b.startswith(a)


def distance(a: str, b: str, most: int) -> int:
    """Optimal string alignment distance, cut off above `most`."""
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    start = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    if not a or not b:
        return len(a) + len(b)
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
