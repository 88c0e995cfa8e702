"""The gateway's spans: of calls over HTTP and over MCP, and where a tool server finds the trace that its call is of."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.mcp_over_http import RawMcp
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan, running_receiver
from tests.support.spans import ended_spans, sent_spans

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import Launch, McpStdioUpstream, Returned, UpstreamCall
from sentinel_rag.telemetry import start_span
from sentinel_rag.telemetry.process import TracedRequests
from sentinel_rag_testing.fake_tool_server import SESSIONS, STATELESS, Answers, Fails, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("OBS-1")
POLICY = """
tools:
  - name: look_up
    effect: read
    parameters: [{name: marker, type: string}]
    taint_rules: [{rule_id: look_up_any, condition: "true", taint_level: MEDIUM}]
"""
PARENT = "00f067aa0ba902b7"


def traceparent(trace: str) -> str:
    return f"00-{trace}-{PARENT}-01"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return parse_policy(POLICY)


@pytest.fixture(scope="module", params=[STATELESS, SESSIONS], ids=["stateless", "sessions"])
def traced(
    request: pytest.FixtureRequest, policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningGateway, OtlpReceiver]]:
    """A gateway over a tool server of either era, whose spans go to a receiver."""
    schema = {"type": "object", "properties": {"marker": {"type": "string"}}}
    executor = FakeToolServer([ToolSchema("look_up", "Looks up.", schema)], token="t" * 16, eras=(request.param,))
    with running_receiver() as receiver, executor.running(), sent_spans(receiver.url):
        folder = tmp_path_factory.mktemp("state")
        with running_gateway(policy, folder, executor, around=TracedRequests) as gateway:
            yield gateway, receiver


def call(gateway: RunningGateway, trace: str, marker: str) -> int:
    body = json.dumps({"session_id": "session-1", "tool_name": "look_up", "args": {"marker": marker}}).encode()
    headers = {"traceparent": traceparent(trace)}
    return gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=body, headers=headers).status


def spans_of(receiver: OtlpReceiver, trace: str, count: int) -> list[ReceivedSpan]:
    wanted = receiver.wait_until(lambda spans: sum(span.trace_id == trace for span in spans) >= count)
    return [span for span in wanted if span.trace_id == trace]


def told(gateway: RunningGateway, marker: str) -> str:
    """The traceparent that the tool server was sent with that call."""
    [sent] = [each for each in gateway.executor.calls if each.arguments.get("marker") == marker]
    return str(json.loads(sent.body)["params"]["_meta"]["traceparent"])


def test_calls_at_once_over_pooled_connections_keep_their_traces(traced: tuple[RunningGateway, OtlpReceiver]) -> None:
    """What a connection carried before says nothing of the call that it carries now."""
    gateway, receiver = traced
    gateway.executor.on("look_up", *[Answers({"said": "x"})] * 60)
    traces = [f"{number:032x}" for number in range(0xA00, 0xA0C)]

    def ask(trace: str) -> None:
        for turn in range(3):
            assert call(gateway, trace, f"{trace}-{turn}") == 200

    threads = [threading.Thread(target=ask, args=(trace,)) for trace in traces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    for trace in traces:
        spans = spans_of(receiver, trace, 6)
        decided = {span.span_id for span in spans if span.name == "POST /v1/proxy-execute"}
        waited = {span.span_id: span.parent_id for span in spans if span.name == "tools/call look_up"}
        assert len(decided) == len(waited) == 3
        assert set(waited.values()) == decided
        heard = {told(gateway, f"{trace}-{turn}") for turn in range(3)}
        assert heard == {f"00-{trace}-{span_id}-01" for span_id in waited}


def test_a_tools_error_is_an_error_of_its_spans(traced: tuple[RunningGateway, OtlpReceiver]) -> None:
    gateway, receiver = traced
    gateway.executor.on("look_up", Fails(QueryError(code=QueryErrorCode.UNAVAILABLE, message="canary-of-an-error")))
    trace = "e" * 32
    status = call(gateway, trace, "wrong")
    assert status >= 400
    spans = spans_of(receiver, trace, 2)
    assert all(span.failed for span in spans)
    [decided] = [span for span in spans if span.name == "POST /v1/proxy-execute"]
    assert decided.attributes["http.response.status_code"] == status
    assert decided.attributes["sentinel.outcome"] == "allowed"
    assert b"canary-of-an-error" not in receiver.raw


@pytest.mark.requirement("GATE-5")
@pytest.mark.parametrize("tool", ["look_up", "canary_tool_of_mcp"])
def test_a_client_of_mcp_names_its_trace_beside_the_call(
    traced: tuple[RunningGateway, OtlpReceiver], tool: str
) -> None:
    gateway, receiver = traced
    gateway.executor.on("look_up", Answers({"said": "x"}))
    trace = ("b" if tool == "look_up" else "c") * 32
    meta: dict[str, Any] = {"traceparent": traceparent(trace), "baggage": "canary=baggage", "tracestate": "canary=1"}
    RawMcp(gateway.url, gateway.key).call(tool, {"marker": f"mcp-{trace}"}, **meta)
    if tool == "look_up":
        spans = spans_of(receiver, trace, 2)
        [asked] = [span for span in spans if span.parent_id == PARENT]
        [waited] = [span for span in spans if span.parent_id == asked.span_id]
        assert (asked.name, asked.kind, waited.kind) == ("tools/call look_up", 2, 3)
        assert asked.attributes["mcp.method.name"] == "tools/call"
        assert asked.attributes["sentinel.outcome"] == "allowed"
        assert told(gateway, f"mcp-{trace}") == f"00-{trace}-{waited.span_id}-01"
    else:
        [asked] = spans_of(receiver, trace, 1)
        assert (asked.name, asked.attributes["sentinel.reason"]) == ("tools/call", "unknown_tool")
    assert b"canary" not in receiver.raw


def test_a_server_over_pipes_is_told_too(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    server = Path(__file__).resolve().parents[1] / "attacks" / "hostile_stdio_server.py"
    upstream = McpStdioUpstream(Launch((sys.executable, str(server), str(diary)), {}, tmp_path))

    async def ask() -> None:
        try:
            with start_span("agent.invoke"):
                reply = await upstream.call(
                    UpstreamCall(
                        tool="fine",
                        arguments=CanonicalArguments.of({"text": "x"}),
                        principal="k",
                        session_id="s",
                        timeout_s=WAIT_S,
                    )
                )
            assert isinstance(reply, Returned)
        finally:
            await upstream.aclose()

    with ended_spans() as ended:
        anyio.run(ask)
    sent = [json.loads(line) for line in diary.read_text().splitlines() if line.startswith("{")]
    [params] = [message["params"] for message in sent if message.get("method") == "tools/call"]
    place = ended[0].context
    assert place is not None
    assert params["_meta"]["traceparent"] == f"00-{place.trace_id:032x}-{place.span_id:016x}-01"
