"""Embedding models: the port that ingestion and search ask for vectors."""

from sentinel_rag.knowledge.embedding.port import Embedder

__all__ = ["Embedder"]
