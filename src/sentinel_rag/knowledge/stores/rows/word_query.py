"""A question as an FTS5 query: its telling words as alternatives, each quoted, so that nothing in it is syntax.

What has points or dashes inside (an address, a technique, a path) is a phrase of its parts in order; what was joined by
a colon, a slash or a dash is looked for by its parts too, since people join words that no text joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sentinel_rag.knowledge.question_words import query_words

_PARTS = re.compile(r"\w+")
_JOINS = re.compile(r"[:/\\-]")
_SHORTEST_PART = 3


def match_terms(text: str) -> tuple[str, ...]:
    """The FTS5 terms for a question, each a quoted word or phrase; none if it holds no word."""
    return tuple(dict.fromkeys(_terms(text)))


def match_expression(terms: Iterable[str]) -> str:
    """The FTS5 expression that any of the terms satisfies."""
    return " OR ".join(terms)


def _terms(text: str) -> Iterator[str]:
    for word in query_words(text):
        for term in (word, *(part for part in _JOINS.split(word) if len(part) >= _SHORTEST_PART)):
            yield f'"{" ".join(_PARTS.findall(term))}"'
