"""A client of MCP whose person answers, as the policy attests of its key: its yes to the exact call is the asker's.

Attacker controls: the agent behind a client, and what it sends as answers. Without the attestation an answer decides
nothing; with it an answer counts for the call that was shown and no other, once, and is on record as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_over_http import SESSIONS, STATELESS, RawMcp

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = [pytest.mark.requirement("APPR-5"), pytest.mark.requirement("GATE-5")]

POLICY = parse_policy("""
agents:
  - {key: desktop, memory: key, client_confirms: true}
tools:
  - name: read_mail
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_any, condition: "true", taint_level: MEDIUM}]
  - name: set_severity
    effect: write
    deed: set incident {incident} to {severity}
    parameters:
      - {name: incident, type: string, required: true}
      - {name: severity, type: string, required: true}
    taint_rules: [{rule_id: set_any, condition: "true", taint_level: LOW, confirm: asker}]
  - name: wipe
    effect: write
    parameters: [{name: host, type: string, required: true}]
    taint_rules: [{rule_id: wipe_any, condition: "true", taint_level: LOW, requires_approval: true}]
""")
CALL = {"name": "set_severity", "arguments": {"incident": "208", "severity": "Low\u202e"}}
YES = {"action": "accept", "content": {"confirm": True}}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in POLICY.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(POLICY, tmp_path / "state", executor) as running,
    ):
        yield running


def client(gateway: RunningGateway, name: str = "desktop", *, forms: bool = True) -> RawMcp:
    key = gateway.state.keys.create([Scope.EXECUTE], name=name)[0]
    return RawMcp(gateway.url, key, STATELESS, capabilities={"elicitation": {"form": {}}} if forms else {})


def asked(mcp: RawMcp, call: dict[str, Any] = CALL) -> tuple[str, dict[str, Any], str]:
    """The name of the question, its params, and what the client sends back with its answer."""
    result = mcp.request("tools/call", call).body["result"]
    [(name, question)] = result["inputRequests"].items()
    return name, question["params"], result["requestState"]


def answered(mcp: RawMcp, name: str, state: str, answer: Any, call: dict[str, Any] = CALL) -> dict[str, Any]:
    said = {"inputResponses": {name: answer}, "requestState": state}
    return dict(mcp.request("tools/call", {**call, **said}).body["result"])


def ran(gateway: RunningGateway, tool: str = "set_severity") -> list[Any]:
    return [dict(call.arguments) for call in gateway.executor.calls if call.tool == tool]


def decided(gateway: RunningGateway) -> list[tuple[str, str]]:
    return [(each["via"], each["decision"]) for each in gateway.records() if each["kind"] == "approval_decided"]


def test_the_person_at_the_client_confirms_the_exact_call_and_it_runs_once(gateway: RunningGateway) -> None:
    mcp = client(gateway)
    name, params, state = asked(mcp)
    assert params["message"].splitlines() == [
        "The agent wants to set incident “208” to “Low”",
        'The call: set_severity {"incident":"208","severity":"Low\\u202e"}',
        "It runs at your yes, once.",
    ]
    assert params["requestedSchema"]["required"] == ["confirm"]
    assert answered(mcp, name, state, YES)["isError"] is False
    assert ran(gateway) == [CALL["arguments"]]
    assert decided(gateway) == [("elicitation", "approved")]
    # The same answer once more is one to a question that nobody has asked.
    again = mcp.request("tools/call", {**CALL, "inputResponses": {name: YES}, "requestState": state}).body["result"]
    assert again["isError"] is True
    assert ran(gateway) == [CALL["arguments"]]


@pytest.mark.anyio
async def test_in_a_session_the_question_goes_over_the_stream(gateway: RunningGateway, connect: Any) -> None:
    from mcp_types import ElicitResult

    key = gateway.state.keys.create([Scope.EXECUTE], name="desktop")[0]

    async def told(_: Any, params: Any) -> ElicitResult:
        assert "set incident “208”" in params.message
        return ElicitResult(action="accept", content={"confirm": True})

    async with connect(SESSIONS, key, elicitation_callback=told) as session:
        result = await session.call_tool(CALL["name"], CALL["arguments"])
    assert result.is_error is False
    assert ran(gateway) == [CALL["arguments"]]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"action": "decline"}, [("elicitation", "denied")]),
        ({"action": "accept", "content": {"confirm": False}}, [("elicitation", "denied")]),
        ({"action": "cancel"}, []),
        ({"action": "accept"}, []),
        ({"action": "accept", "content": {"confirm": "yes"}}, []),
        ({"action": "accept", "content": {"confirm": 1}}, []),
        ("accept", []),
    ],
)
def test_what_is_no_yes_runs_nothing(gateway: RunningGateway, answer: Any, verdict: list[tuple[str, str]]) -> None:
    mcp = client(gateway)
    name, _, state = asked(mcp)
    assert answered(mcp, name, state, answer)["isError"] is True
    assert (ran(gateway), decided(gateway)) == ([], verdict)


def test_a_yes_to_one_call_is_none_to_another(gateway: RunningGateway) -> None:
    mcp = client(gateway)
    name, _, state = asked(mcp)
    other = {**CALL, "arguments": {"incident": "208", "severity": "High"}}
    assert answered(mcp, name, state, YES, other)["isError"] is True
    assert (ran(gateway), decided(gateway)) == ([], [])


def test_what_was_read_since_the_question_makes_it_another_one(gateway: RunningGateway) -> None:
    mcp = client(gateway)
    name, _, state = asked(mcp)
    read = mcp.request("tools/call", {"name": "read_mail", "arguments": {}, "requestState": state}).body["result"]
    assert read["isError"] is False
    assert answered(mcp, name, state, YES)["isError"] is True
    assert (ran(gateway), decided(gateway)) == ([], [])


def test_without_the_attestation_an_answer_decides_nothing(gateway: RunningGateway) -> None:
    mcp = client(gateway, "somebody else")
    name, params, state = asked(mcp)
    assert (name, params["requestedSchema"]["properties"]) == ("approval", {})
    [waiting] = gateway.request("GET", "/v1/approvals", key=gateway.approver).body["approvals"]
    assert (
        gateway.request("POST", f"/v1/approvals/{waiting['approval_id']}/deny", key=gateway.approver, body=b"{}").status
        == 200
    )
    for sent in (name, f"confirm-{waiting['approval_id']}"):
        assert answered(mcp, sent, state, YES)["isError"] is True
    assert ran(gateway) == []


def test_a_call_that_needs_another_person_is_not_confirmed_by_the_client(gateway: RunningGateway) -> None:
    mcp = client(gateway)
    wipe = {"name": "wipe", "arguments": {"host": "a"}}
    name, _, _ = asked(mcp, wipe)
    assert name == "approval"


def test_a_call_that_is_too_long_for_a_form_is_decided_where_it_can_be_read(gateway: RunningGateway) -> None:
    long = {**CALL, "arguments": {"incident": "208", "severity": "x" * 5_000}}
    assert asked(client(gateway), long)[0] == "approval"
