"""BM25 over PostgreSQL's text search: its own ranks know neither how rare a word is nor how long a text is.

Words are parted here, so that the parser of PostgreSQL never sees an address or a path, and stemmed there. How often a
word stands in a text is read off `ts_rank`: for one word that is the sum of 1/i² over its places, by pi²/6. A phrase
counts as one place. What stands in the title or a heading (weight A, before the text) counts twice. k1 = 1.2 and
b = 0.75: all of this as in the local store.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

K1, B = 1.2, 0.75
MOST_RANKED = 5_000
"""Rows that are ranked: as many as the rarest words have, and always those of the rarest."""
_LONGEST = 100
_MOST_PLACES = 30
_WORD = re.compile(r"[^\W_]+")
_LIMIT = math.pi**2 / 6
_SUMS = list(accumulate(1 / place**2 for place in range(1, _MOST_PLACES + 1)))
EDGES = [(sum_ - 0.4 / (place + 1) ** 2) / _LIMIT for place, sum_ in enumerate(_SUMS)]
"""The least rank of a word that stands in a text once, twice and so on; a little under it, since ranks are float4."""


def words_of(text: str) -> list[str]:
    """The words in order, in lower case and without accents."""
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return [word[:_LONGEST] for word in _WORD.findall(plain.lower())]


_TIMES = "width_bucket(ts_rank('{{{0}}}', c.words, {1})::float8, %(edges)s::float8[])"
_LEXEME = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase of a question as a tsquery, and in how many chunks it is. `single`: a word."""

    query: str
    single: bool
    chunks: int

    def weight(self, chunks: int) -> float:
        """How much it tells among so many chunks (inverse document frequency)."""
        return max(1e-6, math.log((chunks - self.chunks + 0.5) / (self.chunks + 0.5))) if chunks else 1e-6


def telling(terms: Sequence[Term]) -> Sequence[Term]:
    """The rarest terms that are anywhere, as many as `MOST_RANKED` allows, but one."""
    taken: list[Term] = []
    left = MOST_RANKED
    for term in sorted((each for each in terms if each.chunks), key=lambda each: each.chunks):
        if taken and term.chunks > left:
            break
        taken.append(term)
        left -= term.chunks
    return taken


def score(terms: Sequence[Term], chunks: int, mean_length: float) -> tuple[str, dict[str, object]]:
    """BM25 of the row `c` as an SQL expression, and its parameters."""
    parts: list[str] = []
    values: dict[str, object] = {"edges": EDGES, "mean": mean_length}
    shape = f"{K1} * ({1 - B} + {B} * c.length / %(mean)s::float8)"
    for number, term in enumerate(terms):
        query = f"%(term{number})s::tsquery"
        times = (
            f"{_TIMES.format('1,1,1,1', query)} + {_TIMES.format('0,0,0,1', query)}"
            if term.single
            else f"2 * (c.words @@ %(head{number})s::tsquery)::int + (c.words @@ %(text{number})s::tsquery)::int"
        )
        parts.append(
            f"(SELECT %(weight{number})s::float8 * {K1 + 1} * t / (t + {shape}) FROM (SELECT {times} AS t) s{number})"
        )
        values[f"term{number}"] = term.query
        values[f"head{number}"] = _LEXEME.sub(r"\g<0>:A", term.query)
        values[f"text{number}"] = _LEXEME.sub(r"\g<0>:D", term.query)
        values[f"weight{number}"] = term.weight(chunks)
    return " + ".join(parts), values


def any_of(terms: Sequence[Term]) -> str:
    """The tsquery that any of the terms satisfies."""
    return " | ".join(f"({term.query})" for term in terms)
