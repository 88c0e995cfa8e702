"""An approved call that runs at the yes: the asker sees it happen, the agent hears of it once, nothing runs twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import Answers, Fails, FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("APPR-5")

TEXT = """
tools:
  - name: read_mail
    effect: read
    exposure: [{path: /secret, mode: hide}]
    parameters: []
    taint_rules: [{rule_id: read_any, condition: "true", taint_level: MEDIUM}]
  - name: set_severity
    effect: write
    parameters:
      - {name: incident, type: string, required: true}
      - {name: severity, type: string, required: true}
    taint_rules: [{rule_id: set_any, condition: "true", taint_level: MEDIUM, confirm: asker}]
  - name: wipe
    effect: write
    parameters: [{name: host, type: string, required: true}]
    taint_rules: [{rule_id: wipe_any, condition: "true", taint_level: LOW, confirm: other, at_yes: run}]
"""
POLICY = parse_policy(TEXT)
CALL = {"incident": "208", "severity": "Low"}


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
        executor.on("set_severity", Answers({"severity": "Low"}))
        yield running


def asked(gateway: RunningGateway, arguments: dict[str, Any] = CALL) -> tuple[str, str]:
    session_id = gateway.open_session()
    answer = gateway.call("set_severity", arguments, session_id=session_id)
    assert answer.status == 403
    return session_id, answer.body["approval_id"]


def approve(gateway: RunningGateway, approval_id: str, key: str | None = None) -> HttpAnswer:
    return gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=key or gateway.user, body=b"{}")


def calls(gateway: RunningGateway, tool: str = "set_severity") -> list[Any]:
    return [call.arguments for call in gateway.executor.calls if call.tool == tool]


def kinds(gateway: RunningGateway) -> list[str]:
    return [record["kind"] for record in gateway.records() if record["kind"] != "session"]


def test_the_call_runs_at_the_yes_and_its_agent_hears_of_it_once(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    answer = approve(gateway, approval_id)
    assert (answer.status, answer.body["state"], answer.body["outcome"]["status"]) == (200, "used", "success")
    assert calls(gateway) == [CALL]
    told = gateway.call("set_severity", CALL, session_id=session_id)
    assert (told.status, told.body["result"]) == (200, {"severity": "Low"})
    assert told.body["audit_id"] == answer.body["outcome"]["audit_id"], "the answer is evidence of the call that ran"
    again = gateway.call("set_severity", CALL, session_id=session_id)
    assert (again.status, again.body["reason"]) == (403, "approval_required")
    assert calls(gateway) == [CALL]
    assert kinds(gateway) == [
        *("approval_asked", "refusal", "approval_decided", "intent", "outcome", "approved_call_told"),
        *("approval_asked", "refusal"),
    ]
    intent = next(record for record in gateway.records() if record["kind"] == "intent")
    assert intent["approval_id"] == approval_id


def test_what_is_approved_by_another_person_runs_then_too(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    approval_id = gateway.call("wipe", {"host": "a"}, session_id=session_id).body["approval_id"]
    assert approve(gateway, approval_id, gateway.approver).body["outcome"]["status"] == "success"
    assert calls(gateway, "wipe") == [{"host": "a"}]
    assert gateway.call("wipe", {"host": "a"}, session_id=session_id).status == 200
    assert calls(gateway, "wipe") == [{"host": "a"}]


def test_a_call_that_fails_is_told_as_failed_and_not_tried_again(gateway: RunningGateway) -> None:
    error = QueryError(code=QueryErrorCode.CONFLICT, message="Somebody else changed it.")
    gateway.executor.on("set_severity", Fails(error))
    session_id, approval_id = asked(gateway)
    assert approve(gateway, approval_id).body["outcome"] | {"audit_id": ""} == {
        "status": "error",
        "audit_id": "",
        "reason": "conflict",
        "approval_id": None,
    }
    told = gateway.call("set_severity", CALL, session_id=session_id)
    assert (told.status, told.body["error"]["message"]) == (409, "Somebody else changed it.")
    assert len(calls(gateway)) == 1


def test_where_the_agent_has_read_more_since_it_does_not_run_and_asks_anew(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    assert gateway.call("read_mail", {}, session_id=session_id).status == 200
    outcome = approve(gateway, approval_id).body["outcome"]
    assert (outcome["status"], outcome["reason"]) == ("denied", "approval_required")
    assert outcome["approval_id"] not in (None, approval_id)
    assert not calls(gateway)
    assert approve(gateway, outcome["approval_id"]).body["outcome"]["status"] == "success"
    assert calls(gateway) == [CALL]


def test_a_hidden_value_is_put_in_as_when_it_was_asked(gateway: RunningGateway) -> None:
    gateway.executor.on("read_mail", Answers({"secret": "208"}))
    session_id = gateway.open_session()
    handle = gateway.call("read_mail", {}, session_id=session_id).body["result"]["secret"]
    wanted = {"incident": handle, "severity": "Low"}
    approval_id = gateway.call("set_severity", wanted, session_id=session_id).body["approval_id"]
    assert approve(gateway, approval_id).body["outcome"]["status"] == "success"
    assert calls(gateway) == [CALL]
    assert gateway.call("set_severity", wanted, session_id=session_id).status == 200
    assert len(calls(gateway)) == 1


def test_of_two_yeses_at_once_one_runs_it(gateway: RunningGateway) -> None:
    release = threading.Event()
    gateway.executor.on("set_severity", Waits(release, {"severity": "Low"}))
    _, approval_id = asked(gateway)
    answers: list[HttpAnswer] = []
    deciders = [
        threading.Thread(target=lambda key=key: answers.append(approve(gateway, approval_id, key)))
        for key in (gateway.user, gateway.approver)
    ]
    for decider in deciders:
        decider.start()
    assert gateway.executor.arrived.acquire(timeout=60)
    release.set()
    for decider in deciders:
        decider.join(60)
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert calls(gateway) == [CALL]


def test_for_an_agent_whose_key_has_ended_nothing_runs(gateway: RunningGateway) -> None:
    _, approval_id = asked(gateway)
    agent = next(info for info in gateway.state.keys.list() if info.name == "caller")
    gateway.state.keys.revoke(agent.key_id)
    assert approve(gateway, approval_id).body["outcome"]["reason"] == "unauthenticated"
    assert not calls(gateway)


def test_a_no_runs_nothing(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    answer = gateway.request("POST", f"/v1/approvals/{approval_id}/deny", key=gateway.user, body=b"{}")
    assert (answer.body["state"], answer.body["outcome"]) == ("denied", None)
    assert gateway.call("set_severity", CALL, session_id=session_id).status == 403
    assert not calls(gateway)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("confirm: asker, at_yes: now", "unknown at_yes"),
        ("deny: true, at_yes: run", "at_yes: run is for a call that changes or sends, and asks"),
        ("at_yes: run", "at_yes: run is for a call that changes or sends, and asks"),
    ],
)
def test_a_rule_that_could_never_run_so_refuses_the_policy(rule: str, fault: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(TEXT.replace("confirm: asker", rule, 1))
    assert any(fault in problem for problem in refused.value.problems)
