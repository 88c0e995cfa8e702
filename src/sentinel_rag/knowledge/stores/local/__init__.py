"""The lean default store: words by FTS5, vectors scanned exactly, all in one file and an array made of it."""

from sentinel_rag.knowledge.stores.local.store import LocalStore

__all__ = ["LocalStore"]
