"""Names: lists of them in the source, and which known ones a wrong one may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NEAREST = 3


def words(text: str) -> frozenset[str]:
    """The words of a text that lists names."""
    return frozenset(text.split())


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most three known names, best first: the same but for its case, then alike, then one within the other."""
    candidates = tuple(dict.fromkeys(known))
    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(candidate.casefold(), candidate)
    wanted = name.casefold()
    found = [folded[each] for each in difflib.get_close_matches(wanted, folded, n=MOST_NEAREST, cutoff=0.7)]
    if len(wanted) >= 4:
        found += [candidate for key, candidate in folded.items() if wanted in key or (len(key) >= 4 and key in wanted)]
    return tuple(dict.fromkeys(each for each in found if each != name))[:MOST_NEAREST]


def said_nearest(nearest: tuple[str, ...]) -> str:
    """` Did you mean 'A' or 'B'?`, or nothing."""
    if not nearest:
        return ""
    return f" Did you mean {' or '.join(repr(each) for each in nearest)}?"
