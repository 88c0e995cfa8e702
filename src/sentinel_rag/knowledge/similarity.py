"""A stored incident as a question: what is like it shares its words, techniques, tactics and entities.

Pure; the chunks come from a store, which has seen to it that the caller may read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sentinel_rag.knowledge.stores.port import StoredChunk

LONGEST = 6_000
"""Characters of the question. The beginning tells most: title, techniques and names come first."""
_MOST_ENTITIES = 60


def question_of(chunks: Sequence[StoredChunk], query: str | None = None) -> str:
    """The question that finds what is like the document of these chunks, `query` first. Needs one chunk at least."""
    return " ".join(_parts(chunks, query))[:LONGEST]


def _parts(chunks: Sequence[StoredChunk], query: str | None) -> Iterator[str]:
    first = chunks[0]
    if query:
        yield f"{query}."
    yield f"{first.title}."
    yield from first.facets.techniques
    yield from first.facets.tactics
    yield from first.facets.entities[:_MOST_ENTITIES]
    for chunk in chunks:
        yield " ".join(chunk.text.split())
