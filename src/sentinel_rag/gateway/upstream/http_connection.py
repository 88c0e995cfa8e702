"""One kept-alive HTTP/1.1 connection to a tool server: a request is written once, its answer read as it arrives.

Below lie the loop's transport and httptools' parser; above it the pool, which decides who gets a connection. It knows
nothing of MCP. What a server sends is bounded here where nobody above would see it: heads, chunk sizes, trailers, and
bytes that nobody has asked for.
"""

from __future__ import annotations

import asyncio

import httptools

FRAME_BYTES = 65_536
"""Bytes of a head, or around a body, that a server may send; counted after each read of at most 256 KiB."""

FRAMING_FACTOR = 16
"""Bytes around each byte of a body: chunks of one byte need six."""

UNREAD_BYTES = 262_144
"""Beyond so many bytes that nobody has read yet, no more are taken from the network."""

_NO_BODY = (204, 304)


class ConnectionFailed(Exception):
    """The connection ended, or stopped making sense, before the answer was complete."""


class Connection(asyncio.Protocol):
    """Carries one exchange at a time: `ask`, then `read` to the end. `status` and `headers` are those of the answer;
    header names are in lower case, and of a header given twice the first counts."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._news: asyncio.Future[None] | None = None
        self._asked = False
        self._failed = False
        self._paused = False
        self._lost = asyncio.Event()
        self._finish()

    @property
    def reusable(self) -> bool:
        """Whether the next request may go this way: nothing is left of the last one, and the server is still there."""
        transport = self._transport
        return not (self._asked or self._failed) and transport is not None and not transport.is_closing()

    async def ask(self, request: bytes) -> None:
        """Send a request and wait for the head of its answer. Raises ConnectionFailed."""
        assert self._transport is not None
        self._asked = True
        self._transport.write(request)
        while not self._head_complete:
            await self._wait()

    async def read(self) -> bytes:
        """The next part of the answer's body, empty at its end. Raises ConnectionFailed."""
        while not self._body:
            if self._complete:
                return b""
            await self._wait()
        part = bytes(self._body)
        self._body.clear()
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        return part

    def release(self) -> bool:
        """End the exchange; True if the connection may carry another one, else it is closed."""
        clean = self._complete and not self._body and self._keeps_alive
        self._finish()
        if clean and self.reusable:
            return True
        self.close()
        return False

    def close(self) -> None:
        self._failed = True
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait for the end of a connection that was closed."""
        await self._lost.wait()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of a TCP connection
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self.close()  # an answer to nothing: whatever it is, it must not meet the next request
            return
        self._around += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail()
        else:
            if self._around > FRAME_BYTES:
                self._fail()
            elif len(self._body) > UNREAD_BYTES and self._transport is not None and not self._paused:
                self._paused = True
                self._transport.pause_reading()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_complete and self._until_end and exc is None:
            self._complete = True
        self._failed = True
        self._lost.set()
        self._tell()

    def on_message_begin(self) -> None:
        if self._complete:
            self._fail()  # a second answer behind the first

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_complete:  # a trailer is no header
            self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200:  # only announces the answer
            self.headers.clear()
            return
        headers = self.headers
        framed = "content-length" in headers or headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._until_end = not framed and self.status not in _NO_BODY
        self._keeps_alive = self._parser.should_keep_alive()
        self._head_complete = True
        self._around = 0

    def on_body(self, body: bytes) -> None:
        if not self._failed:
            self._around = max(0, self._around - len(body) * FRAMING_FACTOR)
            self._body += body

    def on_message_complete(self) -> None:
        self._complete = self._head_complete and not self._failed

    def _finish(self) -> None:
        self._asked = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body = bytearray()
        self._around = 0
        self._head_complete = self._complete = self._until_end = self._keeps_alive = False

    def _fail(self) -> None:
        self._complete = False
        self.close()

    async def _wait(self) -> None:
        if self._failed:
            raise ConnectionFailed
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
