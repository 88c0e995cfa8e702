"""Stores of knowledge: the port that all obey, and the local one."""

from sentinel_rag.knowledge.stores.local import LocalStore
from sentinel_rag.knowledge.stores.port import (
    EmbeddingMismatchError,
    Entry,
    Found,
    KnowledgeStore,
    StoredChunk,
    StoreState,
    VectorSpace,
    Version,
    Wanted,
)

__all__ = [
    "EmbeddingMismatchError",
    "Entry",
    "Found",
    "KnowledgeStore",
    "LocalStore",
    "StoreState",
    "StoredChunk",
    "VectorSpace",
    "Version",
    "Wanted",
]
