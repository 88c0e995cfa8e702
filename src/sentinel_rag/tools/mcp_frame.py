"""The MCP server around a set of tools: streamable HTTP, stateless, JSON answers, behind a token.

Schemas come from `contracts` word for word, so that what the policy names, what a model sees and what is served cannot
drift apart. A result travels as structured content, an error too (with isError), each beside one line of text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag import __version__
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.servers import Refused, RequestAuthenticator
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.telemetry import Span, SpanKind, continuing, start_span
from sentinel_rag.tools.plain_calls import FixedAnswers, PlainCalls, ToolAnswer, fixed_answers

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
