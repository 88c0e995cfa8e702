"""Embedding models: the port that ingestion and search ask for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sentinel_rag.knowledge.stores.port import Vector, VectorSpace


# Calls block and may take long (a document) or short (a question); they raise SentinelError with the next step where
# the model is not there, refuses, or answers nonsense.
class Embedder(Protocol):
    """One model. Its vectors need not have unit length; stores see to that."""

    @property
    def space(self) -> VectorSpace:
        """The model and its dimensions, by which stores tell its vectors from another's."""
        ...

    @property
    def batch(self) -> int:
        """How many texts at once suit it."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Vectors of shape (texts, dimensions), float32. A text that is longer than the model reads is cut."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimensions,)."""
        ...
