"""The local store: one SQLite file, and beside it the vectors as an array made of it; no service, no index to train.

Right for up to some 200,000 chunks: every vector is compared, so nothing near is missed and a filter costs nothing in
quality. Any number of processes may read while one writes.
"""

from __future__ import annotations

from pathlib import Path

from sentinel_rag.knowledge.stores.local.array_index import ArrayIndex, repair
from sentinel_rag.knowledge.stores.local.array_search import ArraySearch
from sentinel_rag.knowledge.stores.rows.reading import RowReader
from sentinel_rag.knowledge.stores.rows.row_store import RowStore
from sentinel_rag.knowledge.stores.rows.writing import RowWriter


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
