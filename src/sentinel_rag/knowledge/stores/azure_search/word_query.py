"""A question in the service's simple query syntax: its telling words as alternatives, each quoted, so that nothing in
it is an operator.

What has points or dashes inside is a phrase of its parts in order; what was joined by a colon, a slash or a dash is
looked for by its parts too, since people join words that no text joins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.knowledge.question_words import query_words

_JOINS = re.compile(r"[:/\\-]")
_SHORTEST_PART = 3


def search_expression(text: str) -> str:
    """Quoted words with blanks between, which `searchMode=any` reads as alternatives; empty if it holds no word."""
    return " ".join(dict.fromkeys(_terms(text)))


def _terms(text: str) -> Iterator[str]:
    for word in query_words(text):
        for term in (word, *(part for part in _JOINS.split(word) if len(part) >= _SHORTEST_PART)):
            # A backslash would escape the quote behind it; to the analyzer it is a break between words anyway.
            yield '"' + term.replace("\\", " ") + '"'
