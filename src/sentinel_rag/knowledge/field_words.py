"""What the field's own words mean: event numbers, programs, operations and abbreviations, spelled out for a search.

A question says 4769 or comsvcs, a text speaks of a Kerberos service ticket or of credential dumping; neither the words
nor a small embedding model bring them together. The list is a data file of this package, made by kinds of words; the
benchmark's second set of questions was known to whoever wrote it, so that set does not say how well the list covers
others' words. Above is the search; nothing here knows of stores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

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
