"""The wire to the gateway, blocking and asynchronous, for any number of threads and event loops at once.

It carries out what `calls` asks for and raises nothing for a gateway that refuses, fails or is away. It holds the
address and the key of the agent, shows the key nowhere, and sends it to that address alone: no proxy of the
environment, no redirect.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
import time
import weakref
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import anyio
import httpx2

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.integrations.gateway.answers import HttpReply, NoReply
from sentinel_rag.integrations.gateway.calls import (
    READ,
    Called,
    Exchange,
    GatewayCall,
    GatewayConversations,
    GatewayTool,
    Pause,
    Send,
    WaitLimits,
    calling,
    ending,
    listing,
    read_offers,
)

URL, API_KEY = "SENTINEL_URL", "SENTINEL_API_KEY"


# `SENTINEL_URL` and `SENTINEL_API_KEY` of the process that imports an adapter. That process is not ours: the settings
# of this product (`sentinel_rag.settings`) are not its settings, so these two are read here, and only where the caller
# gave no value.
def gateway_url(given: str | None) -> str:
    """The gateway's base URL without a slash at its end. Raises ConfigurationError."""
    text = given or os.environ.get(URL, "")  # noqa: TID251  # see above
    if not text:
        raise ConfigurationError(
            "No gateway is named.", next_step=f"Set {URL} to its address, such as http://127.0.0.1:8787."
        )
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        fine = fine and not (parts.query or parts.fragment or parts.username or parts.password)
    except ValueError:
        fine = False
    if not fine:
        raise ConfigurationError(
            f"{URL} is not the address of a gateway.",
            next_step=f"Set {URL} to an address such as http://127.0.0.1:8787, without user, query or fragment.",
        )
    return text.rstrip("/")


def api_key(given: str | None) -> str:
    """The key of the agent. Raises ConfigurationError."""
    key = given or os.environ.get(API_KEY, "")  # noqa: TID251  # see above
    if not key:
        raise ConfigurationError(
            "There is no key for the gateway.",
            next_step=f"Set {API_KEY} to a key with the scope execute (`sentinel keys create --scope execute`).",
        )
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise ConfigurationError(
            f"{API_KEY} holds characters that no key has.", next_step="Copy the key again, without spaces around it."
        )
    return key


MAX_REPLY_BYTES = 64 * 1024 * 1024
DEFAULT_TIMEOUT_S = 120.0
"""Longer than the gateway gives a tool, so that its answer is the one that counts."""

T = TypeVar("T")


class GatewayConnection(Closing):
    """A gateway and a key. Without `url` and `key` they are those of SENTINEL_URL and SENTINEL_API_KEY.

    `timeout_s` bounds each request from connecting to the last byte. `tls` is for a certificate authority of one's own.
    Raises ConfigurationError for an address or a key that cannot be one.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        patience: WaitLimits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url = gateway_url(url)
        self._key = api_key(key)
        self._timeout_s = timeout_s
        self._patience = patience or WaitLimits()
        self._tls = tls
        self._conversations = GatewayConversations()
        self._changing: set[str] = set()
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._owner = 0
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"GatewayConnection({self.url!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # frameworks copy tools; the sessions and the sockets stay one

    def call(self, call: GatewayCall) -> Called:
        """Make one call and wait for it."""
        return self._carry_out(calling(call, self._conversations, self._patience, self._changing))

    async def acall(self, call: GatewayCall) -> Called:
        """`call` without blocking the event loop; cancelling it closes the request's connection."""
        return await self._acarry_out(calling(call, self._conversations, self._patience, self._changing))

    def tools(self) -> tuple[GatewayTool, ...]:
        """What the key may call now. Raises ConfigurationError or UnavailableError, with the next step."""
        return self._listed(read_offers(self._carry_out(listing())))

    async def atools(self) -> tuple[GatewayTool, ...]:
        """`tools` without blocking."""
        return self._listed(read_offers(await self._acarry_out(listing())))

    def _listed(self, offered: tuple[GatewayTool, ...]) -> tuple[GatewayTool, ...]:
        self._changing.difference_update(tool.name for tool in offered if tool.effect == READ)
        return offered

    def close(self) -> None:
        """Close the sessions that were opened here, and the connections of blocking calls."""
        for session_id in self._conversations.take_all():
            self._carry_out(ending(session_id))
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the sessions, and the connections of this event loop and of blocking calls."""
        for session_id in self._conversations.take_all():
            await self._acarry_out(ending(session_id))
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _carry_out(self, exchange: Exchange[T]) -> T:
        outcome: HttpReply | NoReply | None = None
        while True:
            try:
                request = exchange.send(outcome)
            except StopIteration as end:
                done: T = end.value
                return done
            if isinstance(request, Pause):
                time.sleep(request.seconds)
                outcome = None
            else:
                outcome = self._send(request)

    async def _acarry_out(self, exchange: Exchange[T]) -> T:
        outcome: HttpReply | NoReply | None = None
        while True:
            try:
                request = exchange.send(outcome)
            except StopIteration as end:
                done: T = end.value
                return done
            if isinstance(request, Pause):
                await anyio.sleep(request.seconds)
                outcome = None
            else:
                outcome = await self._asend(request)

    def _send(self, request: Send) -> HttpReply | NoReply:
        ends_at = time.monotonic() + self._timeout_s
        try:
            with self._blocking().stream(
                request.method, self.url + request.path, content=request.body, headers=_headers(request)
            ) as response:
                parts: list[bytes] = []
                size = 0
                for part in response.iter_bytes():
                    size += len(part)
                    if size > MAX_REPLY_BYTES:
                        return _TOO_LARGE
                    if time.monotonic() > ends_at:
                        return self._too_late()
                    parts.append(part)
                return _reply(response, b"".join(parts))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as fault:
            return self._failed(fault)

    async def _asend(self, request: Send) -> HttpReply | NoReply:
        try:
            with anyio.fail_after(self._timeout_s):
                async with self._waiting().stream(
                    request.method, self.url + request.path, content=request.body, headers=_headers(request)
                ) as response:
                    parts: list[bytes] = []
                    size = 0
                    async for part in response.aiter_bytes():
                        size += len(part)
                        if size > MAX_REPLY_BYTES:
                            return _TOO_LARGE
                        parts.append(part)
                    return _reply(response, b"".join(parts))
        except TimeoutError:
            return self._too_late()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as fault:
            return self._failed(fault)

    def _blocking(self) -> httpx2.Client:
        with self._lock:
            # A forked process has its parent's sockets: used by both, each would read the other's answers.
            if self._client is None or self._owner != os.getpid():
                self._client, self._owner = httpx2.Client(**self._options()), os.getpid()
                weakref.finalize(self, self._client.close)  # for who drops it without closing
            return self._client

    def _waiting(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:  # connections belong to the loop that opened them
                self._clients[loop] = httpx2.AsyncClient(**self._options())
            return self._clients[loop]

    def _options(self) -> dict[str, Any]:
        return {
            "headers": {"X-API-Key": self._key},
            "timeout": self._timeout_s,
            "trust_env": False,
            "follow_redirects": False,
            "verify": self._tls if self._tls is not None else True,
        }

    def _failed(self, fault: Exception) -> NoReply:
        if isinstance(fault, httpx2.ConnectTimeout | httpx2.PoolTimeout):
            return self._unreachable()
        if isinstance(fault, httpx2.TimeoutException):
            return self._too_late()
        if isinstance(fault, httpx2.ConnectError | httpx2.UnsupportedProtocol | httpx2.InvalidURL):
            return self._unreachable()
        return NoReply("The connection to the gateway broke amid the answer.", "Call again.", sent=True)

    def _unreachable(self) -> NoReply:
        return NoReply(
            f"The gateway at {self.url} cannot be reached.",
            "Start it with `sentinel up`, or check SENTINEL_URL.",
            sent=False,
        )

    def _too_late(self) -> NoReply:
        return NoReply(
            f"The gateway did not answer within {self._timeout_s:g} seconds.",
            "Ask for less at once.",
            sent=True,
            timed_out=True,
        )


_TOO_LARGE = NoReply("The gateway's answer is larger than any result can be.", "Ask for less.", True, True)


def _headers(request: Send) -> dict[str, str]:
    return {**({"Content-Type": "application/json"} if request.body is not None else {}), **trace_headers()}


def _reply(response: httpx2.Response, content: bytes) -> HttpReply:
    return HttpReply(response.status_code, {name.lower(): text for name, text in response.headers.items()}, content)


# The W3C trace context of the caller's current span, if OpenTelemetry is there and a span is open.


def trace_headers() -> dict[str, str]:
    """`traceparent` and, where there is one, `tracestate`; empty without a span. No baggage leaves the process."""
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        return {}
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers
