"""A plain Python client of the gateway: lists the tools, asks for incidents, and meets the policy once.

    python examples/mcp_client.py                                       starts `sentinel mcp` and speaks to it
    python examples/mcp_client.py http://127.0.0.1:4000/mcp sr_...      streamable HTTP, with a key

It needs the package `mcp`, which Sentinel RAG brings along, and exits with 1 if anything is not as it should be.
"""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def server_of(arguments: list[str], http: httpx2.AsyncClient) -> Any:
    """What the client connects to."""
    if arguments:
        return streamable_http_client(arguments[0], http_client=http)
    program = Path(sys.executable).parent / "sentinel"
    # Without it the program is started with hardly any environment, and would not know SENTINEL_HOME.
    return StdioServerParameters(command=str(program), args=["mcp"], env=dict(os.environ))


async def main(arguments: list[str]) -> int:
    async with AsyncExitStack() as stack:
        key = {"Authorization": f"Bearer {arguments[1]}"} if arguments else {}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=key, timeout=60))
        client = await stack.enter_async_context(Client(server_of(arguments, http)))

        tools = await client.list_tools()
        print("tools:", ", ".join(tool.name for tool in tools.tools))

        found = await client.call_tool("query_incidents", {"min_severity": "High", "limit": 3})
        if found.is_error or found.structured_content is None:
            print("the incidents did not come:", found.content, file=sys.stderr)
            return 1
        for row in found.structured_content["rows"]:
            print("incident:", row["number"], row["severity"], row["title"])
        print("label:", (found.meta or {})["sentinel-rag/label"])

        # Raw sign-ins need a person: the call is refused with the id of an approval, and may be repeated after it.
        refused = await client.call_tool("run_kql_query", {"template": "raw_signins"})
        body = refused.structured_content or {}
        print("refused:", body.get("reason"), "approval", body.get("approval_id"))
        return 0 if refused.is_error and body.get("approval_id") else 1


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
