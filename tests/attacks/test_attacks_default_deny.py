"""Attacker controls: the tool name and the arguments of a call.

Wanted: a name that the policy takes for nothing and a tool server for something, or arguments that slip between the
rules. Whatever is not exactly a tool of the policy, and whatever no rule allows, is denied with the one text of
denials, recorded, and not sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway
from waiting import WAIT_S

NAMES = [
    "file_write",
    "web_post",
    "update_incidents",
    "Update_Incident",
    "add_comment",
    "Query_Incidents",
    "QUERY_INCIDENTS",
    "query_incidents ",
    " query_incidents",
    "query_incidents\u0000",
    "query_incidents\u200b",
    "query\u2010incidents",
    "ｑuery_incidents",
    "qu\u0435ry_incidents",
    "sentinel.query_incidents",
    "sentinel/query_incidents",
    "default:query_incidents",
    "query_incidents/../file_read",
    "query_incidents%00",
    "query-incidents",
    "tools/call",
    "*",
    ".*",
    "None",
    "__class__",
    "$ref",
]

C_POLICY = """
tools:
  - name: "file_read"
    parameters:
      - name: "file_path"
        type: "string"
        required: true
        format: path
    taint_rules:
      - rule_id: "file_read_confidential"
        condition: "file_path.startswith('confidential/')"
        taint_level: "HIGH"
        requires_approval: true
      - rule_id: "file_read_public"
        condition: "file_path.startswith('public/')"
        taint_level: "LOW"
        requires_approval: false
  - name: "choose"
    parameters:
      - {name: mode, type: string}
      - {name: target, type: string}
    taint_rules:
      - {rule_id: never, condition: "mode == 'delete'", taint_level: MEDIUM, deny: true}
      - {rule_id: not_there, condition: "target not in ['prod', 'vault']", taint_level: LOW}
"""


@pytest.fixture(scope="module")
def shared(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer().running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer().running() as executor,
        running_gateway(parse_policy(C_POLICY), tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


def assert_denied(gateway: RunningGateway, answer: HttpAnswer, reason: str, rule: str | None, level: str) -> None:
    assert answer.status == 403, answer.content
    assert answer.body == {
        "detail": f"Access denied by security policy. Taint level: {level}",
        "status": "denied",
        "reason": reason,
        "rule_id": rule,
        "audit_id": answer.body["audit_id"],
    } | ({"approval_id": answer.body["approval_id"]} if reason == "approval_required" else {})
    record = gateway.last_record()
    assert (record["audit_id"], record["decision"], record["reason"]) == (answer.body["audit_id"], "deny", reason)
    assert (record["rule_id"], record["label"]["sensitivity"]) == (rule, level)
    assert (record["http_status"], len(record["arguments_sha256"])) == (403, 64)
    assert record["policy_sha256"] == gateway.request("GET", "/v1/tools", key=gateway.key).body["policy"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_is_not_exactly_a_tool_is_denied(shared: RunningGateway, name: str) -> None:
    answer = shared.call(name, {"file_path": "public/x", "limit": 3})
    assert_denied(shared, answer, "unknown_tool", None, "HIGH")
    assert shared.last_record()["requested_tool"] == name
    assert shared.executor.calls == []


@pytest.mark.requirement("GATE-3")
def test_the_examples_of_the_source_template(files: RunningGateway) -> None:
    confidential = files.call("file_read", {"file_path": "confidential/salaries.csv"})
    assert_denied(files, confidential, "approval_required", "file_read_confidential", "HIGH")
    assert_denied(files, files.call("file_read", {"file_path": "other/x"}), "no_rule_matched", None, "HIGH")
    before = len(files.executor.calls)
    assert files.call("file_read", {"file_path": "public/readme.txt"}).status == 200
    assert len(files.executor.calls) == before + 1


@pytest.mark.parametrize(
    "path",
    ["./confidential/a", "x/../confidential/a", "confidential//a", ".//confidential/./a", "public/../confidential/a"],
)
def test_other_spellings_of_one_path_have_one_verdict(files: RunningGateway, path: str) -> None:
    answer = files.call("file_read", {"file_path": path})
    assert_denied(files, answer, "approval_required", "file_read_confidential", "HIGH")


@pytest.mark.parametrize(
    "path",
    [
        "%63onfidential/a",
        "public/%2e%2e/confidential/a",
        "public\\..\\confidential\\a",
        "public/../../confidential/a",
        "../confidential/a",
        "/confidential/a",
        "~/confidential/a",
        "file:///confidential/a",
        "C:confidential/a",
        "public/a\u0000.txt",
        "public/\u202egnp",
        "ｃonfidential/a",
        "public/a. ",
        "public/.. /confidential",
        "public/\u200b",
        "public/e\u0301",
    ],
    ids=ascii,
)
def test_a_path_without_one_meaning_is_refused_and_not_sent(files: RunningGateway, path: str) -> None:
    before = len(files.executor.calls)
    answer = files.call("file_read", {"file_path": path})
    assert (answer.status, answer.body["error"]["field"]) == (422, "file_path")
    assert files.last_record()["reason"] == "invalid_argument"
    assert len(files.executor.calls) == before


def test_the_canonical_path_is_what_the_tool_gets(files: RunningGateway) -> None:
    assert files.call("file_read", {"file_path": "./public//a/../b.txt"}).status == 200
    assert files.executor.calls[-1].arguments == {"file_path": "public/b.txt"}


def test_leaving_a_parameter_out_does_not_get_past_a_rule_about_it(files: RunningGateway) -> None:
    before = len(files.executor.calls)
    for arguments, reason, rule, level in [
        ({}, "condition_undecided", "never", "HIGH"),
        ({"target": "dev"}, "condition_undecided", "never", "HIGH"),
        ({"mode": "read"}, "condition_undecided", "not_there", "HIGH"),
        ({"mode": "delete"}, "rule_denies", "never", "MEDIUM"),
        ({"mode": "delete", "target": "dev"}, "rule_denies", "never", "MEDIUM"),
        ({"mode": "read", "target": "prod"}, "no_rule_matched", None, "HIGH"),
    ]:
        assert_denied(files, files.call("choose", arguments), reason, rule, level)
    assert len(files.executor.calls) == before
    assert files.call("choose", {"mode": "read", "target": "dev"}).status == 200


def test_a_tool_without_rules_is_denied(executor: FakeToolServer, tmp_path: Path) -> None:
    with running_gateway(parse_policy("tools: [{name: list_tables}]"), tmp_path, executor) as gateway:
        assert_denied(gateway, gateway.call("list_tables", {}), "no_rule_matched", None, "HIGH")
    assert executor.calls == []


def test_a_label_is_up_before_the_read_is_sent(gateway: RunningGateway) -> None:
    release = threading.Event()
    gateway.executor.on("query_incidents", Waits(release))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(gateway.call, "query_incidents", {})
        assert gateway.executor.arrived.acquire(timeout=WAIT_S)
        gateway.call("file_write", {})
        during = gateway.last_record()
        release.set()
        assert running.result().status == 200
    assert during["context_before"] == {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}


def test_what_the_caller_sends_beside_the_body_does_not_reach_the_tool_server(gateway: RunningGateway) -> None:
    headers = {
        "Authorization": "Bearer stolen",
        "Cookie": "session=canary",
        "Mcp-Session-Id": "canary",
        "Mcp-Name": "file_write",
        "X-Forwarded-For": "canary",
        "Traceparent": "canary",
    }
    body = b'{"session_id":"s","tool_name":"list_tables","args":{}}'
    assert gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=body, headers=headers).status == 200
    [call] = gateway.executor.calls
    assert call.headers["authorization"] == "Bearer upstream-token"
    text = repr(call.headers) + call.body.decode()
    assert [word for word in ("canary", "stolen", gateway.key, "x-api-key", "file_write") if word in text] == []
