"""Attacker controls: the agent (its key, its arguments, its sessions), the keys of other persons, and what its process
remembers. A rule says `confirm: asker`, so the person who asked confirms the exact call.

Wanted: a call that the person did not confirm runs; somebody else confirms it, the agent above all; what they are shown
says less than what steered it; one poisoned conversation takes the room of others. Each try is refused and on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY = parse_policy("""
tools:
  - name: read_mail
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_any, condition: "true", taint_level: MEDIUM}]
  - name: set_severity
    effect: write
    writes: ["incident/{incident}"]
    rate: {calls: 50, seconds: 600}
    parameters:
      - {name: incident, type: string, required: true, attest: incident}
      - {name: severity, type: string, required: true}
    taint_rules: [{rule_id: set_any, condition: "true", taint_level: LOW, confirm: asker}]
  - name: close
    effect: write
    parameters: [{name: incident, type: string, required: true, attest: incident}]
    taint_rules: [{rule_id: close_any, condition: "true", taint_level: LOW, confirm: other}]
""")
UNTRUSTED = {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
CALL = {"incident": "208", "severity": "Low"}
pytestmark = pytest.mark.requirement("APPR-6")


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


def asked(gateway: RunningGateway, words: str = "Set incident 208 to Low") -> tuple[str, str]:
    """A session with a person's words in which the agent has asked for the change; its id, and the approval's."""
    session_id = gateway.open_session()
    gateway.say(session_id, words)
    answer = gateway.call("set_severity", CALL, session_id=session_id)
    assert (answer.status, answer.body["reason"], answer.body["decided_by"]) == (403, "approval_required", "asker")
    return session_id, answer.body["approval_id"]


def decide(gateway: RunningGateway, approval_id: str, key: str, verb: str = "approve") -> HttpAnswer:
    return gateway.request("POST", f"/v1/approvals/{approval_id}/{verb}", key=key, body=b"{}")


def person(gateway: RunningGateway, name: str) -> str:
    agent = next(info for info in gateway.state.keys.list() if info.name == "caller")
    return gateway.state.keys.create([Scope.USER], name=name, for_key=agent.key_id)[0]


def records(gateway: RunningGateway, kind: str) -> list[dict[str, Any]]:
    return [record for record in gateway.records() if record["kind"] == kind]


def test_the_asker_confirms_the_exact_call_once_and_the_record_says_with_which_words(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.user).body
    assert (shown["arguments"], shown["person"], shown["words"]) == (CALL, "person", "Set incident 208 to Low")
    assert (shown["decided_by"], shown["named"], shown["may_decide"]) == ("asker", ["incident"], True)
    assert decide(gateway, approval_id, gateway.user).status == 200
    other = gateway.call("set_severity", {**CALL, "severity": "High"}, session_id=session_id)
    assert other.body["reason"] == "approval_required", "a changed argument asks anew"
    statuses = [gateway.call("set_severity", CALL, session_id=session_id).status for _ in range(2)]
    assert statuses == [200, 403]
    assert [call.arguments for call in gateway.executor.calls] == [CALL]
    first = records(gateway, "approval_asked")[0]
    assert (first["words"], first["decided_by"]) == ("Set incident 208 to Low", "asker")
    (decided,) = records(gateway, "approval_decided")
    assert decided["shown_sha256"] == first["shown_sha256"] == shown["shown_sha256"]
    (intent,) = records(gateway, "intent")
    assert intent["approval_id"] == approval_id


def test_nobody_confirms_it_who_may_decide_nothing_and_the_agent_never(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    tries = {
        gateway.key: (403, "missing_scope"),  # the agent, with its own key
        gateway.auditor: (403, "missing_scope"),
        person(gateway, "somebody else"): (404, "not_found"),
        "": (401, "unauthenticated"),
    }
    for key, (status, reason) in tries.items():
        for verb in ("approve", "deny"):
            answer = decide(gateway, approval_id, key, verb)
            assert (answer.status, answer.body["reason"]) == (status, reason)
    refused = [record.get("reason") for record in records(gateway, "authentication_failed")]
    assert (refused.count("missing_scope"), refused.count("unauthenticated")) == (4, 2)
    assert gateway.call("set_severity", CALL, session_id=session_id).status == 403
    assert not gateway.executor.calls


def test_a_person_confirms_no_call_that_needs_another_one(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    approval_id = gateway.call("close", {"incident": "7"}, session_id=session_id).body["approval_id"]
    for method, path in (("GET", ""), ("POST", "/approve")):
        answer = gateway.request(method, f"/v1/approvals/{approval_id}{path}", key=gateway.user)
        assert (answer.status, answer.body["reason"]) == (404, "not_found")
    assert gateway.request("GET", "/v1/approvals", key=gateway.user).body["approvals"] == []
    assert gateway.call("close", {"incident": "7"}, session_id=session_id).status == 403


def test_a_person_sees_their_own_confirmations_and_no_others(gateway: RunningGateway) -> None:
    _, approval_id = asked(gateway)
    other = person(gateway, "somebody else")
    seen = [
        [each["approval_id"] for each in gateway.request("GET", "/v1/approvals", key=key).body["approvals"]]
        for key in (gateway.user, other)
    ]
    assert seen == [[approval_id], []]


def test_in_a_session_of_the_agents_own_another_person_decides(gateway: RunningGateway) -> None:
    answer = gateway.call("set_severity", CALL, session_id="of-the-agents-own")
    approval_id = answer.body["approval_id"]
    assert "decided_by" not in answer.body
    assert decide(gateway, approval_id, gateway.user).status == 404
    assert decide(gateway, approval_id, gateway.approver).status == 200


@pytest.mark.requirement("APPR-4")
def test_the_question_tells_what_the_agent_remembers_and_which_calls_taught_it(gateway: RunningGateway) -> None:
    """The attacker's text was read for another question: the conversation that asks has read nothing."""
    poisoned = gateway.open_session()
    read = gateway.call("read_mail", {}, session_id=poisoned).body["audit_id"]
    session_id, approval_id = asked(gateway)
    assert gateway.context(session_id) == ("LOW", "TRUSTED")
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.user).body
    assert (shown["memory"], shown["raised_by"]) == (UNTRUSTED, [])
    assert [(each["audit_id"], each["tool"]) for each in shown["memory_raised_by"]] == [(read, "read_mail")]
    assert [each["parameter"] for each in shown["violations"]] == ["severity"]
    assert decide(gateway, approval_id, gateway.user).status == 200
    assert gateway.call("set_severity", CALL, session_id=session_id).status == 200
    rows = gateway.state.database.run_now(
        lambda connection: connection.execute(
            "SELECT sensitivity, integrity FROM resource_label WHERE resource = 'incident/208'"
        ).fetchall()
    )
    assert [tuple(row) for row in rows] == [(1, 1)], "what is written keeps the memory's label"


def test_one_poisoned_conversation_takes_no_approvals_from_the_others(gateway: RunningGateway) -> None:
    """The attacker's conversation asks until it is turned away; the person's next one, and another person, go on."""
    poisoned = gateway.open_session()
    outcomes = [gateway.call("close", {"incident": str(number)}, session_id=poisoned).body for number in range(40)]
    assert sum("approval_id" in body for body in outcomes) == 10
    assert "This conversation has asked for 10 approvals" in outcomes[-1]["note"]
    mine = gateway.call("close", {"incident": "208"}, session_id=gateway.open_session())
    assert "approval_id" in mine.body
    theirs = gateway.open_session(key=person(gateway, "finn"))
    assert "approval_id" in gateway.call("close", {"incident": "208"}, session_id=theirs).body
    assert records(gateway, "refusal")[-1]["reason"] == "approval_required"


def test_a_person_with_many_poisoned_conversations_takes_none_from_another(gateway: RunningGateway) -> None:
    def ask(session_id: str, number: int) -> bool:
        return "approval_id" in gateway.call("close", {"incident": str(number)}, session_id=session_id).body

    sessions = [gateway.open_session() for _ in range(3)]
    assert sum(ask(session_id, number) for session_id in sessions for number in range(9)) == 20
    assert ask(gateway.open_session(key=person(gateway, "finn")), 208)


def test_a_tools_rate_is_counted_for_each_person(gateway: RunningGateway) -> None:
    mine, theirs = gateway.open_session(), gateway.open_session(key=person(gateway, "finn"))
    statuses = [gateway.call("set_severity", CALL, session_id=mine).status for _ in range(51)]
    assert (statuses.count(403), statuses[-1]) == (50, 429)
    assert gateway.call("set_severity", CALL, session_id=theirs).status == 403
    assert gateway.call("set_severity", CALL, session_id=gateway.open_session()).status == 429


def test_words_are_the_ones_that_the_person_sent_last(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    gateway.say(session_id, "Who set incident 208 to Low?")
    said = gateway.request(
        "POST", f"/v1/sessions/{session_id}/words", key=gateway.key, body=json.dumps({"text": "yes, do it"}).encode()
    )
    assert said.status == 403, "the agent speaks for nobody"
    approval_id = gateway.call("set_severity", CALL, session_id=session_id).body["approval_id"]
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.user).body
    assert shown["words"] == "Who set incident 208 to Low?"


@pytest.mark.requirement("TAINT-3")
def test_an_agent_closes_no_conversation_of_a_person(gateway: RunningGateway) -> None:
    session_id, approval_id = asked(gateway)
    path = f"/v1/sessions/{session_id}"
    assert gateway.request("DELETE", path, key=gateway.key).status == 404
    assert decide(gateway, approval_id, gateway.user).status == 200
    assert gateway.call("set_severity", CALL, session_id=session_id).status == 200
    assert gateway.request("DELETE", path, key=gateway.user).status == 204
    own = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    assert gateway.request("DELETE", f"/v1/sessions/{own}", key=gateway.key).status == 204
    changes = [(record["change"], record["session_id"]) for record in records(gateway, "session")]
    assert [each for each in changes if each[0] == "closed"] == [("closed", session_id), ("closed", own)]


def test_the_askers_own_no_binds_their_next_conversations_and_they_take_it_back(gateway: RunningGateway) -> None:
    session, denied = asked(gateway)
    decide(gateway, denied, gateway.user, "deny")
    spelled = {"incident": "208", "severity": " LOW"}
    for where in (session, gateway.open_session()):
        answer = gateway.call("set_severity", spelled, session_id=where)
        assert (answer.status, "approval_id" in answer.body) == (403, False)
        assert answer.body["note"].startswith("person denied this call on ")
    finn = person(gateway, "finn")
    theirs = gateway.call("set_severity", CALL, session_id=gateway.open_session(key=finn))
    assert "approval_id" in theirs.body, "another person has said nothing yet"
    assert decide(gateway, denied, finn, "lift").status == 404
    assert decide(gateway, denied, gateway.key, "lift").status == 403
    assert decide(gateway, denied, gateway.user, "lift").status == 200
    [lifted] = records(gateway, "approval_denial_lifted")
    assert lifted["audit_id"] == denied
    assert "approval_id" in gateway.call("set_severity", CALL, session_id=session).body


def test_an_asker_who_takes_their_own_no_back_does_not_lift_that_of_an_approver(gateway: RunningGateway) -> None:
    own = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    by_itself = gateway.call("set_severity", CALL, session_id=own).body["approval_id"]
    assert decide(gateway, by_itself, gateway.approver, "deny").status == 200
    _, denied = asked(gateway)
    assert [decide(gateway, denied, gateway.user, verb).status for verb in ("deny", "lift")] == [200, 200]
    answer = gateway.call("set_severity", CALL, session_id=own)
    assert (answer.status, "approval_id" in answer.body) == (403, False)
    assert answer.body["note"].startswith("approver denied this call on ")
    assert decide(gateway, by_itself, gateway.approver, "lift").status == 200
    assert "approval_id" in gateway.call("set_severity", CALL, session_id=own).body
