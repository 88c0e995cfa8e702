"""A question in the service's simple query syntax: its terms as alternatives, each quoted, so that nothing in it is an
operator.

What has points or dashes inside is a phrase of its parts in order.
"""

from __future__ import annotations

from sentinel_rag.knowledge.question_words import query_terms


def search_expression(text: str) -> str:
    """Quoted terms with blanks between, which `searchMode=any` reads as alternatives; empty if it holds no word."""
    # A backslash would escape the quote behind it; to the analyzer it is a break between words anyway.
    return " ".join(dict.fromkeys('"' + term.replace("\\", " ") + '"' for term in query_terms(text)))
