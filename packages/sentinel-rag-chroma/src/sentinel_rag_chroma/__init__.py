"""The `chroma` store: vectors searched by ChromaDB in its two collections, made of a file of rows; one owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_stores import StoreKind, needs_packages

if TYPE_CHECKING:
    from sentinel_rag.knowledge.stores import KnowledgeStore
    from sentinel_rag.settings import Settings


def _folder(settings: Settings) -> Path:
    return settings.knowledge.chroma_folder or settings.home / "knowledge" / "chroma"


def _open(settings: Settings) -> KnowledgeStore:
    with needs_packages("chroma", "sentinel-rag-chroma", "chromadb", "numpy"):
        from sentinel_rag_chroma.store import ChromaStore

        return ChromaStore(_folder(settings))


STORE = StoreKind(_open, lambda settings: str(_folder(settings)))
"""What the entry point `sentinel_rag.knowledge_stores` names."""
