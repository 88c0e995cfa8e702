"""The requests of one process, whatever its application: counted, timed, placed in their caller's trace, and
`GET /metrics` answered to whoever has the token for it.

A plain ASGI wrapper around everything else. The counts tell of other people's calls, so an agent must not read them:
without a token they are not served at all.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from sentinel_rag.telemetry.metrics import CONTENT_TYPE, Counter, Gauge, Histogram, Registry
from sentinel_rag.telemetry.request_start import set_request_began
from sentinel_rag.telemetry.spans import continuing

METRICS_PATH = "/metrics"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
NO_ROUTE = "none"
AT_ONCE = 128
"""So many requests are counted together, which costs less than each by itself."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class TracedRequests:
    """Lets spans of a request belong to the trace that its `traceparent` header names."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"traceparent"]
        if len(given) != 1:
            await self._app(scope, receive, send)
            return
        with continuing(given[0].decode("latin-1")):
            await self._app(scope, receive, send)


class CountedRequests:
    """Counts requests into `registry` and serves it at `/metrics` for `Authorization: Bearer TOKEN`. Raises ValueError
    for a token that could be guessed."""

    def __init__(self, app: App, registry: Registry, token: str) -> None:
        if len(token) < 16:
            raise ValueError("the token of /metrics must have at least 16 characters")
        self._app = app
        self._registry = registry
        self._expected = f"Bearer {token}".encode()
        self._in_flight = 0
        self._heard: list[tuple[str, str, int, float]] = []
        self._answered = Counter(
            "sentinel_http_requests_total", "HTTP requests that were answered.", ("method", "route", "status")
        )
        self._seconds = Histogram(
            "sentinel_http_request_seconds", "From a request's head to the end of its answer.", ("route",)
        )
        waiting = Gauge(
            "sentinel_http_requests_in_flight",
            "HTTP requests that are being answered.",
            lambda: [((), float(self._in_flight))],
        )
        registry.add(self._answered, self._seconds, waiting)
        registry.before_text.append(self._count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == METRICS_PATH:
            await self._tell(scope, send)
            return
        status = 0

        async def noticing(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        set_request_began(began)
        self._in_flight += 1
        try:
            await self._app(scope, receive, noticing)
        finally:
            self._in_flight -= 1
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._heard.append((method, route, status, time.perf_counter() - began))
            if len(self._heard) >= AT_ONCE:
                self._count()

    def _count(self) -> None:
        heard, self._heard = self._heard, []
        for method, route, status, seconds in heard:
            self._answered.add(method, route, str(status) if status else "none")
            self._seconds.observe(seconds, route)

    async def _tell(self, scope: Scope, send: Send) -> None:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._expected):
            await _answer(send, 401, b"A bearer token is needed: the one of SENTINEL_METRICS_TOKEN.\n")
        elif scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 405, b"The metrics can be read alone.\n", {"Allow": "GET, HEAD"})
        else:
            for ask in self._registry.before_reading:
                await ask()
            text = self._registry.text().encode()
            await _answer(send, 200, b"" if scope["method"] == "HEAD" else text, {"Content-Type": CONTENT_TYPE})


async def _answer(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    told = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", **(headers or {})}
    if status == 401:
        told["WWW-Authenticate"] = "Bearer"
    raw = [(name.lower().encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
