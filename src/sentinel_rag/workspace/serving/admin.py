"""What an operator may ask of a running workspace: tables, import, generate, query, faults.

Guarded by the admin token, which the supervisor makes; analysts and agents never hold it. Answers are our own JSON,
errors are `SentinelError.to_dict` under `error`.
"""

from __future__ import annotations

from collections.abc import Callable
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
_SHORT = frozenset({"queries", "faults"})
"""Answered on the event loop, whose other requests change the same counts."""


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
    """The operations. All but the short ones run in a thread of their own, so that queries go on."""

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
            self._route("GET", "tables", self._tables),
            self._route("GET", "schema", self._schema),
            self._route("POST", "import", self._import, ImportBody),
            self._route("POST", "generate", self._generate, GenerateBody),
            self._route("POST", "query", self._query, AdminQueryBody),
            self._route("GET", "queries", self._query_counts.to_dict),
            self._route("POST", "watchlists", self._put_watchlist, WatchlistBody),
            self._route("DELETE", "watchlists", self._remove_watchlist, WatchlistName),
            self._route("POST", "merge", self._merge, MergeBody),
            self._route("GET", "faults", self._faults.to_dict),
            self._route("PUT", "faults", self._set_faults, FaultsBody),
            self._route("POST", "faults", self._add_faults, FaultsBody),
        ]

    def _route(
        self, method: str, name: str, operation: Callable[..., Any], body: type[msgspec.Struct] | None = None
    ) -> Route:
        """The guarded route of `operation`, which is given the request's `body` where it takes one."""

        async def endpoint(request: Request) -> Response:
            if not same_secret(bearer_token(request.headers.get("authorization", "")), self._admin_token):
                return _json(401, {"error": {"code": "unauthenticated", "message": "The admin token is wrong."}})
            try:
                sent = await read_body(request)
                wanted = () if body is None else (_decoded(sent, body),)
                if name in _SHORT:
                    return _json(200, operation(*wanted))
                return _json(200, await to_thread.run_sync(operation, *wanted, limiter=self._limiter))
            except BodyTooLargeError:
                return _json(413, {"error": {"code": "too_large", "message": "The request is too large."}})
            except UnavailableError as error:
                return _json(503, {"error": error.to_dict()})
            except SentinelError as error:
                return _json(400, {"error": error.to_dict()})

        return Route(f"/admin/{name}", endpoint, methods=[method])

    def _tables(self) -> Any:
        return {"tables": [table.to_dict() for table in self._workspace.tables()]}

    def _schema(self) -> Any:
        return {"schema": {table: dict(columns) for table, columns in self._workspace.schema().items()}}

    def _import(self, wanted: ImportBody) -> Any:
        path = Path(wanted.path)
        if not path.is_absolute():
            raise UsageError(f"The path {path} is not absolute.", next_step="Send the whole path of the file.")
        reports = self._workspace.import_path(path, table=wanted.table)
        return {"reports": [report.to_dict() for report in reports], "questions": questions_of(reports)}

    def _generate(self, wanted: GenerateBody) -> Any:
        options = EstateOptions(days=wanted.days, events=wanted.events, seed=wanted.seed, end=wanted.end)
        return {"guide": self._workspace.generate(options).to_dict()}

    def _query(self, wanted: AdminQueryBody) -> Any:
        return self._workspace.query(wanted.kql, timespan=wanted.timespan, max_rows=wanted.max_rows).to_dict()

    def _put_watchlist(self, wanted: WatchlistBody) -> Any:
        lists, path = self._workspace.watchlists, Path(wanted.path)
        return lists.put(wanted.alias, path, search_key=wanted.search_key, replaces=wanted.replaces)

    def _remove_watchlist(self, wanted: WatchlistName) -> Any:
        self._workspace.watchlists.remove(wanted.alias)
        return {"alias": wanted.alias}

    def _merge(self, wanted: MergeBody) -> Any:
        try:
            self._workspace.incidents.merge(wanted.source, wanted.target)
        except LookupError as error:
            raise UsageError(
                f"No incident has the number {error}, or it is both source and target.",
                next_step="Name two incidents of this workspace by their Sentinel numbers.",
            ) from None
        return {"source": wanted.source, "target": wanted.target}

    def _set_faults(self, wanted: FaultsBody) -> Any:
        self._faults.replace(wanted.faults)
        return self._faults.to_dict()

    def _add_faults(self, wanted: FaultsBody) -> Any:
        self._faults.add(wanted.faults)
        return self._faults.to_dict()


def _decoded(body: bytes, type_: type[_Body]) -> _Body:
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The request body is wrong: {error}.", next_step="Correct it and send it again.") from error


def _json(status: int, value: Any) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
