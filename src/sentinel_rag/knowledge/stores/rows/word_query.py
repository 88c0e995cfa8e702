"""A question as an FTS5 query: its terms as alternatives, each quoted, so that nothing in it is syntax.

What has points or dashes inside (an address, a technique, a path) is a phrase of its parts in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sentinel_rag.knowledge.question_words import query_terms

_PARTS = re.compile(r"\w+")


def match_terms(text: str) -> tuple[str, ...]:
    """The FTS5 terms for a question, each a quoted word or phrase; none if it holds no word."""
    return tuple(dict.fromkeys(f'"{" ".join(_PARTS.findall(term))}"' for term in query_terms(text)))


def match_expression(terms: Iterable[str]) -> str:
    """The FTS5 expression that any of the terms satisfies."""
    return " OR ".join(terms)
