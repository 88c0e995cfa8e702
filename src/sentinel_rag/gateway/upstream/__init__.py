"""The way from the gateway to the tool servers of Zone C: a port, and MCP over HTTP and over pipes behind it."""

from sentinel_rag.gateway.upstream.absent import AbsentUpstream
from sentinel_rag.gateway.upstream.credentials import Renewal
from sentinel_rag.gateway.upstream.mcp_http import McpHttpUpstream
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol
from sentinel_rag.gateway.upstream.mcp_stdio import McpStdioUpstream
from sentinel_rag.gateway.upstream.port import (
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamReply,
    UpstreamTool,
)
from sentinel_rag.gateway.upstream.stdio_child import Launch

__all__ = [
    "AbsentUpstream",
    "Launch",
    "McpHttpUpstream",
    "McpStdioUpstream",
    "Renewal",
    "Returned",
    "ToolFailed",
    "Unanswered",
    "Upstream",
    "UpstreamProtocol",
    "UpstreamReply",
    "UpstreamTool",
]
