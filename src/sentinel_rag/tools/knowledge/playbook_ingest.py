"""A folder of playbooks into the store of this process, for a surface that cannot open the store beside it.

Some stores have one owner at a time (Chroma), and while zones run that is this process. The folder is the person's own:
whoever holds the token of surfaces could read it anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.knowledge.ingest_lock import IngestLock
from sentinel_rag.knowledge.ingest_record import IngestFiles
from sentinel_rag.knowledge.playbook_owners import NOBODY, PlaybookOwner
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase
from sentinel_rag.tools.knowledge.writable_store import writable_store

if TYPE_CHECKING:
    from sentinel_rag.knowledge.folder_ingestion import FolderReport
    from sentinel_rag.knowledge.ingestion import ReportListener


@dataclass(frozen=True, slots=True)
class PlaybookRequest:
    """`folder` is absolute; `who` and `by_words` as in an `IngestWish`; `replaces` removes what is not in it."""

    who: str
    folder: str
    by_words: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class PlaybookOutcome:
    """What became of the folder; `lacking` and `next_step` say which embedding model is missing, if one is."""

    report: FolderReport
    by_words_only: bool
    lacking: str
    next_step: str


class PlaybookIngest:
    """Brings the playbooks of `base` up to a folder; `owner_of` tells whose its playbooks are."""

    def __init__(
        self, base: KnowledgeBase, files: IngestFiles, owner_of: Callable[[Path], PlaybookOwner] = lambda _: NOBODY
    ) -> None:
        self._base = base
        self._files = files
        self._owner_of = owner_of

    async def run(self, wish: PlaybookRequest, listener: ReportListener | None = None) -> PlaybookOutcome:
        """Raises UsageError for a folder that is not there, IngestRunsError, and what an ingest raises."""
        with IngestLock(self._files.lock).hold(wish.who, for_another=True):
            return await anyio.to_thread.run_sync(self._blocking, wish, listener)

    def _blocking(self, wish: PlaybookRequest, listener: ReportListener | None) -> PlaybookOutcome:
        from sentinel_rag.knowledge.folder_ingestion import ingest_folder

        folder = Path(wish.folder)
        if not folder.is_absolute() or not folder.is_dir():
            raise UsageError(f"There is no folder {folder}.", next_step="Name a folder with playbooks.")
        with writable_store(self._base, by_words=wish.by_words) as (store, embedder):
            owner = self._owner_of(folder)
            report = ingest_folder(store, embedder, folder, owner=owner, replaces=wish.replaces, listener=listener)
        opened = self._base.opened()
        return PlaybookOutcome(report, embedder is None, opened.lacking, opened.next_step)
