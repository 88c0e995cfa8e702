"""Zone C: the tools that read files of one folder, as an MCP server. `create_app` is all that others need."""

from sentinel_rag.tools.files.server import create_app

__all__ = ["create_app"]
