"""A tool server that does what it is told and remembers what it was asked.

It is a real MCP server over streamable HTTP on a loopback socket, in both eras of the protocol, so a policy or a
gateway can be tested against it without a tool, a database or Azure. Point a policy's `server` at it and look at
`calls`: what is not there never left the gateway.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag_testing.loopback import serve

STATELESS, SESSIONS = "2026-07-28", "2025-11-25"
MAX_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Return `value` as structuredContent (an object) with its JSON as text beside it."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class AnswersBy:
    """Return what `answer` makes of the arguments of the call, so that a call too many changes no later answer."""

    answer: Callable[[Mapping[str, Any]], JsonValue]


@dataclass(frozen=True, slots=True)
class AnswersText:
    """Return text blocks, with `beside` as structuredContent if it is given."""

    texts: tuple[str, ...]
    is_error: bool = False
    beside: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class AnswersWith:
    """Return this MCP result, whatever its parts are."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fails:
    """Return a typed error, as the tool servers of this product do."""

    error: QueryError


@dataclass(frozen=True, slots=True)
class Waits:
    """Hold the call until `release` is set, then answer `value`."""

    release: threading.Event
    value: JsonValue = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dies:
    """End the connection in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Sends:
    """Send these bytes, whatever they are."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"


Behaviour = Answers | AnswersBy | AnswersText | AnswersWith | Fails | Waits | Dies | Sends


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A `tools/call` that arrived. `body` is the HTTP body, byte for byte; header names are in lower case."""

    tool: str
    arguments: Mapping[str, Any]
    headers: Mapping[str, str]
    body: bytes


class FakeToolServer:
    """The server. Without instructions a tool answers `{"tool": its name, "arguments": what it was given}`."""

    def __init__(
        self,
        tools: Iterable[ToolSchema] = SHIPPED_TOOLS,
        *,
        eras: tuple[str, ...] = (STATELESS, SESSIONS),
        stream: bool = False,
        token: str | None = None,
    ) -> None:
        self.tools = tuple(tools)
        self.calls: list[RecordedCall] = []
        self.arrived = threading.Semaphore(0)
        """Released once for each call that arrives: a test waits on it instead of sleeping."""
        self.forget_sessions = 0
        """How many of the next requests find their session forgotten."""
        self.notifications: list[Mapping[str, Any]] = []
        """What arrived and wants no answer, with its session under `session`."""
        self.ended_sessions: list[str] = []
        self.token = token
        self._eras = eras
        self._stream = stream
        self._behaviours: dict[str, deque[Behaviour]] = {}
        self._sessions: set[str] = set()
        self._url = ""

    @property
    def url(self) -> str:
        """The MCP endpoint, while `running`."""
        return self._url

    def on(self, tool: str, *behaviours: Behaviour) -> None:
        """What the next calls of `tool` do, one after the other; the last one repeats."""
        self._behaviours[tool] = deque(behaviours)

    @contextmanager
    def running(self) -> Iterator[FakeToolServer]:
        """Serve on a free loopback port."""
        with serve(Starlette(routes=[Route("/mcp", self._receive, methods=["POST", "DELETE"])])) as url:
            self._url = f"{url}/mcp"
            yield self

    async def _receive(self, request: Request) -> Response:
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"detail": "unauthorized"}, status_code=401)
        session = request.headers.get("mcp-session-id", "")
        if request.method == "DELETE":
            self._sessions.discard(session)
            self.ended_sessions.append(session)
            return Response(status_code=200)
        body = await request.body()
        message = json.loads(body)
        if "id" not in message:
            self.notifications.append({**message, "session": session})
            return Response(status_code=202)
        era = STATELESS if request.headers.get("mcp-protocol-version") == STATELESS else SESSIONS
        if era not in self._eras:
            return _error(message, -32022, "unsupported protocol version", status=400)
        method = message["method"]
        if era == SESSIONS and method != "initialize":
            if self.forget_sessions:
                self._sessions.clear()
                self.forget_sessions -= 1
            if request.headers.get("mcp-session-id") not in self._sessions:
                return _error(message, -32001, "session not found", status=404)
        match method:
            case "initialize":
                session = secrets.token_hex(8)
                self._sessions.add(session)
                result = {"protocolVersion": SESSIONS, "capabilities": {"tools": {}}, "serverInfo": _INFO}
                return self._reply(message, result, headers={"Mcp-Session-Id": session})
            case "server/discover":
                found = {"supportedVersions": list(self._eras), "capabilities": {"tools": {}}, "serverInfo": _INFO}
                return self._reply(message, {**found, **_STATELESS_LIST})
            case "tools/list":
                tools = [_describe(tool) for tool in self.tools]
                return self._reply(message, {"tools": tools, **(_STATELESS_LIST if era == STATELESS else {})})
            case "tools/call":
                return await self._call(request, message, body)
            case _:
                return _error(message, -32601, "method not found", status=404)

    async def _call(self, request: Request, message: dict[str, Any], body: bytes) -> Response:
        name, arguments = message["params"]["name"], message["params"].get("arguments") or {}
        self.calls.append(RecordedCall(name, arguments, dict(request.headers), body))
        self.arrived.release()
        match self._next(name):
            case None:
                return self._reply(message, _structured({"tool": name, "arguments": arguments}))
            case Answers(value):
                return self._reply(message, _structured(value))
            case AnswersBy(answer):
                return self._reply(message, _structured(answer(arguments)))
            case AnswersText(texts, is_error, beside):
                content = [{"type": "text", "text": text} for text in texts]
                structured = {} if beside is None else {"structuredContent": beside}
                result = {"resultType": "complete", "content": content, **structured, "isError": is_error}
                return self._reply(message, result)
            case AnswersWith(result):
                return self._reply(message, {"resultType": "complete", **result})
            case Fails(error):
                return self._reply(message, {**_structured(error.to_dict()), "isError": True})
            case Waits(release, value):
                await anyio.to_thread.run_sync(release.wait, MAX_WAIT_S, abandon_on_cancel=True)
                return self._reply(message, _structured(value))
            case Dies():
                return _BrokenResponse()
            case Sends(raw, status, content_type):
                return Response(raw, status, media_type=content_type)

    def _next(self, tool: str) -> Behaviour | None:
        queue = self._behaviours.get(tool)
        if not queue:
            return None
        return queue.popleft() if len(queue) > 1 else queue[0]

    def _reply(
        self, message: dict[str, Any], result: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Response:
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if not self._stream:
            return Response(answer, media_type="application/json", headers=headers)
        progress = json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "working"}}
        )
        text = f": ping\n\nevent: message\ndata: {progress}\n\nevent: message\ndata: {answer}\n\n"
        return Response(text, media_type="text/event-stream", headers=headers)


_INFO = {"name": "fake-executor", "version": "1"}
_STATELESS_LIST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _describe(tool: ToolSchema) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}


def _structured(value: JsonValue) -> dict[str, Any]:
    text = {"type": "text", "text": json.dumps(value)}
    return {"resultType": "complete", "content": [text], "structuredContent": value, "isError": False}


def _error(message: dict[str, Any], code: int, text: str, *, status: int) -> Response:
    body = {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}
    return JSONResponse(body, status_code=status)


class _BrokenResponse(Response):
    """Promises more bytes than it sends; the server then closes the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"jsonrpc"', "more_body": True})
