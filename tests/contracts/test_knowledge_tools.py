"""The knowledge tool's schema agrees with the library that answers it and with the vocabulary of Sentinel."""

from __future__ import annotations

from sentinel_rag.contracts.knowledge_tools import KNOWLEDGE_TOOLS, MAX_HITS, MAX_QUESTION_CHARACTERS
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.search import LONGEST_QUERY, MOST_HITS


def test_collections_and_bounds_are_those_of_the_library() -> None:
    (tool,) = KNOWLEDGE_TOOLS
    assert tool in SHIPPED_TOOLS
    assert set(tool.parameter_schemas()["collection"]["enum"]) == {each.value for each in Collection}  # type: ignore[arg-type]
    assert MAX_HITS <= MOST_HITS
    assert MAX_QUESTION_CHARACTERS <= LONGEST_QUERY
