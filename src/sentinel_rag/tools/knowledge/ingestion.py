"""Ingests of playbooks and incidents into the open store, at intervals and when an operator asks."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import uuid4

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.knowledge.ingestion import (
    NOBODY,
    IngestFiles,
    IngestLock,
    PlaybookOwner,
    WorkspaceRecord,
    incidents_as_of,
    read_ingest_record,
    write_ingest_record,
)
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, writable_store
from sentinel_rag.tools.mcp_frame import TokenAuthentication

if TYPE_CHECKING:
    from sentinel_rag.knowledge.incident_ingestion import IngestProgress, ProgressListener, WorkspaceReport
    from sentinel_rag.knowledge.ingestion import FolderReport, IngestReport, ReportListener
    from sentinel_rag.tools.knowledge.incident_source import SentinelIncidents


# Some stores have one owner at a time (Chroma), and while zones run that is this process. The folder is the person's
# own: whoever holds the token of surfaces could read it anyway.
@dataclass(frozen=True, slots=True)
class PlaybookRequest:
    """`folder` is absolute; `who` and `by_words` as in an `IngestWish`; `replaces` removes what is not in it; what
    `new` names must not be there."""

    who: str
    folder: str
    by_words: bool = False
    replaces: bool = False
    new: Sequence[str] = ()


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

    async def run(self, request: PlaybookRequest, listener: ReportListener | None = None) -> PlaybookOutcome:
        """Raises UsageError for a folder that is not there, IngestRunsError, and what an ingest raises."""
        with IngestLock(self._files.lock).hold(request.who, for_another=True):
            return await anyio.to_thread.run_sync(self._blocking, request, listener)

    def _blocking(self, request: PlaybookRequest, listener: ReportListener | None) -> PlaybookOutcome:
        from sentinel_rag.knowledge.ingestion import ingest_folder

        folder = Path(request.folder)
        if not folder.is_absolute() or not folder.is_dir():
            raise UsageError(f"There is no folder {folder}.", next_step="Name a folder with playbooks.")
        if taken := sorted(set(request.new).intersection(self.held())):  # no other run puts one in meanwhile
            raise UsageError(
                f"There is a playbook {taken[0]} already.",
                next_step="Replace it, or give the file another name.",
                code="exists",
            )
        with writable_store(self._base, by_words=request.by_words) as (store, embedder):
            owner = self._owner_of(folder)
            report = ingest_folder(store, embedder, folder, owner=owner, replaces=request.replaces, listener=listener)
        opened = self._base.opened()
        return PlaybookOutcome(report, embedder is None, opened.lacking, opened.next_step)

    def held(self) -> list[str]:
        """The ids of this home's playbooks. Blocks; raises what opening the store raises."""
        from sentinel_rag.knowledge.documents import Collection

        return sorted(self._owner().of(self._base.opened().store.versions(Collection.PLAYBOOKS)))

    async def remove(self, who: str, names: Sequence[str]) -> None:
        """Remove those playbooks of this home and nothing else. Raises UsageError for one that is not there,
        IngestRunsError, and what opening the store raises."""
        with IngestLock(self._files.lock).hold(who, for_another=True):
            await anyio.to_thread.run_sync(self._remove, names)

    def _remove(self, names: Sequence[str]) -> None:
        from sentinel_rag.knowledge.ingestion import remove_playbooks

        store = self._base.opened().store  # before the lock, which opening an empty store takes itself
        with self._base.writing:
            remove_playbooks(store, names, self._owner())

    def _owner(self) -> PlaybookOwner:
        """Whose those of any folder but the shipped one are."""
        return self._owner_of(self._files.lock.parent)


_LOG = logging.getLogger(__name__)

# The ingestion of incidents in this process: asked for by a surface or by the clock, never by the agent. It works in a
# thread while searches go on, one run at a time, and writes down as of when the incidents are known.
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

    async def run(
        self, request: IngestRequest, listener: ProgressListener | None = None
    ) -> tuple[WorkspaceReport, ...]:
        """One run over all workspaces; a report for each. `listener` is called in the thread of the run.

        Raises IngestRunsError while another run is at work, UnavailableError if no workspace can be read or the store
        cannot be used, EmbeddingMismatchError. A cancelled run ends with the step that it is in; the next one goes on.
        """
        with self._lock.hold(request.who, for_another=True):
            async with self._workspaces() as found:
                if not found.readable:
                    told = " ".join(found.unreadable.values()) or "There is no workspace."
                    raise UnavailableError(
                        f"No workspace's incidents can be read. {told}", next_step="Run: sentinel doctor"
                    )
                return await anyio.to_thread.run_sync(self._blocking, request, found, listener)

    def _blocking(
        self, request: IngestRequest, found: WorkspacesToRead, listener: ProgressListener | None
    ) -> tuple[WorkspaceReport, ...]:
        from sentinel_rag.knowledge.incident_ingestion import WorkspaceReport, ingest_incidents
        from sentinel_rag.knowledge.ingestion import IngestReport
        from sentinel_rag.tools.knowledge.incident_source import FromThread

        began = self._clock()
        before = {each.workspace: each for each in read_ingest_record(self._record)}
        with writable_store(self._base, by_words=request.by_words) as (store, embedder):
            reports = ingest_incidents(
                store,
                embedder,
                [FromThread(each) for each in found.readable],
                since=began - timedelta(days=request.days),
                reread=request.reread,
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
                    request.days,
                    each.fault,
                )
                for each in reports
                if each.served
            ],
        )
        for each in reports:
            done = each.ingested
            told = (
                request.who,
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


# The first one comes after a whole interval, so that a short command never pays for it; and none comes where nobody has
# ever read incidents in.
WHO = "the refresh that runs by itself"


class Refreshing:
    """`app`, with an ingest each `every_s` seconds between its start and its end."""

    def __init__(
        self,
        app: ASGIApp,
        ingest: IncidentIngest,
        *,
        every_s: float,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._app = app
        self._ingest = ingest
        self._every_s = every_s
        self._sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._again_and_again)
            await self._app(scope, receive, send)
            group.cancel_scope.cancel()

    async def _again_and_again(self) -> None:
        while True:
            await self._sleep(self._every_s)
            await self.once()

    async def once(self) -> None:
        """One refresh. What goes wrong is written to the log, and to the record that `status` shows."""
        if not self._ingest.has_run:
            return
        try:
            reports = await self._ingest.run(IngestRequest(WHO, self._ingest.last_days))
        except SentinelError as error:
            _LOG.warning("Past incidents were not refreshed: %s %s", error, error.next_step)
            return
        except Exception:  # the next interval may be better; the server goes on
            _LOG.exception("Past incidents were not refreshed")
            return
        for report in reports:
            if report.fault:
                _LOG.warning("Incidents of %s were not refreshed: %s", report.workspace, report.fault)


# `{"progress": ...}` again and again, then what the work returned, or `{"error": ...}`. A client that goes away ends
# the work with the step that it is in.
_LINES_AHEAD = 16
"""Progress lines that a slow reader may leave; more are dropped, the last line never is."""

Line = Mapping[str, Any]
Work = Callable[[Callable[[Line], None]], Awaitable[Line]]
"""Works, tells its progress from its own thread through the function it is given, and returns the last line."""


class IngestLines(Response):
    """The response that does `work`."""

    def __init__(self, work: Work) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        lines, told = anyio.create_memory_object_stream[Line](_LINES_AHEAD)
        async with anyio.create_task_group() as group:

            async def work() -> None:
                async with lines:
                    await lines.send(await self._outcome(lines))

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(work)
            group.start_soon(until_gone)
            async with told:
                async for line in told:
                    body = json.dumps(line).encode() + b"\n"
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    async def _outcome(self, lines: MemoryObjectSendStream[Line]) -> Line:
        def tell(progress: Line) -> None:
            anyio.from_thread.check_cancelled()  # cancelled work ends here, in its own thread
            anyio.from_thread.run_sync(_offer, lines, {"progress": progress})

        try:
            return await self._work(tell)
        except SentinelError as error:
            return {"error": error.to_dict()}
        except Exception:  # a fault of ours must end in a line, not in a connection that breaks
            fault = uuid4().hex[:8]
            _LOG.exception("internal error %s in an ingest", fault)
            ours = UsageError(
                f"The ingest failed for a reason that is our fault (error {fault}).",
                next_step="Run it again: it goes on. Report it with that line of the log of executor-knowledge.",
            )
            return {"error": {**ours.to_dict(), "code": "internal", "actor": "developer"}}


def _offer(lines: MemoryObjectSendStream[Line], line: Line) -> None:
    with suppress(anyio.WouldBlock):
        lines.send_nowait(line)


# All stand behind a token that the gateway and the agent do not have.
LARGEST_BODY = 8_192

B = TypeVar("B")
_Who = Annotated[str, msgspec.Meta(max_length=80, pattern=r"\A[\w /.-]+\Z")]


class _Incidents(msgspec.Struct, forbid_unknown_fields=True):
    who: _Who = "a surface"
    days: Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS)] | None = None
    by_words: bool = False
    reread: bool = False


class _Playbooks(msgspec.Struct, forbid_unknown_fields=True):
    folder: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
    who: _Who = "a surface"
    by_words: bool = False
    replaces: bool = False
    new: list[Annotated[str, msgspec.Meta(max_length=4_096)]] = []


class _Removed(msgspec.Struct, forbid_unknown_fields=True):
    names: Annotated[list[Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]], msgspec.Meta(min_length=1)]
    who: _Who = "a surface"


def admin_app(incidents: IncidentIngest, playbooks: PlaybookIngest, *, token: str) -> Starlette:
    """The ASGI application under `/admin/`, behind a `TokenAuthentication` with its own token."""

    def incidents_work(body: _Incidents) -> Work:
        async def work(tell: Callable[[Line], None]) -> Line:
            def told(progress: IngestProgress) -> None:
                tell({**asdict(progress), "remaining_s": progress.remaining_s})

            days = incidents.last_days if body.days is None else body.days
            reports = await incidents.run(IngestRequest(body.who, days, body.by_words, body.reread), told)
            return {"workspaces": [{**asdict(each), "days": days} for each in reports]}

        return work

    def playbooks_work(body: _Playbooks) -> Work:
        async def work(tell: Callable[[Line], None]) -> Line:
            def told(report: IngestReport) -> None:
                tell({"read": report.added + report.changed, "chunks": report.chunks, "seconds": report.seconds})

            request = PlaybookRequest(body.who, body.folder, body.by_words, body.replaces, body.new)
            return _playbooks_line(await playbooks.run(request, told))

        return work

    async def ingest(request: Request) -> Response:
        body = await _read(request, _Incidents)
        return body if isinstance(body, Response) else IngestLines(incidents_work(body))

    async def ingest_playbooks(request: Request) -> Response:
        body = await _read(request, _Playbooks)
        return body if isinstance(body, Response) else IngestLines(playbooks_work(body))

    async def remove_playbooks(request: Request) -> Response:
        body = await _read(request, _Removed)
        return body if isinstance(body, Response) else await _told(playbooks.remove(body.who, body.names))

    async def list_playbooks(_: Request) -> Response:
        return await _told(anyio.to_thread.run_sync(playbooks.held))

    async def known(_: Request) -> Response:
        as_of = await anyio.to_thread.run_sync(incidents.as_of)
        return JSONResponse({"incidents_as_of": None if as_of is None else as_of.isoformat()})

    routes = [
        Route("/admin/ingest", ingest, methods=["POST"]),
        Route("/admin/playbooks", ingest_playbooks, methods=["POST"]),
        Route("/admin/playbooks", remove_playbooks, methods=["DELETE"]),
        Route("/admin/playbooks", list_playbooks, methods=["GET"]),
        Route("/admin/knowledge", known),
    ]
    return Starlette(routes=routes, middleware=[Middleware(TokenAuthentication, token=token)])


async def _told(work: Awaitable[Any]) -> Response:
    """What `work` gives as `playbooks`, or its failure in the form of the last line of an ingest."""
    try:
        return JSONResponse({"playbooks": await work})
    except SentinelError as error:
        return JSONResponse({"error": error.to_dict()})


async def _read(request: Request, kind: type[B]) -> B | Response:
    """The body as a `kind`, or the refusal of one that is none."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            return JSONResponse({"detail": "The body is too large."}, 413)
    try:
        return msgspec.json.decode(bytes(content) or b"{}", type=kind)
    except msgspec.DecodeError as error:
        return JSONResponse({"detail": f"The request cannot be read: {error}"}, 422)


def _playbooks_line(outcome: PlaybookOutcome) -> Line:
    report = outcome.report
    told = [{"source": each.source, "outcome": each.outcome.value, "said": each.said} for each in report.told]
    return {
        "playbooks": {
            **asdict(report.ingested),
            "told": told,
            "lines": [each.line for each in report.told],
            "faults": len(report.faults),
            "by_words_only": outcome.by_words_only,
            "lacking": outcome.lacking,
            "next_step": outcome.next_step,
            "beyond": report.beyond,
        }
    }
