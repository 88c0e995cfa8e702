"""Who may speak to a tool server: the gateway, by its bearer token, on this machine.

A pure ASGI wrapper in front of everything but the health check. Host and Origin are checked first, so that a web page
that had its name rebound to 127.0.0.1 learns nothing; the token is compared in constant time.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.loopback import is_own_host, is_own_origin

HEALTH_PATH = "/healthz"


class TokenAuthentication:
    """Lets a request through to `app` only with the token and from this machine's names. Raises ValueError for an
    empty token: a tool server without one would be open."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        if not token:
            raise ValueError("a tool server needs a token")
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is served; closing without an answer refuses the handshake
        refusal = self._refusal(scope["path"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> JSONResponse | None:
        if not is_own_host(headers.getlist("host")):
            return JSONResponse({"detail": "This server answers to this machine's own names only."}, 421)
        if not is_own_origin(headers.getlist("origin")):
            return JSONResponse({"detail": "This server takes no requests from web pages."}, 403)
        if path == HEALTH_PATH:
            return None
        given = headers.getlist("authorization")
        if len(given) != 1 or not hmac.compare_digest(given[0].encode("utf-8", "surrogateescape"), self._expected):
            return JSONResponse({"detail": "A bearer token is needed."}, 401, {"WWW-Authenticate": "Bearer"})
        return None
