"""Zone C: the tools over Microsoft Sentinel, as an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette

from sentinel_rag.contracts.query_results import QueryError, QueryResult
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.tools.mcp_frame import Hints, ToolAnswer, error_answer, executor_app

# A result is a QueryResult or a QueryError in wire form, beside one line of text. Nothing here decides what may run:
# that was judged at the gateway.
SERVER_NAME = "sentinel"


def create_app(service: SentinelService, *, token: str) -> Starlette:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. Its lifespan closes the service's connections."""

    async def call(name: str, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> ToolAnswer:
        outcome = await service.call(name, arguments)
        if isinstance(outcome, QueryError):
            return error_answer(outcome)
        return ToolAnswer(outcome.to_dict(), headline(outcome))

    return executor_app(SERVER_NAME, service.tools, call, token=token, close=service.close, hints=_hints)


def _hints(tool: str) -> Hints:
    """An update replaces values, a comment only adds one."""
    return Hints(
        read_only=tool not in WRITING_TOOLS,
        destructive=tool == "update_incident",
        idempotent=tool != "add_incident_comment",
    )


def headline(outcome: QueryResult) -> str:
    """One line for clients that show text only; it holds counts and our own sentences, no rows."""
    coverage = outcome.coverage
    total = "" if coverage.rows_total in (None, coverage.rows_returned) else f" of {coverage.rows_total}"
    partial = f" The result is partial: {coverage.partial_reason}" if coverage.partial else ""
    return f"{coverage.rows_returned}{total} rows from {', '.join(coverage.tables)}.{partial}"
