"""The words of a question that tell something: what is searched for, and what a hit is explained by."""

from __future__ import annotations

import re
from itertools import pairwise

MOST_WORDS = 48
MOST_PAIRS = 48
_LONGEST_WORD = 100
_WORD = re.compile(r"\w+(?:[.@:/\\-]\w+)*")
_PART = re.compile(r"\w+")

# Words that nearly every text has: they cost most of the time and tell nothing.
_STOP = frozenset(
    word
    for line in """
    a about after all also an and any are as at be because been before being but by can could did do does for from
    get give had has have having he her here him his how i if in into is it its just me more most my no nor not now
    of on once only or other our out over own please she should show so some such tell than that the their them then
    there these they this those through to too under until up us very was we were what when where which while who
    whom why will with would you your
    """.splitlines()
    for word in line.split()
)


def query_words(text: str) -> tuple[str, ...]:
    """The telling words of a question in lower case, each once, in order; all of them if none tells anything."""
    found = dict.fromkeys(word.casefold()[:_LONGEST_WORD] for word in _WORD.findall(text))
    telling = [word for word in found if word not in _STOP]
    return tuple((telling or list(found))[:MOST_WORDS])


_JOINS = re.compile(r"[:/\\-]")
_SHORTEST_PART = 3


def query_terms(text: str) -> tuple[str, ...]:
    """What of a question is looked for, each once: its telling words, and of what was joined by a colon, a slash or a
    dash the parts too, since people join words that no text joins. One with points or signs inside (an address, a
    path) is a phrase of its parts in order. Two telling words side by side are a phrase too, with a blank between them:
    "domain controller" says more than both words do."""
    words = [
        term
        for word in query_words(text)
        for term in (word, *(part for part in _JOINS.split(word) if len(part) >= _SHORTEST_PART))
    ]
    found: dict[tuple[str, ...], str] = {}
    for term in (*words, *map(" ".join, word_pairs(text))):
        found.setdefault(tuple(_PART.findall(term)), term)
    return tuple(found.values())


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Telling words of a question that stand side by side, in lower case, each pair once, in order."""
    words = [word.casefold()[:_LONGEST_WORD] for word in _PART.findall(text)]
    pairs = dict.fromkeys(pair for pair in pairwise(words) if _STOP.isdisjoint(pair))
    return tuple(pairs)[:MOST_PAIRS]
