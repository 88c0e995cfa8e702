"""What an OAuth client learns of this endpoint (RFC 9728) and what a request without a good key is told.

Keys are handed out by the operator and sent as bearer tokens; no authorization server issues them, and none is named.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.loopback import LOOPBACK_NAMES, NAMED_AS, is_own_host
from sentinel_rag.interceptor.responses import json_response
from sentinel_rag.interceptor.store import Scope

PATH = "/mcp"
METADATA_PATH = f"/.well-known/oauth-protected-resource{PATH}"
"""Where RFC 9728 looks for the metadata of a resource with a path."""

METADATA_PATHS = (METADATA_PATH, "/.well-known/oauth-protected-resource")
"""The second is where older clients look."""

SCOPES = (Scope.EXECUTE, Scope.USER)


def metadata_routes() -> list[Route]:
    """Served without a key: they say nothing that the documentation does not."""
    return [Route(path, show, methods=["GET"]) for path in METADATA_PATHS]


async def show(request: Request) -> Response:
    return json_response(
        {
            "resource": f"{base_of(request)}{PATH}",
            "resource_name": "Sentinel RAG Interceptor",
            "bearer_methods_supported": ["header"],
            "scopes_supported": [scope.value for scope in SCOPES],
        }
    )


def challenge(request: Request, status: int) -> str:
    """`WWW-Authenticate` of a 401 or 403."""
    parts = [f'resource_metadata="{base_of(request)}{METADATA_PATH}"', f'scope="{Scope.EXECUTE.value}"']
    if status == 403:
        parts.insert(0, 'error="insufficient_scope"')
    elif "authorization" in request.headers:
        parts.insert(0, 'error="invalid_token"')
    return f"Bearer {', '.join(parts)}"


def base_of(request: Request) -> str:
    """The origin that the client used. Its host was checked before; what is not this machine's own name is reached with
    TLS, ours or a proxy's."""
    host = request.scope.get(NAMED_AS) or request.headers["host"]
    plain = request.url.scheme == "http" and is_own_host([host], LOOPBACK_NAMES)
    return f"{'http' if plain else 'https'}://{host}"
