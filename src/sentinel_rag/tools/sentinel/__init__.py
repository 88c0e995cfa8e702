"""Zone C: the tools that read and change Microsoft Sentinel, as one MCP server. Others need `create_app` alone."""

from sentinel_rag.tools.sentinel.server import create_app

__all__ = ["create_app"]
