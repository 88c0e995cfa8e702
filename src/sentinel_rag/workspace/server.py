"""The loopback server: the embedded workspace behind the wires of Log Analytics and of Sentinel's REST API.

`create_app` is a plain ASGI application; who runs it binds it to 127.0.0.1. Clients are the real azure-identity and
azure-monitor-query: what is tested here is what runs on Azure.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.workspace.sample.company import WORKSPACE_RESOURCE
from sentinel_rag.workspace.serving import arm_routes
from sentinel_rag.workspace.serving.admin import Admin
from sentinel_rag.workspace.serving.arm_authentication import ArmAuthentication, ArmError, RequestLimits, refusal
from sentinel_rag.workspace.serving.authentication import (
    IdentityEndpoint,
    LocalRequests,
    TokenIssuer,
    WorkspaceAuthentication,
)
from sentinel_rag.workspace.serving.faults import FaultInjector, FaultSchedule
from sentinel_rag.workspace.serving.query_answers import plain_error, unknown_path
from sentinel_rag.workspace.serving.query_api import LONGEST_QUEUE, BatchEndpoint, MetadataEndpoint, QueryEndpoint

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace


EMBEDDED_RESOURCE_ID = WORKSPACE_RESOURCE
"""The Azure resource that the embedded workspace pretends to be: made up, the same everywhere."""


def create_app(
    workspace: Workspace,
    *,
    workspace_id: str,
    identity_header: str,
    admin_token: str,
    max_rows: int = 500_000,
    max_bytes: int = 64_000_000,
    longest_queue: int = LONGEST_QUEUE,
    resource_id: str = EMBEDDED_RESOURCE_ID,
    request_limits: RequestLimits | None = None,
    issuer: TokenIssuer | None = None,
) -> Starlette:
    """The application over `workspace`, which answers to the GUID `workspace_id` and to the ARM path `resource_id`.

    `identity_header` is the secret of the managed-identity endpoint, `admin_token` that of `/admin`. An answer over
    `max_rows` or `max_bytes` is cut and carries the service's PartialError; a query that comes while
    `longest_queue` others wait is throttled. `request_limits` are the REST API's documented ones unless given. Servers
    with one `issuer` take each other's tokens, as those of one tenant do.
    """
    issuer = issuer or TokenIssuer()
    door = WorkspaceAuthentication(issuer, workspace_id)
    query = QueryEndpoint(workspace, door, max_rows=max_rows, max_bytes=max_bytes, longest_queue=longest_queue)
    metadata = MetadataEndpoint(workspace, door)
    faults = FaultSchedule()
    arm_door = ArmAuthentication(issuer, resource_id, request_limits or RequestLimits())
    return Starlette(
        routes=[
            Route("/healthz", _healthz, methods=["GET"]),
            Route("/msi/token", IdentityEndpoint(issuer, identity_header).__call__, methods=["GET"]),
            Route("/v1/$batch", BatchEndpoint(query, door).__call__, methods=["POST"]),
            Route("/v1/workspaces/{workspace_id}/query", query.__call__, methods=["POST"]),
            Route("/v1/workspaces/{workspace_id}/metadata", metadata.__call__, methods=["GET"]),
            Route("/v1/{resource_id:path}/query", query.__call__, methods=["POST"]),
            Route("/v1/{resource_id:path}/metadata", metadata.__call__, methods=["GET"]),
            *arm_routes.routes(workspace, arm_door, workspace_id),
            *Admin(workspace, admin_token, faults, query.counts).routes(),
        ],
        middleware=[Middleware(LocalRequests), Middleware(FaultInjector, schedule=faults)],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
    )


async def _healthz(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


async def _internal_error(request: Request, error: Exception) -> Response:
    """A fault of ours: the caller learns an id, the log the rest (Starlette raises it again for the server's log)."""
    del request, error
    correlation_id = str(uuid.uuid4())
    message = "Something went wrong on the server."
    return JSONResponse(plain_error("InternalServerError", message, correlation_id), status_code=500)


async def _http_error(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (unknown path, wrong method) in the service's form."""
    correlation_id = str(uuid.uuid4())
    if request.url.path.lower().startswith("/subscriptions/"):
        return _arm_http_error(error)
    if isinstance(error, HTTPException) and error.status_code != 404:
        body = plain_error("MethodNotAllowed", error.detail, correlation_id)
        return JSONResponse(body, status_code=error.status_code, headers=error.headers)
    return JSONResponse(unknown_path(correlation_id), status_code=404)


def _arm_http_error(error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code != 404:
        return refusal(ArmError(error.status_code, "MethodNotAllowed", error.detail, headers=error.headers))
    return refusal(ArmError(404, "InvalidResourceType", "The resource type could not be found."))


# DuckDB counts what it keeps, and not the texts and lists that a function makes for one batch of rows; where a query
# makes gigabytes of those, the allocation fails and that query with it, instead of the system ending the whole process.
_SHARE = 0.85


def bound_process_memory(most_bytes: int | None = None) -> None:
    """Let this process grow by `most_bytes` (default: most of the machine's memory). Does nothing where it cannot."""
    if sys.platform != "linux":
        return
    import resource

    page = os.sysconf("SC_PAGE_SIZE")
    now = int(Path("/proc/self/statm").read_text().split()[0]) * page
    room = int(os.sysconf("SC_PHYS_PAGES") * page * _SHARE) if most_bytes is None else most_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now + room
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
