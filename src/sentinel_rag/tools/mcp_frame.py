"""The MCP server around a set of tools: streamable HTTP, stateless, JSON answers, behind a token.

Schemas come from `contracts` word for word, so that what the policy names, what a model sees and what is served cannot
drift apart. A result travels as structured content, an error too (with isError), each beside one line of text.

A tool call of the protocol without sessions, answered without the protocol's library.

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
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag import __version__
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import (
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    internal_error,
    invalid_argument,
)
from sentinel_rag.contracts.servers import READERS, Refused, RequestAuthenticator
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.telemetry import Span, SpanKind, continuing, start_span


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


HEALTH_PATH = "/healthz"
_REFUSALS = {
    Refused.HOST: (421, "This server answers to this machine's own names only."),
    Refused.ORIGIN: (403, "This server takes no requests from web pages."),
    Refused.BEARER: (401, "A bearer token is needed."),
}


class TokenAuthentication:
    """Lets a request through to `app` only with the token and from this machine's names; the health check needs no
    token. Raises ValueError for a token that could be guessed."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app = app
        self._authenticator = RequestAuthenticator(token=token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is served; closing without an answer refuses the handshake
        refused = self._authenticator.refused(scope["headers"])
        if refused is None or (refused is Refused.BEARER and scope["path"] == HEALTH_PATH):
            await self._app(scope, receive, send)
            return
        status, detail = _REFUSALS[refused]
        challenge = {"WWW-Authenticate": "Bearer"} if refused is Refused.BEARER else None
        await JSONResponse({"detail": detail}, status, challenge)(scope, receive, send)


_ERROR_CODES = frozenset(code.value for code in QueryErrorCode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a client may show its user beside a tool, in the words of the protocol; nothing here depends on it."""

    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False


CallTool = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Awaitable[ToolAnswer]]
"""Runs a tool by its name, with its arguments and what the gateway says beside them (`contracts.trusted_meta`). Never
raises for what a caller sends or the world does."""


async def _nothing_to_close() -> None:
    return None


def executor_app(
    name: str,
    tools: Sequence[ToolSchema],
    call: CallTool,
    *,
    token: str,
    close: Callable[[], Awaitable[None]] = _nothing_to_close,
    hints: Callable[[str], Hints] = lambda _: Hints(),
) -> Starlette:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. Its lifespan ends with `close`.

    `hints` describes each tool to clients. The protocol's library is loaded by the first request that is not of the
    two kinds that our gateway sends: half a second of processor time that a question in words never needs.
    """
    names = frozenset(tool.name for tool in tools)
    told = _told(call, names)
    about = {"name": name, "version": __version__}
    server = _McpServer(lambda: _sdk_app(name, tools, told, hints))
    described = [_wire_form(tool, hints(tool.name)) for tool in tools]
    served = FixedAnswers(PlainCalls(server, told, names, about), fixed_answers(about, described))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(server.run)
                yield
                group.cancel_scope.cancel()
        finally:
            await close()

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "server": name})

    return Starlette(
        routes=[Route(HEALTH_PATH, health), Mount("/", served)],
        middleware=[Middleware(TokenAuthentication, token=token)],
        lifespan=lifespan,
    )


class _McpServer:
    """The SDK's application, built when it is first needed and then kept. `run` lives as long as the server does,
    because what the SDK's lifespan opens must be closed by the task that opened it."""

    def __init__(self, build: Callable[[], Starlette]) -> None:
        self._build = build
        self._wanted = anyio.Event()
        self._built = anyio.Event()
        self._app: Starlette | None = None

    async def run(self) -> None:
        await self._wanted.wait()
        app = await anyio.to_thread.run_sync(self._build)
        async with app.router.lifespan_context(app):
            self._app = app
            self._built.set()
            await anyio.sleep_forever()

    async def ready(self) -> Starlette:
        self._wanted.set()
        await self._built.wait()
        assert self._app is not None
        return self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self.ready()
        await app(scope, receive, send)


def _wire_form(tool: ToolSchema, hint: Hints) -> dict[str, Any]:
    annotations = {
        "readOnlyHint": hint.read_only,
        "destructiveHint": hint.destructive,
        "idempotentHint": hint.idempotent,
        "openWorldHint": hint.open_world,
    }
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": annotations,
    }


def _told(call: CallTool, names: frozenset[str]) -> CallTool:
    """`call` within a span of its caller's trace."""

    async def run(name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> ToolAnswer:
        tool = name if name in names else "unknown"
        with continuing(meta.get("traceparent")), start_span(f"tools/call {tool}", SpanKind.SERVER) as span:
            answer = await call(name, arguments, meta)
            if span.recording:
                _tell(span, tool, meta, answer)
        return answer

    return run


def _tell(span: Span, tool: str, meta: Mapping[str, Any], answer: ToolAnswer) -> None:
    """What a span says of a call: no argument and nothing of the answer but its size and the code of its error."""
    span.set("mcp.method.name", "tools/call")
    span.set("mcp.protocol.version", meta.get("io.modelcontextprotocol/protocolVersion"))
    span.set("gen_ai.operation.name", "execute_tool")
    span.set("gen_ai.tool.name", tool)
    span.set("tool.name", tool)
    rows = answer.value.get("rows")
    if isinstance(rows, list | tuple):
        span.set("sentinel.result.rows", len(rows))
    if answer.is_error:
        code = answer.value.get("code")
        span.fail(code if code in _ERROR_CODES else "tool_error")


def _sdk_app(name: str, tools: Sequence[ToolSchema], call: CallTool, hints: Callable[[str], Hints]) -> Starlette:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    def annotations(tool: str) -> ToolAnnotations:
        hint = hints(tool)
        return ToolAnnotations(
            read_only_hint=hint.read_only,
            destructive_hint=hint.destructive,
            idempotent_hint=hint.idempotent,
            open_world_hint=hint.open_world,
        )

    described = [
        Tool(
            name=tool.name,
            description=tool.description,
            input_schema=dict(tool.parameters),
            annotations=annotations(tool.name),
        )
        for tool in tools
    ]

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=described)

    async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
        answer = await call(params.name, params.arguments or {}, dict(params.meta or {}))
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=dict(answer.value),
            is_error=answer.is_error,
            _meta=dict(answer.meta) or None,
        )

    server: Server[Any] = Server(name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(json_response=True, stateless_http=True)
