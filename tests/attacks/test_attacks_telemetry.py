"""Attacker controls: the agent's process and its key, so every header and every field of a call.

Wanted: data carried out in names that reach the collector, traces that flood it, somebody else's recording switched on,
the counts of other people's calls, and a gateway that waits for a collector that somebody has stopped.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.otlp_receiver import OtlpReceiver, running_receiver
from tests.support.spans import sent_spans

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.telemetry.process import TracedRequests
from sentinel_rag.telemetry.tracer import SpanBatches
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("OBS-1")
CANARY = "exfil-4711"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Traced:
    """A gateway whose spans go to a receiver; `recorded` ends the recording and gives them."""

    def __init__(self, gateway: RunningGateway, receiver: OtlpReceiver, batches: SpanBatches) -> None:
        self.gateway = gateway
        self.receiver = receiver
        self.batches = batches

    def call(self, tool: str, headers: dict[str, str], *, key: str | None = None) -> HttpAnswer:
        body = json.dumps({"session_id": "session-1", "tool_name": tool, "args": {"limit": 3, "note": CANARY}}).encode()
        key = self.gateway.key if key is None else key
        return self.gateway.request("POST", "/v1/proxy-execute", key=key, body=body, headers=headers)


@pytest.fixture(params=[1.0])
def traced(
    request: pytest.FixtureRequest, shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> Iterator[Traced]:
    with (
        running_receiver() as receiver,
        sent_spans(receiver.url, ratio=request.param) as batches,
        running_gateway(shipped_policy, tmp_path / "state", executor, around=TracedRequests) as gateway,
    ):
        yield Traced(gateway, receiver, batches)


def test_nothing_that_a_call_says_reaches_the_collector(traced: Traced) -> None:
    headers = {
        "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
        "tracestate": f"x={CANARY}",
        "baggage": f"x={CANARY}",
        "User-Agent": CANARY,
    }
    assert traced.call(f"send_{CANARY}", headers).status == 403
    assert traced.call("query_incidents", headers).status in (200, 422)
    record = next(record for record in traced.gateway.records() if record["kind"] == "refusal")
    assert record["requested_tool"] == f"send_{CANARY}"  # on record, and there alone
    traced.batches.close()
    spans = traced.receiver.spans()
    assert {span.trace_id for span in spans} == {TRACE}
    assert CANARY.encode() not in traced.receiver.raw
    assert spans[0].attributes["sentinel.reason"] == "unknown_tool"


@pytest.mark.parametrize(
    "forged",
    ["", CANARY, f"00-{TRACE}-00f067aa0ba902b7-01-{CANARY}", f"01-{TRACE}-00f067aa0ba902b7-01", f"00-{'0' * 32}-1-01"],
)
def test_a_forged_traceparent_is_none(traced: Traced, forged: str) -> None:
    traced.call("query_incidents", {"traceparent": forged})
    traced.batches.close()
    roots = [span for span in traced.receiver.spans() if span.name == "POST /v1/proxy-execute"]
    assert [root.parent_id for root in roots] == [""]
    assert roots[0].trace_id != TRACE


def test_two_traceparents_are_none(traced: Traced) -> None:
    address = urlsplit(traced.gateway.url)
    body = json.dumps({"session_id": "session-1", "tool_name": "query_incidents", "args": {}})
    place = f"00-{TRACE}-00f067aa0ba902b7-01"
    with socket.create_connection((address.hostname, address.port), 60) as raw:
        raw.sendall(
            f"POST /v1/proxy-execute HTTP/1.1\r\nHost: {address.netloc}\r\nX-API-Key: {traced.gateway.key}\r\n"
            f"traceparent: {place}\r\ntraceparent: {place}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
        )
        while raw.recv(65_536):
            pass
    traced.batches.close()
    assert TRACE not in {span.trace_id for span in traced.receiver.spans()}


@pytest.mark.parametrize("traced", [0.0], indirect=True)
def test_a_caller_cannot_switch_recording_on(traced: Traced) -> None:
    for _ in range(5):
        traced.call("query_incidents", {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    traced.batches.close()
    assert traced.receiver.bodies == []
    assert len(traced.gateway.records()) >= 5  # what the journal holds does not hang on sampling


def test_whoever_has_no_key_makes_no_span(traced: Traced) -> None:
    place = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    assert traced.call("query_incidents", place, key="sr_wrong_" + "a" * 43).status == 401
    assert traced.gateway.request("GET", "/v1/tools", headers=place).status == 401
    assert traced.gateway.request("GET", f"/{CANARY}", headers=place).status == 404
    traced.batches.close()
    assert traced.receiver.bodies == []
    assert traced.gateway.last_record()["kind"] == "authentication_failed"


def test_a_stopped_collector_stops_no_call(traced: Traced) -> None:
    traced.receiver.held.set()
    answers = [traced.call("query_incidents", {}).status for _ in range(20)]
    assert set(answers) <= {200, 422}
    assert traced.batches.counts.exported == 0
    traced.receiver.held.clear()
    traced.receiver.released.set()


@pytest.mark.requirement("OBS-2")
def test_an_agent_reads_no_counts_where_they_are_off(gateway: RunningGateway) -> None:
    for key in (gateway.key, gateway.auditor, None):
        assert gateway.request("GET", "/metrics", key=key).status == 404
