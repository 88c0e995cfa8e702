"""Approvals towards MCP clients: a client that can show its user something tells of it and waits; it never decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_over_http import SESSIONS, STATELESS, RawMcp

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

ERAS = [SESSIONS, STATELESS]
PAGE = "http://127.0.0.1:4000/#/approvals"
pytestmark = [pytest.mark.requirement("GATE-5"), pytest.mark.requirement("APPR-1")]

Marker = Callable[[], dict[str, str]]


@pytest.fixture
def key(gateway: RunningGateway) -> str:
    return gateway.state.keys.create([Scope.EXECUTE])[0]


def decide(gateway: RunningGateway, approval_id: str, verdict: str) -> None:
    answer = gateway.request("POST", f"/v1/approvals/{approval_id}/{verdict}", key=gateway.approver)
    assert answer.status == 200, answer.content


def pending_of(gateway: RunningGateway, marker: str) -> str:
    page = gateway.request("GET", "/v1/approvals?state=pending", key=gateway.approver).body["approvals"]
    [found] = [each["approval_id"] for each in page if each["arguments"] == {"marker": marker}]
    return str(found)


@pytest.mark.anyio
@pytest.mark.parametrize("verdict", ["approve", "deny"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_waits_gets_what_the_approver_decided(
    gateway: RunningGateway, executor: FakeToolServer, connect: Any, key: str, era: str, verdict: str
) -> None:
    from mcp_types import ElicitResult

    marker = f"waits-{era}-{verdict}"
    shown: list[Any] = []

    async def told(_: Any, params: Any) -> ElicitResult:
        shown.append(params)
        approval_id = pending_of(gateway, marker)
        assert approval_id in params.message or approval_id in params.url
        # Whatever the client says beside it decides nothing; only the approver's key does.
        decide(gateway, approval_id, verdict)
        return ElicitResult(action="accept")

    before = len(executor.calls)
    async with connect(era, key, elicitation_callback=told) as client:
        result = await client.call_tool("change", {"marker": marker})
    [params] = shown
    assert (params.mode, "Nothing that you answer here decides it." in params.message) == ("url", True)
    assert params.url.startswith(f"{PAGE}/")
    if verdict == "approve":
        assert result.is_error is False
        assert [call.arguments for call in executor.calls[before:]] == [{"marker": marker}]
    else:
        assert (result.is_error, result.structured_content["reason"]) == (True, "approval_required")
        assert len(executor.calls) == before


@pytest.mark.anyio
@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_does_not_wait_gets_the_denial_and_the_approval_goes_on_waiting(
    gateway: RunningGateway, executor: FakeToolServer, connect: Any, key: str, era: str, action: Any
) -> None:
    from mcp_types import ElicitResult

    marker = f"leaves-{era}-{action}"

    async def told(_: Any, __: Any) -> ElicitResult:
        return ElicitResult(action=action)

    async with connect(era, key, elicitation_callback=told) as client:
        result = await client.call_tool("change", {"marker": marker})
        approval_id = result.structured_content["approval_id"]
        assert (result.is_error, approval_id) == (True, pending_of(gateway, marker))
        assert f"approval {approval_id}" in result.content[0].text
        # Out of band: whoever approves later lets the same call pass, and only that one, once.
        decide(gateway, approval_id, "approve")
        assert (await client.call_tool("change", {"marker": marker})).is_error is False
        assert (await client.call_tool("change", {"marker": marker})).is_error is True
    assert [call.arguments for call in executor.calls].count({"marker": marker}) == 1


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_can_show_nothing_is_asked_nothing(gateway: RunningGateway, key: str, era: str) -> None:
    client = RawMcp(gateway.url, key, era)
    client = client if era == STATELESS else client.initialized()
    result = client.call("change", {"marker": f"silent-{era}"})
    assert (result["isError"], result["structuredContent"]["reason"]) == (True, "approval_required")
    assert result["structuredContent"]["approval_id"] == pending_of(gateway, f"silent-{era}")


@pytest.mark.parametrize("capability", [{}, {"form": {}}])
def test_a_client_that_shows_forms_gets_one_without_a_question(
    gateway: RunningGateway, key: str, capability: dict[str, Any]
) -> None:
    client = RawMcp(gateway.url, key, capabilities={"elicitation": capability})
    message = client.message("tools/call", {"name": "change", "arguments": {"marker": f"form-{capability}"}})
    result = client.post(message).body["result"]
    assert result["resultType"] == "input_required"
    params = result["inputRequests"]["approval"]["params"]
    assert params["mode"] == "form"
    assert params["requestedSchema"] == {"type": "object", "properties": {}}
    assert f"sentinel approvals show {pending_of(gateway, f'form-{capability}')}" in params["message"]


def test_without_sessions_another_gateway_takes_up_the_call_that_waits(
    gateway: RunningGateway, executor: FakeToolServer, policy: Policy, key: str
) -> None:
    """Two gateways of one state, as behind a balancer: the one asks, the other gets the answer."""
    message = {"name": "change", "arguments": {"marker": "balanced"}}
    capabilities = {"elicitation": {"form": {}}}
    folder = Path(gateway.state.database.place).parent
    with running_gateway(policy, folder, executor, limits=GatewayLimits(approval_wait_s=120.0)) as other:
        second = RawMcp(other.url, key, capabilities=capabilities)
        assert second.call("look_up", {"marker": "before"})["isError"] is False
        asked = RawMcp(gateway.url, key, capabilities=capabilities).request("tools/call", message).body["result"]
        decide(gateway, pending_of(gateway, "balanced"), "approve")
        said = {"inputResponses": {"approval": {"action": "accept"}}, "requestState": asked["requestState"]}
        answer = second.request("tools/call", {**message, **said})
    assert answer.body["result"]["isError"] is False
    assert [call.arguments for call in executor.calls].count({"marker": "balanced"}) == 1


@pytest.mark.parametrize("state", ["somebody-elses", "no-such-session", "", 7, {}])
def test_what_a_client_sends_back_as_state_opens_no_session_to_it(
    gateway: RunningGateway, key: str, state: Any
) -> None:
    assert gateway.call("look_up", {"marker": "x"}, session_id="somebody-elses").status == 200
    client = RawMcp(gateway.url, key)
    params = {"name": "look_up", "arguments": {"marker": "x"}}
    own = client.request("tools/call", params).body["result"]["_meta"]["sentinel-rag/session"]
    told = client.request("tools/call", {**params, "requestState": state}).body["result"]
    assert (told["isError"], told["_meta"]["sentinel-rag/session"]) == (False, own)


def test_the_question_of_a_session_is_answered_in_it_and_once(gateway: RunningGateway, key: str) -> None:
    capabilities = {"elicitation": {"form": {}}}
    client = RawMcp(gateway.url, key, SESSIONS, capabilities).initialized()
    another = RawMcp(gateway.url, key, SESSIONS, capabilities).initialized()
    message = client.message("tools/call", {"name": "change", "arguments": {"marker": "once"}})
    with client.streamed(message) as events:
        question = next(events)
        assert (question["method"], question["params"]["mode"]) == ("elicitation/create", "form")
        declined = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert another.post(declined).status == 202  # of another session: it says nothing to this one
        accepted = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}
        assert client.post(accepted).status == 202
        assert client.post(declined).status == 202  # the first answer counts
        decide(gateway, pending_of(gateway, "once"), "approve")
        last = list(events)[-1]
    assert (last["id"], last["result"]["isError"]) == (message["id"], False)


def test_a_second_call_under_the_id_of_one_that_runs_is_refused_and_on_record(gateway: RunningGateway) -> None:
    """It counts for the key's rate too: a call that is held must not open a way past it."""
    key = gateway.state.keys.create([Scope.EXECUTE], rate=Rate(4, 600.0))[0]
    client = RawMcp(gateway.url, key, SESSIONS, {"elicitation": {"form": {}}}).initialized()
    message = client.message("tools/call", {"name": "change", "arguments": {"marker": "one id"}})
    with client.streamed(message) as events:
        assert next(events)["method"] == "elicitation/create"
        again = client.post(message)
        assert (again.status, again.body["id"]) == (400, message["id"])
        record = gateway.last_record()
        assert (record["kind"], record["audit_id"]) == ("refusal", again.body["error"]["data"]["audit_id"])
        assert [client.post(message).status for _ in range(2)] == [400, 429]


def test_no_more_calls_of_a_key_wait_than_may_be_asked_about(gateway: RunningGateway, key: str) -> None:
    """A key cannot hold connections by calls that nobody decides; the one beyond is denied at once."""
    client = RawMcp(gateway.url, key, capabilities={"elicitation": {}})
    held = {"inputResponses": {"approval": {"action": "accept"}}, "name": "change", "arguments": {"marker": "held"}}
    message = client.message("tools/call", {**held, "_meta": {"progressToken": 1}})
    waiting = threading.Semaphore(0)
    ends: list[Any] = []

    def wait() -> None:
        with client.streamed({**message, "id": f"held-{threading.get_ident()}"}) as events:
            next(events)  # it is told that a person is asked
            waiting.release()
            ends.append(list(events)[-1])

    threads = [threading.Thread(target=wait) for _ in range(10)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=WAIT_S)
    beyond = client.post(message)
    assert beyond.headers["content-type"] == "application/json"
    assert beyond.body["result"]["structuredContent"]["reason"] == "approval_required"
    decide(gateway, pending_of(gateway, "held"), "approve")
    for thread in threads:
        thread.join(WAIT_S)
    passed = [end["result"]["isError"] for end in ends]
    assert sorted(passed) == [False] + [True] * 9  # one approval, one call
