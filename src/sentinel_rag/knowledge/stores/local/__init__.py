"""The lean default store: words by FTS5, vectors scanned exactly, all in one file and an array made of it."""

from pathlib import Path
from typing import Protocol

from sentinel_rag.knowledge.stores.local.array_index import ArrayIndex, repair
from sentinel_rag.knowledge.stores.local.array_search import ArraySearch
from sentinel_rag.knowledge.stores.parts import StoreOfParts
from sentinel_rag.knowledge.stores.port import VectorSearch
from sentinel_rag.knowledge.stores.rows.reading import RowReader
from sentinel_rag.knowledge.stores.rows.writing import RowWriter

__all__ = ["LocalStore"]


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


class LocalStore(RowStore):
    """A `KnowledgeStore` in the file `path`, made where there is none. Threads may share it; close it or use `with`."""

    def __init__(self, path: Path) -> None:
        index = ArrayIndex(path)
        writing = RowWriter(path, index)
        try:
            repair(path, writing, index)
            reading = RowReader(path)
        except BaseException:
            writing.close()
            raise
        super().__init__(path, reading, writing, ArraySearch(path, reading))
