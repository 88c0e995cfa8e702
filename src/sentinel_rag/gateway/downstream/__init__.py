"""The gateway as an MCP server: the same tools under the same policy for any MCP client.

`McpEndpoint` serves streamable HTTP in both eras of the protocol. It judges nothing: each `tools/call` goes through the
gate that `POST /v1/proxy-execute` goes through, and what comes back is told in MCP's words.
"""

from sentinel_rag.gateway.downstream.client_sessions import ClientSessions as ClientSessions
from sentinel_rag.gateway.downstream.client_sessions import SessionChecks as SessionChecks
from sentinel_rag.gateway.downstream.endpoint import McpEndpoint as McpEndpoint
from sentinel_rag.gateway.downstream.tool_calls import ToolCalls as ToolCalls
