"""Refuses requests that were meant for somebody else: none with a foreign Host or Origin reaches a route.

`contracts.loopback` says why; here are the names that this gateway goes by, and its answer.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.loopback import is_own_host, is_own_origin
from sentinel_rag.interceptor.responses import problem


class HostGuard:
    """Lets through what names one of `allowed_hosts` (without ports) as Host and has no other Origin."""

    def __init__(self, app: ASGIApp, *, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._allowed = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._admits(Headers(scope=scope)):
            await problem(Reason.MISDIRECTED, "This request is for another host.")(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admits(self, headers: Headers) -> bool:
        own = self._allowed
        return is_own_host(headers.getlist("host"), own) and is_own_origin(headers.getlist("origin"), own)
