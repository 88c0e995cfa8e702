"""The way from the Interceptor to the tool servers of Zone C: a port, and MCP over HTTP and over pipes behind it."""

from sentinel_rag.interceptor.upstream.absent import AbsentUpstream
from sentinel_rag.interceptor.upstream.credentials import Renewal
from sentinel_rag.interceptor.upstream.mcp_http import McpHttpUpstream
from sentinel_rag.interceptor.upstream.mcp_messages import Era
from sentinel_rag.interceptor.upstream.mcp_stdio import McpStdioUpstream
from sentinel_rag.interceptor.upstream.port import (
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamReply,
    UpstreamTool,
)
from sentinel_rag.interceptor.upstream.stdio_child import Launch

__all__ = [
    "AbsentUpstream",
    "Era",
    "Launch",
    "McpHttpUpstream",
    "McpStdioUpstream",
    "Renewal",
    "Returned",
    "ToolFailed",
    "Unanswered",
    "Upstream",
    "UpstreamReply",
    "UpstreamTool",
]
