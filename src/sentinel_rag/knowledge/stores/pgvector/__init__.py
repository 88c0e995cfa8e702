"""The store for teams: PostgreSQL with the extension `vector` (pgvector 0.8 or newer), in one schema of a database."""

from sentinel_rag.knowledge.stores.pgvector.connections import PgvectorPool
from sentinel_rag.knowledge.stores.pgvector.reading import PgvectorReader
from sentinel_rag.knowledge.stores.pgvector.writing import PgvectorWriter
from sentinel_rag.knowledge.stores.port import StoreOfParts

__all__ = ["PgVectorStore"]


EXACT_BELOW = 5_000


class PgVectorStore(StoreOfParts):
    """A `KnowledgeStore` in the schema `schema` of the database at `url` (postgresql://...), made where there is none.
    Threads may share it; close it or use `with`. Raises UnavailableError; no text of its errors holds a password."""

    def __init__(self, url: str, schema: str, *, exact_below: int = EXACT_BELOW) -> None:
        connections = PgvectorPool(url, schema)
        reading = PgvectorReader(connections, exact_below=exact_below)
        writing = PgvectorWriter(connections, exact_below=exact_below)
        super().__init__(reading, writing, vectors=reading, kept=reading, close=connections.close)
