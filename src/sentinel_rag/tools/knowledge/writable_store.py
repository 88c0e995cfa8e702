"""The store of this process for an ingest: with the model that fits it, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.stores import KnowledgeStore


@contextmanager
def writable_store(base: KnowledgeBase, *, by_words: bool) -> Iterator[tuple[KnowledgeStore, Embedder | None]]:
    """The store, held for writing, and the model to embed with: None with `by_words` where the store holds no vectors
    yet. Blocks. Raises UnavailableError for a store with vectors and no model, and what opening them raises."""
    opened = base.opened()
    has_vectors = opened.store.state().space is not None
    if has_vectors and opened.embedder is None:
        raise UnavailableError(
            f"The store holds vectors, and no embedding model is in use. {opened.lacking}".rstrip(),
            next_step=opened.next_step or "Set SENTINEL_EMBEDDINGS as it was, or run: sentinel knowledge rebuild",
        )
    with base.writing:
        try:
            yield opened.store, None if by_words and not has_vectors else opened.embedder
        finally:
            opened.rest()
