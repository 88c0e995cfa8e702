"""The Chroma store: the rows of the local store, their words by FTS5, and the vectors in ChromaDB's two collections.

The file of rows is the truth and all that a backup needs; Chroma's part, the folder `index`, is made of it, compared
with it whenever the store is opened, and made again where it is lost, cut or cannot be read. One process at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import ExitStack
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.stores.local import RowStore
from sentinel_rag.knowledge.stores.rows import RowReader, RowWriter, current_space
from sentinel_rag_chroma.collections import ChromaFailedError, VectorCollections, chromadb_module
from sentinel_rag_chroma.index import ChromaIndex, settle
from sentinel_rag_chroma.ownership import LOCK_FILE, Left, Ownership, Phase
from sentinel_rag_chroma.search import ChromaSearch

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
            undo.callback(self._owner.tell, self._owner.before.phase)
            self._owner.tell(Phase.CHECKING)
            reading = RowReader(rows)
            undo.callback(reading.close)
            collections = _opened(folder / INDEX_FOLDER, reading, self._owner.before)
            undo.callback(collections.close)
            writing = RowWriter(rows, ChromaIndex(collections))
            undo.pop_all()
        self._owner.tell(Phase.OPEN)
        self._collections = collections
        super().__init__(rows, reading, writing, ChromaSearch(reading, collections))

    def close(self) -> None:
        super().close()
        phase = Phase.OPEN if self._collections.suspect else Phase.CLOSED
        self._owner.tell(phase, _sizes(self.path.with_name(INDEX_FOLDER)))
        self._owner.release()


def _opened(index: Path, reading: RowReader, before: Left) -> VectorCollections:
    """The collections as the rows say; made again from them where Chroma cannot open or read what is there, or where
    the last owner died of looking at it."""
    if before.phase is not Phase.CHECKING:
        thorough = before.phase is not Phase.CLOSED or before.index != _sizes(index)
        try:
            return _settled(index, reading, thorough=thorough)
        except ChromaFailedError:
            pass  # a fault of the rows is no reason to throw away what Chroma has
    shutil.rmtree(index, ignore_errors=True)
    return _settled(index, reading, thorough=False)


def _settled(index: Path, reading: RowReader, *, thorough: bool) -> VectorCollections:
    collections = VectorCollections(index)
    try:
        with reading.snapshot() as connection:
            settle(connection, current_space(connection), collections, thorough=thorough)
    except BaseException:
        collections.close()
        raise
    return collections


def _sizes(index: Path) -> str:
    """A hash of the names and sizes of the index's files: a graph that was cut tells nothing of it by itself."""
    told = sorted((str(each.relative_to(index)), each.stat().st_size) for each in index.rglob("*") if each.is_file())
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


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
