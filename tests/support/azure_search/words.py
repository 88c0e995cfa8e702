"""Words: a text as tokens, a query in the simple syntax, and BM25 as Lucene computes it (k1 1.2, b 0.75).

Tokens are those of the standard tokenizer for alphabetic scripts: a point stays inside a number or between letters.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.support.azure_search.faults import unknown_here
from tests.support.azure_search.porter import stem

_TOKEN = re.compile(r"\w+(?:(?:(?<=[^\W\d_])[.:'’](?=[^\W\d_])|(?<=\d)[.,;'](?=\d))\w+)*")
_TERM = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+')
_OPERATORS = frozenset('+|-()*~"\\')
_K1 = 1.2
_B = 0.75


def tokens(text: str, filters: Iterable[str]) -> tuple[str, ...]:
    """The tokens of a text in order."""
    found = _TOKEN.findall(text)
    for name in filters:
        if name == "lowercase":
            found = [each.lower() for each in found]
        elif name == "asciifolding":
            found = [_folded(each) for each in found]
        else:
            found = [stem(each) for each in found]
    return tuple(found)


def phrases(query: str, filters: Sequence[str]) -> list[tuple[str, ...]]:
    """The alternatives of a query; operators outside quotes are not known here."""
    found: list[tuple[str, ...]] = []
    for term in _TERM.findall(query):
        if term.startswith('"'):
            text = re.sub(r"\\(.)", r"\1", term[1:-1])
        elif _OPERATORS & set(term):
            raise unknown_here(f"operators in a query, as in {term!r}")
        else:
            text = term
        phrase = tokens(text, filters)
        if phrase:
            found.append(phrase)
    return found


def bm25(alternatives: Sequence[tuple[str, ...]], texts: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """The score of every text that has any of the alternatives. Statistics are of all `texts`."""
    if not texts:
        return {}
    average = sum(map(len, texts.values())) / len(texts) or 1.0
    holding = Counter(token for text in texts.values() for token in set(text))
    scores: dict[str, float] = {}
    for phrase in alternatives:
        weight = sum(math.log(1 + (len(texts) - holding[token] + 0.5) / (holding[token] + 0.5)) for token in phrase)
        for key, text in texts.items():
            count = _occurrences(phrase, text)
            if count:
                length = 1 - _B + _B * len(text) / average
                scores[key] = scores.get(key, 0.0) + weight * count / (count + _K1 * length)
    return scores


def _occurrences(phrase: tuple[str, ...], text: tuple[str, ...]) -> int:
    if len(phrase) == 1:
        return text.count(phrase[0])
    return sum(text[start : start + len(phrase)] == phrase for start in range(len(text) - len(phrase) + 1))


def _folded(token: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", token) if not unicodedata.combining(each))
