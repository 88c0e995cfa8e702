"""Every tool that this product ships, over all its tool servers; a policy may name third-party tools beside them."""

from __future__ import annotations

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.contracts.knowledge_tools import KNOWLEDGE_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS
from sentinel_rag.contracts.web_tools import WEB_TOOLS

SHIPPED_TOOLS: tuple[ToolSchema, ...] = (*SENTINEL_TOOLS, *FILE_TOOLS, *WEB_TOOLS, *KNOWLEDGE_TOOLS)
