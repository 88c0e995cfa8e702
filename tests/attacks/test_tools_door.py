"""Who reaches a tool server. The attacker controls every byte of an HTTP request from this machine's network, but holds
no token: another local process, or a web page whose name was rebound to 127.0.0.1. No tool may run, nothing is told.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sentinel"))

from sentinel_servers import IDENTITY_HEADER, WORKSPACE_ID, ScriptedWire
from starlette.responses import JSONResponse

from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.tools.mcp_frame import TokenAuthentication
from sentinel_rag.tools.sentinel import create_app
from sentinel_rag_testing.loopback import serve

TOKEN = "t0ken-of-the-gateway"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_tables", "arguments": {}},
}
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


@pytest.fixture(scope="module")
def wire() -> Iterator[ScriptedWire]:
    scripted = ScriptedWire()
    scripted.answers = [
        JSONResponse({"tables": [{"name": "PrimaryResult", "columns": [], "rows": []}]}),
    ]
    with serve(scripted.app()) as url:
        scripted.url = url
        yield scripted


@pytest.fixture(scope="module")
def url(wire: ScriptedWire) -> Iterator[str]:
    connection = LogAnalytics(IdentityEndpointCredential(f"{wire.url}/msi/token", IDENTITY_HEADER), endpoint=wire.url)
    service = SentinelService({"lab": connection.workspace("lab", WORKSPACE_ID)})
    with serve(create_app(service, token=TOKEN)) as address:
        yield address


def post(url: str, **headers: str | None) -> Any:
    sent = {name: value for name, value in {**HEADERS, **headers}.items() if value is not None}
    return httpx2.post(f"{url}/mcp", json=CALL, headers=sent)


def test_with_the_token_a_call_reaches_the_workspace(url: str, wire: ScriptedWire) -> None:
    before = len(wire.requests)
    assert post(url).status_code == 200
    assert len(wire.requests) > before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}\u00fc"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": "evil.example@127.0.0.1"}, 421),
        ({"Host": "127.0.0.1/evil.example"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "0.0.0.0"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://x@127.0.0.1"}, 403),
        ({"Origin": "127.0.0.1"}, 403),
    ],
    ids=str,
)
def test_no_other_request_reaches_a_tool_or_learns_anything(
    url: str, wire: ScriptedWire, headers: dict[str, str | None], status: int
) -> None:
    before = len(wire.requests)
    answer = post(url, **{name: value.encode() if value else value for name, value in headers.items()})  # type: ignore[arg-type]
    assert answer.status_code == status
    assert len(wire.requests) == before
    assert TOKEN not in answer.text
    assert "SecurityIncident" not in answer.text


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "//mcp", "/MCP", "/", "/healthz/../mcp", "/docs", "/healthz/x"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_every_path_but_the_health_check_is_closed(url: str, path: str, method: str) -> None:
    assert httpx2.request(method, f"{url}{path}").status_code == 401


def test_the_health_check_tells_nothing_but_that_it_lives(url: str) -> None:
    answer = httpx2.get(f"{url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "server": "sentinel"})


def test_an_executor_without_a_token_does_not_start() -> None:
    with pytest.raises(ValueError, match="token"):
        TokenAuthentication(lambda *_: None, token="")  # type: ignore[arg-type,return-value]
