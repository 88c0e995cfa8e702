"""One gateway for a file of tests, with clients of either era on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

PAGE = "http://127.0.0.1:4000/#/approvals"

POLICY = """
tools:
  - name: look_up
    description: Looks something up.
    effect: read
    aliases: [find]
    parameters: [{name: marker, type: string, description: What is looked for.}]
    taint_rules: [{rule_id: look_up_any, condition: "true", taint_level: MEDIUM}]
  - name: hidden
    effect: read
    parameters: [{name: marker, type: string}]
    output_labels: [{path: /secret, sensitivity: HIGH, integrity: UNTRUSTED}]
    exposure: [{path: /secret, mode: hide}]
    taint_rules: [{rule_id: hidden_any, condition: "true", taint_level: LOW}]
  - name: quoted
    effect: read
    parameters: []
    exposure: [{path: /rows, mode: quote}, {path: /rows/*/n, mode: reveal}]
    taint_rules: [{rule_id: quoted_any, condition: "true", taint_level: LOW}]
  - name: change
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters: [{name: marker, type: string, required: true}]
    taint_rules: [{rule_id: change_any, condition: "true", taint_level: LOW, requires_approval: true}]
  - name: send
    effect: external
    parameters: [{name: marker, type: string}]
    taint_rules: [{rule_id: send_any, condition: "true", taint_level: LOW}]
  - name: not_served
    effect: read
    parameters: []
    taint_rules: [{rule_id: not_served_any, condition: "true", taint_level: LOW}]
"""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "marker": {"type": "string", "maxLength": 40, "description": "theirs", "x-mcp-header": "Marker"},
        "more": {"type": "integer"},
    },
}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return parse_policy(POLICY)


@pytest.fixture(scope="module")
def executor() -> Iterator[FakeToolServer]:
    from sentinel_rag.contracts.tool_calls import ToolSchema

    names = ("look_up", "hidden", "quoted", "change", "send", "beside_the_policy")
    tools = [ToolSchema(name, f"{name}, says the server.", SCHEMA) for name in names]
    with FakeToolServer(tools, token="upstream-token").running() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(
    policy: Policy, executor: FakeToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    limits = GatewayLimits(approval_wait_s=120.0)
    folder = tmp_path_factory.mktemp("state")
    with running_gateway(policy, folder, executor, limits=limits, approvals_page=PAGE) as running:
        yield running


@pytest.fixture(autouse=True)
def answering(executor: FakeToolServer) -> None:
    """Each test begins with tools that answer what they were asked."""
    for tool in executor.tools:
        executor.on(tool.name)


Connect = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def connect(gateway: RunningGateway) -> Connect:
    """The official SDK's client, connected with a key: `async with connect(era, key, ...) as client`."""

    @asynccontextmanager
    async def connected(era: str, key: str | None = None, **more: Any) -> AsyncIterator[Any]:
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {key or gateway.key}"}
        mode = era if era == "2026-07-28" else "legacy"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http,
            Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http), mode=mode, **more) as client,
        ):
            yield client

    return connected
