"""The two doors of the knowledge tool server: the gateway's token opens the tool, the surfaces' token opens `/admin/`.

The attacker holds one of the two tokens (a hijacked surface, a gateway that was talked into something) and any spelling
of a path, and wants what lies behind the other door."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_stores import knowledge_app, knowledge_configuration
from sentinel_rag.settings import EmbeddingSettings, Settings
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

TOOL, ADMIN = "the token of the gateway", "the token of surfaces"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_knowledge_base", "arguments": {}}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The whole zone as the supervisor configures it, without a workspace to read from."""
    settings = Settings(
        home=tmp_path_factory.mktemp("home"), policy_file=Path("none"), embeddings=EmbeddingSettings(provider="none")
    )
    told = {**knowledge_configuration(settings), "workspaces": [], "token": TOOL, "admin_token": ADMIN}
    with serve(knowledge_app(told)) as served:
        yield served


def ask(url: str, method: str, path: str, token: str | None, body: object) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "search_knowledge_base",
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, json.dumps(body).encode(), headers)
    response = connection.getresponse()
    try:
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("token", [None, TOOL, TOOL.upper(), f"{ADMIN} ", ""])
@pytest.mark.parametrize(
    "path",
    ["/admin/ingest", "/admin/knowledge", "/%61dmin/ingest", "/admin/", "/admin/../admin/ingest", "/admin//ingest"],
)
def test_nobody_but_a_surface_reads_incidents_in(url: str, token: str | None, path: str) -> None:
    for method in ("POST", "GET"):
        assert ask(url, method, path, token, {})[0] == 401


@pytest.mark.parametrize("token", [None, ADMIN, TOOL.upper(), ""])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "//mcp", "/./mcp", "/admin/../mcp", "/admin/mcp", "/%6dcp"])
def test_the_admins_token_runs_no_tool(url: str, token: str | None, path: str) -> None:
    status, body = ask(url, "POST", path, token, CALL)
    assert status in (401, 404)
    assert b"hits" not in body


@pytest.mark.parametrize("path", ["/admin", "/mcp/../admin/ingest", "/mcp/admin/ingest", "//admin/ingest"])
def test_the_gateways_token_finds_no_way_round(url: str, path: str) -> None:
    status, _ = ask(url, "POST", path, TOOL, {})
    assert status in (401, 404)


def test_each_token_opens_its_own_door(url: str) -> None:
    """Otherwise the tests above could not fail."""
    status, body = ask(url, "POST", "/admin/ingest", ADMIN, {})
    assert (status, "No workspace's incidents can be read." in body.decode()) == (200, True)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {**CALL, "params": {**CALL["params"], "arguments": {"query": "phishing"}, "_meta": meta}}  # type: ignore[dict-item]
    status, body = ask(url, "POST", "/mcp", TOOL, call)
    assert (status, "phishing.md" in body.decode()) == (200, True)
