"""Attacker controls: an agent's key, so the name of each session and each tool, the trace that it says it belongs to,
and what its model calls things.

Wanted: rows carried to whoever keeps the telemetry, in pieces, in the ids of spans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.otlp_receiver import OtlpReceiver, running_receiver
from tests.support.spans import ended_spans, sent_spans

from sentinel_rag.agent.tool_runs import tool_span, trace_response
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.telemetry import new_session_id, told_session_id
from sentinel_rag.telemetry.process import TracedRequests
from sentinel_rag.telemetry.tracer import ALLOWED, AttributeForm, SpanBatches, allowed_value
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("OBS-1")
ROW = "DESKTOP-7_mimikatz.exe"
NAMES = {
    "in plain text": ROW,
    "in base64 for URLs": "REVTS1RPUC03X21pbWlrYXR6LmV4ZQ",
    "as hex of the length of the gateway's own": ROW.encode().hex().ljust(48, "0"),
    "one letter after the other": "D" * 48,
}
TRACE = ROW.encode().hex()[:32]


@pytest.fixture(params=[False])
def traced(
    request: pytest.FixtureRequest, shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> Iterator[tuple[RunningGateway, OtlpReceiver, SpanBatches]]:
    with (
        running_receiver() as receiver,
        sent_spans(receiver.url, trusts_callers=request.param) as batches,
        running_gateway(shipped_policy, tmp_path / "state", executor, around=TracedRequests) as gateway,
    ):
        yield gateway, receiver, batches


def test_no_name_that_an_agent_gives_leaves_in_a_span(
    traced: tuple[RunningGateway, OtlpReceiver, SpanBatches],
) -> None:
    gateway, receiver, batches = traced
    opened = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    for session in (*NAMES.values(), NAMES["in plain text"], opened):
        for tool in ("query_incidents", "send_nowhere"):
            body = json.dumps({"session_id": session, "tool_name": tool, "args": {}}).encode()
            headers = {"traceparent": f"00-{TRACE}-{TRACE[:16]}-01"}
            gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=body, headers=headers)
    recorded = {record["session_id"] for record in gateway.records() if record["kind"] in ("intent", "refusal")}
    assert recorded == {*NAMES.values(), opened}, "the journal has them as they were"
    batches.close()
    assert len(receiver.spans()) >= 12
    told = {span.attributes["session.id"] for span in receiver.spans() if "session.id" in span.attributes}
    assert opened in told, "a session that the gateway opened is found by its id"
    assert len(told) == len(NAMES) + 1, "the same session is told alike, and another one otherwise"
    assert all(re.fullmatch("hashed-[0-9a-f]{16}", name) for name in told - {opened})
    for name in NAMES.values():
        assert name.encode() not in receiver.raw
    # With OTEL_PROPAGATORS=none a trace's ids are no place to write in either.
    assert bytes.fromhex(TRACE) not in receiver.raw
    assert bytes.fromhex(TRACE[:16]) not in receiver.raw


@pytest.mark.parametrize("spoilt", ["upper", "first", "last", "longer"])
def test_an_id_with_a_letter_of_the_callers_is_none_of_ours(spoilt: str) -> None:
    ours = new_session_id()
    assert told_session_id(ours) == ours
    other = "0" if ours[0] != "0" else "1"
    forged = {
        "upper": ours[:-1] + "A" if ours[-1] != "a" else ours.upper(),
        "first": other + ours[1:],
        "last": ours[:-1] + ("0" if ours[-1] != "0" else "1"),
        "longer": ours + "00",
    }[spoilt]
    assert re.fullmatch("hashed-[0-9a-f]{16}", told_session_id(forged))


@pytest.mark.parametrize(
    "name", sorted(name for name, form in ALLOWED.items() if form in (AttributeForm.RECORD, AttributeForm.SESSION))
)
def test_no_attribute_for_an_id_takes_text_of_a_model(name: str) -> None:
    """The law of all ids: whatever another module tells as one."""
    for text in (*NAMES.values(), f"call_{ROW}", "ab" * 24):
        told = allowed_value(name, text)
        assert told is None or text not in str(told)


@pytest.mark.parametrize(
    ("name", "text"), [("mcp.protocol.version", ROW), ("gen_ai.tool.call.id", "call-1"), ("sentinel.audit.id", ROW)]
)
def test_what_has_a_form_is_told_in_no_other(name: str, text: str) -> None:
    assert allowed_value(name, text) is None


@pytest.mark.parametrize("reason", sorted(Reason))
def test_a_name_that_a_model_made_up_is_told_after_no_denial_that_did_not_look_at_it(reason: Reason) -> None:
    """A key without its scope is denied before the gateway reads which tool is meant."""
    call = ToolCall("call-1", "s", ROW)
    with ended_spans() as ended, tool_span(call) as span:
        trace_response(span, call, 403, Denied(call, reason, "No."))
    of_a_tool = {"no_rule_matched", "rule_denies", "approval_required", "condition_undecided", "sink_label"}
    known = reason in of_a_tool | {"tool_quarantined", "tool_switched_off"}
    assert ended[0].name == f"tool.{ROW if known else 'unknown'}"
    assert (ROW in (ended[0].attributes or {}).values()) is known
