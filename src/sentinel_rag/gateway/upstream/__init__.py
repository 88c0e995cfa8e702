"""The way from the gateway to the tool servers of Zone C: a port, and MCP over HTTP and over pipes behind it."""

from sentinel_rag.gateway.upstream.mcp_http import McpHttpUpstream as McpHttpUpstream
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol as UpstreamProtocol
from sentinel_rag.gateway.upstream.mcp_stdio import Launch as Launch
from sentinel_rag.gateway.upstream.mcp_stdio import McpStdioUpstream as McpStdioUpstream
from sentinel_rag.gateway.upstream.port import AbsentUpstream as AbsentUpstream
from sentinel_rag.gateway.upstream.port import Renewal as Renewal
from sentinel_rag.gateway.upstream.port import Returned as Returned
from sentinel_rag.gateway.upstream.port import ToolFailed as ToolFailed
from sentinel_rag.gateway.upstream.port import Unanswered as Unanswered
from sentinel_rag.gateway.upstream.port import Upstream as Upstream
from sentinel_rag.gateway.upstream.port import UpstreamCall as UpstreamCall
from sentinel_rag.gateway.upstream.port import UpstreamReply as UpstreamReply
from sentinel_rag.gateway.upstream.port import UpstreamTool as UpstreamTool
