"""The words that a question searches for, and what the field's own words mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise

# A question says 4769 or comsvcs, a text speaks of a Kerberos service ticket or of credential dumping; neither the
# words nor a small embedding model bring them together. The list is a data file of this package, made by kinds of
# words; the benchmark's second set of questions was known to whoever wrote it, so that set does not say how well the
# list covers others' words.
_MOST_MEANINGS = 8
_EVENT = re.compile(r"\b(?:event\s*ids?|events|eid)\b[\s:=]*(?=\d)|\bevent[\s:=]+(?=\d)")


def meanings_of(text: str) -> tuple[str, ...]:
    """What the terms of the list that `text` holds mean, each meaning once, in the order of the terms."""
    normal = _EVENT.sub("event ", " ".join(text.casefold().split()))
    terms, known = _terms()
    found = dict.fromkeys(known[match[0]] for match in terms.finditer(normal))
    return tuple(found)[:_MOST_MEANINGS]


@cache
def field_words() -> Mapping[str, str]:
    """Every term of the list, in lower case, with its meaning."""
    found: dict[str, str] = {}
    text = (files("sentinel_rag.knowledge") / "field_words.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            terms, meaning = line.split("\t")
            for term in terms.split(", "):
                found[term.casefold()] = meaning
    return found


@cache
def _terms() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """One pattern for all terms, longer ones first, and their meanings."""
    known = field_words()
    longest_first = sorted(known, key=lambda term: (-len(term), term))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"), known


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
