"""The MCP server over a `SentinelService`: streamable HTTP, stateless, JSON answers.

Schemas come from `contracts.tool_schemas` word for word, so that what the policy names, what a model sees and what is
served cannot drift apart. A result travels as structured content, an error too (with isError), each beside one line of
text. Nothing here decides what may run: that was judged at the gateway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server  # noqa: TID253  # the module is the MCP server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from sentinel_rag import __version__
from sentinel_rag.contracts.query_results import QueryError, QueryResult
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, WRITING_TOOLS
from sentinel_rag.executors.sentinel.door import HEALTH_PATH, Door
from sentinel_rag.sentinel.service import SentinelService

SERVER_NAME = "sentinel"


def create_app(service: SentinelService, *, token: str) -> Starlette:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. Its lifespan closes the service's connections."""
    mcp_app = _mcp_server(service).streamable_http_app(json_response=True, stateless_http=True)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            async with mcp_app.router.lifespan_context(mcp_app):
                yield
        finally:
            await service.close()

    return Starlette(
        routes=[Route(HEALTH_PATH, _health), Mount("/", mcp_app)],
        middleware=[Middleware(Door, token=token)],
        lifespan=lifespan,
    )


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok", "server": SERVER_NAME})


def _mcp_server(service: SentinelService) -> Server[Any]:
    tools = [
        Tool(
            name=tool.name,
            description=tool.description,
            input_schema=dict(tool.parameters),
            annotations=_annotations(tool.name),
        )
        for tool in SENTINEL_TOOLS
    ]

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
        outcome = await service.call(params.name, params.arguments or {})
        return CallToolResult(
            content=[TextContent(type="text", text=headline(outcome))],
            structured_content=outcome.to_dict(),
            is_error=isinstance(outcome, QueryError),
        )

    return Server(SERVER_NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _annotations(tool: str) -> ToolAnnotations:
    """What a client may show its user beside a tool. An update replaces values, a comment only adds one."""
    return ToolAnnotations(
        read_only_hint=tool not in WRITING_TOOLS,
        destructive_hint=tool == "update_incident",
        idempotent_hint=tool != "add_incident_comment",
        open_world_hint=False,
    )


def headline(outcome: QueryResult | QueryError) -> str:
    """One line for clients that show text only; it holds counts and our own sentences, no rows."""
    if isinstance(outcome, QueryError):
        return " ".join(part for part in (outcome.message, outcome.next_step) if part)
    coverage = outcome.coverage
    total = "" if coverage.rows_total in (None, coverage.rows_returned) else f" of {coverage.rows_total}"
    partial = f" The result is partial: {coverage.partial_reason}" if coverage.partial else ""
    return f"{coverage.rows_returned}{total} rows from {', '.join(coverage.tables)}.{partial}"
