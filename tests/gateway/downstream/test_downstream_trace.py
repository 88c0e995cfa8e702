"""One trace from an MCP client through the gateway into the tool server, as `_meta` carries it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from tests.support.mcp_over_http import SESSIONS, STATELESS, RawMcp
from tests.support.spans import ended_spans

from sentinel_rag.gateway.policy import Policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = [pytest.mark.requirement("OBS-1"), pytest.mark.requirement("GATE-5")]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture
def ended() -> Iterator[list[ReadableSpan]]:
    with ended_spans() as found:
        yield found


@pytest.fixture
def traced(
    ended: list[ReadableSpan], policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> Iterator[RunningGateway]:
    with running_gateway(policy, tmp_path, executor) as running:
        yield running


@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_the_spans_of_a_call_belong_to_the_trace_of_its_client(
    traced: RunningGateway, executor: FakeToolServer, ended: list[ReadableSpan], era: str
) -> None:
    client = RawMcp(traced.url, traced.key, era)
    client = client if era == STATELESS else client.initialized()
    named = client.call("look_up", {}, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="canary=1", baggage="canary=2")
    below, root = ended[-2:]
    assert (root.name, below.name) == ("tools/call look_up", "tools/call look_up")
    assert below.context is not None
    assert below.parent is not None
    assert root.parent is not None
    assert below.context.trace_id == int(TRACE, 16)
    assert below.parent == root.context
    assert (root.parent.trace_id, root.parent.span_id) == (int(TRACE, 16), int(PARENT, 16))
    assert root.attributes["sentinel.audit.id"] == named["_meta"]["sentinel-rag/audit-id"]
    assert root.attributes["mcp.method.name"] == "tools/call"
    sent = json.loads(executor.calls[-1].body)["params"]["_meta"]
    assert sent["traceparent"] == f"00-{TRACE}-{below.context.span_id:016x}-01"
    assert "canary" not in json.dumps({**executor.calls[-1].headers, **sent})
    client.call("look_up", {}, traceparent="00-no-place")
    assert ended[-1].parent is None


def test_a_refusal_in_a_200_is_told_by_the_span(traced: RunningGateway, ended: list[ReadableSpan]) -> None:
    refused = RawMcp(traced.url, traced.key).call("beside_the_policy", {})
    assert refused["isError"] is True
    assert ended[-1].attributes["sentinel.outcome"] == "denied"
    assert ended[-1].attributes["sentinel.reason"] == "unknown_tool"
    assert ended[-1].attributes["http.response.status_code"] == 403
