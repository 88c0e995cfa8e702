"""What surfaces may ask of this process: to read incidents in, with progress, and as of when they are known.

`POST /admin/ingest` answers with JSON lines while it works, `GET /admin/knowledge` at once. Both stand behind a token
that the gateway and the agent do not have; a client that goes away ends the run, and the next one goes on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import anyio
import anyio.from_thread
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.executors.door import Door
from sentinel_rag.executors.knowledge.incident_ingest import DAYS, MOST_DAYS, IncidentIngest, IngestWish

if TYPE_CHECKING:
    from sentinel_rag.knowledge.incident_ingestion import IngestProgress, WorkspaceReport

_LOG = logging.getLogger(__name__)
_LINES_AHEAD = 16
"""Progress lines that a slow reader may leave; more are dropped, the last line never is."""
LARGEST_BODY = 4_096


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    who: Annotated[str, msgspec.Meta(max_length=80, pattern=r"\A[\w /.-]+\Z")] = "a surface"
    days: Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS)] = DAYS
    by_words: bool = False
    reread: bool = False


def admin_app(ingest: IncidentIngest, *, token: str) -> Starlette:
    """The ASGI application under `/admin/`, behind a `Door` with its own token."""

    async def run(request: Request) -> Response:
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > LARGEST_BODY:
                return JSONResponse({"detail": "The body is too large."}, 413)
        try:
            body = msgspec.json.decode(bytes(content) or b"{}", type=_Body)
        except msgspec.DecodeError as error:
            return JSONResponse({"detail": f"The wish cannot be read: {error}"}, 422)
        return _IngestLines(ingest, IngestWish(body.who, body.days, body.by_words, body.reread))

    async def known(_: Request) -> Response:
        as_of = await anyio.to_thread.run_sync(ingest.as_of)
        return JSONResponse({"incidents_as_of": None if as_of is None else as_of.isoformat()})

    routes = [Route("/admin/ingest", run, methods=["POST"]), Route("/admin/knowledge", known)]
    return Starlette(routes=routes, middleware=[Middleware(Door, token=token)])


class _IngestLines(Response):
    """One JSON object a line: `{"progress": ...}` again and again, then `{"workspaces": [...]}` or `{"error": ...}`."""

    def __init__(self, ingest: IncidentIngest, wish: IngestWish) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._ingest = ingest
        self._wish = wish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        lines, told = anyio.create_memory_object_stream[Mapping[str, Any]](_LINES_AHEAD)
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
                    await send({"type": "http.response.body", "body": _encoded(line), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    async def _outcome(self, lines: Any) -> Mapping[str, Any]:
        def tell(progress: IngestProgress) -> None:
            # A cancelled run ends here, in its own thread.
            anyio.from_thread.check_cancelled()
            anyio.from_thread.run_sync(_offer, lines, {"progress": _progress(progress)})

        try:
            reports = await self._ingest.run(self._wish, tell)
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
        return {"workspaces": [_report(each) for each in reports]}


def _offer(lines: Any, line: Mapping[str, Any]) -> None:
    with suppress(anyio.WouldBlock):
        lines.send_nowait(line)


def _progress(progress: IngestProgress) -> dict[str, Any]:
    return {**asdict(progress), "remaining_s": progress.remaining_s}


def _report(report: WorkspaceReport) -> dict[str, Any]:
    return asdict(report)


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"
