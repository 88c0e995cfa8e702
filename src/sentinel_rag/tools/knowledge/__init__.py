"""Zone C: search over incidents and playbooks, as an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.knowledge_tools import KNOWLEDGE_TOOLS
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.mcp_frame import ToolAnswer, executor_app

if TYPE_CHECKING:
    from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

__all__ = ["KnowledgeBase", "OpenedStore", "create_app"]

ADMIN_PREFIX = "/admin/"


def create_app(base: KnowledgeBase, *, token: str, admin: ASGIApp | None = None) -> ASGIApp:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. Its lifespan closes the store.

    `admin` answers everything below `ADMIN_PREFIX`; it asks for another token.
    """
    made: list[KnowledgeTools] = []

    async def call(name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> ToolAnswer:
        if not made:
            from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

            made.append(KnowledgeTools(base))
        return await made[0].call(name, arguments, meta)

    async def close() -> None:
        await anyio.to_thread.run_sync(base.close)

    tools = executor_app("knowledge", KNOWLEDGE_TOOLS, call, token=token, close=close)
    return tools if admin is None else _beside(tools, admin)


def _beside(tools: ASGIApp, admin: ASGIApp) -> ASGIApp:
    async def split(scope: Scope, receive: Receive, send: Send) -> None:
        for_admin = scope["type"] == "http" and scope["path"].startswith(ADMIN_PREFIX)
        await (admin if for_admin else tools)(scope, receive, send)

    return split
