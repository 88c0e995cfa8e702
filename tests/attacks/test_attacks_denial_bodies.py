"""Attacker controls: the calls of one session, all of them refused or failing in some way.

Wanted: that a refusal tells what a result would: arguments, data of other sessions, keys, credentials of tool servers,
paths, addresses, tracebacks. Canaries are planted in all of them; no body and no header of any refusal holds one.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, AnswersText, Dies, Fails, FakeToolServer, Sends
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

TOKEN = "canary-upstream-token-4711"  # planted to be looked for
ARGUMENT = "canary-argument-0815"
DATA = "canary-data-of-another-session"

POLICY = """
tools:
  - name: query_incidents
    server: canary-server-name
    effect: read
    parameters: [{name: owner, type: string}, {name: limit, type: integer}]
    taint_rules:
      - {rule_id: rule_deny, condition: "owner == 'canary-argument-0815' and limit == 1", taint_level: HIGH, deny: true}
      - {rule_id: rule_ask, condition: "limit == 2", taint_level: MEDIUM, requires_approval: true}
      - {rule_id: rule_allow, condition: "limit == 3", taint_level: LOW}
"""


@pytest.fixture
def policy() -> Policy:
    return parse_policy(POLICY, source="/canary/policy/path.yaml")


def refusals(gateway: RunningGateway) -> list[tuple[str, HttpAnswer, int]]:
    """One answer of every kind that is not a success, with the status it should have."""
    other = gateway.state.keys.create([Scope.EXECUTE])[0]
    gateway.executor.on("query_incidents", Answers({"rows": [{"owner": DATA}]}))
    assert DATA in gateway.call("query_incidents", {"limit": 3}, session_id="other", key=other).content.decode()
    found = [
        ("rule denies", gateway.call("query_incidents", {"owner": ARGUMENT, "limit": 1}), 403),
        ("approval", gateway.call("query_incidents", {"owner": ARGUMENT, "limit": 2}), 403),
        ("no rule", gateway.call("query_incidents", {"owner": ARGUMENT, "limit": 4}), 403),
        ("undecided", gateway.call("query_incidents", {"owner": ARGUMENT}), 403),
        ("unknown tool", gateway.call("canary-argument-0815", {"owner": ARGUMENT}), 403),
        ("unknown argument", gateway.call("query_incidents", {ARGUMENT: 1}), 422),
        ("wrong type", gateway.call("query_incidents", {"limit": ARGUMENT}), 422),
        ("foreign session", gateway.call("query_incidents", {"limit": 3}, session_id="other"), 404),
        ("wrong key", gateway.call("query_incidents", {"limit": 3}, key=f"sr_{'0' * 12}_{ARGUMENT}"), 401),
        ("malformed", gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=ARGUMENT.encode()), 422),
        ("duplicate key", _raw(gateway, f'{{"session_id":"s","{ARGUMENT}":1,"{ARGUMENT}":2}}'), 422),
        (
            "bad session id",
            _raw(gateway, json.dumps({"session_id": f"{ARGUMENT} ", "tool_name": "x", "args": {}})),
            422,
        ),
        ("no route", gateway.request("GET", f"/v1/{ARGUMENT}", key=gateway.key), 404),
        ("no record", gateway.request("GET", f"/v1/audit/{ARGUMENT}", key=gateway.auditor), 404),
        ("bad page", gateway.request("GET", f"/v1/audit?after={ARGUMENT}", key=gateway.auditor), 422),
    ]
    failing = QueryError(code=QueryErrorCode.UNAVAILABLE, message="The service is away.")
    for name, behaviour, status in [
        ("dies", Dies(), 502),
        ("typed failure", Fails(failing), 502),
        ("credential in an error", AnswersText((f"sent {TOKEN}",), is_error=True), 502),
        ("page with a credential", Sends(TOKEN.encode() + DATA.encode(), 500, "text/html"), 502),
        ("rpc error", Sends(json.dumps({"id": None, "error": {"code": -1, "message": TOKEN}}).encode()), 502),
    ]:
        gateway.executor.on("query_incidents", behaviour)
        found.append((name, gateway.call("query_incidents", {"owner": ARGUMENT, "limit": 3}), status))
    return found


def test_no_refusal_holds_what_it_refused_or_anything_of_others(
    policy: Policy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    folder = tmp_path / "canary-folder"
    with FakeToolServer(token=TOKEN).running() as executor, running_gateway(policy, folder, executor) as gateway:
        secrets = [TOKEN, ARGUMENT, DATA, gateway.key, gateway.auditor, gateway.key.rpartition("_")[2]]
        hidden = [*secrets, "canary", "/canary/policy", str(folder), executor.url, "Traceback", "sentinel_rag", '.py"']
        for name, answer, status in refusals(gateway):
            assert answer.status == status, name
            text = answer.content.decode() + json.dumps(dict(answer.headers))
            assert [word for word in hidden if word in text] == [], name
            assert set(answer.body) <= {"detail", "status", "reason", "rule_id", "audit_id", "error", "approval_id"}, (
                name
            )
    assert [word for word in secrets if word in caplog.text] == []


def test_a_denial_is_the_same_whether_a_tool_exists_or_not(gateway: RunningGateway) -> None:
    unknown = gateway.call("file_write", {"path": "x"}).body
    denied = gateway.call("run_kql_query", {"template": "raw_signins"}).body
    assert unknown.keys() == denied.keys() - {"approval_id"}
    assert unknown["detail"] == denied["detail"] == "Access denied by security policy. Taint level: HIGH"


def _raw(gateway: RunningGateway, text: str) -> HttpAnswer:
    return gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=text.encode())
