"""Stores of knowledge: the port that all obey, and the local one."""

from sentinel_rag.knowledge.stores.local import LocalStore
from sentinel_rag.knowledge.stores.port import (
    EmbeddingMismatchError,
    KnowledgeStore,
    StoredChunk,
    StoreEntry,
    StoreHit,
    StoreState,
    VectorSpace,
    Version,
    Wanted,
)

__all__ = [
    "EmbeddingMismatchError",
    "KnowledgeStore",
    "LocalStore",
    "StoreEntry",
    "StoreHit",
    "StoreState",
    "StoredChunk",
    "VectorSpace",
    "Version",
    "Wanted",
]
