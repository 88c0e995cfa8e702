"""One JSON-RPC message over HTTP and its answer, within a limit of bytes.

A message is sent once: POST is never repeated by the HTTP library, and idle connections are dropped before the server
would drop them. Nothing is followed, unpacked, remembered (cookies) or read from the environment (proxies).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp  # noqa: TID253  # this module is the HTTP client
import msgspec

from sentinel_rag.interceptor.upstream.mcp_messages import (
    Era,
    Message,
    answer_to,
    events,
    refusal_of,
    says_tools_changed,
)

KEEP_ALIVE_S = 3.0
"""Shorter than uvicorn's 5 s, so that a pooled connection is not one that the server is closing."""

CONNECT_S = 3.0

ConnectionNotMade = aiohttp.ClientConnectorError
"""The message surely was not sent."""

ConnectionFailed = (aiohttp.ClientError, OSError)
"""The connection ended before the answer did."""

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class SessionLost(Exception):
    """The server has forgotten the session and did not look at the message."""


class TooLarge(Exception):
    """The answer passes the limit."""


class UnusableAnswer(Exception):
    """The answer is not one; the message is a sentence for people, `status` the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON-RPC response with the right id, its HTTP status, and the MCP session that its headers name (empty for
    none)."""

    document: dict[str, Any]
    status: int
    session: str


class HttpExchange:
    """Kept-alive connections to one URL. `token` goes to it as a bearer token. Belongs to the loop of its first use."""

    def __init__(self, url: str, *, token: str | None, max_bytes: int, max_connections: int) -> None:
        self._url = url
        self._token = token
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self.tools_changed: Callable[[], None] = lambda: None
        """Called when the server says, beside an answer, that its tools have changed."""
        self._client: aiohttp.ClientSession | None = None

    async def send(self, message: Message, session: str = "") -> Answer:
        """Send a request and return its answer, be it JSON or a stream of events.

        Raises SessionLost, TooLarge, UnusableAnswer, ConnectionNotMade or one of ConnectionFailed.
        """
        async with self._post(message, session) as response:
            if response.status == 404 and session:
                raise SessionLost
            document = await self._answer(message, response, session)
            return Answer(document, response.status, str(response.headers.get("Mcp-Session-Id", "")))

    async def notify(self, message: Message, session: str) -> None:
        """Send a notification, whose answer says nothing."""
        async with self._post(message, session) as response:
            response.release()

    async def end(self, session: str) -> None:
        """Tell the server that the session is over; one that does not let clients say so answers 405."""
        headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": Era.SESSIONS.value}
        async with self._connected().delete(self._url, headers=headers, allow_redirects=False) as response:
            response.release()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _post(self, message: Message, session: str) -> Any:
        headers = {**message.headers, "Mcp-Session-Id": session} if session else message.headers
        return self._connected().post(self._url, data=message.body, headers=headers, allow_redirects=False)

    def _connected(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> aiohttp.ClientSession:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",  # no compressed answer can grow past the limit
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_connections, keepalive_timeout=KEEP_ALIVE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def _answer(self, message: Message, response: aiohttp.ClientResponse, session: str) -> dict[str, Any]:
        assert message.request_id is not None
        status = response.status
        if status in (401, 403):
            raise UnusableAnswer("The tool server does not accept the gateway's credential.", status)
        if status // 100 == 3:
            raise UnusableAnswer("The tool server redirects, which is not followed.", status)
        if (response.content_length or 0) > self._max_bytes:
            raise TooLarge
        stream = response.content_type == "text/event-stream"
        received, body = 0, bytearray()
        async for chunk in response.content.iter_any():
            received += len(chunk)
            if received > self._max_bytes:
                raise TooLarge
            body += chunk
            if stream and body.endswith(_EVENT_ENDS):
                for event in events(body.decode(errors="replace")):
                    document = _decode(event.encode(), status)
                    answer = answer_to(message.request_id, document)
                    if answer is not None:
                        return answer
                    await self._hear(document, session)
                body.clear()
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
            await self.notify(Message(None, refusal, {"Mcp-Protocol-Version": Era.SESSIONS.value}), session)


def _decode(body: bytes, status: int) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UnusableAnswer(f"The tool server's answer (HTTP {status}) is not JSON.", status) from None
