"""Zone C: MCP servers that run tools. One server a module."""
