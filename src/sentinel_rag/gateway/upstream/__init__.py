"""The way from the gateway to the tool servers of Zone C: a port, and MCP over HTTP and over pipes behind it."""

from sentinel_rag.gateway.upstream.mcp_http import McpHttpUpstream
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol
from sentinel_rag.gateway.upstream.mcp_stdio import McpStdioUpstream
from sentinel_rag.gateway.upstream.port import (
    AbsentUpstream,
    Renewal,
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamCall,
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
    "UpstreamCall",
    "UpstreamProtocol",
    "UpstreamReply",
    "UpstreamTool",
]
