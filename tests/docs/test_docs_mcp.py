"""The files that docs/mcp.md gives to clients work: what they name is started or asked, by the official client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_boxes import BOX

from sentinel_rag.gateway.policy import Policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mcp.md"
SENTINEL = Path(sys.executable).parent / "sentinel"
WRITTEN = "/opt/sentinel-rag/.venv/bin/sentinel"
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("GATE-5")]


def servers() -> dict[str, dict[str, Any]]:
    """The servers of each file, by what is special about them."""
    files = [json.loads(content) for kind, content in BOX.findall(PAGE.read_text()) if kind == "json"]
    editor, over_http, desktop = files
    assert {each["id"] for each in over_http["inputs"]} == {"sentinel-key"}
    found = {"editor": editor["servers"], "http": over_http["servers"], "desktop": desktop["mcpServers"]}
    return {name: each["sentinel"] for name, each in found.items()}


@pytest.fixture(scope="module")
def gateway(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer(token="upstream-token").running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


def filled(gateway: RunningGateway, text: str) -> str:
    """What stands in a file for what only its owner knows."""
    for written, here in (
        ("http://127.0.0.1:4000", gateway.url),
        ("https://gateway.soc.example", gateway.url),
        ("${input:sentinel-key}", gateway.key),
        ("sr_...", gateway.key),
        (WRITTEN, str(SENTINEL)),
    ):
        text = text.replace(written, here)
    return text


@pytest.mark.parametrize("name", ["http", "desktop"])
async def test_a_client_with_the_file_gets_the_tools(gateway: RunningGateway, tmp_path: Path, name: str) -> None:
    import httpx2
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    server = json.loads(filled(gateway, json.dumps(servers()[name])))
    async with httpx2.AsyncClient(headers=server.get("headers"), timeout=WAIT_S) as http:
        where: Any = None
        if name == "http":
            assert server["type"] == "http"
            where = streamable_http_client(server["url"], http_client=http)
        else:
            environment = {**server["env"], "SENTINEL_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
            where = StdioServerParameters(command=server["command"], args=server["args"], env=environment)
        async with Client(where) as client:
            result = await client.call_tool("list_tables", {})
    assert result.is_error is False


async def test_the_file_for_this_machine_starts_the_same_program(gateway: RunningGateway) -> None:
    told = servers()
    assert told["editor"] == {"type": "stdio", "command": WRITTEN, "args": ["mcp"]}
    assert (told["desktop"]["command"], told["desktop"]["args"]) == (WRITTEN, ["mcp"])
