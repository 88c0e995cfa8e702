"""One JSON-RPC message over HTTP and its answer, within a limit of bytes.

A message is sent once. Nothing is followed, unpacked, remembered (cookies) or read from the environment (proxies). The
connections are those of `http_pool`, which know nothing of what they carry.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from sentinel_rag.gateway.upstream.http_connection import Connection, ConnectionFailed
from sentinel_rag.gateway.upstream.http_pool import ConnectionNotMade, ConnectionPool
from sentinel_rag.gateway.upstream.mcp_messages import (
    Message,
    UpstreamProtocol,
    answer_to,
    events,
    refusal_of,
    says_tools_changed,
)

__all__ = [
    "Answer",
    "ConnectionFailed",
    "ConnectionNotMade",
    "CredentialRefused",
    "HttpExchange",
    "SessionLost",
    "TooLarge",
    "UnusableAnswer",
]

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
class Answer:
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

    async def send(self, message: Message, session: str = "") -> Answer:
        """Send a request and return its answer, be it JSON or a stream of events.

        Raises SessionLost, TooLarge, UnusableAnswer, ConnectionNotMade or ConnectionFailed.
        """
        async with self._post(message, session) as response:
            if response.status == 404 and session:
                raise SessionLost
            document = await self._answer(message, response, session)
            return Answer(document, response.status, response.headers.get("mcp-session-id", ""))

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
