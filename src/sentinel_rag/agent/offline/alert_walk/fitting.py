"""How well the words of a question fit the alerts of one name: words that few alerts have weigh most.

Alerts of one name tell the same story about different things, so they fit alike; which of them is meant is not a matter
of words. Rows are text to be compared and nothing else.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.contracts.json_values import JsonValue

NEAR_BEST = 0.8
"""Names that fit at least this share of the best one's score may be meant as well."""
CLEARLY = 0.9
"""A name stands out if no other fits at least this share of its score."""
_NAME_WEIGHT = 2.0
_STOP = word_list(
    """
    what which who whose whom when where how is are was were be been the a an of in on for to from by with and or that
    this these those it its can could you please identify provide tell me give find related relation incident incidents
    alert alerts during investigation observed detected detection involved associated used using security recent another
    same as there their they name known may might also part following subsequent within has have had did do does will
    would into at determine event events context linked connected connection further activity activities found seen
    report action processes file user account device host machine
    """
)
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e")
_WORD = re.compile(r"[a-z][a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Fit:
    """`score` of the alerts called `name`; `cover` is how much of the name's own words the question says, 0 to 1;
    `shared` is the weight of the words that question and story share."""

    name: str
    score: float
    cover: float
    shared: float


def fits(
    text: str, rows: Iterable[Mapping[str, JsonValue]], *, among: Iterable[Mapping[str, JsonValue]] | None = None
) -> list[Fit]:
    """The names of alerts with their scores, best first; names that fit in no word have score 0.

    How rare a word is goes by the rows of `among`, which are these ones where it is not given.
    """
    rows = list(rows)
    stories = _stories(rows)
    known = _stories(rows if among is None else among)
    count = len(known)
    frequency = Counter(word for name, told in known.values() for word in name | told)
    weight = {word: math.log(1 + count / frequency[word]) for word in frequency}
    asked = {word for word in words_of(text) if word in weight}
    found = []
    for name, (in_name, in_story) in stories.items():
        shared = sum(weight[word] for word in asked & (in_name | in_story))
        score = shared + sum((_NAME_WEIGHT - 1) * weight[word] for word in asked & in_name)
        own = sum(weight[word] for word in in_name)
        cover = sum(weight[word] for word in asked & in_name) / own if own else 0.0
        found.append(Fit(name, score * (0.5 + cover), cover, shared))
    return sorted(found, key=lambda fit: -fit.score)


def near_best(fitting: Sequence[Fit]) -> tuple[str, ...]:
    """The names that the words may mean; none if no word fits any."""
    best = fitting[0].score if fitting else 0.0
    return tuple(fit.name for fit in fitting if best > 0 and fit.score >= NEAR_BEST * best)


def clearly_best(fitting: Sequence[Fit]) -> str:
    """The name that fits better than any other by a tenth; empty if there is none."""
    if not fitting or fitting[0].score <= 0:
        return ""
    second = fitting[1].score if len(fitting) > 1 else 0.0
    return fitting[0].name if second < CLEARLY * fitting[0].score else ""


def words_of(text: str) -> set[str]:
    """The telling words of a text, without endings."""
    return {stem for word in _WORD.findall(text.lower()) if (stem := _stem(word)) not in _STOPPED}


def name_of(row: Mapping[str, JsonValue]) -> str:
    """What the alert is called."""
    return str(row.get("name") or "")


def _stories(rows: Iterable[Mapping[str, JsonValue]]) -> dict[str, tuple[set[str], set[str]]]:
    """(words of the name, words of the longest description) for each name."""
    longest: dict[str, str] = {}
    for row in rows:
        told = str(row.get("description") or "")
        name = name_of(row)
        if len(told) >= len(longest.get(name, "")):
            longest[name] = told
    return {name: (words_of(name), words_of(told)) for name, told in longest.items()}


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word


_STOPPED = frozenset(_stem(word) for word in _STOP)
