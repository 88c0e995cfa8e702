"""Servers for the tests of the Sentinel client and its tool server: a scripted wire for faults, the embedded workspace
for rows; and a client that calls a tool as the tool server does."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.query_results import QueryError, QueryResult
from sentinel_rag.sentinel.alert_events import AlertEvents
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.kql_guard import KqlGuard
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics, LogsWorkspace
from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
from sentinel_rag.sentinel.rest.connection import RateBuckets
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

WORKSPACE_ID = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d11"
IDENTITY_HEADER = "identity-header-of-the-tests"
NOW = datetime(2024, 8, 3, tzinfo=UTC)


@dataclass
class ScriptedWire:
    """Answers queries from `answers` in turn (the last one again and again) and keeps what was asked."""

    url: str = ""
    answers: list[Response] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    token_status: int = 200
    schema: Response = field(default_factory=lambda: JSONResponse({"error": {"code": "PathNotFoundError"}}, 404))

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/workspaces/{workspace_id}/query", self.query, methods=["POST"]),
                Route("/v1/workspaces/{workspace_id}/metadata", self.metadata),
                Route("/msi/token", self.token),
            ]
        )

    async def query(self, request: Request) -> Response:
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        return Response(answer.body, answer.status_code, headers=dict(answer.headers))

    async def metadata(self, _: Request) -> Response:
        return Response(self.schema.body, self.schema.status_code, headers=dict(self.schema.headers))

    async def token(self, request: Request) -> Response:
        if self.token_status != 200:
            return JSONResponse({"statusCode": self.token_status, "message": "no"}, self.token_status)
        assert request.headers["x-identity-header"] == IDENTITY_HEADER
        return JSONResponse({"access_token": "a-token", "expires_on": "4102444800", "token_type": "Bearer"})


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[LogsWorkspace]:
    """A workspace client for the server at `url`; retries wait next to nothing."""
    credential = IdentityEndpointCredential(f"{url}/msi/token", IDENTITY_HEADER)
    async with LogAnalytics(credential, endpoint=url, first_retry_delay_s=0.001, **options) as connection:
        yield connection.workspace("lab", WORKSPACE_ID)


@asynccontextmanager
async def managed(
    url: str, *, buckets: RateBuckets | None = None, clock: Any = time.monotonic, **options: Any
) -> AsyncIterator[SentinelRest]:
    """A client of the REST API of the server at `url`; retries wait next to nothing."""
    credential = IdentityEndpointCredential(f"{url}/msi/token", IDENTITY_HEADER)
    async with ArmConnection(credential, endpoint=url, first_retry_delay_s=0.001, **options) as connection:
        yield SentinelRest("lab", EMBEDDED_RESOURCE_ID, connection, buckets=buckets, clock=clock)


@dataclass
class ScriptedArm:
    """Answers every call of the REST API from `answers` in turn (the last one again and again) and keeps the calls."""

    url: str = ""
    answers: list[Response] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(
            routes=[
                Route("/msi/token", self.token),
                Route("/{path:path}", self.answer, methods=methods),
            ]
        )

    async def token(self, _: Request) -> Response:
        return JSONResponse({"access_token": "a-token", "expires_on": "4102444800", "token_type": "Bearer"})

    async def answer(self, request: Request) -> Response:
        self.calls.append((request.method, str(request.url)))
        answer = self.answers[min(len(self.calls), len(self.answers)) - 1]
        return Response(answer.body, answer.status_code, headers=dict(answer.headers))


class Served:
    """A workspace on a socket. `ask` calls a tool and wants a result, `refusal` wants an error. With `fallback` stored
    queries are checked without Microsoft's parser, whether or not it is installed."""

    def __init__(self, url: str, now: datetime = NOW, *, fallback: bool = False) -> None:
        self.url = url
        self.now = now
        self.fallback = fallback

    async def call(self, tool: str, **arguments: Any) -> QueryResult | QueryError:
        return (await self.call_each(tool, [arguments]))[0]

    async def call_each(self, tool: str, calls: Sequence[Mapping[str, Any]]) -> list[QueryResult | QueryError]:
        """One call after another in one service, so that what it starts is started once."""
        async with connected(self.url) as workspace, managed(self.url) as rest:
            events = AlertEvents((lambda: KqlGuard(None)) if self.fallback else None)
            service = SentinelService(
                {"lab": workspace}, rest={"lab": rest}, clock=lambda: self.now, alert_events=events
            )
            try:
                outcomes = [await service.call(tool, arguments) for arguments in calls]
            finally:
                await events.close()
        for outcome in outcomes:
            json.dumps(outcome.to_dict(), allow_nan=False)
        return [type(outcome).from_dict(outcome.to_dict()) for outcome in outcomes]

    async def ask(self, tool: str, **arguments: Any) -> QueryResult:
        outcome = await self.call(tool, **arguments)
        assert isinstance(outcome, QueryResult), outcome
        return outcome

    async def refusal(self, tool: str, **arguments: Any) -> QueryError:
        outcome = await self.call(tool, **arguments)
        assert isinstance(outcome, QueryError), outcome
        return outcome


@cache
def _made_once() -> Path:
    """An empty workspace for all tests of a process, to be copied."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Workspace.open(folder).close()
    return folder


def start_estate(
    stack: ExitStack,
    folder: Path,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    now: datetime = NOW,
    limits: Mapping[str, int] | None = None,
) -> Served:
    """Import the rows into a fresh embedded workspace in `folder` and serve it for as long as `stack` is open."""
    shutil.copytree(_made_once(), folder / "workspace")
    workspace = Workspace.open(folder / "workspace")
    stack.callback(workspace.close)
    for table, rows in tables.items():
        path = folder / f"{table}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        reports = workspace.import_path(path, table=table)
        assert sum(report.rows_stored for report in reports) == len(rows), reports
    return Served(stack.enter_context(serve(workspace_app(workspace, **(limits or {})))), now)


def workspace_app(workspace: Workspace, **limits: int) -> Starlette:
    return create_app(
        workspace,
        workspace_id=WORKSPACE_ID,
        identity_header=IDENTITY_HEADER,
        admin_token="admin-token-of-the-tests",
        **limits,
    )
