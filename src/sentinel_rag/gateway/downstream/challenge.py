"""What a request to `/mcp` without a good key is told.

Keys are handed out by the operator and sent as bearer tokens; no authorization server issues them. The protocol wants
the metadata of a protected resource (RFC 9728) to name one, so there is none to serve, and no challenge leads to it: a
client that looks for it finds 404 and falls back to the key it was configured with.
"""

from __future__ import annotations

from starlette.requests import Request

from sentinel_rag.gateway.store import Scope

PATH = "/mcp"
PATHS = (PATH, f"{PATH}/")
"""Clients write the address either way, and many do not follow a redirect of a POST."""

SCOPES = (Scope.EXECUTE, Scope.USER)


def challenge(request: Request, status: int) -> str:
    """`WWW-Authenticate` of a 401 or 403."""
    parts = [f'scope="{Scope.EXECUTE.value}"']
    if status == 403:
        parts.insert(0, 'error="insufficient_scope"')
    elif "authorization" in request.headers:
        parts.insert(0, 'error="invalid_token"')
    return f"Bearer {', '.join(parts)}"
