"""Who may talk to the loopback server at all: local hosts by name, no browser pages, bodies of bounded size.

The guard wraps the whole application; `contracts.loopback` says what it keeps out.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.loopback import is_own_host, is_own_origin

MAX_BODY_BYTES = 1 << 20


class BodyTooLargeError(Exception):
    """The request body is over `MAX_BODY_BYTES`."""


class LoopbackGuard:
    """ASGI wrapper that answers 403 to everything that does not come from this machine by its own name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not (is_own_host(headers.getlist("host")) and is_own_origin(headers.getlist("origin"))):
                refusal = JSONResponse(
                    {
                        "error": {
                            "code": "HostNotAllowed",
                            "message": "This server answers requests of this machine only.",
                        }
                    },
                    status_code=403,
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """The body, or BodyTooLargeError as soon as it is over the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
        raise BodyTooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
    return bytes(body)
