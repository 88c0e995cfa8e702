"""What every request passes before a route is looked for, and what every response carries.

A request for another host, or from another site's page, ends here, and so do bodies that are too large or no JSON. No
response lets another page read it (there is no CORS), frame it or make a browser load anything from elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.loopback import is_own_host, is_own_origin
from sentinel_rag.surfaces.web._problems import Problem

MAX_BODY_BYTES = 128 * 1024
"""Room for the longest question, however its characters are escaped."""
MAX_URL_BYTES = 4_096
BODY_SECONDS = 10.0

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with it browsers send "Origin: null" with our own forms, which is another site's to us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Border:
    """Wraps the application. `hosts` are the names it goes by; `secure` says that people reach it over TLS."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], secure: bool) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._added = dict(SECURITY_HEADERS)
        if secure:
            self._added["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._added.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self._check(scope)
            body = await _read(scope, receive)
        except Problem as problem:
            await problem.response()(scope, receive, sealed)
            return
        await self._app(scope, _given(body, receive), sealed)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if not (
            is_own_host(headers.getlist("host"), self._hosts) and is_own_origin(headers.getlist("origin"), self._hosts)
        ):
            raise Problem(421, "misdirected", "This request is for another host, or comes from another site's page.")
        if not scope["path"].isprintable():
            raise Problem(404, "not_found", "There is no such route.")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL_BYTES:
            raise Problem(414, "too_large", f"The URL may have at most {MAX_URL_BYTES} bytes.")


async def _read(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises Problem for one that is too large or is no JSON: a form, which another site's page can
    send without asking, never reaches a route."""
    headers = Headers(scope=scope)
    body = bytearray()
    more = True
    with anyio.move_on_after(BODY_SECONDS) as in_time:
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "malformed_body", "The connection ended before the body did.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY_BYTES:
                raise Problem(413, "too_large", f"The body may have at most {MAX_BODY_BYTES} bytes.")
    if in_time.cancelled_caught:
        raise Problem(408, "malformed_body", "The body did not arrive in time.", "Send it again.")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (kind != "application/json" or "content-encoding" in headers):
        raise Problem(415, "unsupported_media_type", "Send the body as application/json without Content-Encoding.")
    return bytes(body)


def _given(body: bytes, receive: Receive) -> Receive:
    """A channel that hands over the body that was read, and then what really comes."""
    handed_over = False

    async def give() -> Message:
        nonlocal handed_over
        if handed_over:
            return await receive()
        handed_over = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
