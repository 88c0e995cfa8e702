"""Who may talk to the loopback server at all: local hosts by name, no browser pages, bodies of bounded size.

A page on the internet can point its own name at 127.0.0.1 (DNS rebinding); its requests carry that name in Host, and
its scripts an Origin. Wraps the whole application.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MAX_BODY_BYTES = 1 << 20
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class BodyTooLargeError(Exception):
    """The request body is over `MAX_BODY_BYTES`."""


class LoopbackGuard:
    """ASGI wrapper that answers 403 to everything that does not come from this machine by its own name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            if not _is_local("//" + headers.get("host", "")) or (origin is not None and not _is_local(origin)):
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


def _is_local(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.hostname in _LOCAL_HOSTS and parts.username is None


async def read_body(request: Request) -> bytes:
    """The body, or BodyTooLargeError as soon as it is over the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
        raise BodyTooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
    return bytes(body)
