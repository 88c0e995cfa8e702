"""Zone C: the tools that reach the web, as an MCP server. `create_app` is all that others need."""

from sentinel_rag.tools.web.server import WebOptions, create_app

__all__ = ["WebOptions", "create_app"]
