"""The way from the Interceptor to the tool servers of Zone C: a port, and MCP over streamable HTTP behind it."""

from sentinel_rag.interceptor.upstream.mcp_http import McpHttpUpstream
from sentinel_rag.interceptor.upstream.port import (
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamReply,
    UpstreamTool,
)

__all__ = ["McpHttpUpstream", "Returned", "ToolFailed", "Unanswered", "Upstream", "UpstreamReply", "UpstreamTool"]
