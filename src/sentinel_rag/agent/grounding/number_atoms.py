"""Numbers in an answer: of incidents, counts in digits and in words, shares, and words such as "none" and "all".

A count carries the noun that it counts, since three alerts are not three incidents. What is a time, an address or an
identifier was taken before; a number here is a quantity or the number of an incident.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.grounding.atoms import Atom, Kind


class Amount(StrEnum):
    """How a number is meant."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at least"
    MORE = "more than"
    AT_MOST = "at most"
    LESS = "less than"
    SOME = "some"
    ALL = "all"
    NOT_ALL = "not all"


@dataclass(frozen=True, slots=True)
class Quantity:
    """`value` things of the kind `noun` (one of NOUNS, or the word as it was written, or empty); `phrase` are the words
    between the number and the end of its noun, `label` what stands before a colon. SOME and ALL have no value."""

    value: float
    noun: str = ""
    phrase: str = ""
    amount: Amount = Amount.EXACT
    label: str = ""


_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "a dozen": 12, "dozen": 12, "both": 2,
    "a single": 1, "single": 1, "a pair of": 2, "a couple of": 2, "twice": 2, "once": 1,
}  # fmt: skip
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[- ](?:one|two|three|four|five|six|seven|eight|nine)"
_WORD = re.compile(
    rf"(?<![\w-])(?:{_TENS}|a dozen|a single|a pair of|a couple of|"
    + "|".join(sorted((word for word in _WORDS if " " not in word), key=len, reverse=True))
    + r")(?![\w]|-(?!(?:high|medium|low)))",
    re.IGNORECASE,
)
_DIGITS = re.compile(
    r"(?<![\w.#/:\\@-])(?<!\d,)-?\d{1,3}(?:[,  '’]\d{3})+(?:\.\d+)?(?![\w@\\])(?!,\d)|"
    r"(?<![\w.#/:\\@-])\d+(?:\.\d+)?(?![\w@\\])(?!\.\d)(?!:\d)"
)
NOUNS: dict[str, str] = {
    "incident": "incident", "case": "incident", "alert": "alert", "detection": "alert", "host": "host",
    "device": "host", "machine": "host", "server": "host", "workstation": "host", "endpoint": "host",
    "computer": "host", "account": "account", "user": "account", "identity": "account", "username": "account",
    "ip": "ip", "address": "ip", "url": "url", "link": "url", "file": "file", "hash": "filehash",
    "process": "process", "mailbox": "mailbox", "event": "row", "row": "row", "record": "row", "result": "row",
    "entry": "row", "hit": "row", "match": "row", "item": "row", "comment": "comment", "tactic": "tactic",
    "technique": "technique", "table": "table", "workspace": "workspace", "template": "template", "query": "template",
    "entity": "entity", "bookmark": "bookmark", "label": "label", "column": "column",
}  # fmt: skip
"""What counts count, by the noun in the singular."""

_BETWEEN = (
    r"(?:(?!(?:of|in|is|are|was|were|with|and|or|on|at|to|from|by|for|that|which|has|have|had|"
    r"the|came|come)\b)[A-Za-z][\w'’/-]*\s+){0,4}?"
)
_SINGULARS = sorted(
    (f"{word[:-1]}(?:y|ies)" if word.endswith("y") else f"{word}(?:es|s)?" for word in NOUNS), key=len, reverse=True
)
_NOUN = re.compile(
    rf"^(?:\s+|-)(?:(?:of\s+)?(?:the|these|those|your|all)\s+(?:\d+\s+)?)?(?P<words>{_BETWEEN})(?P<noun>"
    + "|".join(_SINGULARS)
    + r")\b(?!-\w)",
    re.IGNORECASE,
)
_ANY_WORD = re.compile(r"^\s+(?P<words>(?:[A-Za-z][\w'’-]*)(?:[\s-]+[A-Za-z][\w'’-]*)?)")
_ABOUT = re.compile(
    r"\b(?P<about>about|around|approximately|roughly|nearly|almost|some|circa|ca\.?|~|≈)\s*$|~$", re.IGNORECASE
)
_BOUND = re.compile(
    r"\b(?P<bound>at least|more than|over|at most|up to|less than|fewer than|(?<!known )under|"
    r"no more than|no fewer than)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_BOUNDS = {
    "at least": Amount.AT_LEAST, "no fewer than": Amount.AT_LEAST, "more than": Amount.MORE, "over": Amount.AT_LEAST,
    "at most": Amount.AT_MOST, "up to": Amount.AT_MOST, "no more than": Amount.AT_MOST, "less than": Amount.LESS,
    "fewer than": Amount.LESS, "under": Amount.LESS,
}  # fmt: skip
_LABEL = re.compile(r"(?:^|[,;|(·•]|\s[–-]\s)\s*[*_`]*(?P<label>[A-Za-z][\w /()'’-]{0,40}?)[*_`]*\s*[:=|][*_`\s]*$")
_PERCENT = re.compile(r"(?<![\w.,])(?P<n>\d{1,3}(?:[.,]\d+)?)\s?(?:%|percent\b|per cent\b)", re.IGNORECASE)
_FRACTION = re.compile(
    r"\b(?P<word>half|a third|one third|two thirds|a quarter|one quarter|"
    r"three quarters)(?=\s+(?:of\s+)?(?:the|all|them|these|those)\b)",
    re.IGNORECASE,
)
_FRACTIONS = {
    "half": 50,
    "a third": 33.3,
    "one third": 33.3,
    "two thirds": 66.7,
    "a quarter": 25,
    "one quarter": 25,
    "three quarters": 75,
}
_NONE = re.compile(
    r"\b(?P<word>no(?! (?:longer|one|further|doubt|matter|owner|assignee|current|assigned|"
    r"recorded|need|idea))|none|neither|not (?:a single|any)|(?:isn[’']t|aren[’']t|wasn[’']t|"
    r"weren[’']t|is not|are not|were not) any|never any|free of(?: any)?|zero|"
    r"(?:not|never)\s+(?:been\s+|yet\s+)?(?:find|found|see|seen|have|had|aware of|know of|noticed?|detect(?:ed)?|"
    r"identified)\s+(?:any|a single)|(?:do|did|have|ca)n[’']t\s+(?:find|found|see|seen|have|had|know of|"
    r"detect)\s+any)\b",
    re.IGNORECASE,
)
_ALL = re.compile(r"\b(?P<word>not all|not every|all(?! (?:in|times?)\b)|every|each|some)\b", re.IGNORECASE)
_NEARLY = re.compile(r"\b(?:nearly|almost|virtually|practically)\s+$", re.IGNORECASE)
"""In front of "all" they make a share of it, which `share_verdicts` judges."""
_HALF_AND_MORE = re.compile(r"\b(?:more|less|fewer|over|under)(?:\s+than)?\s+(?:a\s+)?$", re.IGNORECASE)

_PLURAL = re.compile(
    r"\b(?:incidents?|cases?)\b(?:\s+(?:numbers?|no\.?|nr\.?|ids?|"
    r"refs?))?[\s:#*_`“\"(]*(?P<list>#?\d{1,9}\b(?:(?:\s*(?:,|and|or|&|/|,\s*and|,\s*or|plus|"
    r"versus|vs\.?)\s*)#?\d{1,9}\b)*)(?![.:/-]?\d)(?!\s*(?:%|alerts?|hours?|days?|minutes?))",
    re.IGNORECASE,
)
_HASH_SIGN = re.compile(r"(?<![\w&#/])#(?P<n>\d{1,9})\b")
_NUMBERED = re.compile(r"\b(?:[Nn]umber(?:\s+is)?|[Nn]o\.|INC-?|[Tt]icket)[\s#:*_`]*(?P<n>\d{1,9})\b(?!\s*[.:]\d)")


_RANGE = re.compile(
    r"(?:\b(?:incidents|cases)\b[\s:*_`(]*(?:numbers?\s+|from\s+)?#?|(?<![\w&#/])#)(?P<first>\d{1,9})"
    r"(?:\s*(?:-|–|—|\bthrough\b|\bthru\b|\bto\b|\buntil\b)\s*)(?:incident\s+)?#?(?P<last>\d{1,9})\b(?![.:/-]?\d)",
    re.IGNORECASE,
)
_LONGEST_RANGE = 60
_COUNT_OF_INCIDENTS = re.compile(r"(?:incidents|cases)[\s*_`]*[:(][\s*_`]*\d+$", re.IGNORECASE)
"""Behind the plural and a colon or bracket a single number is how many they are."""


def incident_numbers_in(text: str) -> Iterator[Atom]:
    """Numbers that are said to be of incidents: "incident 55", "#55", "incidents 12, 13 and 14", "number 7"."""
    seen: set[int] = set()
    for atom in _ranges(text):
        seen.add(atom.start)
        yield atom
    for pattern in (_PLURAL, _HASH_SIGN, _NUMBERED):
        for match in pattern.finditer(text):
            group = "list" if pattern is _PLURAL else "n"
            if _COUNT_OF_INCIDENTS.match(match[0]) or match[0].lower().startswith("incidents 0"):
                continue
            for number in re.finditer(r"\d+", match[group]):
                start = match.start(group) + number.start()
                if start not in seen:
                    seen.add(start)
                    yield Atom(Kind.INCIDENT, number[0], start, start + len(number[0]), str(int(number[0])))


_CITED = re.compile(r"(?<![\w-])incident-(?P<n>\d{1,9})(?:@[\w.-]*\w)?(?![\w-]|\.\d)", re.IGNORECASE)


def cited_incidents_in(text: str) -> Iterator[Atom]:
    """Past incidents as the knowledge base cites them: "incident-42"."""
    for match in _CITED.finditer(text):
        yield Atom(Kind.INCIDENT, match[0], match.start(), match.end(), str(int(match["n"])))


def _ranges(text: str) -> Iterator[Atom]:
    """Both ends of a range of incidents ("125 through 128", "#125-#128"), and each number within it at the place of the
    word between them, so that all of them are spoken of."""
    for match in _RANGE.finditer(text):
        first, last = int(match["first"]), int(match["last"])
        if not first < last <= first + _LONGEST_RANGE:
            continue
        yield Atom(Kind.INCIDENT, match["first"], match.start("first"), match.end("first"), str(first))
        at = match.start("last")
        for number in range(first + 1, last):
            yield Atom(Kind.INCIDENT, str(number), at, at, str(number))
        yield Atom(Kind.INCIDENT, match["last"], at, match.end("last"), str(last))


def percentages_in(text: str) -> Iterator[Atom]:
    """Shares: "37 %", "two thirds of the incidents". The value is in percent."""
    for match in _PERCENT.finditer(text):
        yield Atom(Kind.PERCENT, match[0], match.start(), match.end(), float(match["n"].replace(",", ".")))
    for match in _FRACTION.finditer(text):
        if match["word"].lower() == "half" and _HALF_AND_MORE.search(text[: match.start()]):
            continue
        yield Atom(Kind.PERCENT, match[0], match.start(), match.end(), float(_FRACTIONS[match["word"].lower()]))


def counts_in(text: str) -> Iterator[Atom]:
    """Every other number, in digits or words, with what it counts."""
    for match in _DIGITS.finditer(text):
        value = float(re.sub(r"[,  '’]", "", match[0]))
        yield Atom(Kind.COUNT, match[0], match.start(), match.end(), _quantity(value, text, match.start(), match.end()))
    for match in _WORD.finditer(text):
        quantity = _quantity(number_word(match[0]), text, match.start(), match.end())
        if _counts_something(match[0].lower(), quantity, text[: match.start()], text[match.end() :]):
            yield Atom(Kind.COUNT, match[0], match.start(), match.end(), quantity)


def quantifiers_in(text: str) -> Iterator[Atom]:
    """ "no alerts", "none of them", "all incidents", "some of the incidents"."""
    for match in _NONE.finditer(text):
        quantity = _quantity(0, text, match.start(), match.end())
        following = text[match.end() :]
        if quantity.noun in NOUNS.values() or re.match(r"\s+of (?:them|these|those|the)\b", following):
            yield Atom(Kind.COUNT, match[0], match.start(), match.end(), quantity)
    for match in _ALL.finditer(text):
        quantity = _quantity(0, text, match.start(), match.end())
        following = text[match.end() :]
        if quantity.noun not in NOUNS.values() and not re.match(r"\s+of (?:them|these|those|the)\b", following):
            continue
        if _NEARLY.search(text[: match.start()]):
            continue
        word = match["word"].lower()
        amount = Amount.NOT_ALL if word.startswith("not") else Amount.SOME if word == "some" else Amount.ALL
        yield Atom(
            Kind.COUNT, match[0], match.start(), match.end(), Quantity(-1, quantity.noun, quantity.phrase, amount)
        )


def number_word(text: str) -> float:
    """The value of a number in words."""
    text = re.sub(r"\s+", " ", text.lower())
    if text in _WORDS:
        return _WORDS[text]
    tens, _, ones = text.replace("-", " ").partition(" ")
    return _WORDS[tens] + _WORDS[ones]


def noun_of(word: str) -> str:
    """What a noun in any number counts, in the words of NOUNS; the word itself where it is none of them."""
    word = word.lower()
    for singular in (word, word[:-1] if word.endswith("s") else word, word[:-2] if word.endswith("es") else word,
                     f"{word[:-3]}y" if word.endswith("ies") else word):  # fmt: skip
        if singular in NOUNS:
            return NOUNS[singular]
    return word


def nouns_in(text: str) -> Collection[str]:
    """What the words of `text` count, in order."""
    return [
        NOUNS[found] for word in re.findall(r"[A-Za-z]+", text) if (found := _singular(word)) and found not in _VERBS
    ]


_VERBS = frozenset({"match", "record", "hit", "result", "link", "label", "file", "process"})
"""Nouns that are verbs or turns of phrase as well: "six incidents match", "on record"."""


def _singular(word: str) -> str | None:
    word = word.lower()
    for singular in (word, word[:-1], word[:-2], f"{word[:-3]}y"):
        if singular in NOUNS and (singular == word or word.endswith(("s", "es", "ies"))):
            return singular
    return None


def _quantity(value: float, text: str, start: int, end: int) -> Quantity:
    before, after = text[:start], text[end:]
    amount = Amount.EXACT
    if bound := _BOUND.search(before):
        amount = _BOUNDS[bound["bound"].lower()]
    elif _ABOUT.search(before):
        amount = Amount.ABOUT
    label = _LABEL.search(before)
    stripped = re.sub(r"[*_`]+", "", after)
    noun = _NOUN.match(stripped)
    if noun:
        return Quantity(
            value, noun_of(noun["noun"]), f"{noun['words']}{noun['noun']}", amount, label["label"] if label else ""
        )
    word = _ANY_WORD.match(stripped)
    phrase = word["words"] if word else ""
    return Quantity(value, "", phrase, amount, label["label"].strip() if label else "")


_STATE_AFTER = re.compile(
    r"^[\s*_`]+(?:(?:of|are|is|were|was|have|has|been|remains?|still|currently|now)\s+){0,4}(?:them\b|these\b|"
    r"those\b|the\b|high\b|medium\b|low\b|informational\b|open\b|closed\b|new\b|active\b|"
    r"resolved\b)",
    re.IGNORECASE,
)


_PRONOUN_ONE = re.compile(
    r"\b(?:this|that|the|which|each|any|no|every|another|other|\w+est|recent|first|second|last)\s+$", re.IGNORECASE
)
_QUANTITY_BEFORE = re.compile(
    r"(?:\b(?:peaked at|went from|rose from|fell from|\d to|total of|count of|number of \w+ (?:is|was)|only|just|"
    r"exactly|has|had|have|with)\s*|[(:=|–][\s*_`]*)$",
    re.IGNORECASE,
)


def _counts_something(word: str, quantity: Quantity, before: str, after: str) -> bool:
    """A number word is a count where a thing of Sentinel is counted; "this one" and "one of the ways" are none."""
    if word in {"once", "twice"}:
        return False
    if quantity.noun in NOUNS.values():
        return not (
            word == "one" and quantity.phrase.lower().startswith(("possible", "way", "more", "other", "of the"))
        )
    if word in {"one", "single"} and _PRONOUN_ONE.search(before):
        return False
    if _STATE_AFTER.match(after) or quantity.label:
        return True
    return word not in {"one", "single"} or bool(_QUANTITY_BEFORE.search(before))
