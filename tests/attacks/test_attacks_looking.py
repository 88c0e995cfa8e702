"""Attacker controls: the agent and its key, and in a second part a person who is signed in and cleared for little.

Wanted by the agent: to get into the session in which its person looks, to take something out of it, or to have what the
person looks at open or close a door in a conversation. Wanted by the person: to change something by looking, or to see
what their clearance does not cover. Each try is refused and on record, and no tool server hears of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY = """
tools:
  - name: read_secret
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_secret_any, condition: "true", taint_level: HIGH}]
  - name: read_command
    effect: read
    parameters: []
    output_labels: [{path: /CommandLine, sensitivity: HIGH, integrity: UNTRUSTED}]
    exposure: [{path: /CommandLine, mode: hide}]
    taint_rules: [{rule_id: read_command_any, condition: "true", taint_level: LOW}]
  - name: find
    effect: read
    parameters: [{name: text, type: string}]
    taint_rules: [{rule_id: find_any, condition: "true", taint_level: LOW}]
  - name: read_confidential
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_confidential_asks, condition: "true", taint_level: HIGH, requires_approval: true}]
  - name: comment
    effect: write
    parameters: []
    taint_rules: [{rule_id: comment_any, condition: "true", taint_level: LOW}]
  - name: search
    effect: external
    parameters: [{name: query, type: string}]
    accepts: {sensitivity: LOW, integrity: UNTRUSTED}
    taint_rules: [{rule_id: search_any, condition: "true", taint_level: LOW}]
"""
HIGH, CLEAN = ("HIGH", "UNTRUSTED"), ("LOW", "TRUSTED")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    policy = parse_policy(POLICY, source="looking")
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    folder: Path = tmp_path_factory.mktemp("looking")
    with (
        FakeToolServer(schemas, token="t").running() as executor,
        running_gateway(policy, folder, executor) as running,
    ):
        executor.on("read_command", Answers({"CommandLine": "whoami /all"}))
        yield running


@pytest.fixture
def person(gateway: RunningGateway) -> str:
    """The key of a person cleared for little, for the gateway's agent."""
    agent = next(info for info in gateway.state.keys.list() if info.name == "caller")
    return gateway.state.keys.create([Scope.USER], for_key=agent.key_id, clearance=Sensitivity.LOW)[0]


def look(
    gateway: RunningGateway, key: str, tool: str, args: dict[str, Any] | None = None, session_id: str = ""
) -> HttpAnswer:
    body = {"session_id": session_id or f"look-{key[3:15]}", "tool_name": tool, "args": args or {}}
    return gateway.request("POST", "/v1/look", key=key, body=json.dumps(body).encode())


def context(gateway: RunningGateway, session_id: str, key: str) -> tuple[str, str]:
    label = gateway.request("GET", f"/v1/sessions/{session_id}", key=key).body["context"]
    return label["sensitivity"], label["integrity"]


@pytest.mark.requirement("TAINT-2")
def test_what_a_person_looks_at_raises_no_conversation_and_no_floor_of_the_agent(
    gateway: RunningGateway, person: str
) -> None:
    before = gateway.open_session(key=person)
    assert look(gateway, person, "read_secret", session_id="mine").status == 200
    assert context(gateway, "mine", person) == HIGH
    assert context(gateway, before, person) == CLEAN
    assert context(gateway, gateway.open_session(key=person), person) == CLEAN
    assert context(gateway, gateway.open_session(key=gateway.key), gateway.key) == CLEAN
    assert gateway.call("search", {"query": "x"}, session_id=before).status == 200


@pytest.mark.requirement("TAINT-2")
def test_the_look_of_a_person_begins_clean_and_nothing_of_a_conversation_reaches_it(
    gateway: RunningGateway, person: str
) -> None:
    agent, info = gateway.state.keys.create([Scope.EXECUTE], name="read all")
    owner, _ = gateway.state.keys.create([Scope.USER], for_key=info.key_id)
    conversation = gateway.open_session(key=owner)
    assert look(gateway, owner, "find", session_id="owners-look").status == 200
    began = context(gateway, "owners-look", owner)
    for session_id in (conversation, "of the agent".replace(" ", "-")):
        assert gateway.call("read_secret", {}, session_id=session_id, key=agent).status == 200
    assert context(gateway, conversation, owner) == HIGH
    assert context(gateway, "owners-look", owner) == began == ("LOW", "UNTRUSTED")


def test_the_agent_does_not_enter_the_session_in_which_its_person_looks(gateway: RunningGateway, person: str) -> None:
    assert look(gateway, person, "read_command", session_id="theirs-alone").status == 200
    before = len(gateway.executor.calls)
    answer = gateway.call("find", {"text": {"$ref": "r1#/CommandLine"}}, session_id="theirs-alone")
    assert (answer.status, answer.body["reason"]) == (404, "not_found")
    record = gateway.last_record()
    assert (record["kind"], record["reason"], record["session_id"]) == ("refusal", "not_found", "theirs-alone")
    for method, path in (("GET", ""), ("DELETE", "")):
        assert gateway.request(method, f"/v1/sessions/theirs-alone{path}", key=gateway.key).status == 404
    assert len(gateway.executor.calls) == before


def test_a_person_does_not_look_in_a_conversation_of_theirs(gateway: RunningGateway, person: str) -> None:
    conversation = gateway.open_session(key=person)
    answer = look(gateway, person, "find", session_id=conversation)
    assert (answer.status, answer.body["reason"]) == (404, "not_found")
    assert gateway.last_record()["reason"] == "not_found"


def test_a_key_that_may_execute_too_has_two_kinds_of_sessions_and_mixes_neither(gateway: RunningGateway) -> None:
    both, _ = gateway.state.keys.create([Scope.EXECUTE, Scope.USER], name="both")
    assert look(gateway, both, "find", session_id="looked-in").status == 200
    assert gateway.call("find", {}, session_id="called-in", key=both).status == 200
    crossed = [
        look(gateway, both, "find", session_id="called-in"),
        gateway.call("search", {"query": "x"}, session_id="looked-in", key=both),
    ]
    assert [(answer.status, answer.body["reason"]) for answer in crossed] == [(404, "not_found")] * 2


@pytest.mark.parametrize("tool", ["comment", "search"])
def test_what_changes_something_or_sends_data_out_is_no_look(gateway: RunningGateway, person: str, tool: str) -> None:
    before = len(gateway.executor.calls)
    answer = look(gateway, person, tool)
    assert (answer.status, answer.body["reason"], answer.body["status"]) == (403, "missing_scope", "denied")
    assert "only read" in answer.body["note"]
    record = gateway.last_record()
    assert (record["kind"], record["tool"], record["reason"]) == ("refusal", tool, "missing_scope")
    assert len(gateway.executor.calls) == before
    offered = gateway.request("GET", "/v1/look", key=person).body["tools"]
    assert {tool["effect"] for tool in offered} == {"read"}
    assert {"find", "read_secret"} <= {tool["name"] for tool in offered}


@pytest.mark.requirement("TAINT-3")
def test_a_hidden_value_is_not_had_by_handing_it_to_a_tool_that_repeats_what_it_was_asked(
    gateway: RunningGateway, person: str
) -> None:
    found = look(gateway, person, "read_command", session_id="low")
    handle = found.body["result"]["CommandLine"]
    assert set(handle) == {"$ref"}
    before = len(gateway.executor.calls)
    for given in (handle, [handle], {"deep": {"er": handle}}, {"$ref": 5}):
        answer = look(gateway, person, "find", {"text": given}, session_id="low")
        assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
        record = gateway.last_record()
        assert (record["kind"], record["reason"], record["tool"]) == ("refusal", "invalid_argument", "find")
    assert len(gateway.executor.calls) == before
    resolved = gateway.resolve("low", handle["$ref"], key=person).body
    assert resolved == {"values": {}, "refused": [handle["$ref"]]}


@pytest.mark.requirement("APPR-1")
def test_a_look_that_needs_an_approval_waits_for_another_person_and_passes_once(
    gateway: RunningGateway, person: str
) -> None:
    asked = look(gateway, person, "read_confidential")
    assert (asked.status, asked.body["reason"]) == (403, "approval_required")
    path = f"/v1/approvals/{asked.body['approval_id']}/approve"
    assert gateway.request("POST", path, key=gateway.approver).status == 200
    assert gateway.call("read_confidential", {}, session_id="an-agent").status == 403
    assert look(gateway, person, "read_confidential").status == 200
    assert look(gateway, person, "read_confidential").status == 403
