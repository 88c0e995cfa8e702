"""Telemetry of one process as its supervisor configured it, and what it puts around the process's application.

`{"tracing": {"collector", "wait_s", "sampler", "ratio", "trusts_callers", "session_key", "resource"} or null,
"metrics_token": text or null}`. Loaded only where one of the two is wanted: with what it imports it is all that
telemetry adds to a process.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from prometheus_client import ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag import __version__
from sentinel_rag.contracts.servers import RequestAuthenticator
from sentinel_rag.telemetry import continuing, set_session_key, set_tracer
from sentinel_rag.telemetry.metrics import CONTENT_TYPE, Counter, Gauge, Histogram, Registry, set_request_began
from sentinel_rag.telemetry.tracer import Collector, Counts, SdkTracer, SpanBatches, named_sampler

# A plain ASGI wrapper around everything else. The counts tell of other people's calls, so an agent must not read them:
# without a token they are not served at all.
METRICS_PATH = "/metrics"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
NO_ROUTE = "none"


class TracedRequests:
    """Lets spans of a request belong to the trace that its `traceparent` header names."""

    def __init__(self, app: ASGIApp) -> None:
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

    def __init__(self, app: ASGIApp, registry: Registry, token: str) -> None:
        self._app = app
        self._registry = registry
        self._authenticator = RequestAuthenticator(token=token)
        self._in_flight = 0
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
            self._answered.add(method, route, str(status) if status else "none")
            self._seconds.observe(time.perf_counter() - began, route)

    async def _tell(self, scope: Scope, send: Send) -> None:
        if not self._authenticator.is_shown_token(scope["headers"]):
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


SERVICES = {"agent": "sentinel-rag-agent", "interceptor": "sentinel-rag-interceptor", "web": "sentinel-rag-web"}
"""The service name of a zone; tool servers share one, and `sentinel.zone` tells them apart."""

TOOL_SERVERS = "sentinel-rag-tools"
_CALLED_BY_US = "executor-"
_UNTRACED = ("workspace", "model-identity")


class ProcessTelemetry:
    """What one zone tells. Starting it has spans made from now on."""

    def __init__(self, zone: str, configuration: Mapping[str, Any]) -> None:
        self._token: str | None = configuration["metrics_token"]
        self.registry = None if self._token is None else Registry()
        """None where nobody may read metrics, so that none are kept."""

        tracing = configuration["tracing"]
        self._batches = None if tracing is None or zone.startswith(_UNTRACED) else _start_tracing(zone, tracing)
        if self.registry is not None:
            self.registry.add(_build_info(zone))
            ProcessCollector(registry=self.registry)
            if self._batches is not None:
                self.registry.add(*_of_exporter(self._batches.counts))

    def around(self, app: ASGIApp) -> ASGIApp:
        """`app` with its requests placed in traces and counted."""
        if self._batches is not None:
            app = TracedRequests(app)
        if self.registry is not None and self._token is not None:
            app = CountedRequests(app, self.registry, self._token)
        return app

    def close(self) -> None:
        """Send what is left: the server's signal ends the process right after."""
        if self._batches is not None:
            self._batches.close()


def _start_tracing(zone: str, configuration: Mapping[str, Any]) -> SpanBatches:
    about = {
        **configuration["resource"],
        "service.name": SERVICES.get(zone, TOOL_SERVERS),
        "service.version": __version__,
        "service.instance.id": secrets.token_hex(8),
        "sentinel.zone": zone,
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": version("opentelemetry-sdk"),
    }
    set_session_key(bytes.fromhex(configuration["session_key"]))
    batches = SpanBatches(Collector(**configuration["collector"]), wait_s=configuration["wait_s"])
    # Whoever calls a tool server has the zone's token: that is the gateway, which goes by the setting itself.
    trusts = configuration["trusts_callers"] or zone.startswith(_CALLED_BY_US)
    sampler = named_sampler(configuration["sampler"], configuration["ratio"])
    set_tracer(SdkTracer(batches, sampler=sampler, resource=about, trusts_callers=trusts))
    return batches


def _of_exporter(counts: Counts) -> tuple[Gauge, ...]:
    def spans() -> Iterable[tuple[tuple[str, ...], float]]:
        yield ("dropped",), counts.dropped
        yield ("exported",), counts.exported
        yield ("failed",), counts.failed

    return (
        Gauge("sentinel_telemetry_spans_total", "What became of spans.", spans, ("result",), counts=True),
        Gauge("sentinel_telemetry_spans_queued", "Spans that wait to be sent.", lambda: [((), float(counts.queued))]),
    )


def _build_info(zone: str) -> Gauge:
    return Gauge(
        "sentinel_build_info",
        "The product's version and the zone of this process.",
        lambda: [((__version__, zone), 1.0)],
        ("version", "zone"),
    )
