"""Zone C: MCP servers that run tools, one server a package: `sentinel`, `files`, `web`.

`mcp_frame` is what they share: the MCP server, health check and authentication. Nothing here decides what may run.
"""
