"""What surfaces may ask of this process: to read incidents and playbooks in, and as of when incidents are known.

`POST /admin/ingest` and `POST /admin/playbooks` answer with JSON lines while they work (`ingest_lines`),
`GET /admin/knowledge` at once. All stand behind a token that the gateway and the agent do not have.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.tools.authentication import TokenAuthentication
from sentinel_rag.tools.knowledge.incident_ingest import MOST_DAYS, IncidentIngest, IngestRequest
from sentinel_rag.tools.knowledge.ingest_lines import IngestLines, Line, Work
from sentinel_rag.tools.knowledge.playbook_ingest import PlaybookIngest, PlaybookOutcome, PlaybookRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from sentinel_rag.knowledge.incident_ingestion import IngestProgress
    from sentinel_rag.knowledge.ingestion import IngestReport

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

            request = PlaybookRequest(body.who, body.folder, body.by_words, body.replaces)
            return _playbooks_line(await playbooks.run(request, told))

        return work

    async def ingest(request: Request) -> Response:
        body = await _read(request, _Incidents)
        return body if isinstance(body, Response) else IngestLines(incidents_work(body))

    async def ingest_playbooks(request: Request) -> Response:
        body = await _read(request, _Playbooks)
        return body if isinstance(body, Response) else IngestLines(playbooks_work(body))

    async def known(_: Request) -> Response:
        as_of = await anyio.to_thread.run_sync(incidents.as_of)
        return JSONResponse({"incidents_as_of": None if as_of is None else as_of.isoformat()})

    routes = [
        Route("/admin/ingest", ingest, methods=["POST"]),
        Route("/admin/playbooks", ingest_playbooks, methods=["POST"]),
        Route("/admin/knowledge", known),
    ]
    return Starlette(routes=routes, middleware=[Middleware(TokenAuthentication, token=token)])


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
        return JSONResponse({"detail": f"The wish cannot be read: {error}"}, 422)


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
