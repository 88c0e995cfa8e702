"""Refuses requests before a route is looked for: those that were meant for somebody else, and heads out of measure.

`contracts.loopback` says why a foreign Host or Origin is refused; here are the names that this gateway goes by. The
server below has read the whole head by now, within harder bounds of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.loopback import is_own_host, is_own_origin
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.refusals import Refusals, Unread


class HostGuard:
    """Lets through what names one of `allowed_hosts` (without ports) as Host and has no other Origin."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str], limits: Limits, refusals: Refusals) -> None:
        self._app = app
        self._allowed = frozenset(host.lower() for host in allowed_hosts)
        self._limits = limits
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                response = await self._refusals.unread(HTTPConnection(scope), refusal)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Unread | None:
        raw = scope["headers"]
        own = self._allowed
        hosts = [text.decode("latin-1") for name, text in raw if name == b"host"]
        origins = [text.decode("latin-1") for name, text in raw if name == b"origin"]
        if not (is_own_host(hosts, own) and is_own_origin(origins, own)):
            return Unread(Reason.MISDIRECTED, "This request is for another host.")
        if not scope["path"].isprintable():  # a route also matches with a line end behind it
            return Unread(Reason.NOT_FOUND, "There is no such route.")
        limits = self._limits
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > limits.url_bytes:
            return Unread(Reason.TOO_LARGE, f"The URL may have at most {limits.url_bytes} bytes.", status=414)
        if len(raw) > limits.header_count or sum([len(name) + len(text) for name, text in raw]) > limits.header_bytes:
            detail = f"There may be {limits.header_count} headers with {limits.header_bytes} bytes in all."
            return Unread(Reason.TOO_LARGE, detail, status=431)
        return None
