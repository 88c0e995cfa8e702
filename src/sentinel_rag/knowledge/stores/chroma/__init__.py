"""The `chroma` store: vectors searched by ChromaDB in its two collections, made of a file of rows; one owner."""

from sentinel_rag.knowledge.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]
