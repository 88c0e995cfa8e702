"""Refuses requests that were meant for somebody else.

A web page can make a browser send requests to 127.0.0.1 (DNS rebinding, cross-site forms). Such a request carries a
foreign Host or an Origin; neither reaches a route.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.interceptor.responses import problem

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(:\d{1,5})?")


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
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return False
        return all(self._is_ours(re.sub(r"^https?://", "", origin)) for origin in origins)

    def _is_ours(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        return match is not None and match[1].lower() in self._allowed
