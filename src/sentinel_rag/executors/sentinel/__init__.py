"""Zone C: the tools that read Microsoft Sentinel, as one MCP server. `create_app` is all that others need."""

from sentinel_rag.executors.sentinel.server import create_app

__all__ = ["create_app"]
