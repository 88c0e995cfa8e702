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
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import (
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    internal_error,
    invalid_argument,
)
from sentinel_rag.contracts.servers import READERS
from sentinel_rag.contracts.tool_calls import ToolSchema


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """`value` travels as structured content; `text` is for clients that show text only and holds no data of a file,
    a page or a log. `meta` is for the gateway alone (`contracts.trusted_meta`)."""

    value: JsonObject
    text: str
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)


def failed(
    code: QueryErrorCode, message: str, next_step: str, *, retry_after_s: float | None = None
) -> QueryFailedError:
    """The failure of something that the tool needs."""
    return QueryFailedError(QueryError(code=code, message=message, next_step=next_step, retry_after_s=retry_after_s))


def error_answer(error: QueryError) -> ToolAnswer:
    """An error as an answer."""
    return ToolAnswer(error.to_dict(), " ".join(part for part in (error.message, error.next_step) if part), True)


async def answer_of(tool: str, tools: Sequence[ToolSchema], run: Callable[[], Awaitable[ToolAnswer]]) -> ToolAnswer:
    """What `run` answers for `tool`, which must be one of `tools`, or why there is no answer. Never raises: one tool's
    fault must not end the server or reach the caller as a traceback."""
    known = tuple(each.name for each in tools)
    try:
        if tool not in known:
            step = f"Use one of: {', '.join(known)}."
            raise invalid_argument("tool_name", "There is no such tool.", step, allowed=known)
        return await run()
    except QueryFailedError as failure:
        return error_answer(failure.error)
    except SentinelError as error:
        return error_answer(failed(QueryErrorCode.UNAVAILABLE, str(error), error.next_step).error)
    except Exception:
        return error_answer(internal_error(tool, _LOG))


T = TypeVar("T", bound=msgspec.Struct)

# The gateway has judged the very bytes that arrive here, so nothing is stripped, folded or converted: a path with a
# blank in front must not become another path behind the rule's back.
_PLACE = re.compile(r" - at `\$\.(?P<field>\w+)`$")
_NAMED = re.compile(r"(?:unknown|required) field `(?P<field>\w+)`")


def read_arguments(kind: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
    """`arguments` as a `kind`, whose fields and limits they must keep. Raises QueryFailedError that names the field."""
    try:
        return msgspec.convert(arguments, kind, strict=True)
    except msgspec.ValidationError as fault:
        text = str(fault)
        found = _PLACE.search(text) or _NAMED.search(text)
        field = found["field"] if found else ""
        reason = _PLACE.sub("", text).replace("`", "'")
        takes = ", ".join(each.name for each in msgspec.structs.fields(kind))
        raise invalid_argument(
            field,
            f"{tool} cannot take {field or 'these arguments'}: {reason[:1].lower()}{reason[1:]}.",
            f"It takes: {takes}.",
        ) from None


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
_INTERNAL_ERROR = {"code": -32603, "message": "Internal server error"}
_LOG = logging.getLogger(__name__)


class _Exact(msgspec.Struct, forbid_unknown_fields=True):
    """An object with the members that it names and no other."""


class _Params(_Exact):
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any] = msgspec.field(name="_meta")


class _Call(_Exact):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


class _Client(_Exact):
    name: str
    version: str


class _Envelope(_Exact):
    """What stands beside a call; the last two may be left out."""

    version: str = msgspec.field(name=f"{_PREFIX}protocolVersion")
    client: _Client = msgspec.field(name=f"{_PREFIX}clientInfo")
    capabilities: _Exact = msgspec.field(name=f"{_PREFIX}clientCapabilities")
    readers: Any = msgspec.field(name=READERS, default=None)
    traceparent: Any = None


class _FirstPage(_Exact):
    meta: Any = msgspec.field(name="_meta", default=None)


class _Question(msgspec.Struct):
    """A question for the first page, or for all there is."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: str
    params: _FirstPage = msgspec.field(default_factory=_FirstPage)


class _Shortcut:
    """Wraps the library's `app`: answers what `_wanted` names, and hands on all else exactly as it came."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = self._wanted(scope, Headers(scope=scope))
        if wanted is None:
            await self._app(scope, receive, send)
            return
        body = await body_of(receive)
        if body is None:
            return
        try:
            answer = await self._answer(wanted, body)
        except (msgspec.DecodeError, RecursionError):
            await self._app(scope, again(body, receive), send)
            return
        await Response(_encoded({"jsonrpc": "2.0", **answer}), media_type="application/json")(scope, receive, send)

    def _wanted(self, scope: Scope, headers: Headers) -> str | None:
        raise NotImplementedError

    async def _answer(self, wanted: str, body: bytes) -> dict[str, Any]:
        """Its id and its result or error. Raises DecodeError or RecursionError for what the library is to answer."""
        raise NotImplementedError


class PlainCalls(_Shortcut):
    """`call` runs one of `tools`, `server` is what results name as their server: `name` and `version`."""

    def __init__(
        self,
        app: ASGIApp,
        call: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Awaitable[ToolAnswer]],
        tools: Collection[str],
        server: Mapping[str, str],
    ) -> None:
        super().__init__(app)
        self._call = call
        self._tools = frozenset(tools)
        self._server = dict(server)

    def _wanted(self, scope: Scope, headers: Headers) -> str | None:
        """The tool that the headers name; None where anything is not as the gateway sends it."""
        if method_of(scope, headers) != METHOD or any(name.startswith("mcp-param-") for name in headers):
            return None
        once = all(len(headers.getlist(name)) == 1 for name in ("mcp-method", "mcp-protocol-version", "mcp-name"))
        json_both_ways = headers.get("content-type") == "application/json" and "application/json" in {
            form.strip() for form in headers.get("accept", "").split(",")
        }
        tool = headers.get("mcp-name", "")
        return tool if once and json_both_ways and tool in self._tools else None

    async def _answer(self, wanted: str, body: bytes) -> dict[str, Any]:
        call = msgspec.json.decode(body, type=_Call)
        params = call.params
        if params.name != wanted or msgspec.convert(params.meta, _Envelope).version != PROTOCOL:
            raise msgspec.DecodeError
        try:
            answer = await self._call(params.name, params.arguments, params.meta)
        except Exception:  # none should; if one does, the gateway hears what the library would have told it
            _LOG.exception("a call of %s raised", params.name)
            return {"id": call.id, "error": _INTERNAL_ERROR}
        beside = {name: value for name, value in answer.meta.items() if value is not None}
        return {
            "id": call.id,
            "result": {
                "_meta": {**beside, f"{_PREFIX}serverInfo": self._server},
                "content": [{"text": answer.text, "type": "text"}],
                "isError": answer.is_error,
                "resultType": "complete",
                "structuredContent": dict(answer.value),
            },
        }


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
# two against each other.
class FixedAnswers(_Shortcut):
    """`answers` maps a method to its result."""

    def __init__(self, app: ASGIApp, answers: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(app)
        self._answers = answers

    def _wanted(self, scope: Scope, headers: Headers) -> str | None:
        method = method_of(scope, headers)
        return method if method in self._answers else None

    async def _answer(self, wanted: str, body: bytes) -> dict[str, Any]:
        question = msgspec.json.decode(body, type=_Question)
        if question.method != wanted:
            raise msgspec.DecodeError
        return {"id": question.id, "result": self._answers[wanted]}


def fixed_answers(server: Mapping[str, str], tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The answers of a server, `name` and `version`, that serves `tools` in wire form."""
    common = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
    about = {"_meta": {"io.modelcontextprotocol/serverInfo": dict(server)}}
    capabilities = {"capabilities": {"tools": {"listChanged": False}}, "supportedVersions": [PROTOCOL]}
    return {"server/discover": {**common, **capabilities, **about}, "tools/list": {**common, "tools": tools, **about}}
