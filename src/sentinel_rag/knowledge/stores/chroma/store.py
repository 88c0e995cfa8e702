"""The Chroma store: the rows of the local store, their words by FTS5, and the vectors in ChromaDB's two collections.

The file of rows is the truth and all that a backup needs; Chroma's part, the folder `index`, is made of it, compared
with it whenever the store is opened, and made again where it is lost, cut or cannot be read. One process at a time.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.chroma.collections import VectorCollections, chromadb_module
from sentinel_rag.knowledge.stores.chroma.index import ChromaIndex, settle
from sentinel_rag.knowledge.stores.chroma.ownership import LOCK_FILE, Ownership, Phase
from sentinel_rag.knowledge.stores.chroma.search import ChromaSearch
from sentinel_rag.knowledge.stores.rows.reading import Reading, moment_of
from sentinel_rag.knowledge.stores.rows.row_store import RowStore
from sentinel_rag.knowledge.stores.rows.writing import Writing, current_space

ROWS_FILE = "knowledge.db"
INDEX_FOLDER = "index"


class ChromaStore(RowStore):
    """A `KnowledgeStore` in `folder`, made where there is none. Threads may share it, other processes may not: they get
    UnavailableError with this one's pid until `close`."""

    def __init__(self, folder: Path) -> None:
        chromadb_module()
        _make(folder)
        self._owner = Ownership(folder)
        rows = folder / ROWS_FILE
        with ExitStack() as undo:
            undo.callback(self._owner.release)
            undo.callback(self._owner.tell, self._owner.before)
            self._owner.tell(Phase.CHECKING)
            reading = Reading(rows)
            undo.callback(reading.close)
            collections = _opened(folder / INDEX_FOLDER, reading, self._owner.before)
            undo.callback(collections.close)
            writing = Writing(rows, ChromaIndex(collections))
            undo.pop_all()
        self._owner.tell(Phase.OPEN)
        super().__init__(rows, reading, writing, ChromaSearch(reading, collections))

    def close(self) -> None:
        super().close()
        self._owner.tell(Phase.CLOSED)
        self._owner.release()


def _opened(index: Path, reading: Reading, before: Phase) -> VectorCollections:
    """The collections as the rows say; made again from them where Chroma cannot open or read what is there, or where
    the last owner died of looking at it."""
    if before is not Phase.CHECKING:
        try:
            return _settled(index, reading, probe=before is Phase.OPEN)
        except UnavailableError:
            pass
    shutil.rmtree(index, ignore_errors=True)
    return _settled(index, reading, probe=False)


def _settled(index: Path, reading: Reading, *, probe: bool) -> VectorCollections:
    collections = VectorCollections(index)
    try:
        with reading.snapshot() as connection:
            held = current_space(connection)
            settle(connection, held, collections)
            space = moment_of(connection).space
        if probe and space is not None:
            import numpy as np

            for each in Collection:  # after a kill: reads the graph's files, which opening does not
                collections.nearest(each, space, np.ones(space.dimensions, dtype=np.float32), 1, None)
    except BaseException:
        collections.close()
        raise
    return collections


def _make(folder: Path) -> None:
    """The folder, if it is ours to make or was made by a store."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / LOCK_FILE).exists():
            raise UnavailableError(
                f"The folder {folder} holds other files and no knowledge store.",
                next_step="Set SENTINEL_CHROMA_PATH to a new or an empty folder.",
            )
    except OSError as error:
        raise UnavailableError(
            f"The folder {folder} cannot be used: {error.strerror or error}.",
            next_step="Make it writable, or set SENTINEL_CHROMA_PATH to a folder that is.",
        ) from None
