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
    telling = [word for word in found if _tells(word)]
    return tuple((telling or list(found))[:MOST_WORDS])


def _tells(word: str) -> bool:
    """Not a word that nearly every text has, nor a single letter: the C of a path stands in every second alert."""
    return word not in _STOP and not (len(word) == 1 and word.isascii() and word.isalpha())


_JOINS = re.compile(r"[:/\\-]")
_SHORTEST_PART = 3
_SHORT = 6
"""Words up to which a question is taken to name what it is about; longer ones are texts, such as an incident's."""


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
    pairs = dict.fromkeys(pair for pair in pairwise(words) if all(map(_tells, pair)))
    return tuple(pairs)[:MOST_PAIRS]


def named_share(text: str, title: str, file: str) -> float:
    """How much a question names a document, from 0 to 1: the part of its telling words that stand in title or file, or
    the part of the file's words that stand in it ("rules" and "rule" are one). A long text names less with each."""
    words = query_words(text)
    if not words:
        return 0.0
    asked = [_parts(word) for word in words]
    of_file = _parts(file.rpartition(".")[0] or file)
    names = of_file | _parts(title)
    share = sum(word <= names for word in asked) / len(asked)
    covered = len(of_file & frozenset().union(*asked)) / len(of_file) if of_file else 0.0
    # Squared, since half a name ("compromise") is less than half of one.
    return max(share, covered) ** 2 * min(1.0, _SHORT / len(words))


def _parts(text: str) -> frozenset[str]:
    return frozenset(part.removesuffix("s") for part in _PART.findall(text.casefold().replace("_", " ")))
