"""From the pages of an MCP `tools/list` answer to tools; the same for every transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sentinel_rag.gateway.upstream.port import UpstreamTool

MAX_PAGES = 50


class NoList(Exception):
    """What the server sent is not a list of tools, or does not end; the message is a sentence for people."""


async def all_pages(ask: Callable[[dict[str, Any]], Awaitable[Any]]) -> tuple[UpstreamTool, ...]:
    """Ask for page after page: `ask` sends `tools/list` with these params and returns the JSON-RPC response.

    Raises NoList, and whatever `ask` raises.
    """
    tools: list[UpstreamTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        answer = await ask({} if cursor is None else {"cursor": cursor})
        result = answer.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            raise NoList("The list of tools is not one.")
        tools += [_described(tool) for tool in result["tools"] if _is_tool(tool)]
        cursor = result.get("nextCursor")
        if not cursor:
            return tuple(tools)
    raise NoList("The list of tools does not end.")


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _described(tool: dict[str, Any]) -> UpstreamTool:
    return UpstreamTool(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        input_schema=_object(tool.get("inputSchema")) or {},
        output_schema=_object(tool.get("outputSchema")),
        annotations=_object(tool.get("annotations")),
    )


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
