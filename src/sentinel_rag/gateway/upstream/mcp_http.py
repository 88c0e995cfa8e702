"""A lean MCP client for the hot path: `tools/call` and `tools/list` over streamable HTTP, in both eras of the protocol.

The official SDK's client costs about 3 ms of CPU a call, this one about a tenth; both are run against the same servers
in the tests. A call is sent once. The exceptions are a server that answers 404 for a session it has forgotten, and one
that refuses the credential while a newer one is at hand: both say that they did not run the call.

One JSON-RPC message over HTTP and its answer, over kept-alive connections, within a limit of bytes.

A message is sent once. Nothing is followed, unpacked, remembered (cookies) or read from the environment (proxies). What
a server sends is bounded here where nobody above would see it: heads, chunk sizes, trailers, and bytes that nobody has
asked for. An idle connection is dropped as soon as it ends or says anything, and after `KEEP_ALIVE_S` in any case.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit
from weakref import WeakSet, WeakValueDictionary

import httptools
import msgspec
from anyio import to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.servers import READERS
from sentinel_rag.gateway.upstream.mcp_messages import (
    Message,
    NoList,
    Places,
    UpstreamProtocol,
    all_pages,
    annotated,
    answer_to,
    call_message,
    cancelled,
    events,
    headers_of,
    initialize,
    initialized,
    refusal_of,
    reply_of,
    request,
    says_tools_changed,
    speaks_stateless,
)
from sentinel_rag.gateway.upstream.port import (
    Owner,
    Renewal,
    ServerCredentials,
    UpstreamCall,
    UpstreamReply,
    UpstreamTool,
    away,
    credential_refused,
    timed_out,
    too_large,
    unusable,
)
from sentinel_rag.telemetry import traceparent

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


KEEP_ALIVE_S = 3.0
"""Shorter than uvicorn's 5 s, so that a pooled connection is not one that the server is closing."""

CONNECT_S = 3.0
ADDRESS_S = 1.5
"""One address of a name that has several: a route that swallows everything must not hide the others."""


class ConnectionNotMade(ConnectionFailed):
    """The request surely was not sent."""


class RpcExchange:
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

    def exchange(self, request: bytes) -> RpcExchange:
        """Send a whole request, head and body, in an `async with` whose value is the connection with the head of the
        answer on it. What is left unread at the end is not read any more. Entering raises ConnectionNotMade,
        ConnectionFailed."""
        return RpcExchange(self, request)

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


_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n){2}")


class SessionLost(Exception):
    """The server has forgotten the session and did not look at the message."""


class TooLarge(Exception):
    """The answer passes the limit."""


class UnusableAnswer(Exception):
    """The answer is not one; the message is a sentence for people, `status` the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class CredentialRefused(UnusableAnswer):
    """The server takes the gateway's credential for wrong or expired, and did not look at the message."""


@dataclass(frozen=True, slots=True)
class RpcAnswer:
    """A JSON-RPC response with the right id, its HTTP status, and the MCP session that its headers name (empty for
    none)."""

    document: dict[str, Any]
    status: int
    session: str


class HttpExchange:
    """Kept-alive connections to one URL. `token` goes to it as a bearer token. Belongs to the loop of its first use."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        max_bytes: int,
        max_connections: int,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._pool = ConnectionPool(url, max_connections=max_connections, trusted=trusted)
        self._max_bytes = max_bytes
        self.tools_changed: Callable[[], None] = lambda: None
        """Called when the server says, beside an answer, that its tools have changed."""
        self.use(token)

    def use(self, token: str | None) -> None:
        """Send `token` from the next message on."""
        common = {"Host": self._pool.authority, **({} if token is None else {"Authorization": f"Bearer {token}"})}
        posted = {
            **common,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",  # no compressed answer can grow past the limit
        }
        self._post_head = f"POST {self._pool.target} HTTP/1.1\r\n{_lines(posted)}"
        self._delete_head = f"DELETE {self._pool.target} HTTP/1.1\r\n{_lines(common)}"

    async def send(self, message: Message, session: str = "") -> RpcAnswer:
        """Send a request and return its answer, be it JSON or a stream of events.

        Raises SessionLost, TooLarge, UnusableAnswer, ConnectionNotMade or ConnectionFailed.
        """
        async with self._post(message, session) as response:
            if response.status == 404 and session:
                raise SessionLost
            document = await self._answer(message, response, session)
            return RpcAnswer(document, response.status, response.headers.get("mcp-session-id", ""))

    async def notify(self, message: Message, session: str) -> None:
        """Send a notification, whose answer says nothing."""
        async with self._post(message, session) as response:
            await _read_out(response)

    async def end(self, session: str) -> None:
        """Tell the server that the session is over; one that does not let clients say so answers 405."""
        headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": UpstreamProtocol.SESSIONS.value}
        async with self._pool.exchange(f"{self._delete_head}{_lines(headers)}\r\n".encode("latin-1")) as response:
            await _read_out(response)

    async def aclose(self) -> None:
        await self._pool.aclose()

    def _post(self, message: Message, session: str) -> AbstractAsyncContextManager[Connection]:
        headers = {**message.headers, "Content-Length": str(len(message.body))}
        if session:
            headers["Mcp-Session-Id"] = session
        head = f"{self._post_head}{_lines(headers)}\r\n"
        return self._pool.exchange(head.encode("latin-1") + message.body)

    async def _answer(self, message: Message, response: Connection, session: str) -> dict[str, Any]:
        assert message.request_id is not None
        status = response.status
        if status in (401, 403):
            raise CredentialRefused("The tool server does not accept the gateway's credential.", status)
        if status // 100 == 3:
            raise UnusableAnswer("The tool server redirects, which is not followed.", status)
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise TooLarge
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        stream = media_type == "text/event-stream"
        received, body = 0, bytearray()
        while part := await response.read():
            received += len(part)
            if received > self._max_bytes:
                raise TooLarge
            body += part
            if stream:
                end = _end_of_events(body, len(part))
                for event in events(body[:end].decode(errors="replace")) if end else ():
                    document = _decode(event.encode(), status)
                    answer = answer_to(message.request_id, document)
                    if answer is not None:
                        return answer
                    await self._hear(document, session)
                del body[:end]
        answer = None if stream else answer_to(message.request_id, _decode(bytes(body), status))
        if answer is None:
            raise UnusableAnswer(f"The tool server's answer (HTTP {status}) does not belong to the call.", status)
        return answer

    async def _hear(self, document: Any, session: str) -> None:
        """What a stream says before the answer: progress and log lines are let pass, questions are refused."""
        if says_tools_changed(document):
            self.tools_changed()
        refusal = refusal_of(document)
        if refusal is not None:
            await self.notify(
                Message(None, refusal, {"Mcp-Protocol-Version": UpstreamProtocol.SESSIONS.value}), session
            )


def _end_of_events(body: bytearray, fresh: int) -> int:
    """Up to where `body` holds whole events; its last `fresh` bytes were not looked at before. A server need not write
    its answer and what it says afterwards (a comment that keeps the stream alive) in two pieces."""
    if body.endswith(_EVENT_ENDS):
        return len(body)
    end = 0
    for blank in _BLANK_LINE.finditer(body, max(0, len(body) - fresh - 3)):
        end = blank.end()
    return end


def _decode(body: bytes, status: int) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UnusableAnswer(f"The tool server's answer (HTTP {status}) is not JSON.", status) from None


async def _read_out(response: Connection) -> None:
    """Read the little that belongs to an answer without content, so that its connection can be used again."""
    if response.headers.get("content-length") == "0" or response.status == 204:
        await response.read()


def _lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises ValueError for a name or a value that would be more than one."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header holds a line end")
    return lines


MAX_UPSTREAM_SESSIONS = 1_000
SESSION_ATTEMPTS = 2
LAST_WORD_S = 0.25
"""How long the word that nobody waits any more may take: the caller, whose deadline has passed, waits for it."""

_LISTING: Owner = ("", "")
"""The owner of the session in which tools are listed; no caller can be it."""


class McpHttpUpstream:
    """The MCP server at `url`. `token` is sent to it as a bearer token, and nowhere else; `renewal` is where a newer
    one may be when the server refuses it.

    `era` fixes the protocol; without it the server is asked once. In the era of sessions each principal's gateway
    session has its own upstream session. `is_ours`: a server of this product; see `reply_of`, and it alone is told the
    caller's readers. `trusted` is what its certificate is checked by, None the system's authorities. The connection
    pool belongs to the event loop of the first call.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        renewal: Renewal | None = None,
        era: UpstreamProtocol | None = None,
        max_result_bytes: int = 8_000_000,
        max_connections: int = 64,
        is_ours: bool = False,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._http = HttpExchange(
            url, token=token, max_bytes=max_result_bytes, max_connections=max_connections, trusted=trusted
        )
        self._token = token
        self._renewal = renewal
        self._credentials = ServerCredentials([] if token is None else [token])
        self._era = era
        self._max_result_bytes = max_result_bytes
        self._is_ours = is_ours
        self._in_headers: dict[str, Places] = {}
        self._ids = itertools.count(1)
        self._sessions: OrderedDict[Owner, str] = OrderedDict()
        self._asking_era = asyncio.Lock()
        self._opening: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()

    @property
    def is_ours(self) -> bool:
        """Whether it is a server of this product."""
        return self._is_ours

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        """See `Upstream.call`."""

        async def once() -> UpstreamReply:
            return await self._call(call)

        try:
            return await once()
        except CredentialRefused as refused:
            status = refused.status
        if await self._renewed():
            try:
                return await once()
            except CredentialRefused as refused:
                status = refused.status
        return credential_refused(self._renewal, status)

    async def _renewed(self) -> bool:
        """Take a newer token, where there is one."""
        if self._renewal is None or self._renewal.read is None:
            return False
        token, old = await to_thread.run_sync(self._renewal.read), self._token
        if token is None or token == old or not token.isprintable():
            return False
        self._token = token
        self._credentials = ServerCredentials([token] if old is None else [token, old])
        self._http.use(token)
        return True

    async def _call(self, call: UpstreamCall) -> UpstreamReply:
        """One try. Raises CredentialRefused, which says that nothing ran."""
        sent: tuple[Message, str] | None = None
        try:
            async with asyncio.timeout(call.timeout_s):
                era = await self._negotiated()
                places = self._in_headers.get(call.tool) if era is UpstreamProtocol.STATELESS else None
                headers = headers_of(places, call.arguments.value) if places else None
                beside: dict[str, Any] = {}
                if self._is_ours and call.readers is not None:
                    beside[READERS] = sorted(call.readers)
                if (place := traceparent()) is not None:
                    beside["traceparent"] = place
                message = call_message(era, next(self._ids), call.tool, call.arguments.encoded, headers, beside)
                for _ in range(SESSION_ATTEMPTS):
                    session = await self._session(era, call.owner)
                    sent = (message, session)
                    try:
                        answer = await self._http.send(message, session)
                    except SessionLost:
                        self._forget(call.owner, session)
                        sent = None
                    else:
                        self._doubt(call.owner, session, answer.status)
                        reply = reply_of(answer.document, is_ours=self._is_ours)
                        return self._credentials.hidden_in(reply)
                return away("The tool server forgets its sessions at once.", may_have_run=False)
        except TimeoutError:
            if sent is not None:
                await self._give_up(*sent)
            return timed_out(call.timeout_s, may_have_run=sent is not None)
        except TooLarge:
            return too_large(self._max_result_bytes, may_have_run=sent is not None)
        except CredentialRefused:
            raise
        except UnusableAnswer as fault:
            self._doubt(call.owner, "" if sent is None else sent[1], fault.status)
            return unusable(str(fault), may_have_run=sent is not None)
        except ConnectionNotMade:
            return away("The tool server cannot be reached.", may_have_run=False)
        except ConnectionFailed:
            return away("The tool server ended the connection during the call.", may_have_run=sent is not None)

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        """See `Upstream.list_tools`."""
        try:
            async with asyncio.timeout(timeout_s):
                era = await self._negotiated()
                for _ in range(SESSION_ATTEMPTS):
                    session = await self._session(era, _LISTING)
                    try:
                        return await self._list_tools(era, session)
                    except SessionLost:
                        self._forget(_LISTING, session)
                raise UnusableAnswer("The tool server forgets its sessions at once.", 404)
        except CredentialRefused as refused:
            if await self._renewed():
                return await self.list_tools(timeout_s=timeout_s)
            error = credential_refused(self._renewal, refused.status).error
            raise UnavailableError(error.message, next_step=error.next_step) from refused
        except (TimeoutError, TooLarge, UnusableAnswer, NoList, ConnectionFailed) as error:
            raise UnavailableError(
                "A tool server did not list its tools.", next_step="Check that the tool server runs."
            ) from error

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """See `Upstream.on_tools_changed`. Heard only beside the answer of a call: no stream is held open for it."""
        self._http.tools_changed = listener

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """See `Upstream.end_session`."""
        session = self._sessions.pop((principal, session_id), "")
        if session:
            with suppress(TimeoutError, ConnectionFailed):
                async with asyncio.timeout(LAST_WORD_S):
                    await self._http.end(session)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _list_tools(self, era: UpstreamProtocol, session: str) -> tuple[UpstreamTool, ...]:
        async def ask(params: dict[str, Any]) -> Any:
            return (await self._http.send(request(era, next(self._ids), "tools/list", params), session)).document

        tools = await all_pages(ask)
        self._in_headers = {tool.name: places for tool in tools if (places := annotated(tool.input_schema))}
        return tools

    async def _negotiated(self) -> UpstreamProtocol:
        """The protocol to speak. A server that does not know `server/discover` is one of the era of sessions."""
        if self._era is not None:
            return self._era
        async with self._asking_era:
            if self._era is None:
                self._era = await self._ask_era()
            return self._era

    async def _ask_era(self) -> UpstreamProtocol:
        try:
            answer = await self._http.send(request(UpstreamProtocol.STATELESS, next(self._ids), "server/discover", {}))
        except UnusableAnswer as fault:
            if fault.status in (400, 404, 405, 406):
                return UpstreamProtocol.SESSIONS
            raise  # it says nothing about the protocol: ask again with the next call
        return UpstreamProtocol.STATELESS if speaks_stateless(answer.document) else UpstreamProtocol.SESSIONS

    async def _session(self, era: UpstreamProtocol, owner: Owner) -> str:
        """The upstream session that belongs to its owner, opened on first use; empty in the newer era."""
        if era is UpstreamProtocol.STATELESS:
            return ""
        async with self._opening.setdefault(owner, asyncio.Lock()):  # one owner's slow opening keeps nobody else
            known = self._sessions.get(owner)
            if known is not None:
                self._sessions.move_to_end(owner)
                return known
            answer = await self._http.send(initialize(next(self._ids)))
            if "error" in answer.document:
                raise UnusableAnswer("The tool server did not open a session.", 200)
            await self._http.notify(initialized(), answer.session)
            self._sessions[owner] = answer.session
            if len(self._sessions) > MAX_UPSTREAM_SESSIONS:
                self._sessions.popitem(last=False)
            return answer.session

    def _forget(self, owner: Owner, session: str) -> None:
        if self._sessions.get(owner) == session:  # another call of this owner may have opened the next one already
            del self._sessions[owner]

    def _doubt(self, owner: Owner, session: str, status: int) -> None:
        """Some servers answer 400 where the protocol wants 404 for a session they have forgotten. The call is not sent
        again, because 400 does not say that it did not run; the next one opens a session of its own."""
        if session and status == 400:
            self._forget(owner, session)

    async def _give_up(self, message: Message, session: str) -> None:
        """Tell a server with sessions that the call is over. Without sessions the closed connection says so."""
        if session and message.request_id is not None:
            with suppress(TimeoutError, ConnectionFailed):
                async with asyncio.timeout(LAST_WORD_S):
                    await self._http.notify(cancelled(UpstreamProtocol.SESSIONS, message.request_id), session)
