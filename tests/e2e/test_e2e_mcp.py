"""MCP clients on the whole product: `sentinel mcp` with zones of its own, which others use too, and the example."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "mcp_client.py"


@pytest.mark.requirement("GATE-5")
def test_a_client_starts_the_product_and_others_use_its_zones(generated: Any, tmp_path: Path) -> None:
    product = generated.afresh(tmp_path / "home")
    environment = {name: value for name, value in product.environment.items() if name != "SENTINEL_API_KEY"}

    def example(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(EXAMPLE), *arguments]
        return fork_server.run(command, env=environment, text=True, timeout=WAIT_S)

    with fork_server.Process(
        [SENTINEL, "mcp"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
        client.stdin.write(json.dumps(opening).encode() + b"\n")
        client.stdin.flush()
        opened = json.loads(client.stdout.readline())
        assert opened["result"]["serverInfo"]["name"] == "sentinel-rag-interceptor"

        beside = example()  # a second client attaches to the zones of the first
        assert beside.returncode == 0, beside.stderr
        assert "incident: " in beside.stdout
        [waiting] = product.json("approvals", "list")["approvals"]
        assert waiting["approval_id"] in beside.stdout
        assert waiting["key_id"] == "mcp"

        story = product.run("audit", "show", waiting["approval_id"], "--json").stdout.splitlines()
        assert "approval_asked" in [json.loads(line)["record"]["kind"] for line in story]

        url = product.json("status")["interceptor"]["url"]
        key = product.json("keys", "create", "--name", "editor", "--scope", "execute")["key"]
        over_http = example(f"{url}/mcp", key)
        assert over_http.returncode == 0, over_http.stderr
        assert over_http.stdout.splitlines()[0] == beside.stdout.splitlines()[0]
        assert example(f"{url}/mcp", key[:-1]).returncode != 0

        client.stdin.close()
        assert client.wait(WAIT_S) == 0
        assert client.stdout.read() == b""
    assert not product.json("status")["running"]
