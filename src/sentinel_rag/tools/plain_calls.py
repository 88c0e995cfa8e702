"""A tool call of the protocol without sessions, answered without the protocol's library.

The library takes half a second of processor time to load, and some milliseconds for each call, in which it lists all
tools anew. Whatever is not exactly the call that our gateway makes, of a tool that is served, goes on to the library:
that includes all that is wrong with a call, so what is refused, and how, is the library's. A test holds the two answers
against each other.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.trusted_meta import READERS
from sentinel_rag.tools.tool_answer import ToolAnswer

# What is answered without the protocol's library must be told from its headers and its body; a request that turns out
# to be another one goes on exactly as it came.
PROTOCOL = "2026-07-28"
MCP_PATH = "/mcp"
MAX_QUESTION_BYTES = 65_536


def method_of(scope: Scope, headers: Headers) -> str | None:
    """The method that a small POST of this protocol names in its headers; None for any other request."""
    length = headers.get("content-length", "")
    small = length.isascii() and length.isdecimal() and len(length) < 9 and int(length) <= MAX_QUESTION_BYTES
    if scope["method"] != "POST" or scope["path"] != MCP_PATH or not small:
        return None
    return headers.get("mcp-method") if headers.get("mcp-protocol-version") == PROTOCOL else None


async def body_of(receive: Receive) -> bytes | None:
    """The whole body; None if the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then what comes after it."""
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


METHOD = "tools/call"
_PREFIX = "io.modelcontextprotocol/"
_ENVELOPE = frozenset({f"{_PREFIX}protocolVersion", f"{_PREFIX}clientInfo", f"{_PREFIX}clientCapabilities"})
_BESIDE = frozenset({READERS, "traceparent"})
_INTERNAL_ERROR = {"code": -32603, "message": "Internal server error"}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Call:
    request_id: int | str
    tool: str
    arguments: dict[str, Any]
    meta: dict[str, Any]


class PlainCalls:
    """Wraps the library's application. `call` runs one of `tools`, `server` is what results name as their server:
    `name` and `version`."""

    def __init__(
        self,
        app: ASGIApp,
        call: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Awaitable[ToolAnswer]],
        tools: Collection[str],
        server: Mapping[str, str],
    ) -> None:
        self._app = app
        self._call = call
        self._tools = frozenset(tools)
        self._server = dict(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        tool = self._tool_of(scope, headers)
        if tool is None:
            await self._app(scope, receive, send)
            return
        body = await body_of(receive)
        if body is None:
            return
        call = _call_in(body, tool)
        if call is None:
            await self._app(scope, again(body, receive), send)
            return
        answer = {"jsonrpc": "2.0", "id": call.request_id, **await self._outcome(call)}
        await Response(_encoded(answer), media_type="application/json")(scope, receive, send)

    def _tool_of(self, scope: Scope, headers: Headers) -> str | None:
        """The tool that the headers name; None where anything is not as the gateway sends it."""
        if method_of(scope, headers) != METHOD or any(name.startswith("mcp-param-") for name in headers):
            return None
        once = all(len(headers.getlist(name)) == 1 for name in ("mcp-method", "mcp-protocol-version", "mcp-name"))
        json_both_ways = headers.get("content-type") == "application/json" and "application/json" in {
            form.strip() for form in headers.get("accept", "").split(",")
        }
        tool = headers.get("mcp-name", "")
        return tool if once and json_both_ways and tool in self._tools else None

    async def _outcome(self, call: _Call) -> dict[str, Any]:
        try:
            answer = await self._call(call.tool, call.arguments, call.meta)
        except Exception:  # none should; if one does, the gateway hears what the library would have told it
            _LOG.exception("a call of %s raised", call.tool)
            return {"error": _INTERNAL_ERROR}
        beside = {name: value for name, value in answer.meta.items() if value is not None}
        return {
            "result": {
                "_meta": {**beside, f"{_PREFIX}serverInfo": self._server},
                "content": [{"text": answer.text, "type": "text"}],
                "isError": answer.is_error,
                "resultType": "complete",
                "structuredContent": dict(answer.value),
            }
        }


def _call_in(body: bytes, tool: str) -> _Call | None:
    """The call of `tool`, whole and with nothing beside it that this module does not know; None for anything else."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.keys() != {"jsonrpc", "id", "method", "params"}:
        return None
    request_id, params = message["id"], message["params"]
    if (message["jsonrpc"], message["method"]) != ("2.0", METHOD) or type(request_id) not in (int, str):
        return None
    if not isinstance(params, dict) or params.keys() != {"name", "arguments", "_meta"} or params["name"] != tool:
        return None
    arguments, meta = params["arguments"], params["_meta"]
    if not isinstance(arguments, dict) or not isinstance(meta, dict) or not _is_envelope(meta):
        return None
    return _Call(request_id, tool, arguments, meta)


def _is_envelope(meta: dict[str, Any]) -> bool:
    if not _ENVELOPE <= meta.keys() <= _ENVELOPE | _BESIDE:
        return False
    client = meta[f"{_PREFIX}clientInfo"]
    named = isinstance(client, dict) and client.keys() == {"name", "version"}
    return (
        named
        and all(isinstance(text, str) for text in client.values())
        and meta[f"{_PREFIX}clientCapabilities"] == {}
        and meta[f"{_PREFIX}protocolVersion"] == PROTOCOL
    )


def _encoded(answer: dict[str, Any]) -> str:
    """As the library writes it: in ASCII, and a number that JSON does not have is null."""
    try:
        return json.dumps(answer, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(answer), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# The gateway asks both of every server when it starts. Answered from memory, they do not make a server load the
# protocol's library before anybody calls a tool. They are the library's own answers, field by field; a test holds the
# two against each other. Whatever is not exactly such a question in the protocol without sessions goes on to the
# library.
class FixedAnswers:
    """Wraps the library's application. `answers` maps a method to its result."""

    def __init__(self, app: ASGIApp, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = method_of(scope, Headers(scope=scope))
        if method is None or method not in self._answers:
            await self._app(scope, receive, send)
            return
        body = await body_of(receive)
        if body is None:
            return
        request_id = _id_of(body, method)
        if request_id is None:
            await self._app(scope, again(body, receive), send)
        else:
            answer = {"jsonrpc": "2.0", "id": request_id, "result": self._answers[method]}
            await JSONResponse(answer)(scope, receive, send)


def fixed_answers(server: Mapping[str, str], tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The answers of a server, `name` and `version`, that serves `tools` in wire form."""
    common = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
    about = {"_meta": {"io.modelcontextprotocol/serverInfo": dict(server)}}
    capabilities = {"capabilities": {"tools": {"listChanged": False}}, "supportedVersions": [PROTOCOL]}
    return {"server/discover": {**common, **capabilities, **about}, "tools/list": {**common, "tools": tools, **about}}


def _id_of(body: bytes, method: str) -> int | str | None:
    """The id of a plain question for the first page; None for anything else."""
    try:
        question = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(question, dict) or question.get("jsonrpc") != "2.0" or question.get("method") != method:
        return None
    parameters = question.get("params", {})
    request_id = question.get("id")
    plain = isinstance(parameters, dict) and set(parameters) <= {"_meta"}
    return request_id if plain and isinstance(request_id, int | str) and not isinstance(request_id, bool) else None
