"""What an operator may ask of a running workspace: tables, import, generate, query, faults.

Guarded by the admin token, which the supervisor makes; analysts and agents never hold it. Answers are our own JSON,
errors are `SentinelError.to_dict` under `error`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.servers import bearer_token, same_secret
from sentinel_rag.workspace.serving.authentication import BodyTooLargeError, read_body
from sentinel_rag.workspace.serving.faults import FaultSchedule, InjectedFault
from sentinel_rag.workspace.serving.query_api import QueryCounts
from sentinel_rag.workspace.workspace import OPERATIONS, WorkspaceOperation

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

_Body = TypeVar("_Body")


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
            *(
                Route(path, self._guarded(self._operation(kind)), methods=[method])
                for (method, path), kind in OPERATIONS.items()
            ),
            Route("/admin/queries", self._guarded(self._queries), methods=["GET"]),
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

    def _operation(self, kind: type[WorkspaceOperation]) -> Callable[[bytes], Awaitable[Any]]:
        async def run(body: bytes) -> Any:
            wanted = _decoded(body or b"{}", kind)
            return await to_thread.run_sync(wanted.run, self._workspace, limiter=self._limiter)

        return run

    async def _queries(self, body: bytes) -> Any:
        del body
        return self._query_counts.to_dict()

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
