"""What an operator may ask of a running workspace: tables, import, generate, query, faults.

Guarded by the admin token, which the supervisor makes; analysts and agents never hold it. Answers are our own JSON,
errors are `SentinelError.to_dict` under `error`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.servers import bearer_token, same_secret
from sentinel_rag.workspace.importing.reports import questions_of
from sentinel_rag.workspace.sample.options import DEFAULT_DAYS, DEFAULT_EVENTS, EstateOptions
from sentinel_rag.workspace.serving.authentication import BodyTooLargeError, read_body
from sentinel_rag.workspace.serving.faults import FaultSchedule, InjectedFault
from sentinel_rag.workspace.serving.query_api import QueryCounts

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

_Body = TypeVar("_Body")


class ImportBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    table: str | None = None


class GenerateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    days: int = DEFAULT_DAYS
    events: int = DEFAULT_EVENTS
    seed: int = 7
    end: datetime | None = None


class MergeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: int
    target: int


class AdminQueryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kql: str
    timespan: str | None = None
    max_rows: int = 10_000


class WatchlistBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alias: str
    path: str
    search_key: str | None = None
    replaces: bool = False


class WatchlistName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alias: str


class FaultsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    faults: list[InjectedFault]


class Admin:
    """The operations. Long ones run in a thread of their own, so that queries go on."""

    def __init__(
        self, workspace: Workspace, admin_token: str, faults: FaultSchedule, query_counts: QueryCounts
    ) -> None:
        self._faults = faults
        self._query_counts = query_counts
        self._workspace = workspace
        self._admin_token = admin_token
        self._limiter = CapacityLimiter(4)

    def routes(self) -> list[Route]:
        return [
            Route("/admin/tables", self._guarded(self._tables), methods=["GET"]),
            Route("/admin/schema", self._guarded(self._schema), methods=["GET"]),
            Route("/admin/import", self._guarded(self._import), methods=["POST"]),
            Route("/admin/generate", self._guarded(self._generate), methods=["POST"]),
            Route("/admin/query", self._guarded(self._query), methods=["POST"]),
            Route("/admin/queries", self._guarded(self._queries), methods=["GET"]),
            Route("/admin/watchlists", self._guarded(self._put_watchlist), methods=["POST"]),
            Route("/admin/watchlists", self._guarded(self._remove_watchlist), methods=["DELETE"]),
            Route("/admin/merge", self._guarded(self._merge), methods=["POST"]),
            Route("/admin/faults", self._guarded(self._left_faults), methods=["GET"]),
            Route("/admin/faults", self._guarded(self._set_faults), methods=["PUT"]),
            Route("/admin/faults", self._guarded(self._add_faults), methods=["POST"]),
        ]

    def _guarded(self, operation: Callable[[bytes], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not same_secret(bearer_token(request.headers.get("authorization", "")), self._admin_token):
                return _json(401, {"error": {"code": "unauthenticated", "message": "The admin token is wrong."}})
            try:
                return _json(200, await operation(await read_body(request)))
            except BodyTooLargeError:
                return _json(413, {"error": {"code": "too_large", "message": "The request is too large."}})
            except UnavailableError as error:
                return _json(503, {"error": error.to_dict()})
            except SentinelError as error:
                return _json(400, {"error": error.to_dict()})

        return endpoint

    async def _tables(self, body: bytes) -> Any:
        del body
        tables = await to_thread.run_sync(self._workspace.tables, limiter=self._limiter)
        return {"tables": [table.to_dict() for table in tables]}

    async def _schema(self, body: bytes) -> Any:
        del body
        schema = await to_thread.run_sync(self._workspace.schema, limiter=self._limiter)
        return {"schema": {table: dict(columns) for table, columns in schema.items()}}

    async def _import(self, body: bytes) -> Any:
        wanted = _decoded(body, ImportBody)
        path = Path(wanted.path)
        if not path.is_absolute():
            raise UsageError(f"The path {path} is not absolute.", next_step="Send the whole path of the file.")

        def run() -> Any:
            reports = self._workspace.import_path(path, table=wanted.table)
            return {"reports": [report.to_dict() for report in reports], "questions": questions_of(reports)}

        return await to_thread.run_sync(run, limiter=self._limiter)

    async def _generate(self, body: bytes) -> Any:
        wanted = _decoded(body or b"{}", GenerateBody)
        options = EstateOptions(days=wanted.days, events=wanted.events, seed=wanted.seed, end=wanted.end)

        def run() -> Any:
            return self._workspace.generate(options).to_dict()

        return {"guide": await to_thread.run_sync(run, limiter=self._limiter)}

    async def _query(self, body: bytes) -> Any:
        wanted = _decoded(body, AdminQueryBody)

        def run() -> Any:
            answer = self._workspace.query(wanted.kql, timespan=wanted.timespan, max_rows=wanted.max_rows)
            return answer.to_dict()

        return await to_thread.run_sync(run, limiter=self._limiter)

    async def _put_watchlist(self, body: bytes) -> Any:
        wanted = _decoded(body, WatchlistBody)

        def run() -> Any:
            lists, path = self._workspace.watchlists, Path(wanted.path)
            return lists.put(wanted.alias, path, search_key=wanted.search_key, replaces=wanted.replaces)

        return await to_thread.run_sync(run, limiter=self._limiter)

    async def _remove_watchlist(self, body: bytes) -> Any:
        alias = _decoded(body, WatchlistName).alias
        await to_thread.run_sync(self._workspace.watchlists.remove, alias, limiter=self._limiter)
        return {"alias": alias}

    async def _queries(self, body: bytes) -> Any:
        del body
        return self._query_counts.to_dict()

    async def _merge(self, body: bytes) -> Any:
        wanted = _decoded(body, MergeBody)
        try:
            await to_thread.run_sync(
                self._workspace.incidents.merge, wanted.source, wanted.target, limiter=self._limiter
            )
        except LookupError as error:
            raise UsageError(
                f"No incident has the number {error}, or it is both source and target.",
                next_step="Name two incidents of this workspace by their Sentinel numbers.",
            ) from None
        return {"source": wanted.source, "target": wanted.target}

    async def _left_faults(self, body: bytes) -> Any:
        del body
        return self._faults.to_dict()

    async def _set_faults(self, body: bytes) -> Any:
        self._faults.replace(_decoded(body, FaultsBody).faults)
        return self._faults.to_dict()

    async def _add_faults(self, body: bytes) -> Any:
        self._faults.add(_decoded(body, FaultsBody).faults)
        return self._faults.to_dict()


def _decoded(body: bytes, type_: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The request body is wrong: {error}.", next_step="Correct it and send it again.") from error


def _json(status: int, value: Any) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
