"""The store and the model of this process: opened with the first call that needs them, then shared.

Assembly says how they are opened and what an empty store is begun with; the search and the ingestion of incidents use
them from their own threads. Whoever writes holds `writing`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError

if TYPE_CHECKING:
    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.stores.port import KnowledgeStore


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """`embedder` is None where no model is in use; then `lacking` and `next_step` say what is missing, or nothing where
    none is wanted. `close` lets go of both, `rest` of the memory that embedding documents took."""

    store: KnowledgeStore
    embedder: Embedder | None
    lacking: str = ""
    next_step: str = ""
    close: Callable[[], None] = lambda: None
    rest: Callable[[], None] = lambda: None


def _never() -> datetime | None:
    return None


class KnowledgeBase:
    """`opening` may raise SentinelError; then the next call tries again. `begin` fills a store that holds no document,
    once. `incidents_as_of` tells when past incidents were last brought up to date. `workspaces` are the names of those
    whose incidents may be here; `workspace_ids` their GUIDs by name, where the store is shared with others."""

    def __init__(
        self,
        opening: Callable[[], OpenedStore],
        *,
        begin: Callable[[KnowledgeStore], None] = lambda _: None,
        incidents_as_of: Callable[[], datetime | None] = _never,
        workspaces: Sequence[str] = (),
        workspace_ids: Mapping[str, str] | None = None,
    ) -> None:
        self._opening = opening
        self._begin = begin
        self.incidents_as_of = incidents_as_of
        self.workspaces = tuple(workspaces)
        self.workspace_ids = workspace_ids or {}
        self.writing = threading.Lock()
        self._lock = threading.Lock()
        self._opened: OpenedStore | None = None
        self._has_vectors = False

    def opened(self) -> OpenedStore:
        """The store and the model. Blocks. Raises what opening them raises."""
        with self._lock:
            if self._opened is None:
                opened = self._opening()
                try:
                    if not any(opened.store.state().documents.values()):
                        with self.writing:
                            self._begin(opened.store)
                except BaseException:
                    opened.close()
                    raise
                self._opened = opened
            return self._opened

    def embedder(self) -> Embedder | None:
        """The model, if there is one and the store holds vectors: for a store without any, none need be loaded."""
        opened = self.opened()
        if opened.embedder is not None and not self._has_vectors:
            self._has_vectors = opened.store.state().space is not None
        return opened.embedder if self._has_vectors else None

    def close(self) -> None:
        """Let go of what was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None


@contextmanager
def writable_store(base: KnowledgeBase, *, by_words: bool) -> Iterator[tuple[KnowledgeStore, Embedder | None]]:
    """The store, held for writing, and the model to embed with: None with `by_words` where the store holds no vectors
    yet. Blocks. Raises UnavailableError for a store with vectors and no model, and what opening them raises."""
    opened = base.opened()
    has_vectors = opened.store.state().space is not None
    if has_vectors and opened.embedder is None:
        raise UnavailableError(
            f"The store holds vectors, and no embedding model is in use. {opened.lacking}".rstrip(),
            next_step=opened.next_step or "Set SENTINEL_EMBEDDINGS as it was, or run: sentinel knowledge rebuild",
        )
    with base.writing:
        try:
            yield opened.store, None if by_words and not has_vectors else opened.embedder
        finally:
            opened.rest()
