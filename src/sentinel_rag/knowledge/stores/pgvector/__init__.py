"""The store for teams: PostgreSQL with the extension `vector` (pgvector 0.8 or newer), in one schema of a database."""

from sentinel_rag.knowledge.stores.pgvector.store import PgVectorStore

__all__ = ["PgVectorStore"]
