"""A store of rows in one file, with the vector search that it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sentinel_rag.knowledge.stores.parts import StoreOfParts
from sentinel_rag.knowledge.stores.port import VectorSearch
from sentinel_rag.knowledge.stores.rows.reading import RowReader
from sentinel_rag.knowledge.stores.rows.writing import RowWriter


class RowVectorSearch(VectorSearch, Protocol):
    """The vector side over the rows of one store."""

    def close(self) -> None:
        """Let go of files."""
        ...


class RowStore(StoreOfParts):
    """A `KnowledgeStore` of these parts, all of one file. Threads may share it; close it or use `with`."""

    def __init__(self, path: Path, reading: RowReader, writing: RowWriter, vectors: RowVectorSearch) -> None:
        def close() -> None:
            vectors.close()
            reading.close()
            writing.close()

        self.path = path
        super().__init__(reading, writing, vectors=vectors, kept=writing, close=close)
