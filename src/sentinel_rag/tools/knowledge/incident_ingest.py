"""The ingestion of incidents in this process: asked for by a surface or by the clock, never by the agent.

It works in a thread while searches go on, one run at a time, and writes down as of when the incidents are known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.knowledge.ingest_lock import IngestLock
from sentinel_rag.knowledge.ingest_record import (
    IngestFiles,
    WorkspaceRecord,
    incidents_as_of,
    read_ingest_record,
    write_ingest_record,
)
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase
from sentinel_rag.tools.knowledge.writable_store import writable_store

if TYPE_CHECKING:
    from sentinel_rag.knowledge.incident_ingestion import ProgressListener, WorkspaceReport
    from sentinel_rag.tools.knowledge.incident_source import SentinelIncidents

_LOG = logging.getLogger(__name__)

DAYS = 90
"""How far back incidents are read in unless somebody says otherwise: as long as Sentinel's log keeps rows."""
MOST_DAYS = 3_650


@dataclass(frozen=True, slots=True)
class WorkspacesToRead:
    """The workspaces of a run. `unreadable` are those whose incidents cannot be read, each with the reason."""

    readable: Sequence[SentinelIncidents]
    unreadable: Mapping[str, str]


OpenWorkspaces = Callable[[], AbstractAsyncContextManager[WorkspacesToRead]]
"""Connects for one run, and closes the connections after it."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """What somebody asks for. `who` is told to others meanwhile. `by_words`: no vectors are made if the store holds
    none yet, so that a first run takes a second; `reread`: what did not change is read too."""

    who: str
    days: int = DAYS
    by_words: bool = False
    reread: bool = False


class IncidentIngest:
    """Runs one ingest after the other into `base`. `shared`: people with other workspaces use the same store."""

    def __init__(
        self,
        base: KnowledgeBase,
        workspaces: OpenWorkspaces,
        files: IngestFiles,
        *,
        shared: bool = False,
        clock: Clock = utc_now,
    ) -> None:
        self._base = base
        self._workspaces = workspaces
        self._lock = IngestLock(files.lock)
        self._record = files.record
        self._shared = shared
        self._clock = clock
        self._holds_some = False

    def as_of(self) -> datetime | None:
        """The moment as of which past incidents are known. Blocks; raises what opening the store raises."""
        if not self.has_run:
            return None
        from sentinel_rag.knowledge.documents import Collection

        if not self._holds_some:  # counting takes as long as a search in a large store
            held = self._base.opened().store.state().documents[Collection.INCIDENTS]
            self._holds_some = held > 0
        return incidents_as_of(self._record, held=int(self._holds_some))

    @property
    def has_run(self) -> bool:
        """Whether incidents of a workspace that is served were ever read in, so that somebody wants them. Where those
        of others were, a run that nobody asked for would put these in their place."""
        served = self._base.workspaces
        return any(each.workspace in served or not served for each in read_ingest_record(self._record))

    @property
    def last_days(self) -> int:
        """How far back the last run read incidents in; `DAYS` before there was one."""
        return max((each.days for each in read_ingest_record(self._record)), default=DAYS)

    async def run(self, wish: IngestRequest, listener: ProgressListener | None = None) -> tuple[WorkspaceReport, ...]:
        """One run over all workspaces; a report for each. `listener` is called in the thread of the run.

        Raises IngestRunsError while another run is at work, UnavailableError if no workspace can be read or the store
        cannot be used, EmbeddingMismatchError. A cancelled run ends with the step that it is in; the next one goes on.
        """
        with self._lock.hold(wish.who, for_another=True):
            async with self._workspaces() as found:
                if not found.readable:
                    told = " ".join(found.unreadable.values()) or "There is no workspace."
                    raise UnavailableError(
                        f"No workspace's incidents can be read. {told}", next_step="Run: sentinel doctor"
                    )
                return await anyio.to_thread.run_sync(self._blocking, wish, found, listener)

    def _blocking(
        self, wish: IngestRequest, found: WorkspacesToRead, listener: ProgressListener | None
    ) -> tuple[WorkspaceReport, ...]:
        from sentinel_rag.knowledge.incident_ingestion import WorkspaceReport, ingest_incidents
        from sentinel_rag.knowledge.ingestion import IngestReport
        from sentinel_rag.tools.knowledge.incident_source import FromThread

        began = self._clock()
        before = {each.workspace: each for each in read_ingest_record(self._record)}
        with writable_store(self._base, by_words=wish.by_words) as (store, embedder):
            reports = ingest_incidents(
                store,
                embedder,
                [FromThread(each) for each in found.readable],
                since=began - timedelta(days=wish.days),
                reread=wish.reread,
                listener=listener,
                also_served=found.unreadable.keys(),
                formerly_served=before.keys(),
                shared=self._shared,
            )
        reports += tuple(
            WorkspaceReport(name, IngestReport(), fault=why, next_step="Set SENTINEL_WORKSPACE_RESOURCE_ID.")
            for name, why in found.unreadable.items()
        )
        write_ingest_record(
            self._record,
            [
                WorkspaceRecord(
                    each.workspace,
                    _as_of(before.get(each.workspace)) if each.fault else began,
                    began,
                    each.listed,
                    each.partial,
                    wish.days,
                    each.fault,
                )
                for each in reports
                if each.served
            ],
        )
        for each in reports:
            done = each.ingested
            told = (
                wish.who,
                each.workspace,
                done.added,
                done.changed,
                done.unchanged,
                done.removed,
                each.fault or "no",
            )
            _LOG.info("%s read incidents of %s: %d new, %d changed, %d as before, %d removed; fault: %s", *told)
        return reports


def _as_of(record: WorkspaceRecord | None) -> datetime | None:
    return None if record is None else record.as_of
