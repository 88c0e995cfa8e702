"""Approvals towards MCP clients: a client that can show its user something tells of it and waits; it never decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sentinel_rag.interceptor.store import Scope
from sentinel_rag.testing.fake_executor import FakeExecutor
from sentinel_rag.testing.mcp_over_http import SESSIONS, STATELESS, RawMcp
from sentinel_rag.testing.running_gateway import RunningGateway

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
    gateway: RunningGateway, executor: FakeExecutor, connect: Any, key: str, era: str, verdict: str
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
    gateway: RunningGateway, executor: FakeExecutor, connect: Any, key: str, era: str, action: Any
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
        assert waiting.acquire(timeout=60)
    beyond = client.post(message)
    assert beyond.headers["content-type"] == "application/json"
    assert beyond.body["result"]["structuredContent"]["reason"] == "approval_required"
    decide(gateway, pending_of(gateway, "held"), "approve")
    for thread in threads:
        thread.join(60)
    passed = [end["result"]["isError"] for end in ends]
    assert sorted(passed) == [False] + [True] * 9  # one approval, one call
