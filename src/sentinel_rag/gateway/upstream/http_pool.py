"""Kept-alive connections to one server. A request goes over one of them once, and is never sent again.

An idle connection is used only while its server is surely still there: it is dropped as soon as it ends or says
anything, and after `KEEP_ALIVE_S` in any case.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from urllib.parse import quote, urlsplit
from weakref import WeakSet

from sentinel_rag.gateway.upstream.http_connection import Connection, ConnectionFailed

KEEP_ALIVE_S = 3.0
"""Shorter than uvicorn's 5 s, so that a pooled connection is not one that the server is closing."""

CONNECT_S = 3.0
ADDRESS_S = 1.5
"""One address of a name that has several: a route that swallows everything must not hide the others."""


class ConnectionNotMade(ConnectionFailed):
    """The request surely was not sent."""


class Exchange:
    """One request and its answer, as an `async with`."""

    __slots__ = ("_connection", "_pool", "_request")

    def __init__(self, pool: ConnectionPool, request: bytes) -> None:
        self._pool = pool
        self._request = request

    async def __aenter__(self) -> Connection:
        self._connection = await self._pool.begin(self._request)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        self._pool.end(self._connection)


class ConnectionPool:
    """At most `max_connections` to the server of `url`; a request that finds all in use waits. Belongs to the event
    loop of its first use; `trusted` is what the server's certificate is checked by, None the system's authorities.
    Raises ValueError for what is no http or https URL."""

    def __init__(self, url: str, *, max_connections: int, trusted: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a tool server needs an http or https URL")
        self._host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = (trusted or ssl.create_default_context()) if parts.scheme == "https" else None
        name = f"[{self._host}]" if ":" in self._host else self._host
        self.authority = name if parts.port is None else f"{name}:{parts.port}"
        """The Host header of every request."""
        self.target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (
            "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?") if parts.query else ""
        )
        """The request target: path and query."""
        self._free = asyncio.Semaphore(max_connections)
        self._idle: deque[tuple[float, Connection]] = deque()
        self._open: WeakSet[Connection] = WeakSet()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    def exchange(self, request: bytes) -> Exchange:
        """Send a whole request, head and body, in an `async with` whose value is the connection with the head of the
        answer on it. What is left unread at the end is not read any more. Entering raises ConnectionNotMade,
        ConnectionFailed."""
        return Exchange(self, request)

    async def begin(self, request: bytes) -> Connection:
        """Of an exchange: wait for a connection, send, and wait for the head of the answer."""
        await self._free.acquire()
        try:
            connection = self._take() or await self._connect()
        except BaseException:
            self._free.release()
            raise
        try:
            await connection.ask(request)
        except BaseException:
            self.end(connection)
            raise
        return connection

    def end(self, connection: Connection) -> None:
        """Of an exchange: take the connection back."""
        if connection.release():
            self._keep(connection)
        self._free.release()

    async def aclose(self) -> None:
        """Close all connections, in use or not, and wait until they are gone."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        for connection in tuple(self._open):
            connection.close()
            await connection.wait_closed()

    def _take(self) -> Connection | None:
        self._drop_old()
        while self._idle:
            connection = self._idle.pop()[1]
            if connection.reusable:
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((loop.time(), connection))
        if self._sweeping is None:
            self._sweeping = loop.call_later(KEEP_ALIVE_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        self._drop_old()
        if self._idle:
            self._sweeping = asyncio.get_running_loop().call_later(KEEP_ALIVE_S, self._sweep)

    def _drop_old(self) -> None:
        oldest = asyncio.get_running_loop().time() - KEEP_ALIVE_S
        while self._idle and self._idle[0][0] < oldest:
            self._idle.popleft()[1].close()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                for *_, address in await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
                    try:
                        async with asyncio.timeout(ADDRESS_S):
                            _, connection = await loop.create_connection(
                                Connection,
                                str(address[0]),
                                self._port,
                                ssl=self._ssl,
                                server_hostname=None if self._ssl is None else self._host,
                            )
                            self._open.add(connection)
                            return connection
                    except (OSError, TimeoutError):
                        continue
        except (OSError, TimeoutError, UnicodeError) as error:
            raise ConnectionNotMade from error
        raise ConnectionNotMade
