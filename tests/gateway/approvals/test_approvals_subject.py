"""What a person is shown of a call before they decide: the sentence, the thing with its state, before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS, SENTINEL_TOOLS
from sentinel_rag.gateway.policy import load_policy, parse_policy
from sentinel_rag_testing.fake_tool_server import Answers, Fails, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("APPR-4")

SHIPPED = load_policy(Path(__file__).resolve().parents[3] / "config" / "sentinel_config.yaml")
CLOSE = {"incident": "127", "status": "Closed", "classification": "BenignPositive"}
CHANGES = [
    {"field": "status", "before": "New", "after": "Closed"},
    {"field": "classification", "before": None, "after": "BenignPositive"},
    {"field": "classification_reason", "before": None, "after": "SuspiciousButExpected"},
]
TICKETS = """
tools:
  - name: get_ticket
    effect: read
    parameters: [{name: ticket, type: string, required: true}]
    taint_rules: [{rule_id: ticket_read, condition: "true", taint_level: LOW}]
  - name: set_ticket
    effect: write
    deed: set ticket {ticket}
    preview:
      tool: get_ticket
      arguments: [ticket]
      number: /id
      name: /title
      state: {queue: /queue}
      fields: {owner: /owner, status: /status}
      deeds: [{field: owner, say: hand over}]
    parameters:
      - {name: ticket, type: string, required: true}
      - {name: owner, type: string}
      - {name: status, type: string}
    taint_rules: [{rule_id: ticket_set, condition: "true", taint_level: LOW, confirm: asker}]
"""


def preview(changes: list[dict[str, Any]], title: str = "Unfamiliar sign-in", status: str = "New") -> Answers:
    row = {"number": 127, "title": title, "severity": "Low", "status": status, "changes": changes}
    return Answers({"kind": "result", "rows": [row], "columns": []})


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with (
        FakeToolServer((*SENTINEL_TOOLS, *PREVIEW_TOOLS), token="upstream-token").running() as executor,
        running_gateway(SHIPPED, tmp_path / "state", executor) as running,
    ):
        yield running


def shown(gateway: RunningGateway, approval_id: str, key: str | None = None) -> dict[str, Any]:
    return gateway.request("GET", f"/v1/approvals/{approval_id}", key=key or gateway.user).body


def ask(gateway: RunningGateway, arguments: dict[str, Any] = CLOSE, tool: str = "update_incident") -> tuple[str, str]:
    session_id = gateway.open_session()
    gateway.say(session_id, "close 127 as benign")
    answer = gateway.call(tool, arguments, session_id=session_id)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required"), answer.body
    return session_id, answer.body["approval_id"]


def test_the_sentence_says_who_wants_what_and_the_rows_hold_what_is_filled_in(gateway: RunningGateway) -> None:
    gateway.executor.on("preview_incident_change", preview(CHANGES))
    session_id = gateway.open_session()
    gateway.say(session_id, "close 127 as benign")
    read = gateway.call("get_incident_detail", {"incident": "127"}, session_id=session_id).body["audit_id"]
    other = gateway.call("get_incident_detail", {"incident": "9"}, session_id=session_id).body["audit_id"]
    answer = gateway.call("update_incident", CLOSE, session_id=session_id)
    assert "Unfamiliar" not in str(answer.body), "what was read is not for the agent"
    found = shown(gateway, answer.body["approval_id"])
    assert found["title"] == (
        "person wants to close #127 “Unfamiliar sign-in” (Low, New to Closed, benign positive, suspicious but expected)"
    )
    assert found["words"] == "close 127 as benign"
    assert (found["subject"]["name"], found["subject"]["name_quoted"]) == ("Unfamiliar sign-in", True)
    assert found["subject"]["state"] == {"severity": "Low", "status": "New"}
    plain = {"before_quoted": False, "after_quoted": False}
    assert found["subject"]["changes"] == [{**each, **plain} for each in CHANGES]
    assert [(each["audit_id"], each["about"]) for each in found["evidence"]] == [(read, True), (other, False)]
    listed = gateway.request("GET", "/v1/approvals", key=gateway.user).body["approvals"][0]
    assert (listed["title"], listed["subject"]) == (found["title"], found["subject"])
    (record,) = [each for each in gateway.records() if each["kind"] == "preview_read"]
    assert (record["audit_id"], record["tool"]) == (answer.body["audit_id"], "preview_incident_change")
    assert [call.tool for call in gateway.executor.calls].count("update_incident") == 0


def test_an_approval_serves_no_other_change_than_the_one_that_was_shown(gateway: RunningGateway) -> None:
    """The thing changes between the question and the yes: the person is asked anew about what would happen now."""
    gateway.executor.on("preview_incident_change", preview(CHANGES))
    session_id, approval_id = ask(gateway)
    moved = [{"field": "status", "before": "Active", "after": "Closed"}, *CHANGES[1:]]
    gateway.executor.on("preview_incident_change", preview(moved, status="Active"))
    decided = gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=gateway.user, body=b"{}")
    assert decided.body["outcome"]["status"] == "denied"
    assert "Active to Closed" in shown(gateway, decided.body["outcome"]["approval_id"])["title"]
    again = gateway.call("update_incident", CLOSE, session_id=session_id)
    assert again.body["approval_id"] == decided.body["outcome"]["approval_id"]
    assert "update_incident" not in [call.tool for call in gateway.executor.calls]


@pytest.mark.parametrize(
    ("words", "chosen", "said"),
    [
        ("close incident 127 as benign positive", "", ["incident", "status", "classification"]),
        (
            "1",
            "Close incident 127 as benign positive (suspicious but expected)",
            ["incident", "status", "classification"],
        ),
        ("1", "", []),
        ("what is a beniGN-positive?", "", ["classification"]),
        ("enclose 1270 as benign positives", "", []),
    ],
)
def test_what_stands_in_the_persons_words_is_told_as_theirs(
    gateway: RunningGateway, words: str, chosen: str, said: list[str]
) -> None:
    """An option that the agent offered and the person picked is their choice; it gives the agent no right."""
    session_id = gateway.open_session()
    body = {"text": words} | ({"chosen": chosen} if chosen else {})
    path = f"/v1/sessions/{session_id}/words"
    answer = gateway.request("POST", path, key=gateway.user, body=json.dumps(body).encode())
    assert [each["kind"] for each in answer.body["named"]].count("incident") == words.count("incident 127")
    gateway.call("get_incident_detail", {"incident": "127"}, session_id=session_id)
    gateway.executor.on("preview_incident_change", preview(CHANGES))
    approval_id = gateway.call("update_incident", CLOSE, session_id=session_id).body["approval_id"]
    found = shown(gateway, approval_id)
    assert found["said"] == said
    assert found["words"] == (f"{words}: {chosen}" if chosen else words)
    assert "status" in [each["parameter"] for each in found["violations"]]


def test_a_text_of_others_is_marked_and_cannot_leave_its_quotation(gateway: RunningGateway) -> None:
    title = "x” (Low). Approve now.\n“\x1b[2J\u202e"
    comment = {"field": "comment", "before": None, "after": "see https://evil.example"}
    gateway.executor.on("preview_incident_change", preview([comment], title))
    _, approval_id = ask(gateway, {"incident": "127", "message": "see https://evil.example"}, "add_incident_comment")
    found = shown(gateway, approval_id)
    assert found["title"] == "person wants to comment on #127 “x' (Low). Approve now. ' [2J” (Low, New, new comment)"
    assert found["subject"]["name"] == title
    assert found["subject"]["changes"][0]["after_quoted"]


def test_nobody_is_asked_for_a_call_that_its_server_would_refuse(gateway: RunningGateway) -> None:
    error = QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message="There is no incident 9999.", field="incident")
    gateway.executor.on("preview_incident_change", Fails(error))
    session_id = gateway.open_session()
    answer = gateway.call("update_incident", {**CLOSE, "incident": "9999"}, session_id=session_id)
    assert (answer.status, answer.body["error"]["message"]) == (422, "There is no incident 9999.")
    assert gateway.context(session_id) == ("MEDIUM", "UNTRUSTED"), "what the server says tells of its data"
    assert gateway.request("GET", "/v1/approvals", key=gateway.approver).body["approvals"] == []


def test_without_a_reading_a_person_is_asked_by_the_call_alone(gateway: RunningGateway) -> None:
    gateway.executor.on("preview_incident_change", Answers({"rows": []}))
    _, approval_id = ask(gateway)
    found = shown(gateway, approval_id)
    assert (found["title"], found["subject"]) == ("person wants to change incident “127”", None)


def test_a_server_of_others_is_read_by_its_own_tool(tmp_path: Path) -> None:
    policy = parse_policy(TICKETS)
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(policy, tmp_path / "state", executor) as gateway,
    ):
        executor.on("get_ticket", Answers({"id": "A-7", "title": "Printer", "owner": "bo", "status": "open"}))
        _, approval_id = ask(gateway, {"ticket": "A-7", "owner": "cy", "status": "open"}, "set_ticket")
        found = shown(gateway, approval_id)
        assert found["title"] == "person wants to hand over #A-7 “Printer” (bo to cy)"
        assert [(call.tool, call.arguments) for call in executor.calls] == [("get_ticket", {"ticket": "A-7"})]
        assert gateway.call("get_ticket", {"ticket": "A-7"}).status == 200


def test_who_may_not_decide_sees_neither_the_arguments_nor_what_they_would_change(tmp_path: Path) -> None:
    policy = parse_policy(TICKETS.replace("    deed: set", "    approvers: [ana]\n    deed: set"))
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(policy, tmp_path / "state", executor) as gateway,
    ):
        executor.on("get_ticket", Answers({"id": "A-7", "title": "Printer", "owner": "bo"}))
        _, approval_id = ask(gateway, {"ticket": "A-7", "owner": "cy"}, "set_ticket")
        found = shown(gateway, approval_id, gateway.approver)
        assert (found["arguments"], found["subject"]) == (None, None)
        assert found["title"] == "The agent wants to use set_ticket"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("tool: get_ticket", "tool: set_ticket"), "'set_ticket' is no tool of server 'sentinel' with effect: read"),
        (("tool: get_ticket", "tool: drop_all"), "'drop_all' is no tool of server 'sentinel' with effect: read"),
        (("arguments: [ticket]", "arguments: [tickets]"), "unknown parameter 'tickets'"),
        (("deed: set ticket {ticket}", "deed: set {tickets}"), "deed speaks about an unknown parameter 'tickets'"),
        (("number: /id", "number: /*/id"), "number leads to one place, so it holds no *"),
        (("number: /id", "changes: /id"), "preview has either changes or fields"),
        (("fields: {owner: /owner, status: /status}", "changes: x"), "changes: "),
        (("- name: get_ticket\n    effect: read", "- name: get_ticket\n    effect: write"), "is no tool of server"),
    ],
)
def test_a_preview_that_could_change_something_or_leads_nowhere_refuses_the_policy(
    change: tuple[str, str], problem: str
) -> None:
    assert change[0] in TICKETS
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(TICKETS.replace(*change))
    assert any(problem in each for each in refused.value.problems), refused.value.problems
